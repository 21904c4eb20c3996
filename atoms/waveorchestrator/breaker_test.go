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
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Fault avoided: the half-open state admits every concurrent execution.
func TestHalfOpenBreakerAdmitsOneProbeOfAllExecutions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var works atomic.Bool
		o := orchestrator(t, opts{}, worker{Name: "w", Do: func(ctx context.Context, _ int) (int, error) {
			if !works.Load() {
				return 0, errOnPurpose
			}
			return 1, wait(ctx, 10*ms)
		}})
		for range 3 {
			assert.Equal(t, "failed | failed w:0", run(t, o))
		}
		assert.Equal(t, "w:open:3", breakers(o))
		time.Sleep(30 * time.Second)
		works.Store(true)
		for range 20 {
			go func() { _, _ = o.Execute(t.Context(), 0) }()
		}
		synctest.Wait()
		assert.EqualValues(t, 3+19, o.Stats().Failed, "the others do not wait for the probe")
		time.Sleep(10 * ms)
		synctest.Wait()
		assert.EqualValues(t, 1, o.Stats().Succeeded)
		assert.Equal(t, "w:closed:0", breakers(o))
	})
}

// While a breaker is open, other code can see that and can wait for the end. Slow handlers do not
// keep the breaker open for longer.
func TestOpenedIsHeldWhileTheBreakerIsOpen(t *testing.T) {
	each(t, map[string]time.Duration{"quick": 0, "slow": 20 * time.Second, "slower than the reset": time.Minute}, func(t *testing.T, slow time.Duration) {
		sink := signals.NewSink(signals.SinkOptions{})
		o := orchestrator(t, opts{Sink: sink, BreakerThreshold: 1, TotalTimeout: -1}, worker{Name: "db", Do: fails(0)})
		sink.Subscribe("worker.failed:*", func(signals.Signal) { time.Sleep(slow) })
		begun := time.Now()
		run(t, o)
		assert.Equal(t, []string{"circuit.opened:db:failures=1"}, raised(sink, "circuit.opened:*"), "even if it is over")
		c, err := core.NewCoordinator(func(context.Context, int) error { return nil },
			core.Options{Sink: sink, DeferOn: "circuit.opened:db:*", MaxDefer: -1})
		require.NoError(t, err)
		if o.Workers()[0].Breaker == breaker.Open {
			assert.Equal(t, begun.Add(30*time.Second), o.Workers()[0].Retry)
		}
		require.NoError(t, c.Do(t.Context(), 1))
		assert.Equal(t, max(30*time.Second, slow+1), time.Since(begun))
		assert.Equal(t, "db:half-open:1", breakers(o))
		assert.Zero(t, o.Workers()[0].Retry)
	})
}

// After Close nothing waits for the breakers of the orchestrator, even if a breaker opens during
// Close.
func TestCloseReleasesOpened(t *testing.T) {
	for _, pattern := range []string{"circuit.opened:b:*", "worker.failed:b:*"} {
		bubble(t, func(t *testing.T) {
			o := orchestrator(t, opts{BreakerThreshold: 1, BreakerReset: time.Hour},
				worker{Name: "a", Do: fails(0)}, worker{Name: "b", Do: fails(ms)})
			o.Sink().Subscribe(pattern, func(signals.Signal) {
				assert.True(t, o.Sink().Has("circuit.opened:a:*"))
				assert.NoError(t, o.Close())
			})
			r, _ := o.Execute(t.Context(), 0)
			assert.Equal(t, wave.OutcomeCancelled, r.Outcome)
			assert.Len(t, r.Failed, 2)
			assert.False(t, o.Sink().Has("circuit.opened:*"))
			require.NoError(t, o.Close())
		})
	}
}
