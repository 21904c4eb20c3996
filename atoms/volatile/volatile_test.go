package volatile_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
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

// results is how a coordinator whose operations have results becomes a target.
type results struct {
	*core.ResultCoordinator[int, int]
}

func (r results) Wait(ctx context.Context, id core.OperationID) error {
	_, err := r.ResultCoordinator.Wait(ctx, id)
	return err
}

var _ volatile.Target = results{}

// coordinator is the target of these tests.
type coordinator struct {
	*core.Coordinator[coretest.Body]
}

func newCoordinator(t testing.TB, opts core.Options) coordinator {
	c := coordinator{core.Must(core.NewCoordinator(coretest.Run, opts))}
	t.Cleanup(func() { c.Close() })
	return c
}

func newEvictor(t testing.TB, target volatile.Target, opts volatile.Options) *volatile.Evictor {
	e := core.Must(volatile.New(target, opts))
	t.Cleanup(func() { e.Close() })
	return e
}

// run enqueues an operation and waits until everything waits.
func (c coordinator) run(body coretest.Body) core.OperationID {
	id := core.Must(c.TryEnqueue(context.Background(), body))
	synctest.Wait()
	return id
}

func (c coordinator) shows(id core.OperationID) bool {
	_, ok := c.Lookup(id)
	return ok
}

// kill raises a signal that kills the operations with these ids.
func (c coordinator) kill(ids ...core.OperationID) {
	for _, id := range ids {
		c.Sink().RaiseKey("kill.job", id.String())
	}
	synctest.Wait()
}

func quick(context.Context) error { return nil }
func untilCancelled(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}
func raises(names ...string) coretest.Body {
	return func(ctx context.Context) error {
		for _, name := range names {
			core.OperationFrom(ctx).Raise(name)
		}
		return nil
	}
}

// slowly lets a body take a second more, and end with the error of its context.
func slowly(body coretest.Body) coretest.Body {
	return func(ctx context.Context) error {
		err := body(ctx)
		time.Sleep(time.Second)
		return err
	}
}

// An operation that kills itself leaves when its body has returned. The echo has all its
// signals.
func TestAnOperationThatKillsItselfLeavesWhenItHasFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{})
		e := newEvictor(t, c, volatile.Options{})
		var final []core.Snapshot
		c.OnFinalized(func(s core.Snapshot) { final = append(final, s) })
		id := c.run(func(ctx context.Context) error {
			_ = slowly(raises("job.begun", "kill.job", "kill.job"))(ctx)
			return raises("job.archived")(ctx)
		})
		other := c.run(quick)
		time.Sleep(time.Second - 1)
		synctest.Wait()
		assert.True(t, c.shows(id), "while it runs")
		assert.Equal(t, volatile.Stats{Matched: 2, Repeated: 1, Underway: 1}, e.Stats())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.False(t, c.shows(id), "and not after")
		assert.True(t, c.shows(other))
		assert.Equal(t, volatile.Stats{Matched: 2, Repeated: 1, Killed: 1}, e.Stats())
		require.Len(t, final, 1)
		assert.Equal(t, core.StatusSucceeded, final[0].Status, "its body returned nil")
		assert.NoError(t, coretest.CheckBooks(c.Stats()))
		assert.Equal(t, uint64(2), c.Stats().Succeeded)
		var said []string
		for echo := range c.Echoes(core.Query{Operation: id}) {
			for _, s := range echo.Signals {
				said = append(said, s.Name)
			}
		}
		assert.Equal(t, []string{"job.begun", "kill.job", "kill.job", "job.archived"}, said)
	})
}

// A kill cancels an operation that runs, which keeps its slot until its body returns, and
// one that waits. A waiter for it gets ErrKilled.
func TestKillCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{MaxConcurrency: 1})
		e := newEvictor(t, c, volatile.Options{ByKey: true})
		ended := make(chan error, 1)
		for range 2 {
			go func() { ended <- c.Do(t.Context(), slowly(untilCancelled)) }()
			synctest.Wait()
		}
		var ids []core.OperationID
		for op := range c.Operations(core.OperationQuery{}) {
			ids = append(ids, op.ID)
		}
		c.kill(ids[1])
		assert.False(t, c.shows(ids[1]), "at once")
		assert.ErrorIs(t, <-ended, volatile.ErrKilled)
		c.kill(ids[0])
		assert.True(t, c.shows(ids[0]))
		assert.Equal(t, 1, c.Stats().Running)
		assert.ErrorIs(t, <-ended, volatile.ErrKilled)
		synctest.Wait()
		assert.False(t, c.shows(ids[0]))
		assert.Equal(t, volatile.Stats{Matched: 2, Killed: 2}, e.Stats())
		assert.Equal(t, uint64(2), c.Stats().Cancelled)
	})
}

func TestKillEvictsWhatIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for keep, want := range map[bool]volatile.Stats{false: {Matched: 3, Killed: 3}, true: {Matched: 3, Killed: 1, Spared: 2}} {
			c := newCoordinator(t, core.Options{})
			e := newEvictor(t, c, volatile.Options{ByKey: true, KeepPinned: keep})
			plain, pinned := c.run(quick), c.run(quick)
			late := c.run(slowly(untilCancelled))
			c.Pin(pinned)
			c.kill(plain, pinned, late)
			c.Pin(late) // too late to keep it from being cancelled
			time.Sleep(2 * time.Second)
			assert.False(t, c.shows(plain))
			assert.Equal(t, keep, c.shows(pinned), "pinned or not, unless KeepPinned")
			assert.Equal(t, keep, c.shows(late))
			assert.Equal(t, want, e.Stats())
			assert.Equal(t, uint64(1), c.Stats().Cancelled)
		}
	})
}

func TestLetFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{MaxConcurrency: 1})
		e := newEvictor(t, c, volatile.Options{ByKey: true, LetFinish: true})
		first, second := c.run(slowly(quick)), c.run(slowly(quick))
		c.kill(first, second)
		assert.Equal(t, 2, e.Stats().Underway)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []bool{false, true}, []bool{c.shows(first), c.shows(second)})
		time.Sleep(time.Second)
		synctest.Wait()
		assert.False(t, c.shows(second))
		assert.Equal(t, uint64(2), c.Stats().Succeeded)
		c.kill(second)
		assert.Equal(t, volatile.Stats{Matched: 3, Killed: 2, Missed: 1}, e.Stats())
	})
}

func TestPatternAndPredicateMustAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{})
		var asked []string
		newEvictor(t, c, volatile.Options{Pattern: "kill.*, end", If: func(s core.Signal) bool {
			asked = append(asked, s.Name)
			return s.Name != "kill.not"
		}})
		for name, stays := range map[string]bool{"other": true, "kill.not": true, "kill.job": false, "end": false} {
			assert.Equal(t, stays, c.shows(c.run(raises(name))), name)
		}
		assert.ElementsMatch(t, []string{"kill.not", "kill.job", "end"}, asked)
	})
}

// Signals that name no operation are ignored; signals of operations of other coordinators
// are counted as missed.
func TestSignalsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c, other := newCoordinator(t, core.Options{Sink: sink}), newCoordinator(t, core.Options{Sink: sink})
		var missed []core.OperationID
		e := newEvictor(t, c, volatile.Options{OnMissed: func(id core.OperationID, _ core.Signal) { missed = append(missed, id) }})
		mine := c.run(quick)
		sink.Raise("kill.job")
		c.kill(mine)
		assert.Zero(t, e.Stats(), "without ByKey")
		killMine := func(ctx context.Context) error {
			core.OperationFrom(ctx).RaiseKey("kill.job", mine.String())
			return nil
		}
		theirs := other.run(killMine)
		assert.True(t, other.shows(theirs))
		assert.Equal(t, []core.OperationID{theirs}, missed)
		require.NoError(t, e.Close())

		e = newEvictor(t, c, volatile.Options{ByKey: true})
		for _, key := range []string{"no number", "-1", "99999999999999999999999999", theirs.String()} {
			sink.RaiseKey("kill.job", key)
		}
		other.run(killMine)
		assert.True(t, c.shows(mine), "the key of an operation's signal may mean anything")
		assert.Zero(t, e.Stats().Killed)
		c.kill(mine)
		assert.False(t, c.shows(mine))
	})
}

// Callbacks may call anything; their panics are counted.
func TestCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{Name: "jobs"})
		signals := coretest.Watch(t, c.Sink(), "volatile.*")
		var called []string
		var e *volatile.Evictor
		note := func(what string) func(core.OperationID, core.Signal) {
			return func(id core.OperationID, s core.Signal) {
				assert.False(t, c.shows(id))
				e.Stats()
				called = append(called, fmt.Sprint(what, " by ", s.Name))
				panic(errOnPurpose)
			}
		}
		e = newEvictor(t, c, volatile.Options{ByKey: true, OnKilled: note("killed"), OnMissed: note("missed")})
		id := c.run(quick)
		c.kill(id, id, c.run(untilCancelled))
		assert.Equal(t, []string{"killed by kill.job", "missed by kill.job", "killed by kill.job"}, called)
		assert.Equal(t, uint64(3), e.Stats().Panics)
		assert.Zero(t, c.Sink().Stats().Panics)
		raised := signals.ExpectExactly(volatile.SignalKilled, volatile.SignalMissed, volatile.SignalKilled)
		assert.Equal(t, id.String(), raised[0].Key)
		assert.Equal(t, []string{"kill.job", volatile.SignalKilled}, raised[2].Path())
		assert.Equal(t, "jobs", e.Name())
		assert.Same(t, c.Sink(), e.Sink())
	})
}

