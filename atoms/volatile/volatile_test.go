package volatile_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/volatile"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

var errOnPurpose = errors.New("failed on purpose")

func newCoordinator(t testing.TB, opts core.Options) *core.Coordinator[coretest.Body] {
	t.Helper()
	c, err := core.NewCoordinator(coretest.Run, opts)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func newEvictor(t testing.TB, target volatile.Target, opts volatile.Options) *volatile.Evictor {
	t.Helper()
	e, err := volatile.New(target, opts)
	require.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

func enqueue(t testing.TB, c *core.Coordinator[coretest.Body], body coretest.Body) core.OperationID {
	t.Helper()
	id, err := c.TryEnqueue(body)
	require.NoError(t, err)
	return id
}

func shown(c *core.Coordinator[coretest.Body], id core.OperationID) bool {
	_, ok := c.Lookup(id)
	return ok
}

func untilCancelled(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func quick(context.Context) error { return nil }

func balanced(t testing.TB, s volatile.Stats) {
	t.Helper()
	assert.Equal(t, s.Matched, s.Killed+s.Missed+s.Spared+s.Repeated+s.Abandoned+uint64(s.Underway), "%+v", s)
}

// Weak point: a killed operation is finalized while it runs, with an incomplete
// history, and counted as completed. Here it leaves when its body has returned, and
// the echo has all it said.
func TestAnOperationThatKillsItselfLeavesWhenItHasFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{})
		e := newEvictor(t, c, volatile.Options{})
		var final []core.Snapshot
		c.OnFinalized(func(s core.Snapshot) { final = append(final, s) })
		id := enqueue(t, c, func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			op.Raise("job.begun")
			op.Raise("kill.job")
			op.Raise("kill.job")
			time.Sleep(time.Minute)
			op.Raise("job.archived")
			return nil
		})
		other := enqueue(t, c, quick)
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		assert.True(t, shown(c, id), "while it runs")
		assert.Equal(t, volatile.Stats{Matched: 2, Repeated: 1, Underway: 1}, e.Stats())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.False(t, shown(c, id), "and not after")
		assert.True(t, shown(c, other))
		assert.Equal(t, volatile.Stats{Matched: 2, Repeated: 1, Killed: 1}, e.Stats())
		require.Len(t, final, 1)
		assert.Equal(t, core.StatusSucceeded, final[0].Status, "its body returned nil")
		s := c.Stats()
		assert.NoError(t, coretest.CheckBooks(s))
		assert.Equal(t, uint64(2), s.Succeeded)

		var said []string
		for echo := range c.Echoes(core.Query{Operation: id}) {
			for _, s := range echo.Signals {
				said = append(said, s.Name)
			}
		}
		assert.Equal(t, []string{"job.begun", "kill.job", "kill.job", "job.archived"}, said, "the echo remains")
	})
}

// Weak point: "kill" does not cancel the body.
func TestKillCancelsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{MaxConcurrency: 1})
		newEvictor(t, c, volatile.Options{ByKey: true})
		id := enqueue(t, c, func(ctx context.Context) error {
			err := untilCancelled(ctx)
			time.Sleep(time.Second) // tidying up takes time
			return err
		})
		next := enqueue(t, c, quick)
		waited := make(chan error, 1)
		go func() { waited <- c.Wait(t.Context(), id) }()
		synctest.Wait()
		c.Sink().RaiseKey("kill.job", id.String())
		synctest.Wait()
		s := c.Stats()
		assert.Equal(t, 1, s.Running, "it keeps its slot until its body returns")
		assert.True(t, shown(c, id))
		assert.ErrorIs(t, <-waited, volatile.ErrKilled)
		synctest.Wait()
		assert.False(t, shown(c, id))
		assert.True(t, shown(c, next))
		s = c.Stats()
		assert.Equal(t, uint64(1), s.Cancelled)
		assert.Equal(t, uint64(1), s.Succeeded)
		assert.NoError(t, coretest.CheckBooks(s))
	})
}

func TestKillCancelsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{MaxConcurrency: 1})
		e := newEvictor(t, c, volatile.Options{ByKey: true})
		running := enqueue(t, c, untilCancelled)
		id := enqueue(t, c, func(context.Context) error { t.Error("it ran"); return nil })
		synctest.Wait()
		waited := make(chan error, 1)
		go func() { waited <- c.Wait(t.Context(), id) }()
		synctest.Wait()
		c.Sink().RaiseKey("kill.job", id.String())
		assert.False(t, shown(c, id), "at once")
		assert.ErrorIs(t, <-waited, volatile.ErrKilled)
		assert.Equal(t, volatile.Stats{Matched: 1, Killed: 1}, e.Stats())
		c.Cancel(running, nil)
	})
}

func TestKillEvictsWhatIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, keep := range []bool{false, true} {
			c := newCoordinator(t, core.Options{})
			e := newEvictor(t, c, volatile.Options{ByKey: true, KeepPinned: keep})
			plain, pinned := enqueue(t, c, quick), enqueue(t, c, quick)
			late := enqueue(t, c, func(ctx context.Context) error {
				err := untilCancelled(ctx)
				time.Sleep(time.Second)
				return err
			})
			synctest.Wait()
			_, ok := c.Pin(pinned)
			require.True(t, ok)
			for _, id := range []core.OperationID{plain, pinned, late} {
				c.Sink().RaiseKey("kill.job", id.String())
			}
			_, ok = c.Pin(late) // too late to be spared from cancelling
			require.True(t, ok)
			time.Sleep(2 * time.Second)
			assert.False(t, shown(c, plain))
			assert.Equal(t, keep, shown(c, pinned), "pinned or not, unless KeepPinned")
			assert.Equal(t, keep, shown(c, late))
			s := e.Stats()
			balanced(t, s)
			if keep {
				assert.Equal(t, volatile.Stats{Matched: 3, Killed: 1, Spared: 2}, s)
			} else {
				assert.Equal(t, uint64(3), s.Killed)
			}
			assert.Equal(t, uint64(1), c.Stats().Cancelled)
		}
	})
}

func TestLetFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{MaxConcurrency: 1})
		e := newEvictor(t, c, volatile.Options{ByKey: true, LetFinish: true})
		slow := func(ctx context.Context) error {
			time.Sleep(time.Second)
			return ctx.Err()
		}
		first, second := enqueue(t, c, slow), enqueue(t, c, slow)
		synctest.Wait()
		c.Sink().RaiseKey("kill.job", first.String())
		c.Sink().RaiseKey("kill.job", second.String())
		assert.Equal(t, 2, e.Stats().Underway)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.False(t, shown(c, first))
		assert.True(t, shown(c, second))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.False(t, shown(c, second))
		assert.Equal(t, uint64(2), c.Stats().Succeeded)
		c.Sink().RaiseKey("kill.job", second.String())
		assert.Equal(t, volatile.Stats{Matched: 3, Killed: 2, Missed: 1}, e.Stats())
	})
}

// Weak point: the predicate takes the place of the pattern.
func TestPatternAndPredicateMustAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{})
		var asked []string
		newEvictor(t, c, volatile.Options{Pattern: "kill.*, end", If: func(s core.Signal) bool {
			asked = append(asked, s.Name)
			return s.Name != "kill.not"
		}})
		raise := func(name string) core.OperationID {
			id := enqueue(t, c, func(ctx context.Context) error { core.OperationFrom(ctx).Raise(name); return nil })
			synctest.Wait()
			return id
		}
		assert.True(t, shown(c, raise("other")))
		assert.True(t, shown(c, raise("kill.not")))
		assert.False(t, shown(c, raise("kill.job")))
		assert.False(t, shown(c, raise("end")))
		assert.Equal(t, []string{"kill.not", "kill.job", "end"}, asked)
	})
}

