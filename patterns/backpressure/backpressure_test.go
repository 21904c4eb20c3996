package backpressure_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/backpressure"
)

// bubble runs a test with a sink, on which nothing is left.
func bubble(t *testing.T, test func(*testing.T, *signals.Sink)) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		coretest.NothingLeft(t, sink, func() { test(t, sink) })
	})
}

func second(context.Context, int) error { time.Sleep(time.Second); return nil }

func enqueue(c core.Enqueuer[int], n int) {
	for i := range n {
		core.Must(c.Enqueue(context.Background(), i))
		synctest.Wait() // until the item runs or waits
	}
}

func TestItemsWaitWhileASignalIsThere(t *testing.T) {
	bubble(t, func(t *testing.T, sink *signals.Sink) {
		c := core.Must(backpressure.New(second, core.Options{Sink: sink, DeferOn: "maintenance", MaxDefer: -1}))
		for _, name := range []string{"backpressure.downstream", "maintenance"} {
			enqueue(c, 1)
			sink.Raise(name)
			enqueue(c, 3)
			time.Sleep(time.Minute)
			require.Equal(t, 3, c.Stats().Pending)
			require.Zero(t, c.Stats().Running, "what ran has ended")
			sink.Retract(name)
			require.NoError(t, c.Flush(t.Context()))
		}
		require.EqualValues(t, 8, c.Stats().Succeeded)
		require.NoError(t, c.Drain(t.Context()))
	})
}

func TestForcedItemsAreReported(t *testing.T) {
	bubble(t, func(t *testing.T, sink *signals.Sink) {
		c := core.Must(backpressure.New(second, core.Options{Sink: sink, MaxDefer: time.Second}))
		sink.Raise("backpressure.downstream")
		enqueue(c, 1)
		require.NoError(t, c.Drain(t.Context()))
		require.Equal(t, 1, sink.Count(core.SignalForced))
	})
}

func TestWatchHoldsBetweenTheWatermarks(t *testing.T) {
	bubble(t, func(t *testing.T, sink *signals.Sink) {
		db := core.Must(core.NewCoordinator(second, core.Options{Name: "db", Sink: sink, MaxConcurrency: 1}))
		stop := backpressure.Watch(db, backpressure.Watermarks{High: 8}) // and 2
		held := func() bool { return sink.Has("backpressure.db") }
		for range 2 {
			enqueue(db, 8) // one runs
			require.False(t, held())
			enqueue(db, 1)
			require.True(t, held())
			time.Sleep(6*time.Second - 1)
			require.True(t, held())
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			require.False(t, held())
			require.NoError(t, db.Flush(t.Context()))
		}
		unsubscribe := sink.Subscribe("backpressure.db", func(signals.Signal) { stop() }) // called during Hold
		enqueue(db, 9)
		require.False(t, held())
		unsubscribe()
		backpressure.Watch(db, backpressure.Watermarks{High: 8})
		require.True(t, held())
		require.NoError(t, db.Close())
	})
}

func TestWhatIsRefused(t *testing.T) {
	_, err := backpressure.New(second, core.Options{})
	require.ErrorContains(t, err, "backpressure: Options.Sink is nil")
	for _, wrong := range []backpressure.Watermarks{{High: 5, Low: 5}, {High: -1}} {
		require.Panics(t, func() { backpressure.Watch(core.Must(core.NewCoordinator(second, core.Options{})), wrong) })
	}
}
