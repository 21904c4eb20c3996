package signallogwatcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/patterns/signallogwatcher"
)

// bubble runs a test with a sink, on which nothing is left.
func bubble(t *testing.T, test func(*testing.T, *core.Sink)) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{Capacity: 10})
		coretest.NothingLeft(t, sink, func() { test(t, sink) })
	})
}

func TestEachMatchOnceInOrderOffTheRaiser(t *testing.T) {
	bubble(t, func(t *testing.T, sink *core.Sink) {
		for range 2 { // the same name is not the same signal
			sink.Raise("error.before")
		}
		defer sink.Hold("error.held", "", 0)()
		var seen []string // by one call at a time
		gate := make(chan struct{})
		w := core.Must(signallogwatcher.New(sink, "", func(_ context.Context, s core.Signal) error {
			<-gate
			seen = append(seen, s.Name)
			return nil
		}, core.Options{}))
		for i := range 20 { // more than the window keeps, while the function blocks
			sink.Raise(fmt.Sprint("error.", i))
			sink.Raise("info.started")
		}
		close(gate)
		require.NoError(t, w.Drain(t.Context()))
		sink.Raise("error.late")
		synctest.Wait()
		require.Len(t, seen, 23)
		require.Equal(t, []string{"error.before", "error.before", "error.held", "error.0"}, seen[:4])
		require.Equal(t, "error.19", seen[22])
		require.Zero(t, w.Stats().Rejected, "the subscription has ended")
	})
}

func TestWhatIsTooMuchIsCounted(t *testing.T) {
	bubble(t, func(t *testing.T, sink *core.Sink) {
		w := core.Must(signallogwatcher.New(sink, "*", func(ctx context.Context, _ core.Signal) error {
			<-ctx.Done()
			return nil
		}, core.Options{MaxQueued: 3}))
		for range 10 {
			sink.Raise("x")
			synctest.Wait() // one runs, 3 wait
		}
		require.EqualValues(t, 6, w.Stats().Dropped)
		require.NoError(t, w.Close())
		require.EqualValues(t, 3, w.Stats().Cancelled)
		require.NoError(t, coretest.CheckBooks(w.Stats()))
	})
}

// Two watchers watch what the other one raises, and fail each time.
func TestAFailureIsCountedAndNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, sink *core.Sink) {
		wrong := errors.New("on purpose")
		fail := func(_ context.Context, s core.Signal) error {
			if s.Name == "error.poison" {
				panic(wrong)
			}
			return wrong
		}
		a := core.Must(signallogwatcher.New(sink, "error.*, watcher.*", fail, core.Options{}))
		b := core.Must(signallogwatcher.New(sink, "error.*, watcher.*", fail, core.Options{}))
		sink.Raise("error.poison")
		sink.Raise("error.plain")
		synctest.Wait()
		require.NoError(t, core.InOrder(a, b).Drain(t.Context()))
		require.EqualValues(t, 3, a.Stats().Failed, "two errors, and a failure of the other one")
		require.EqualValues(t, 3, b.Stats().Failed)
		for s, failure := range signallogwatcher.Failed.Sense(sink, core.Query{}) {
			require.Equal(t, []string{"error.plain", "watcher.failed"}, s.Path())
			require.Equal(t, []any{"error.plain", wrong}, []any{failure.Signal.Name, failure.Err})
		}
	})
}

func TestWhatIsRefused(t *testing.T) {
	_, err := signallogwatcher.New(nil, "", nil, core.Options{})
	require.EqualError(t, err, "signallogwatcher: New needs a sink and a function")
}