// Signals that name no operation are no matter of the evictor's; those of operations
// of others are missed.
func TestSignalsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c, other := newCoordinator(t, core.Options{Sink: sink}), newCoordinator(t, core.Options{Sink: sink})
		var missed []core.OperationID
		e := newEvictor(t, c, volatile.Options{OnMissed: func(id core.OperationID, _ core.Signal) { missed = append(missed, id) }})
		mine := enqueue(t, c, quick)
		sink.Raise("kill.job")
		sink.RaiseKey("kill.job", mine.String())
		assert.Zero(t, e.Stats(), "without ByKey")
		theirs := enqueue(t, other, func(ctx context.Context) error {
			core.OperationFrom(ctx).RaiseKey("kill.job", mine.String())
			return nil
		})
		synctest.Wait()
		assert.True(t, shown(c, mine))
		assert.True(t, shown(other, theirs))
		assert.Equal(t, []core.OperationID{theirs}, missed)
		require.NoError(t, e.Close())

		e = newEvictor(t, c, volatile.Options{ByKey: true})
		sink.RaiseKey("kill.job", "no number")
		sink.RaiseKey("kill.job", "-1")
		sink.RaiseKey("kill.job", "99999999999999999999999999")
		sink.RaiseKey("kill.job", theirs.String())
		enqueue(t, other, func(ctx context.Context) error {
			core.OperationFrom(ctx).RaiseKey("kill.job", mine.String())
			return nil
		})
		synctest.Wait()
		assert.True(t, shown(c, mine), "the key of an operation's signal may mean anything")
		assert.Zero(t, e.Stats().Killed)
		sink.RaiseKey("kill.job", mine.String())
		assert.False(t, shown(c, mine))
	})
}

// Weak point: callbacks run with panics swallowed. Here they are counted, and callbacks
// may call anything.
func TestCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{})
		signals := coretest.Watch(t, c.Sink(), "volatile.*")
		var told []string
		var e *volatile.Evictor
		note := func(what string) func(core.OperationID, core.Signal) {
			return func(id core.OperationID, s core.Signal) {
				assert.False(t, shown(c, id))
				e.Stats()
				told = append(told, fmt.Sprint(what, " by ", s.Name))
				panic(errOnPurpose)
			}
		}
		e = newEvictor(t, c, volatile.Options{ByKey: true, OnKilled: note("killed"), OnMissed: note("missed")})
		id := enqueue(t, c, quick)
		synctest.Wait()
		c.Sink().RaiseKey("kill.first", id.String())
		c.Sink().RaiseKey("kill.second", id.String())
		running := enqueue(t, c, untilCancelled)
		synctest.Wait()
		c.Sink().RaiseKey("kill.third", running.String())
		synctest.Wait()
		assert.Equal(t, []string{"killed by kill.first", "missed by kill.second", "killed by kill.third"}, told)
		assert.Equal(t, uint64(3), e.Stats().Panics)
		assert.Zero(t, c.Sink().Stats().Panics)
		raised := signals.ExpectExactly(volatile.SignalKilled, volatile.SignalMissed, volatile.SignalKilled)
		assert.Equal(t, id.String(), raised[0].Key)
		assert.Equal(t, []string{"kill.third", volatile.SignalKilled}, raised[2].Path())
	})
}

