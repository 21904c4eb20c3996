package circuitbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

// Three failures in half a minute open the breaker, whichever code raised them.
func Example() {
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	api, err := circuitbreaker.New(sink, circuitbreaker.Options{
		Name:      "api",
		Failure:   "api.failure",
		Threshold: 3,
		Window:    30 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	defer api.Close()

	call := circuitbreaker.Wrap(api, func(_ context.Context, path string) error {
		return errors.New(path + ": connection refused")
	})
	sink.Raise("api.failure") // other code had a failure as well
	for range 3 {
		err = call(ctx, "/orders")
		if open, ok := errors.AsType[*circuitbreaker.OpenError](err); ok {
			fmt.Println("refused after", open.Failures, "failures, try again in", open.Wait.Round(time.Second)) // the third call
		} else {
			fmt.Println(err) // /orders: connection refused
		}
	}

	// The breaker also stops this coordinator, which knows only the name of the held signal.
	orders := core.Must(core.NewCoordinator(call, core.Options{Sink: sink, CancelOn: "circuit.open.*"}))
	defer orders.Close()
	_, err = orders.Enqueue(ctx, "/orders")
	fmt.Println(err) // core: refused because of signal "circuit.open.api"
	// Output:
	// /orders: connection refused
	// /orders: connection refused
	// refused after 3 failures, try again in 30s
	// core: refused because of signal "circuit.open.api"
}

// Half of at least four calls must fail. A minute later one trial finds out whether the
// service works again.
func ExampleOptions_rate() {
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	api := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{
		Name: "api", Rate: 0.5, MinCalls: 4, HalfOpen: 1, OpenFor: time.Minute,
	}))
	defer api.Close()
	defer circuitbreaker.Changes.Subscribe(sink, func(s signals.Signal, change circuitbreaker.Change) {
		fmt.Printf("%s: %s\n", s.Name, change.Reason)
	})()
	call := circuitbreaker.Wrap(api, func(_ context.Context, err error) error { return err })

	down := errors.New("down")
	for _, err := range []error{nil, nil, down, down, nil} {
		err = call(ctx, err)
		fmt.Println(api.State(), errors.Is(err, circuitbreaker.ErrOpen))
	}
	// Output:
	// closed false
	// closed false
	// closed false
	// breaker.opened.api: too many calls have failed
	// open false
	// open true
}
