package volatile_test

import (
	"context"
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
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// coordinator is the target of these tests.
type coordinator struct {
	*core.Coordinator[coretest.Body]
}

// run enqueues an operation and waits until all goroutines are blocked.
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

// bubble runs a test with a coordinator and an evictor.
func bubble(t *testing.T, of core.Options, opts volatile.Options, test func(*testing.T, coordinator, *volatile.Evictor)) {
	synctest.Test(t, func(t *testing.T) {
		c := coordinator{core.Must(core.NewCoordinator(coretest.Run, of))}
		defer c.Close()
		e := core.Must(volatile.New(c, opts))
		defer e.Close()
		test(t, c, e)
	})
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
	bubble(t, core.Options{}, volatile.Options{}, func(t *testing.T, c coordinator, e *volatile.Evictor) {
		finalized := 0
		c.OnFinalized(func(s core.Snapshot) { finalized++ })
		id := c.run(func(ctx context.Context) error {
			_ = slowly(raises("job.begun", "kill.job", "kill.job"))(ctx)
			return raises("job.archived")(ctx)
		})
		time.Sleep(time.Second - 1)
		synctest.Wait()
		assert.True(t, c.shows(id), "while it runs")
		assert.Equal(t, volatile.Stats{Matched: 2, Repeated: 1, Underway: 1}, e.Stats())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.False(t, c.shows(id), "and not after")
		assert.Equal(t, volatile.Stats{Matched: 2, Repeated: 1, Killed: 1}, e.Stats())
		assert.Equal(t, 1, finalized)
		assert.EqualValues(t, 1, c.Stats().Succeeded, "its body returned nil")
		var said []string
		for echo := range c.Echoes(signals.Query{Operation: id}) {
			for _, s := range echo.Signals {
				said = append(said, s.Name)
			}
		}
		assert.Equal(t, []string{"job.begun", "kill.job", "kill.job", "job.archived"}, said)
	})
}

// Fault avoided: a kill did not cancel. Here a kill cancels a running operation, which
// keeps its slot until its body returns, and a waiting one. Its waiters get ErrKilled.
func TestKillCancels(t *testing.T) {
	bubble(t, core.Options{MaxConcurrency: 1}, volatile.Options{ByKey: true}, func(t *testing.T, c coordinator, e *volatile.Evictor) {
		runs, waits := c.run(slowly(untilCancelled)), c.run(quick)
		ended := make(chan error, 2)
		for _, id := range []core.OperationID{waits, runs} {
			go func() { ended <- c.Wait(t.Context(), id) }()
			synctest.Wait()
			c.kill(id)
			assert.Equal(t, id == runs, c.shows(id), "at once, unless it runs")
			assert.Equal(t, 1, c.Stats().Running)
			assert.ErrorIs(t, <-ended, volatile.ErrKilled)
		}
		synctest.Wait()
		assert.False(t, c.shows(runs))
		assert.Equal(t, volatile.Stats{Matched: 2, Killed: 2}, e.Stats())
		assert.Equal(t, uint64(2), c.Stats().Cancelled)
	})
}

func TestKillEvictsWhatIsFinished(t *testing.T) {
	for keep, want := range map[bool]volatile.Stats{false: {Matched: 3, Killed: 3}, true: {Matched: 3, Killed: 1, Spared: 2}} {
		bubble(t, core.Options{}, volatile.Options{ByKey: true, KeepPinned: keep}, func(t *testing.T, c coordinator, e *volatile.Evictor) {
			plain, pinned, late := c.run(quick), c.run(quick), c.run(slowly(untilCancelled))
			c.Pin(pinned)
			c.kill(plain, pinned, late)
			c.Pin(late) // too late to keep it from being cancelled
			time.Sleep(2 * time.Second)
			assert.Equal(t, []bool{false, keep, keep}, []bool{c.shows(plain), c.shows(pinned), c.shows(late)})
			assert.Equal(t, want, e.Stats())
			assert.Equal(t, uint64(1), c.Stats().Cancelled)
		})
	}
}

func TestLetFinish(t *testing.T) {
	bubble(t, core.Options{MaxConcurrency: 1}, volatile.Options{ByKey: true, LetFinish: true}, func(t *testing.T, c coordinator, e *volatile.Evictor) {
		first, second := c.run(slowly(quick)), c.run(slowly(quick))
		c.kill(first, second)
		assert.Equal(t, 2, e.Stats().Underway)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []bool{false, true}, []bool{c.shows(first), c.shows(second)})
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, uint64(2), c.Stats().Succeeded)
		c.kill(second)
		assert.Equal(t, volatile.Stats{Matched: 3, Killed: 2, Missed: 1}, e.Stats())
	})
}

func TestPatternAndPredicateMustAgree(t *testing.T) {
	var asked []string
	bubble(t, core.Options{}, volatile.Options{Pattern: "kill.*, end", If: func(s signals.Signal) bool {
		asked = append(asked, s.Name)
		return s.Name != "kill.not"
	}}, func(t *testing.T, c coordinator, _ *volatile.Evictor) {
		for name, stays := range map[string]bool{"other": true, "kill.not": true, "kill.job": false, "end": false} {
			assert.Equal(t, stays, c.shows(c.run(raises(name))), name)
		}
		assert.ElementsMatch(t, []string{"kill.not", "kill.job", "end"}, asked)
	})
}