// Its own signals kill nothing, whatever the pattern.
func TestNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{Sink: core.NewSink(core.SinkOptions{Propagation: core.Propagation{AllowCycles: true, MaxDepth: -1}})})
		e := newEvictor(t, c, volatile.Options{Pattern: "*", ByKey: true})
		c.Sink().RaiseKey("anything", "7777777")
		assert.Equal(t, volatile.Stats{Matched: 1, Missed: 1}, e.Stats())
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{})
		var e *volatile.Evictor
		var killed atomic.Int32
		e = newEvictor(t, c, volatile.Options{ByKey: true, OnKilled: func(core.OperationID, core.Signal) {
			killed.Add(1)
			assert.NoError(t, e.Close(), "from a callback")
		}})
		stubborn := enqueue(t, c, func(context.Context) error { time.Sleep(time.Hour); return nil })
		id := enqueue(t, c, quick)
		synctest.Wait()
		c.Sink().RaiseKey("kill.job", stubborn.String())
		c.Sink().RaiseKey("kill.job", id.String())
		for range 3 {
			require.NoError(t, e.Close())
		}
		s := e.Stats()
		balanced(t, s)
		assert.Equal(t, volatile.Stats{Matched: 2, Killed: 1, Abandoned: 1}, s)
		c.Sink().RaiseKey("kill.job", stubborn.String())
		assert.Equal(t, s, e.Stats(), "it does not listen any more")
		require.NoError(t, c.Drain(t.Context()))
		assert.True(t, shown(c, stubborn), "the window shows it as any other")
		assert.Equal(t, int32(1), killed.Load())
	})
}

// slowEviction is a target that says when an operation is evicted, and waits.
type slowEviction struct {
	*core.Coordinator[coretest.Body]
	evicting chan struct{}
}

func (s slowEviction) Evict(id core.OperationID) bool {
	if !s.Coordinator.Evict(id) {
		return false
	}
	s.evicting <- struct{}{}
	<-s.evicting
	return true
}

// A running operation that is killed is evicted on a goroutine of the evictor, which
// Close does not wait for.
func TestNoCallbackStartsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{})
		target := slowEviction{c, make(chan struct{})}
		closed := false
		e := newEvictor(t, target, volatile.Options{ByKey: true, OnKilled: func(core.OperationID, core.Signal) {
			assert.False(t, closed)
		}})
		id := enqueue(t, c, func(context.Context) error { time.Sleep(time.Second); return nil })
		synctest.Wait()
		c.Sink().RaiseKey("kill.job", id.String())
		<-target.evicting
		require.NoError(t, e.Close())
		closed = true
		target.evicting <- struct{}{}
		synctest.Wait()
		assert.Equal(t, volatile.Stats{Matched: 1, Killed: 1}, e.Stats())
	})
}

// Close waits for a callback that runs, on whichever goroutine.
func TestCloseWaitsForCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{})
		ended := 0
		e := newEvictor(t, c, volatile.Options{OnKilled: func(core.OperationID, core.Signal) {
			time.Sleep(time.Second)
			ended++
		}})
		enqueue(t, c, func(ctx context.Context) error { core.OperationFrom(ctx).Raise("kill.job"); return nil })
		synctest.Wait()
		require.NoError(t, e.Close())
		assert.Equal(t, 1, ended)
	})
}

// Who waits for an operation that is killed is told, wherever it was.
func TestWhoWaitsForAKilledOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		same := func(coretest.Body) string { return "key" }
		c := core.Must(core.NewKeyedCoordinator(same, coretest.Run, core.Options{Lanes: core.Must(core.ParseLanes("hot, normal"))}))
		defer c.Close()
		e := newEvictor(t, c, volatile.Options{ByKey: true})
		results := make(chan error, 3)
		do := func(lane string) {
			go func() { results <- c.Lane(lane).Do(t.Context(), untilCancelled) }()
			synctest.Wait()
		}
		do("normal")
		do("normal")
		do("hot")
		for op := range c.Operations(core.OperationQuery{}) {
			c.Sink().RaiseKey("kill.job", op.ID.String())
			synctest.Wait()
			assert.ErrorIs(t, <-results, volatile.ErrKilled)
			assert.False(t, shown(c, op.ID))
		}
		assert.Equal(t, volatile.Stats{Matched: 3, Killed: 3}, e.Stats())
		s := c.Stats()
		assert.Equal(t, []uint64{3, 3}, []uint64{s.Enqueued, s.Cancelled})
	})
}

