package waveorchestrator_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wave "github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// A watched context knows when Execute waits for an execution that was accepted: Execute calls Done
// then.
type watched struct {
	context.Context
	watch    atomic.Bool
	accepted chan struct{}
}

func (c *watched) Done() <-chan struct{} {
	if !c.watch.Swap(true) {
		close(c.accepted)
	}
	return nil
}

// Executions keep the promises of core.Lifecycle, with and without a limit.
func TestLifecycle(t *testing.T) {
	for name, limit := range map[string]int{"no limit": 0, "one at a time": 1} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				do := func(ctx context.Context, body coretest.Body) (struct{}, error) { return struct{}{}, body(ctx) }
				o, err := wave.New([]wave.Worker[coretest.Body, struct{}]{{Name: "w", Do: do}}, wave.Options[struct{}]{
					TotalTimeout: -1, WorkerTimeout: -1, Grace: 1 << 60, BreakerThreshold: -1, MaxConcurrency: limit,
				})
				require.NoError(t, err)
				submit := func(ctx context.Context, body coretest.Body) error {
					c, ended := &watched{Context: context.WithoutCancel(ctx), accepted: make(chan struct{})}, make(chan error, 1)
					go func() { _, err := o.Execute(c, body); ended <- err }()
					select {
					case err := <-ended:
						if c.watch.Load() {
							err = nil
						}
						return err
					case <-c.accepted:
						return nil
					}
				}
				return coretest.Subject{Lifecycle: o, Submit: submit, Pause: o.Pause, Resume: o.Resume, WaitIdle: o.WaitIdle, Sink: o.Sink(), Stats: o.Stats}
			})
		})
	}
}

// An execution waits while the orchestrator is paused or at its limit. It is shown then, and can be
// cancelled. A cancelled one does not begin, and Execute returns the cause.
func TestExecutionsThatWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{MaxConcurrency: 1, TotalTimeout: time.Second}, worker{Name: "w", Do: ignores(1, time.Hour)})
		errs := make(chan error, 4)
		begin := func() {
			go func() { _, err := o.Execute(t.Context(), 0); errs <- err }()
			synctest.Wait()
		}
		o.Pause()
		begin()
		time.Sleep(time.Minute) // its timeout has not begun
		why := func() core.ReasonKind {
			var waits core.OperationID
			for op := range o.Operations(core.OperationQuery{Status: core.StatusPending}) {
				waits = op.ID
			}
			x, ok := o.Explain(waits)
			require.True(t, ok && len(x.Reasons) == 1, "%v", x)
			return x.Reasons[0].Kind
		}
		assert.Equal(t, core.ReasonPaused, why())
		o.Resume()
		begin()
		assert.Equal(t, core.ReasonLimit, why())
		assert.Equal(t, []int{1, 1, 1}, []int{o.Stats().Running, o.Stats().Pending, o.Stats().Limit})
		assert.False(t, o.Evict(slices.Collect(o.Operations(core.OperationQuery{}))[0].ID), "it runs")
		assert.True(t, o.Cancel(slices.Collect(o.Operations(core.OperationQuery{}))[1].ID, errOnPurpose))
		assert.Equal(t, errOnPurpose, <-errs)
		begin()
		require.NoError(t, o.SetMaxConcurrency(2))
		begin()
		assert.Equal(t, []int{2, 1}, []int{o.Stats().Running, o.Stats().Pending})

		begun := time.Now()
		require.NoError(t, o.Stop(t.Context()))
		assert.Equal(t, time.Hour, time.Since(begun), "abandoned workers are waited for")
		assert.Equal(t, core.ErrStopped, <-errs)
		assert.Equal(t, []error{wave.ErrTimeout, wave.ErrTimeout}, []error{<-errs, <-errs})
		s := o.Stats()
		assert.Equal(t, []uint64{4, 2, 2, 0}, []uint64{s.Enqueued, s.Failed, s.Cancelled, s.Rejected})
		require.NoError(t, coretest.CheckBooks(s))
	})
}
