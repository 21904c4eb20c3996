package waveorchestrator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wave "github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
)

// executing returns the id of the only execution under way.
func executing(t *testing.T, o *wave.Orchestrator[int, int]) (id core.OperationID) {
	t.Helper()
	for op := range o.Operations(core.OperationQuery{Status: core.StatusRunning}) {
		if op.Parent == 0 {
			require.Zero(t, id)
			id = op.ID
		}
	}
	require.NotZero(t, id)
	return id
}

// Cancel ends an execution that runs workers, that is between two waves, and that waits
// for one who does not return; just that one, and with the first cause.
func TestCancel(t *testing.T) {
	for name, x := range map[string]struct {
		after time.Duration
		want  string
		took  time.Duration
	}{
		"while workers run": {5 * ms, "cancelled | cancelled deaf:0 | skipped next:0 last:1 | abandoned deaf:0", 15 * ms},
		"between waves":     {45 * ms, "cancelled | completed deaf:0=1 next:0=2 | skipped last:1", 45 * ms},
		"in the last wave":  {75 * ms, "cancelled | completed deaf:0=1 next:0=2 | cancelled last:1", 75 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := orchestrator(t, opts{MaxPerWave: 1, WaveInterval: 30 * ms, Grace: 10 * ms, BreakerThreshold: 1},
					worker{Name: "deaf", Do: deaf(1, 30*ms)}, worker{Name: "next", Priority: 1, Do: gives(2, 10*ms)}, worker{Name: "last", Wave: 1, Do: hangs})
				var id core.OperationID
				time.AfterFunc(x.after, func() {
					id = executing(t, o)
					assert.True(t, o.Cancel(id, errOnPurpose))
					o.Cancel(id, nil) // the first cause counts
				})
				r, err := o.Execute(t.Context(), 0)
				assert.Equal(t, errOnPurpose, err)
				assert.Equal(t, x.want, brief(r))
				assert.Equal(t, x.took, r.Duration)
				for _, w := range append(r.Cancelled, r.Skipped...) {
					assert.Equal(t, errOnPurpose, w.Err)
				}
				synctest.Wait()
				op, _ := o.Lookup(id)
				assert.Equal(t, core.StatusCancelled, op.Status)
				assert.False(t, o.Cancel(id, nil), "there is nothing to cancel any more")
				assert.Equal(t, "deaf:closed:0 next:closed:0 last:closed:0", breakers(o), "it shows nothing of the workers")
				checkBooks(t, o.Stats(), 3)
				require.NoError(t, o.Close())
			})
		})
	}
}

// Workers and EarlyExit may cancel the execution they belong to; nobody a single run.
func TestCancelFromInside(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var o *wave.Orchestrator[int, int]
		options := opts{EarlyExit: func(int) bool { return o.Cancel(executing(t, o), nil) && false }}
		o = orchestrator(t, options, worker{Name: "a", Do: gives(1, ms)}, worker{Name: "b", Wave: 1, Do: hangs})
		r, err := o.Execute(t.Context(), 0)
		assert.Equal(t, core.ErrCancelled, err)
		assert.Equal(t, "cancelled | completed a:0=1 | skipped b:1", brief(r))

		o = orchestrator(t, opts{}, worker{Name: "a", Do: func(ctx context.Context, _ int) (int, error) {
			op := core.OperationFrom(ctx)
			assert.False(t, o.Cancel(op.ID(), nil))
			assert.True(t, o.Cancel(op.Parent(), nil))
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}})
		r, err = o.Execute(t.Context(), 0)
		assert.Equal(t, core.ErrCancelled, err)
		assert.Equal(t, "cancelled | cancelled a:0", brief(r))
		assert.Zero(t, r.Duration)
		require.NoError(t, o.Close())
	})
}