// A body that has killed itself, and a callback on a goroutine of the evictor, may
// close it.
func TestCloseFromABodyAndFromACallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fromBody := range []bool{true, false} {
			c := newCoordinator(t, core.Options{})
			made := make(chan *volatile.Evictor, 1)
			enqueue(t, c, func(ctx context.Context) error {
				e := <-made
				made <- e
				core.OperationFrom(ctx).Raise("kill.job")
				if fromBody {
					return e.Close()
				}
				return nil
			})
			e := newEvictor(t, c, volatile.Options{OnKilled: func(core.OperationID, core.Signal) {
				e := <-made
				assert.NoError(t, e.Close())
			}})
			made <- e
			synctest.Wait()
			if fromBody {
				assert.Equal(t, volatile.Stats{Matched: 1, Abandoned: 1}, e.Stats())
			} else {
				assert.Equal(t, volatile.Stats{Matched: 1, Killed: 1}, e.Stats())
			}
		}
	})
}

// A handler that ends its goroutine loses no count.
func TestGoexitInAFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{})
		e := newEvictor(t, c, volatile.Options{ByKey: true})
		cancel := c.OnFinalized(func(core.Snapshot) { runtime.Goexit() })
		id := enqueue(t, c, quick)
		synctest.Wait()
		go c.Sink().RaiseKey("kill.job", id.String())
		running := enqueue(t, c, untilCancelled)
		synctest.Wait()
		go c.Sink().RaiseKey("kill.job", running.String())
		synctest.Wait()
		assert.Equal(t, volatile.Stats{Matched: 2, Killed: 2}, e.Stats())
		cancel()
	})
}

func TestResultsAreATarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := core.Must(core.NewResultCoordinator(func(ctx context.Context, n int) (int, error) {
			core.OperationFrom(ctx).Raise("kill.job")
			return 2 * n, nil
		}, core.Options{}))
		newEvictor(t, volatile.Results(c), volatile.Options{LetFinish: true})
		future, err := c.Submit(t.Context(), 21)
		require.NoError(t, err)
		synctest.Wait()
		_, ok := c.Lookup(future.ID())
		assert.False(t, ok)
		n, err := future.Wait(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, 42, n, "who holds the result keeps it")
		require.NoError(t, c.Close())
	})
}

func TestOptions(t *testing.T) {
	_, err := volatile.New(nil, volatile.Options{})
	assert.ErrorContains(t, err, "volatile: ")
	_, err = volatile.New(volatile.Results[int, int](nil), volatile.Options{})
	assert.ErrorContains(t, err, "volatile: ")
}

// Weak point: readers see a half-empty window during a kill. Here, with many kills at
// once, what is not killed is always there, and all books balance.
func TestKillsBesideReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{MaxConcurrency: 8, MaxTracked: 1000})
		e := newEvictor(t, c, volatile.Options{ByKey: true})
		var kept []core.OperationID
		for range 20 {
			kept = append(kept, enqueue(t, c, quick))
		}
		synctest.Wait()
		var all sync.WaitGroup
		for g := range uint64(8) {
			all.Go(func() {
				r := rand.New(rand.NewPCG(3, g))
				for range 50 {
					id, err := c.Enqueue(t.Context(), func(ctx context.Context) error {
						if r := core.OperationFrom(ctx).ID() % 3; r == 0 {
							core.OperationFrom(ctx).Raise("kill.job")
						} else if r == 1 {
							time.Sleep(time.Millisecond)
						}
						return ctx.Err()
					})
					require.NoError(t, err)
					if r.IntN(2) == 0 {
						c.Sink().RaiseKey("kill.job", id.String())
					}
					for _, id := range kept {
						assert.True(t, shown(c, id))
					}
					balanced(t, e.Stats())
				}
			})
		}
		all.Wait()
		require.NoError(t, c.Drain(t.Context()))
		synctest.Wait()
		s := e.Stats()
		balanced(t, s)
		assert.Zero(t, s.Underway)
		assert.NoError(t, coretest.CheckBooks(c.Stats()))
		assert.Equal(t, uint64(420), c.Stats().Enqueued)
		assert.Equal(t, 420-int(s.Killed), c.Stats().Tracked)
	})
}
