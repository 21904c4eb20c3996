package waveorchestrator_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wave "github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
)

// Who hears of an abandoned run finds it in the books.
func TestAbandonedRunsAreCountedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{WorkerTimeout: ms}, worker{Name: "deaf", Do: deaf(1, time.Second)})
		heard := 0
		o.Sink().Subscribe("worker.abandoned:*", func(core.Signal) {
			heard++
			s := o.Stats()
			assert.EqualValues(t, 1, s.WorkersAbandoned)
			assert.Equal(t, 1, s.StillAbandoned)
			assert.Equal(t, 1, o.Workers()[0].Abandoned)
		})
		assert.Equal(t, "completed | failed deaf:0 | abandoned deaf:0", run(t, o))
		assert.Equal(t, 1, heard)
		require.NoError(t, o.Close())
	})
}

// A handler that takes its time does not make the fact last longer than the breaker
// is open.
func TestOpenedIsHeldNoLongerThanTheBreakerIsOpen(t *testing.T) {
	for name, slow := range map[string]time.Duration{"quick": 0, "slow": 600 * ms, "slower than the reset": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := orchestrator(t, opts{BreakerThreshold: 1, BreakerReset: time.Second, TotalTimeout: -1}, worker{Name: "w", Do: fails(0)})
				o.Sink().Subscribe("worker.failed:*", func(core.Signal) { time.Sleep(slow) })
				begun := time.Now()
				assert.Equal(t, "completed | failed w:0", run(t, o))
				time.Sleep(max(0, time.Second-1-time.Since(begun)))
				assert.True(t, o.Sink().Has("circuit.opened:*"), "it is told in any case")
				time.Sleep(time.Nanosecond)
				assert.False(t, o.Sink().Has("circuit.opened:*"))
			})
		})
	}
}

// Nobody waits for the breakers of an orchestrator that is gone.
func TestCloseReleasesOpened(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		o := orchestrator(t, opts{BreakerThreshold: 1, BreakerReset: time.Hour, Sink: sink},
			worker{Name: "a", Do: fails(0)}, worker{Name: "b", Do: fails(ms)})
		run(t, o)
		require.Equal(t, 2, sink.Count("circuit.opened:*"))
		require.NoError(t, o.Close())
		assert.Zero(t, sink.Count("circuit.opened:*"))
	})
}

// A breaker that opens while a handler closes the orchestrator leaves nothing behind.
func TestCloseBeforeOpenedIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{BreakerThreshold: 1, BreakerReset: time.Hour}, worker{Name: "w", Do: fails(0)})
		o.Sink().Subscribe("worker.failed:*", func(core.Signal) { _ = o.Close() })
		r, _ := o.Execute(t.Context(), 0)
		assert.Len(t, r.Failed, 1)
		assert.False(t, o.Sink().Has("circuit.opened:*"))
		require.NoError(t, o.Close())
	})
}

// Handlers that end the goroutine, as t.FailNow does, end the execution and leave
// nothing behind, however many there are.
func TestHandlersThatEndTheGoroutine(t *testing.T) {
	for _, pattern := range []string{
		core.SignalStarted, "wave.orchestrator.started", "wave.started:*", "worker.started:*", "worker.failed:*", "worker.timeout:*", "worker.abandoned:*",
		"circuit.opened:*", "wave.orchestrator.completed:*", "w*,circuit.*",
	} {
		t.Run(pattern, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := orchestrator(t, opts{WorkerTimeout: ms, BreakerThreshold: 1},
					worker{Name: "a", Do: deaf(1, time.Second)}, worker{Name: "b", Do: deaf(1, time.Second)}, worker{Name: "c", Do: fails(0)})
				o.Sink().Subscribe(pattern, func(core.Signal) { runtime.Goexit() })
				r, err := o.Execute(t.Context(), 0)
				if r.Outcome == wave.OutcomeCancelled {
					var ended *core.PanicError
					assert.ErrorAs(t, err, &ended)
				} else {
					assert.NoError(t, err)
				}
				assert.Equal(t, 3, len(r.Completed)+len(r.Failed)+len(r.Cancelled)+len(r.Skipped))
				require.NoError(t, o.Close())
				s := o.Stats()
				checkBooks(t, s, 3)
				assert.Zero(t, s.Running)
				assert.Zero(t, s.StillAbandoned)
			})
		})
	}
}

