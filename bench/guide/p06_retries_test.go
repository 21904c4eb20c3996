package guide_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/hedge"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

func Example_retry() {
	r := core.Must(retry.New(retry.Options{
		Attempts: 4, // the first one included
		Backoff:  retry.Exponential(time.Millisecond, 2),
		Jitter:   retry.FullJitter,
	}))
	call := func(ctx context.Context, order string) error {
		fmt.Println(order, "attempt", retry.Attempt(ctx))
		switch {
		case order == "order-2":
			return retry.Permanent(errors.New("no address")) // do not try again
		case retry.Attempt(ctx) < 3:
			return errors.New("carrier is busy")
		}
		return nil
	}
	orders := core.Must(core.NewCoordinator(retry.Wrap(r, call), core.Options{}))
	defer orders.Close()

	ctx := context.Background()
	fmt.Println(orders.Do(ctx, "order-1"))
	fmt.Println(orders.Do(ctx, "order-2"))
	// Output:
	// order-1 attempt 1
	// order-1 attempt 2
	// order-1 attempt 3
	// <nil>
	// order-2 attempt 1
	// no address
}

func Example_limits() {
	r := core.Must(retry.New(retry.Options{Attempts: 3}))
	call := func(ctx context.Context, order string) error { return nil }
	orders := core.Must(core.NewCoordinator(retry.Wrap(r, call), core.Options{
		MaxConcurrency: 8,
		Classes:        []core.Class{{Name: "carrier", Rate: core.AtMost(100, time.Second)}}, // as the carrier demands
	}))
	defer orders.Close()
	labels := orders.Class("carrier") // a view: its items belong to the class

	ctx, start := context.Background(), time.Now()
	for range 6 {
		core.Must(labels.Enqueue(ctx, "order"))
	}
	if err := orders.Drain(ctx); err != nil {
		panic(err)
	}
	fmt.Println("at least 50 ms:", time.Since(start) >= 50*time.Millisecond)
	// Output: at least 50 ms: true
}

func Example_hedge() {
	sink := signals.NewSink(signals.SinkOptions{})
	r := core.Must(retry.New(retry.Options{AttemptTimeout: time.Second}))
	breaker := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{Name: "carrier"}))
	defer breaker.Close()
	h := core.Must(hedge.New(hedge.Options{Delay: 10 * time.Millisecond, MaxExtra: 1}))

	call := func(ctx context.Context, order string) error {
		if hedge.Attempt(ctx) == 1 {
			<-ctx.Done() // the first server does not answer
			return context.Cause(ctx)
		}
		fmt.Print("server 2 ")
		return nil
	}
	orders := core.Must(core.NewCoordinator(
		retry.Wrap(r, circuitbreaker.Wrap(breaker, hedge.Wrap(h, call))),
		core.Options{Sink: sink, Classes: []core.Class{{Name: "carrier", Rate: core.Rate{PerSecond: 100}}}}))
	defer orders.Close()
	fmt.Println(orders.Class("carrier").Do(context.Background(), "order-1"))
	// Output: server 2 <nil>
}
