package guide_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

func Example_breaker() {
	sink := core.NewSink(core.SinkOptions{})
	breaker := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{
		Name:      "carrier",
		Threshold: 2,                // so many failures open it
		Window:    30 * time.Second, // how long a failure counts
	}))
	defer breaker.Close()

	call := circuitbreaker.Wrap(breaker, func(ctx context.Context, order string) error {
		return errors.New("carrier does not answer")
	})
	orders := core.Must(core.NewCoordinator(call, core.Options{Sink: sink}))
	defer orders.Close()
	quotes := core.Must(core.NewCoordinator(
		func(ctx context.Context, quote string) error { return nil },
		core.Options{Sink: sink, CancelOn: "circuit.open.carrier"}))
	defer quotes.Close()

	ctx := context.Background()
	fmt.Println(orders.Do(ctx, "order-1"))
	fmt.Println(orders.Do(ctx, "order-2"))
	fmt.Println(errors.Is(orders.Do(ctx, "order-3"), circuitbreaker.ErrOpen))
	fmt.Println(quotes.Do(ctx, "quote-1"))
	// Output:
	// carrier does not answer
	// carrier does not answer
	// true
	// core: refused because of signal "circuit.open.carrier"
}

func Example_queueFull() {
	release := make(chan bool)
	orders := core.Must(core.NewCoordinator(func(ctx context.Context, order int) error {
		<-release
		return nil
	}, core.Options{MaxConcurrency: 1, MaxQueued: 2}))
	defer orders.Close()

	ctx := context.Background()
	for order := range 5 { // one runs, two wait
		if _, err := orders.TryEnqueue(ctx, order); errors.Is(err, core.ErrFull) {
			fmt.Println("no room for", order)
		}
	}
	close(release)
	// Output:
	// no room for 3
	// no room for 4
}
