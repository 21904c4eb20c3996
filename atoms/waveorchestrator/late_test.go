package waveorchestrator_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wave "github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
)

// hold keeps operations from beginning: a handler of atom.start is called before they
// do. The first so many may begin at once.
func hold(o *wave.Orchestrator[int, int], free int32, d time.Duration) {
	var begun atomic.Int32
	o.Sink().Subscribe(core.SignalStarted, func(core.Signal) {
		if begun.Add(1) > free {
			time.Sleep(d)
		}
	})
}

// A run that has not begun when the end comes does not begin any more, and shows
// nothing about the worker.
func TestRunThatHasNotBegunAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		started := func(context.Context, int) (int, error) { t.Error("started"); return 0, nil }
		o := orchestrator(t, opts{TotalTimeout: 100 * ms, BreakerThreshold: 1}, worker{Name: "w", Do: started})
		hold(o, 1, time.Second)
		r, err := o.Execute(t.Context(), 0)
		assert.Equal(t, wave.ErrTimeout, err)
		assert.Equal(t, "timed-out | skipped w:0", brief(r))
		assert.Equal(t, 100*ms, r.Duration)
		assert.Equal(t, wave.ErrTimeout, r.Skipped[0].Err)
		require.NoError(t, o.Close())

		o = orchestrator(t, opts{WorkerTimeout: 100 * ms, Grace: 10 * ms, BreakerThreshold: 1}, worker{Name: "w", Do: started}, worker{Name: "later", Wave: 1, Do: gives(1, 0)})
		hold(o, 1, 110*ms+1)
		r, err = o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, "completed | skipped w:0 later:1", brief(r), "later is kept for as long")
		assert.ErrorIs(t, r.Skipped[0].Err, wave.ErrWorkerTimeout)
		assert.Equal(t, "w:closed:0 later:closed:0", breakers(o))
		synctest.Wait()
		for op := range o.Operations(core.OperationQuery{Status: core.StatusSucceeded}) {
			assert.Zero(t, op.Parent, "runs are cancelled")
		}
		checkBooks(t, o.Stats(), 2)
		require.NoError(t, o.Close())
	})
}

// An execution that has not begun when the caller gives up, or at Close, does not
// begin any more.
func TestExecutionThatHasNotBegun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{}, worker{Name: "w", Do: gives(1, 0)})
		hold(o, 0, time.Second)
		ctx, cancel := context.WithTimeoutCause(t.Context(), ms, errOnPurpose)
		defer cancel()
		r, err := o.Execute(ctx, 0)
		assert.Equal(t, errOnPurpose, err)
		assert.Equal(t, "cancelled | skipped w:0", brief(r))
		time.AfterFunc(ms, func() { _ = o.Close() })
		begun := time.Now()
		_, err = o.Execute(t.Context(), 0)
		assert.Equal(t, core.ErrClosed, err)
		assert.Equal(t, ms, time.Since(begun))
		require.NoError(t, o.Close())
		assert.Equal(t, wave.Stats{Rejected: 2}, o.Stats())
	})
}

// While handlers hold up the execution its time can pass: then nothing more starts.
func TestTimePassesInHandlers(t *testing.T) {
	ends := map[string]struct {
		want error
		end  func(o *wave.Orchestrator[int, int], execution core.OperationID, cancel context.CancelCauseFunc)
	}{
		"timeout": {wave.ErrTimeout, func(*wave.Orchestrator[int, int], core.OperationID, context.CancelCauseFunc) { time.Sleep(time.Minute) }},
		"caller": {errOnPurpose, func(_ *wave.Orchestrator[int, int], _ core.OperationID, cancel context.CancelCauseFunc) {
			cancel(errOnPurpose)
		}},
		"cancel": {core.ErrCancelled, func(o *wave.Orchestrator[int, int], execution core.OperationID, _ context.CancelCauseFunc) {
			o.Cancel(execution, nil)
		}},
		"close": {core.ErrClosed, func(o *wave.Orchestrator[int, int], _ core.OperationID, _ context.CancelCauseFunc) { _ = o.Close() }},
	}
	for name, x := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := orchestrator(t, opts{}, worker{Name: "w", Do: func(context.Context, int) (int, error) { t.Error("started"); return 0, nil }})
				ctx, cancel := context.WithCancelCause(t.Context())
				o.Sink().Subscribe("wave.started:*", func(s core.Signal) { x.end(o, s.Operation, cancel) })
				r, err := o.Execute(ctx, 0)
				assert.Equal(t, x.want, err)
				assert.Contains(t, brief(r), " | skipped w:0")
				assert.Equal(t, x.want, r.Skipped[0].Err)
			})
		})
	}
}

// The same while they hold up a worker: it is not begun with a dead context.
func TestTimePassesInHandlersOfTheWorker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{WorkerTimeout: time.Second}, worker{Name: "w", Do: func(context.Context, int) (int, error) { t.Error("started"); return 0, nil }})
		o.Sink().Subscribe("worker.started:*", func(core.Signal) { time.Sleep(time.Second) })
		assert.Equal(t, "completed | failed w:0", run(t, o))
	})
}
