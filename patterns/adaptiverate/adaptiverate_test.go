package adaptiverate_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/adaptiverate"
)

type limited time.Duration

func (limited) Error() string               { return "429 Too Many Requests" }
func (l limited) RetryAfter() time.Duration { return time.Duration(l) }

func quick(context.Context, int) error { return nil }

// bubble runs a test with a sink, on which nothing is left.
func bubble(t *testing.T, test func(*testing.T, *signals.Sink)) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		coretest.NothingLeft(t, sink, func() { test(t, sink) })
	})
}

// waits checks that an item waits for the time want, and that Explain says so.
func waits(t *testing.T, c *core.Coordinator[int], want time.Duration) {
	t.Helper()
	begun := time.Now()
	id := core.Must(c.Enqueue(t.Context(), 0))
	synctest.Wait()
	if why, _ := c.Explain(id); want > 0 {
		require.Equal(t, adaptiverate.SignalLimited+"."+c.Name(), why.Reasons[0].Signal.Name)
		require.Equal(t, want, why.Reasons[0].Expires.Sub(begun))
	}
	require.NoError(t, c.Wait(t.Context(), id))
	require.Equal(t, want, time.Since(begun))
}

func TestItemsWaitForWhatIsLeftOfTheNewest(t *testing.T) {
	bubble(t, func(t *testing.T, sink *signals.Sink) {
		defer sink.Subscribe("rate-limit:9000ms", func(signals.Signal) { sink.Raise("rate-limit:1000ms") })()
		sink.Raise("rate-limit:5000ms")
		time.Sleep(2 * time.Second)
		c := core.Must(adaptiverate.New(quick, core.Options{Sink: sink}))
		waits(t, c, 3*time.Second)
		waits(t, c, 0) // the signal is still there
		for _, name := range []string{"rate-limit", "rate-limit:soon", "rate-limit:0ms", "rate-limits:9ms"} {
			sink.Raise(name)
			waits(t, c, 0)
		}
		sink.Raise("rate-limit:9000ms") // has no effect: it is older than the last one
		waits(t, c, time.Second)
		sink.Raise("rate-limit:60000ms")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Do(ctx, 0), context.DeadlineExceeded, "the wait can be cancelled")
		waits(t, c, 59*time.Second) // longer than MaxDefer
		require.NoError(t, c.Drain(t.Context()))
	})
}

func TestErrorsThatSayRetryAfter(t *testing.T) {
	bubble(t, func(t *testing.T, sink *signals.Sink) {
		fails := func(_ context.Context, with error) error { return with }
		c := core.Must(adaptiverate.New(fails, core.Options{Sink: sink, MaxConcurrency: 1}))
		other := core.Must(adaptiverate.New(quick, core.Options{Sink: sink, Name: "other"}))

		id := core.Must(c.Enqueue(t.Context(), fmt.Errorf("call: %w", limited(1499500*time.Microsecond))))
		next := core.Must(c.Enqueue(t.Context(), nil))
		require.ErrorAs(t, c.Wait(t.Context(), id), new(limited))
		waits(t, other, 1500*time.Millisecond)
		require.NoError(t, c.Wait(t.Context(), next))
		require.EqualValues(t, 1, c.Stats().Failed, "the item is not run again")
		op, _ := c.Lookup(id)
		require.True(t, op.Has("rate-limit") && op.Has("rate-limit:1500ms"))

		require.Error(t, c.Do(t.Context(), limited(-1)))
		waits(t, other, 0)
		require.Error(t, c.Do(t.Context(), limited(1<<63-1)))
		require.Equal(t, 2, sink.Count(adaptiverate.SignalLimited+".*"))
		require.NoError(t, other.Close())
		require.NoError(t, c.Close())
	})
}

func TestCloseWhileTheFactIsMade(t *testing.T) {
	bubble(t, func(t *testing.T, sink *signals.Sink) {
		c := core.Must(adaptiverate.New(quick, core.Options{Sink: sink}))
		defer sink.Subscribe("rate.limited.*", func(signals.Signal) { c.Close() })()
		sink.Raise("rate-limit:1000ms")
	})
}

func TestErrors(t *testing.T) {
	_, err := adaptiverate.New[int](nil, core.Options{})
	require.EqualError(t, err, "adaptiverate: New needs a function")
	_, err = adaptiverate.New(quick, core.Options{Name: "a,b"})
	require.ErrorContains(t, err, `adaptiverate: Options.Name is "a,b"`)
}