// Signals of operations of other coordinators are counted as missed. Signals of none are
// ignored without ByKey, or if their key is no id.
func TestSignalsOfOthers(t *testing.T) {
	for _, byKey := range []bool{false, true} {
		sink := signals.NewSink(signals.SinkOptions{})
		bubble(t, core.Options{Sink: sink}, volatile.Options{ByKey: byKey}, func(t *testing.T, c coordinator, e *volatile.Evictor) {
			other := core.Must(core.NewCoordinator(coretest.Run, core.Options{Sink: sink}))
			defer other.Close()
			mine := c.run(quick)
			require.NoError(t, other.Do(t.Context(), func(ctx context.Context) error {
				core.OperationFrom(ctx).RaiseKey("kill.job", mine.String()) // this key has no meaning here
				return nil
			}))
			for _, key := range []string{"", "no number", "-1", "99999999999999999999999999"} {
				sink.RaiseKey("kill.job", key)
			}
			assert.Zero(t, e.Stats().Killed)
			missed := e.Stats().Missed
			assert.GreaterOrEqual(t, missed, uint64(1))
			c.kill(mine)
			assert.Equal(t, byKey, !c.shows(mine))
			assert.Equal(t, missed, e.Stats().Missed)
		})
	}
}

// Callbacks may call anything; their panics are counted.
func TestCallbacks(t *testing.T) {
	var called []string
	note := func(what string) func(core.OperationID, signals.Signal) {
		return func(id core.OperationID, s signals.Signal) {
			called = append(called, fmt.Sprint(what, " by ", s.Name))
			panic("on purpose")
		}
	}
	opts := volatile.Options{ByKey: true, OnKilled: note("killed"), OnMissed: note("missed")}
	bubble(t, core.Options{Name: "jobs"}, opts, func(t *testing.T, c coordinator, e *volatile.Evictor) {
		facts := coretest.Watch(t, c.Sink(), "volatile.*")
		id := c.run(quick)
		c.kill(id, id, c.run(untilCancelled))
		assert.Equal(t, []string{"killed by kill.job", "missed by kill.job", "killed by kill.job"}, called)
		assert.Equal(t, uint64(3), e.Stats().Panics)
		assert.Zero(t, c.Sink().Stats().Panics)
		raised := facts.ExpectExactly(volatile.SignalKilled, volatile.SignalMissed, volatile.SignalKilled)
		assert.Equal(t, id.String(), raised[0].Key)
		assert.Equal(t, []string{"kill.job", volatile.SignalKilled}, raised[2].Path())
		assert.Equal(t, "jobs", e.Name())
		assert.Same(t, c.Sink(), e.Sink())
	})
}

// Signals of the evictor kill nothing, whatever the pattern is.
func TestNoLoop(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{AllowCycles: true, MaxDepth: -1}})
	bubble(t, core.Options{Sink: sink}, volatile.Options{Pattern: "*", ByKey: true}, func(t *testing.T, c coordinator, e *volatile.Evictor) {
		sink.RaiseKey("anything", "7777777")
		assert.JSONEq(t, `{"matched":1,"killed":0,"missed":1,"spared":0,"repeated":0,"abandoned":0,"underway":0,"panics":0}`, e.Stats().String())
		assert.Len(t, e.Stats().LogValue().Group(), 8)
	})
}

// Close abandons operations that are not finished and waits for callbacks that run. A
// body that has killed itself, and a callback, may call it.
func TestClose(t *testing.T) {
	ended := 0
	opts := volatile.Options{OnKilled: func(core.OperationID, signals.Signal) { time.Sleep(time.Second); ended++ }}
	bubble(t, core.Options{MaxConcurrency: 2}, opts, func(t *testing.T, c coordinator, e *volatile.Evictor) {
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
	})
	bubble(t, core.Options{}, volatile.Options{}, func(t *testing.T, c coordinator, e *volatile.Evictor) {
		c.run(func(ctx context.Context) error { _ = raises("kill.job")(ctx); return e.Close() })
		assert.Equal(t, volatile.Stats{Matched: 1, Abandoned: 1}, e.Stats())
		e = core.Must(volatile.New(c, volatile.Options{ByKey: true, OnKilled: func(core.OperationID, signals.Signal) { assert.NoError(t, e.Close()) }}))
		c.kill(c.run(untilCancelled))
		assert.Equal(t, volatile.Stats{Matched: 1, Killed: 1}, e.Stats())
	})
}

// Close does not wait for the goroutine that evicts an operation that has finished.
func TestNoCallbackStartsAfterClose(t *testing.T) {
	called := false
	opts := volatile.Options{OnKilled: func(core.OperationID, signals.Signal) { called = true }}
	bubble(t, core.Options{}, opts, func(t *testing.T, c coordinator, e *volatile.Evictor) {
		evicting := make(chan struct{})
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
	bubble(t, core.Options{}, volatile.Options{ByKey: true}, func(t *testing.T, c coordinator, e *volatile.Evictor) {
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

// Fault avoided: readers saw a window that was half empty. With many kills at once,
// operations that are not killed are always shown, and the counters are exact.
func TestKillsBesideReaders(t *testing.T) {
	of := core.Options{MaxConcurrency: 8, MaxTracked: 1000}
	bubble(t, of, volatile.Options{ByKey: true}, func(t *testing.T, c coordinator, e *volatile.Evictor) {
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
