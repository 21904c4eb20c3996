package signallogwatcher_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/signallogwatcher"
)

// The watcher gets errors that are older than the watcher, and new ones.
func Example() {
	sink := signals.NewSink(signals.SinkOptions{})
	signallogwatcher.Failed.Subscribe(sink, func(_ signals.Signal, f signallogwatcher.Failure) {
		fmt.Println("no alert for", f.Signal.Name, "because of:", f.Err)
	})
	sink.RaiseKey("error.database", "order-6")

	watcher := core.Must(signallogwatcher.New(sink, "error.*", func(_ context.Context, s signals.Signal) error {
		if s.Key == "" {
			return errors.New("nobody is on duty")
		}
		fmt.Println("alert:", s.Name, s.Key)
		return nil
	}, core.Options{}))
	defer watcher.Close()

	sink.RaiseKey("error.timeout", "order-7")
	sink.Raise("error.cache")
	sink.Raise("info.started")
	if err := watcher.Drain(context.Background()); err != nil { // handles all signals so far
		panic(err)
	}
	fmt.Println("done:", watcher.Stats().Succeeded, "failed:", watcher.Stats().Failed)
	// Output:
	// alert: error.database order-6
	// alert: error.timeout order-7
	// no alert for error.cache because of: nobody is on duty
	// done: 2 failed: 1
}