// The outcome is told in one way, even if a handler of the early exit or of the
// timeout ends the goroutine.
func TestTheOutcomeStandsWhenAHandlerEndsTheGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{TotalTimeout: time.Second, EarlyExit: func(v int) bool { return v > 1 }}, worker{Name: "a", Do: gives(2, ms)}, worker{Name: "b", Do: hangs})
		o.Sink().Subscribe("wave.early_exit:*,wave.timeout:*", func(core.Signal) { runtime.Goexit() })
		assert.Equal(t, "early-exit by a | completed a:0=2 | cancelled b:0", run(t, o))
		o = orchestrator(t, opts{TotalTimeout: time.Second, Sink: o.Sink()}, worker{Name: "b", Do: hangs})
		r, err := o.Execute(t.Context(), 0)
		assert.Equal(t, "timed-out | cancelled b:0", brief(r))
		assert.Equal(t, wave.ErrTimeout, err)
	})
}

// What has come in while EarlyExit took its time is asked about before the end of the
// time, and the end of the caller, are heeded.
func TestResultsThatHaveComeInGoBeforeTheEnd(t *testing.T) {
	for range 30 {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			o := orchestrator(t, opts{TotalTimeout: time.Second, EarlyExit: func(v int) bool {
				if v == 1 {
					time.Sleep(time.Minute)
					cancel()
				}
				return v == 2
			}}, worker{Name: "a", Do: gives(1, ms)}, worker{Name: "b", Do: gives(2, 2*ms)})
			r, err := o.Execute(ctx, 0)
			assert.NoError(t, err)
			assert.Equal(t, "early-exit by b | completed a:0=1 b:0=2", brief(r))
		})
	}
}

func TestContextOfAWorker(t *testing.T) {
	type key struct{}
	bubble(t, func(t *testing.T) {
		var left context.Context
		begun := time.Now()
		o := orchestrator(t, opts{TotalTimeout: 2 * time.Second, WorkerTimeout: time.Second}, worker{Name: "w", Do: func(ctx context.Context, _ int) (int, error) {
			left = ctx
			at, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, begun.Add(time.Second), at)
			assert.Equal(t, 7, ctx.Value(key{}))
			assert.NotNil(t, core.OperationFrom(ctx))
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			assert.NoError(t, child.Err())
			assert.NoError(t, context.Cause(ctx))
			assert.Equal(t, 7, ctx.Value(key{}))
			<-child.Done()
			assert.Equal(t, time.Second, time.Since(begun))
			assert.Equal(t, context.DeadlineExceeded, ctx.Err())
			assert.ErrorIs(t, context.Cause(child), wave.ErrWorkerTimeout)
			return 0, ctx.Err()
		}})
		_, err := o.Execute(context.WithValue(t.Context(), key{}, 7), 0)
		require.NoError(t, err)
		assert.Error(t, left.Err())
	})
	t.Run("it ends with the run, also for who asks only then", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			contexts := make(chan context.Context, 2)
			o := orchestrator(t, opts{TotalTimeout: -1, WorkerTimeout: -1},
				worker{Name: "asks", Do: func(ctx context.Context, _ int) (int, error) { contexts <- ctx; return 0, ctx.Err() }},
				worker{Name: "does not", Do: func(ctx context.Context, _ int) (int, error) { contexts <- ctx; return 0, nil }})
			require.Equal(t, "completed | completed asks:0=0 does not:0=0", run(t, o))
			for range 2 {
				ctx := <-contexts
				_, ok := ctx.Deadline()
				assert.False(t, ok)
				<-ctx.Done()
				assert.Equal(t, context.Canceled, ctx.Err())
			}
		})
	})
	t.Run("what comes first counts, also for who does not ask", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			for own, want := range map[time.Duration]string{5 * ms: "cancelled | failed asks:0 does not:0", 15 * ms: "cancelled | cancelled asks:0 does not:0"} {
				o := orchestrator(t, opts{WorkerTimeout: own, Grace: time.Minute},
					worker{Name: "asks", Do: func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); time.Sleep(20 * ms); return 0, nil }},
					worker{Name: "does not", Do: deaf(2, 20*ms)})
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*ms, errOnPurpose)
				r, err := o.Execute(ctx, 0)
				cancel()
				assert.Equal(t, errOnPurpose, err)
				assert.Equal(t, want, brief(r))
			}
		})
	})
	t.Run("who does not ask is late all the same", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			o := orchestrator(t, opts{EarlyExit: func(int) bool { return true }, Grace: time.Minute}, worker{Name: "a", Do: gives(1, ms)}, worker{Name: "b", Do: deaf(2, 5*ms)})
			assert.Equal(t, "early-exit by a | completed a:0=1 | cancelled b:0", run(t, o))
			assert.EqualValues(t, 1, o.Stats().Late)
			o = orchestrator(t, opts{Grace: time.Minute}, worker{Name: "b", Do: deaf(2, 5*ms)})
			time.AfterFunc(ms, func() { _ = o.Close() })
			r, err := o.Execute(t.Context(), 0)
			assert.Equal(t, core.ErrClosed, err)
			assert.Equal(t, "cancelled | cancelled b:0", brief(r))
			assert.EqualValues(t, 1, o.Stats().Late)
		})
	})
}
