package dynamicconcurrency_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/dynamicconcurrency"
)

// The limit follows the load. Each change is a signal.
func Example() {
	sink := signals.NewSink(signals.SinkOptions{})
	call := func(context.Context, string) error { return nil }
	elastic := core.Must(dynamicconcurrency.New(call, dynamicconcurrency.Scale{Min: 2, Max: 10}, core.Options{Name: "api", Sink: sink}))
	defer elastic.Close()
	defer dynamicconcurrency.Increased.Subscribe(sink, func(s signals.Signal, limit int) {
		fmt.Println(s.Key, "may run", limit)
	})()

	for range 4 {
		sink.Raise("load.high")
	}
	sink.Raise("load.low")
	fmt.Println("in the end:", elastic.Stats().Limit)
	// Output:
	// api may run 4
	// api may run 8
	// api may run 10
	// in the end: 5
}
