package keyedpriorityfanout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/keyedpriorityfanout"
)

// A cancellation overtakes waiting orders of its user.
func Example() {
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	user := func(command string) string { name, _, _ := strings.Cut(command, "/"); return name }
	users := core.Must(keyedpriorityfanout.New(user, func(_ context.Context, command string) error {
		fmt.Println(command)
		return nil
	}, core.Lane{Depth: 100, CancelOn: "circuit.open.*"}, core.Options{MaxConcurrency: 8, Sink: sink}))
	defer users.Close()
	urgent := users.Lane(keyedpriorityfanout.Priority)

	users.Pause() // until all items are in the queue
	core.Must(users.Enqueue(ctx, "ada/order 1"))
	core.Must(users.Enqueue(ctx, "ada/order 2"))
	core.Must(urgent.Enqueue(ctx, "ada/cancel all"))
	for _, lane := range users.Stats().Lanes {
		fmt.Println(lane.Name, lane.Pending)
	}
	users.Resume()
	if err := users.Flush(ctx); err != nil {
		panic(err)
	}

	defer sink.Hold("circuit.open.api", "", 0)()
	_, err := urgent.TryEnqueue(ctx, "ada/cancel again")
	if refused, ok := errors.AsType[*core.RefusedError](err); ok {
		fmt.Println("refused because of", refused.Signal.Name)
	}
	// Output:
	// priority 1
	// normal 2
	// ada/cancel all
	// ada/order 1
	// ada/order 2
	// refused because of circuit.open.api
}
