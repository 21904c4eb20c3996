package waveorchestrator_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wave "github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

type contextKey struct{}

func TestContextOfAWorker(t *testing.T) {
	t.Run("deadline, values and cause", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			var kept context.Context
			begun := time.Now()
			do := func(ctx context.Context, _ int) (int, error) {
				kept = ctx
				at, ok := ctx.Deadline()
				assert.True(t, ok)
				assert.Equal(t, begun.Add(time.Second), at)
				assert.Equal(t, 7, ctx.Value(contextKey{}))
				assert.NotNil(t, core.OperationFrom(ctx))
				child, cancel := context.WithCancel(ctx)
				defer cancel()
				assert.NoError(t, context.Cause(ctx))
				assert.Equal(t, 7, ctx.Value(contextKey{}))
				<-child.Done()
				assert.Equal(t, time.Second, time.Since(begun))
				assert.Equal(t, context.DeadlineExceeded, ctx.Err())
				assert.ErrorIs(t, context.Cause(child), wave.ErrWorkerTimeout)
				return 0, ctx.Err()
			}
			o := orchestrator(t, opts{TotalTimeout: 2 * time.Second, WorkerTimeout: time.Second}, worker{Name: "w", Do: do})
			_, err := o.Execute(context.WithValue(t.Context(), contextKey{}, 7), 0)
			require.Equal(t, wave.ErrFailed, err)
			assert.Error(t, kept.Err())
		})
	})
	t.Run("it ends with the run, even if it is used only later", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			contexts := make(chan context.Context, 2)
			o := orchestrator(t, opts{TotalTimeout: -1, WorkerTimeout: -1},
				worker{Name: "uses", Do: func(ctx context.Context, _ int) (int, error) { contexts <- ctx; return 0, ctx.Err() }},
				worker{Name: "keeps", Do: func(ctx context.Context, _ int) (int, error) { contexts <- ctx; return 0, nil }})
			run(t, o)
			for range 2 {
				ctx := <-contexts
				_, limited := ctx.Deadline()
				<-ctx.Done()
				assert.Equal(t, []any{false, context.Canceled}, []any{limited, ctx.Err()})
			}
		})
	})
}

// Values that arrive while EarlyExit runs count before the timeout, and before the end of the
// caller's context. If a run is cancelled while EarlyExit runs, the execution ends.
func TestResultsThatHaveArrivedComeBeforeTheEnd(t *testing.T) {
	for i := range 60 {
		want, do := "early-exit by b | completed a:0=1 b:0=2", gives(2, 2*ms)
		if i%2 == 1 {
			want, do = "cancelled | completed a:0=1 | cancelled b:0", hangs
		}
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			o := orchestrator(t, opts{TotalTimeout: time.Second, EarlyExit: func(v int) bool {
				if v == 1 {
					time.Sleep(time.Minute)
					cancel()
				}
				return v == 2
			}}, worker{Name: "a", Do: gives(1, ms)}, worker{Name: "b", Do: do})
			r, _ := o.Execute(ctx, 0)
			assert.Equal(t, want, brief(r))
		})
	}
}

// A worker may cancel its execution, and the first cause counts. A run cannot be cancelled by
// itself.
func TestCancelFromInside(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var o *wave.Orchestrator[int, int]
		var execution core.OperationID
		o = orchestrator(t, opts{}, worker{Name: "a", Do: func(ctx context.Context, _ int) (int, error) {
			op := core.OperationFrom(ctx)
			execution = op.Parent()
			assert.False(t, o.Cancel(op.ID(), nil))
			assert.True(t, o.Cancel(execution, nil))
			o.Cancel(execution, errOnPurpose)
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}})
		r, err := o.Execute(t.Context(), 0)
		assert.Equal(t, core.ErrCancelled, err)
		assert.Equal(t, "cancelled | cancelled a:0", brief(r))
		assert.Zero(t, r.Duration)
		synctest.Wait()
		assert.False(t, o.Cancel(execution, nil), "it has ended")
	})
}

