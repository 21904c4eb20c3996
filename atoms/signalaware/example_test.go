package signalaware_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/atoms/signalaware"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example() {
	process := func(_ context.Context, item string) error {
		fmt.Println("process", item)
		return nil
	}
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	gate := core.Must(signalaware.New(process, core.Options{
		CancelOn:       "shutdown, circuit-open",
		DeferOn:        "backpressure.*",
		Sink:           sink,
		MaxConcurrency: 8,
	}))
	defer gate.Close()

	gate.Raise("backpressure.downstream") // items wait
	id := core.Must(gate.Enqueue(ctx, "first"))
	fmt.Println(gate.Why()[0])
	sink.Retract("backpressure.*") // the item runs
	if err := gate.Wait(ctx, id); err != nil {
		panic(err)
	}

	sink.Raise("shutdown") // items are refused
	_, err := gate.Enqueue(ctx, "second")
	if refused, ok := errors.AsType[*core.RefusedError](err); ok {
		fmt.Println("refused because of", refused.Signal.Name)
	}
	if err := gate.Drain(ctx); err != nil {
		panic(err)
	}
	// Output:
	// deferred because of signal "backpressure.downstream"
	// process first
	// refused because of shutdown
}

// Wrap puts another function behind the gate. It runs on the goroutine of its caller.
func ExampleWrap() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	upload := func(_ context.Context, file string) error { fmt.Println("upload", file); return nil }
	remove := func(_ context.Context, id int) error { fmt.Println("remove", id); return nil }

	gate, err := signalaware.New(upload, core.Options{Sink: sink, CancelOn: "storage.read-only"})
	if err != nil {
		panic(err)
	}
	defer gate.Close()
	remove = signalaware.Wrap(gate, remove)

	fmt.Println(remove(ctx, 1))
	release := sink.Hold("storage.read-only", "disk-1", 0)
	fmt.Println(remove(ctx, 2))
	release()
	fmt.Println(remove(ctx, 3))
	// Output:
	// remove 1
	// <nil>
	// core: refused because of signal "storage.read-only" for "disk-1"
	// remove 3
	// <nil>
}