// Its own signals kill nothing, whatever the pattern.
func TestNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{Sink: core.NewSink(core.SinkOptions{Propagation: core.Propagation{AllowCycles: true, MaxDepth: -1}})})
		e := newEvictor(t, c, volatile.Options{Pattern: "*", ByKey: true})
		c.Sink().RaiseKey("anything", "7777777")
		assert.Equal(t, volatile.Stats{Matched: 1, Missed: 1}, e.Stats())
		assert.JSONEq(t, `{"matched":1,"killed":0,"missed":1,"spared":0,"repeated":0,"abandoned":0,"underway":0,"panics":0}`, e.Stats().String())
		assert.Len(t, e.Stats().LogValue().Group(), 8)
	})
}

// Close abandons operations that are not finished and waits for callbacks that run. A
// body that has killed itself, and a callback, may call it.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{})
		var e *volatile.Evictor
		ended := 0
		e = newEvictor(t, c, volatile.Options{OnKilled: func(core.OperationID, core.Signal) { time.Sleep(time.Second); ended++ }})
		stubborn := c.run(slowly(raises("kill.job")))
		c.run(raises("kill.job"))
		for range 3 {
			require.NoError(t, e.Close())
		}
		assert.Equal(t, 1, ended, "Close has waited")
		s := e.Stats()
		assert.Equal(t, volatile.Stats{Matched: 2, Killed: 1, Abandoned: 1}, s)
		c.run(raises("kill.job"))
		assert.Equal(t, s, e.Stats(), "it is not subscribed any more")
		time.Sleep(time.Second)
		assert.True(t, c.shows(stubborn), "it stays in the window")

		e = newEvictor(t, c, volatile.Options{})
		c.run(func(ctx context.Context) error { _ = raises("kill.job")(ctx); return e.Close() })
		assert.Equal(t, volatile.Stats{Matched: 1, Abandoned: 1}, e.Stats())
		e = newEvictor(t, c, volatile.Options{ByKey: true, OnKilled: func(core.OperationID, core.Signal) { assert.NoError(t, e.Close()) }})
		c.kill(c.run(untilCancelled))
		assert.Equal(t, volatile.Stats{Matched: 1, Killed: 1}, e.Stats())
	})
}

// Close does not wait for the goroutine that evicts an operation that has finished.
func TestNoCallbackStartsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, evicting, called := newCoordinator(t, core.Options{}), make(chan struct{}), false
		e := newEvictor(t, c, volatile.Options{OnKilled: func(core.OperationID, core.Signal) { called = true }})
		defer c.OnFinalized(func(core.Snapshot) { evicting <- struct{}{}; <-evicting })()
		c.run(raises("kill.job"))
		<-evicting
		require.NoError(t, e.Close())
		evicting <- struct{}{}
		synctest.Wait()
		assert.False(t, called)
		assert.Equal(t, volatile.Stats{Matched: 1, Killed: 1}, e.Stats())
	})
}

// A handler that ends its goroutine loses no count.
func TestGoexitInAFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{})
		e := newEvictor(t, c, volatile.Options{ByKey: true})
		defer c.OnFinalized(func(core.Snapshot) { runtime.Goexit() })()
		for _, body := range []coretest.Body{quick, untilCancelled} {
			id := c.run(body)
			go c.Sink().RaiseKey("kill.job", id.String())
			synctest.Wait()
		}
		assert.Equal(t, volatile.Stats{Matched: 2, Killed: 2}, e.Stats())
	})
}

func TestNewNeedsACoordinator(t *testing.T) {
	_, err := volatile.New(nil, volatile.Options{})
	assert.ErrorContains(t, err, "volatile: ")
}

// With many kills at once, operations that are not killed are always shown, and the
// counters are exact.
func TestKillsBesideReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, core.Options{MaxConcurrency: 8, MaxTracked: 1000})
		e := newEvictor(t, c, volatile.Options{ByKey: true})
		kept := c.run(quick)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for i := range 50 {
					id := core.Must(c.Enqueue(t.Context(), []coretest.Body{quick, slowly(quick), raises("kill.job")}[i%3]))
					if i%2 == 0 {
						c.Sink().RaiseKey("kill.job", id.String())
					}
					assert.True(t, c.shows(kept))
					s := e.Stats()
					assert.Equal(t, s.Matched, s.Killed+s.Missed+s.Spared+s.Repeated+s.Abandoned+uint64(s.Underway), s)
				}
			})
		}
		all.Wait()
		require.NoError(t, c.Drain(t.Context()))
		synctest.Wait()
		assert.Zero(t, e.Stats().Underway)
		assert.Equal(t, 401-int(e.Stats().Killed), c.Stats().Tracked)
	})
}