// Close waits for executions and for abandoned runs. An end by Close is no failure of a
// worker.
func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{BreakerThreshold: 1}, worker{Name: "hangs", Do: hangs}, worker{Name: "slow", Do: ignores(1, 50*ms)},
			worker{Name: "abandoned", Do: ignores(1, time.Hour)}, worker{Name: "later", Wave: 1, Do: gives(2, 0)})
		results := make(chan wave.Result[int], 3)
		for range cap(results) {
			go func() {
				r, err := o.Execute(context.Background(), 0)
				assert.ErrorIs(t, err, core.ErrClosed)
				results <- r
			}()
		}
		time.Sleep(20 * ms)
		begun := time.Now()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { assert.NoError(t, o.Close()) })
		}
		all.Wait()
		assert.Equal(t, time.Hour-20*ms, time.Since(begun))
		for range cap(results) {
			r := <-results
			assert.Equal(t, "cancelled | cancelled abandoned:0 hangs:0 slow:0 | skipped later:1 | abandoned abandoned:0", brief(r))
			assert.Equal(t, 120*ms, r.Duration)
			assert.ErrorIs(t, r.Cancelled[0].Err, core.ErrClosed)
		}
		r, err := o.Execute(t.Context(), 0)
		assert.ErrorIs(t, err, core.ErrClosed)
		assert.Equal(t, "cancelled | skipped abandoned:0 hangs:0 slow:0 later:1", brief(r))
		assert.Equal(t, "abandoned:closed:0 hangs:closed:0 slow:closed:0 later:closed:0", breakers(o))
		assert.EqualValues(t, 3, o.Stats().Cancelled)
		assert.Zero(t, o.Runs().Stats().Running)
		require.NoError(t, coretest.CheckBooks(o.Stats()))
	})
}

// Close may be called from all code for which it waits.
func TestCloseFromInside(t *testing.T) {
	for _, at := range []string{"worker", "early exit", "wave.started:*", "worker.completed:*", "wave.orchestrator.completed:*"} {
		t.Run(at, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var o *wave.Orchestrator[int, int]
				closes := func(here string) {
					if here == at {
						assert.NoError(t, o.Close())
					}
				}
				o = orchestrator(t, opts{EarlyExit: func(int) bool { closes("early exit"); return false }},
					worker{Name: "closes", Do: func(ctx context.Context, _ int) (int, error) { closes("worker"); return 1, nil }},
					worker{Name: "hangs", Wave: 1, Do: hangs})
				o.Sink().Subscribe("wave.*,worker.*", func(s signals.Signal) {
					if signals.Match(at, s.Name) {
						closes(at)
					}
				})
				begun := time.Now()
				r, err := o.Execute(t.Context(), 0)
				if at == "wave.orchestrator.completed:*" {
					assert.NoError(t, err)
				} else {
					assert.ErrorIs(t, err, core.ErrClosed)
					assert.Equal(t, wave.OutcomeCancelled, r.Outcome)
					assert.Zero(t, time.Since(begun))
				}
				require.NoError(t, o.Close())
				_, err = o.Execute(t.Context(), 0)
				assert.ErrorIs(t, err, core.ErrClosed)
			})
		})
	}
}

// hold delays the beginning of operations: a handler of operation.started sleeps, and core calls it before
// an operation begins. The first operations begin at once; free is their number.
func hold(o *wave.Orchestrator[int, int], free int32, d time.Duration) {
	var begun atomic.Int32
	o.Sink().Subscribe(signals.SignalStarted, func(signals.Signal) {
		if begun.Add(1) > free {
			time.Sleep(d)
		}
	})
}

func never(t *testing.T) worker {
	return worker{Name: "w", Do: func(context.Context, int) (int, error) { t.Error("started"); return 0, nil }}
}

// If a run has not begun when the execution ends, it never begins, and counts as no failure of the
// worker.
func TestRunThatHasNotBegunAtTheEnd(t *testing.T) {
	type row struct {
		o    opts
		held time.Duration
		want string
		why  error
	}
	each(t, map[string]row{
		"of the execution": {opts{TotalTimeout: 100 * ms}, time.Second, "timed-out | skipped w:0", wave.ErrTimeout},
		"of its time":      {opts{WorkerTimeout: 90 * ms, Grace: 10 * ms}, 100*ms + 1, "failed | skipped w:0", wave.ErrWorkerTimeout},
	}, func(t *testing.T, c row) {
		c.o.BreakerThreshold = 1
		o := orchestrator(t, c.o, never(t))
		hold(o, 1, c.held)
		r, _ := o.Execute(t.Context(), 0)
		assert.Equal(t, c.want, brief(r))
		assert.Equal(t, 100*ms, r.Duration)
		assert.Equal(t, c.why, r.Skipped[0].Err)
		assert.Zero(t, r.Skipped[0].Operation)
		assert.Equal(t, "w:closed:0", breakers(o))
		require.NoError(t, o.Close())
	})
}

// If an execution has not begun when the caller's context ends or when Close is called, it never
// begins.
func TestExecutionThatHasNotBegun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{}, never(t))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errOnPurpose)
		r, err := o.Execute(ctx, 0)
		assert.Equal(t, errOnPurpose, err)
		assert.Equal(t, "cancelled | skipped w:0", brief(r))
		assert.Equal(t, errOnPurpose, r.Skipped[0].Err)
		assert.Zero(t, o.Sink().Count("*"))

		hold(o, 0, time.Second)
		ctx, stop := context.WithTimeoutCause(t.Context(), ms, errOnPurpose)
		defer stop()
		_, err = o.Execute(ctx, 0)
		assert.Equal(t, errOnPurpose, err)
		begun := time.Now()
		time.AfterFunc(ms, func() { _ = o.Close() })
		_, err = o.Execute(t.Context(), 0)
		assert.ErrorIs(t, err, core.ErrClosed)
		assert.Equal(t, ms, time.Since(begun))
		require.NoError(t, o.Close())
	})
}

