package signallogwatcher_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/signallogwatcher"
)

// bubble runs a test with a sink, on which nothing is left.
func bubble(t *testing.T, test func(*testing.T, *signals.Sink)) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 10})
		coretest.NothingLeft(t, sink, func() { test(t, sink) })
	})
}

// Signals that do not fit into the queue are dropped, oldest first. Signals that have left
// the sink are not.
func TestEachMatchOnceInOrderOffTheRaiser(t *testing.T) {
	bubble(t, func(t *testing.T, sink *signals.Sink) {
		for range 2 { // the same name is not the same signal
			sink.Raise("error.before")
		}
		defer sink.Hold("error.held", "", 0)()
		var seen []string // without a lock: there is one call at a time
		gate := make(chan struct{})
		w := core.Must(signallogwatcher.New(sink, "", func(_ context.Context, s signals.Signal) error {
			<-gate
			seen = append(seen, s.Name)
			return nil
		}, core.Options{MaxQueued: 15}))
		synctest.Wait() // one call runs, two wait
		for _, name := range "abcdefghijklmno" {
			sink.Raise("error." + string(name))
			sink.Raise("info.started")
		}
		close(gate)
		require.NoError(t, w.Drain(t.Context()))
		require.EqualValues(t, 2, w.Stats().Dropped)
		require.Len(t, seen, 16)
		require.Equal(t, []string{"error.before", "error.a", "error.b"}, seen[:3])
		require.Equal(t, "error.o", seen[15])
	})
}

// Two watchers watch what the other one raises, and fail each time.
func TestAFailureIsCountedAndNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, sink *signals.Sink) {
		wrong := errors.New("on purpose")
		fail := func(context.Context, signals.Signal) error { return wrong }
		a := core.Must(signallogwatcher.New(sink, "error.*, watcher.*", fail, core.Options{}))
		b := core.Must(signallogwatcher.New(sink, "error.*, watcher.*", fail, core.Options{}))
		sink.Raise("error.plain")
		synctest.Wait()
		require.NoError(t, core.InOrder(a, b).Drain(t.Context()))
		require.EqualValues(t, 2, a.Stats().Failed, "the error, and a failure of the other one")
		require.EqualValues(t, 2, b.Stats().Failed)
		for s, failure := range signallogwatcher.Failed.Sense(sink, signals.Query{}) {
			require.Equal(t, []string{"error.plain", "watcher.failed"}, s.Path())
			require.Equal(t, []any{"error.plain", wrong, "signallogwatcher"}, []any{failure.Signal.Name, failure.Err, s.Source})
		}
	})
}

func TestWhatIsRefused(t *testing.T) {
	sink, ok := signals.NewSink(signals.SinkOptions{}), func(context.Context, signals.Signal) error { return nil }
	_, noSink := signallogwatcher.New(nil, "", ok, core.Options{})
	_, noFunction := signallogwatcher.New(sink, "", nil, core.Options{})
	_, options := signallogwatcher.New(sink, "", ok, core.Options{MaxConcurrency: -1})
	for _, err := range []error{noSink, noFunction, options} {
		require.ErrorContains(t, err, "signallogwatcher: ")
	}
}
