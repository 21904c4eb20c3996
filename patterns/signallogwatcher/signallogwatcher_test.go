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

func TestAFailureIsCountedAndNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, sink *core.Sink) {
		wrong := errors.New("on purpose")
		watch := func(name string) *core.Processor {
			return core.Must(signallogwatcher.New(sink, "error.*, watcher.*", func(_ context.Context, s core.Signal) error {
				if s.Name == "error.poison" {
					panic(wrong)
				}
				return wrong
			}, core.Options{Name: name}))
		}
		a, b := watch("a"), watch("b") // each watches what the other one raises
		for _, name := range []string{"error.poison", "error.plain"} {
			sink.Raise(name)
			synctest.Wait()
		}
		for _, w := range []*core.Processor{a, b} {
			require.NoError(t, w.Drain(t.Context()))
			require.EqualValues(t, 3, w.Stats().Failed, "two errors, and a failure of the other one")
		}
		for s, failure := range signallogwatcher.Failed.Sense(sink, core.Query{Key: "error.plain"}) {
			require.Equal(t, []string{"error.plain", "watcher.failed"}, s.Path())
			require.Equal(t, "error.plain", failure.Signal.Name)
			require.ErrorIs(t, failure.Err, wrong)
		}
	})
}

func TestWhatIsRefused(t *testing.T) {
	sink := core.NewSink(core.SinkOptions{})
	nothing := func(context.Context, core.Signal) error { return nil }
	require.Equal(t, "signallogwatcher", core.Must(signallogwatcher.New(sink, "", nothing, core.Options{})).Name())
	_, err := signallogwatcher.New(nil, "", nothing, core.Options{})
	require.EqualError(t, err, "signallogwatcher: New needs a sink and a function")
	_, err = signallogwatcher.New(sink, "", nothing, core.Options{MaxConcurrency: -1})
	require.ErrorContains(t, err, "signallogwatcher: core: Options.MaxConcurrency is -1")
}
