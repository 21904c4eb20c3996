package volatile_test

import (
	"context"
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

// bubble runs a test with a coordinator, an evictor and a watcher of its signals.
func bubble(t *testing.T, of core.Options, opts volatile.Options, test func(*testing.T, coordinator, *volatile.Evictor, *coretest.Watcher)) {
	synctest.Test(t, func(t *testing.T) {
		c := coordinator{core.Must(core.NewCoordinator(coretest.Run, of))}
		defer c.Close()
		e := core.Must(volatile.New(c.Coordinator, opts))
		defer e.Close()
		test(t, c, e, coretest.Watch(t, c.Sink(), "volatile.*"))
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
	bubble(t, core.Options{}, volatile.Options{}, func(t *testing.T, c coordinator, e *volatile.Evictor, facts *coretest.Watcher) {
		finalized := 0
		c.OnFinalized(func(s core.Snapshot) { finalized++ })
		id := c.run(func(ctx context.Context) error {
			_ = slowly(raises("job.begun", "kill.job", "kill.job"))(ctx)
			return raises("job.archived")(ctx)
		})
		time.Sleep(time.Second - 1)
		synctest.Wait()
		assert.True(t, c.shows(id), "while it runs")
		facts.None()
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.False(t, c.shows(id), "and not after")
		raised := facts.ExpectExactly(volatile.SignalKilled)
		assert.Equal(t, id.String(), raised[0].Key)
		assert.Equal(t, []string{"kill.job", volatile.SignalKilled}, raised[0].Path())
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
	bubble(t, core.Options{MaxConcurrency: 1}, volatile.Options{ByKey: true}, func(t *testing.T, c coordinator, e *volatile.Evictor, facts *coretest.Watcher) {
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
		facts.ExpectExactly(volatile.SignalKilled, volatile.SignalKilled)
		assert.Equal(t, uint64(2), c.Stats().Cancelled)
	})
}

func TestKillEvictsWhatIsFinished(t *testing.T) {
	bubble(t, core.Options{}, volatile.Options{ByKey: true}, func(t *testing.T, c coordinator, e *volatile.Evictor, facts *coretest.Watcher) {
		plain, pinned := c.run(quick), c.run(quick)
		c.Pin(pinned)
		c.kill(plain, pinned, plain)
		assert.Equal(t, []bool{false, false}, []bool{c.shows(plain), c.shows(pinned)})
		facts.ExpectExactly(volatile.SignalKilled, volatile.SignalKilled, volatile.SignalMissed)
	})
}

func TestThePatternMustMatch(t *testing.T) {
	bubble(t, core.Options{}, volatile.Options{Pattern: "kill.*, end"}, func(t *testing.T, c coordinator, _ *volatile.Evictor, _ *coretest.Watcher) {
		for name, stays := range map[string]bool{"other": true, "kill.job": false, "end": false} {
			assert.Equal(t, stays, c.shows(c.run(raises(name))), name)
		}
	})
}

// Signals of operations of other coordinators are answered as missed. Signals of none are
// ignored without ByKey, or if their key is no id.
func TestSignalsOfOthers(t *testing.T) {
	for _, byKey := range []bool{false, true} {
		sink := signals.NewSink(signals.SinkOptions{})
		bubble(t, core.Options{Sink: sink}, volatile.Options{ByKey: byKey}, func(t *testing.T, c coordinator, e *volatile.Evictor, facts *coretest.Watcher) {
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
			facts.Expect(volatile.SignalMissed)
			if byKey {
				facts.Expect(volatile.SignalMissed) // the largest id
			}
			facts.None()
			c.kill(mine)
			assert.Equal(t, byKey, !c.shows(mine))
			if byKey {
				facts.ExpectExactly(volatile.SignalKilled)
			}
			facts.None()
		})
	}
}

// Signals of the evictor kill nothing, whatever the pattern is.
func TestNoLoop(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{AllowCycles: true, MaxDepth: -1}})
	bubble(t, core.Options{Sink: sink}, volatile.Options{Pattern: "*", ByKey: true}, func(t *testing.T, c coordinator, e *volatile.Evictor, facts *coretest.Watcher) {
		sink.RaiseKey("anything", "7777777")
		facts.ExpectExactly(volatile.SignalMissed)
	})
}

// Close leaves operations that are not finished in the window. A body that has killed itself, and
// a handler of the evictor's signals, may call it.
func TestClose(t *testing.T) {
	bubble(t, core.Options{}, volatile.Options{}, func(t *testing.T, c coordinator, e *volatile.Evictor, facts *coretest.Watcher) {
		stubborn := c.run(slowly(raises("kill.job")))
		for range 3 {
			require.NoError(t, e.Close())
		}
		c.run(raises("kill.job"))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.True(t, c.shows(stubborn), "it stays in the window")
		facts.None()
	})
	bubble(t, core.Options{}, volatile.Options{ByKey: true}, func(t *testing.T, c coordinator, e *volatile.Evictor, facts *coretest.Watcher) {
		defer c.Sink().Subscribe(volatile.SignalKilled, func(signals.Signal) { assert.NoError(t, e.Close()) })()
		c.kill(c.run(untilCancelled))
		facts.ExpectExactly(volatile.SignalKilled)
		id := c.run(func(ctx context.Context) error { _ = raises("kill.job")(ctx); return e.Close() })
		assert.True(t, c.shows(id))
	})
	bubble(t, core.Options{}, volatile.Options{}, func(t *testing.T, c coordinator, e *volatile.Evictor, facts *coretest.Watcher) {
		id := c.run(func(ctx context.Context) error { _ = raises("kill.job")(ctx); return e.Close() })
		assert.True(t, c.shows(id))
		facts.None()
	})
}

// Close does not wait for the goroutine that evicts an operation that has finished.
func TestCloseDoesNotWaitForFinalizers(t *testing.T) {
	bubble(t, core.Options{}, volatile.Options{}, func(t *testing.T, c coordinator, e *volatile.Evictor, facts *coretest.Watcher) {
		evicting := make(chan struct{})
		defer c.OnFinalized(func(core.Snapshot) { evicting <- struct{}{}; <-evicting })()
		c.run(raises("kill.job"))
		<-evicting
		require.NoError(t, e.Close())
		facts.None()
		evicting <- struct{}{}
		synctest.Wait()
		facts.ExpectExactly(volatile.SignalKilled)
	})
}

func TestNewNeedsACoordinator(t *testing.T) {
	_, err := volatile.New[int](nil, volatile.Options{})
	assert.ErrorContains(t, err, "volatile: ")
}

// Fault avoided: readers saw a window that was half empty. With many kills at once,
// operations that are not killed are always shown, and the counters are exact.
func TestKillsBesideReaders(t *testing.T) {
	of := core.Options{MaxConcurrency: 8, MaxTracked: 1000}
	bubble(t, of, volatile.Options{ByKey: true}, func(t *testing.T, c coordinator, e *volatile.Evictor, facts *coretest.Watcher) {
		kept := c.run(quick)
		var killed atomic.Int64
		defer c.Sink().Subscribe(volatile.SignalKilled, func(signals.Signal) { killed.Add(1) })()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for i := range 50 {
					id := core.Must(c.Enqueue(t.Context(), []coretest.Body{quick, slowly(quick), raises("kill.job")}[i%3]))
					if i%2 == 0 {
						c.Sink().RaiseKey("kill.job", id.String())
					}
					assert.True(t, c.shows(kept))
				}
			})
		}
		all.Wait()
		require.NoError(t, c.Drain(t.Context()))
		synctest.Wait()
		assert.Equal(t, 401-int(killed.Load()), c.Stats().Tracked)
	})
}