// If the execution ends while handlers delay it, or delay the worker, the worker does not
// start. Another fault avoided: workers are started after the cancellation.
func TestTheEndComesWhileHandlersRun(t *testing.T) {
	const wave0, inWorker = "wave.started:*", "worker.started:*"
	type orch = *wave.Orchestrator[int, int]
	type stop = context.CancelCauseFunc
	type row struct {
		pattern string
		want    error
		end     func(o orch, id core.OperationID, cancel stop)
	}
	each(t, map[string]row{
		"timeout":        {wave0, wave.ErrTimeout, func(orch, core.OperationID, stop) { time.Sleep(time.Minute) }},
		"caller":         {wave0, errOnPurpose, func(_ orch, _ core.OperationID, cancel stop) { cancel(errOnPurpose) }},
		"cancel":         {wave0, core.ErrCancelled, func(o orch, id core.OperationID, _ stop) { o.Cancel(id, nil) }},
		"close":          {wave0, core.ErrClosed, func(o orch, _ core.OperationID, _ stop) { _ = o.Close() }},
		"worker timeout": {inWorker, wave.ErrFailed, func(orch, core.OperationID, stop) { time.Sleep(2 * time.Second) }},
	}, func(t *testing.T, c row) {
		o := orchestrator(t, opts{}, never(t))
		ctx, cancel := context.WithCancelCause(t.Context())
		o.Sink().Subscribe(c.pattern, func(s signals.Signal) { c.end(o, s.Operation, cancel) })
		r, err := o.Execute(ctx, 0)
		assert.ErrorIs(t, err, c.want)
		if c.want == wave.ErrFailed {
			assert.Equal(t, "failed | failed w:0", brief(r))
		} else {
			assert.ErrorIs(t, r.Skipped[0].Err, c.want)
		}
	})
}

// A handler may end the goroutine, as t.FailNow does. Then the execution ends and leaves nothing
// behind, even with many such handlers. If the outcome was decided before, it does not change.
func TestHandlersThatEndTheGoroutine(t *testing.T) {
	for pattern, want := range map[string]wave.Outcome{ // handlers on the execution's goroutine cancel the execution
		"worker.started:*": wave.OutcomeFailed, "worker.failed:*": wave.OutcomeFailed,
		"wave.failed": wave.OutcomeFailed, "wave.orchestrator.*": wave.OutcomeCancelled, "wave.started:*": wave.OutcomeCancelled,
		"worker.timeout:*": wave.OutcomeCancelled, "worker.abandoned": wave.OutcomeCancelled, "circuit.opened:*": wave.OutcomeCancelled,
		"w*,circuit.*": wave.OutcomeCancelled, "wave.orchestrator.completed:*": wave.OutcomeFailed,
	} {
		t.Run(pattern, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := orchestrator(t, opts{WorkerTimeout: ms, BreakerThreshold: 1},
					worker{Name: "a", Do: ignores(1, time.Second)}, worker{Name: "b", Do: ignores(1, time.Second)}, worker{Name: "c", Do: fails(0)})
				o.Sink().Subscribe(pattern, func(signals.Signal) { runtime.Goexit() })
				r, err := o.Execute(t.Context(), 0)
				assert.Equal(t, want, r.Outcome)
				var ended *core.PanicError
				assert.Equal(t, want == wave.OutcomeCancelled, errors.As(err, &ended))
				require.NoError(t, o.Close())
				assert.Zero(t, o.Runs().Stats().Running)
			})
		})
	}
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{TotalTimeout: time.Second, EarlyExit: func(v int) bool { return v == 9 }},
			worker{Name: "a", Do: func(ctx context.Context, in int) (int, error) { return in, wait(ctx, ms) }}, worker{Name: "b", Do: hangs})
		o.Sink().Subscribe("wave.early_exit:*,wave.timeout:*", func(signals.Signal) { runtime.Goexit() })
		r, err := o.Execute(t.Context(), 9)
		assert.NoError(t, err)
		assert.Equal(t, "early-exit by a | completed a:0=9 | cancelled b:0", brief(r))
		r, err = o.Execute(t.Context(), 0)
		assert.Equal(t, wave.ErrTimeout, err)
		assert.Equal(t, "timed-out | completed a:0=0 | cancelled b:0", brief(r))
	})
}
