package guide_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

func Example_breaker() {
	sink := core.NewSink(core.SinkOptions{})
	breaker := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{
		Name:      "carrier",
		Threshold: 2,                // 2 failures open it
		Window:    30 * time.Second, // each failure counts for 30 seconds
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

func Example_together() {
	sink := core.NewSink(core.SinkOptions{})
	limiter := core.Must(ratelimit.New(core.Rate{PerSecond: 100}, ratelimit.Options{})) // 100 calls a second
	defer limiter.Close()
	breaker := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{Name: "carrier"}))
	defer breaker.Close()
	r := core.Must(retry.New(retry.Options{Attempts: 3}))

	calls := 0
	ask := func(ctx context.Context, city string) (int, error) {
		if calls++; calls == 1 {
			return 0, errors.New("carrier is busy")
		}
		return 490, nil
	}
	load := retry.WrapResult(r, circuitbreaker.WrapResult(breaker, ratelimit.WrapResult(limiter, ask)))
	prices := core.Must(slidingcache.New(load, slidingcache.Options[string]{Sink: sink}))
	defer prices.Close()

	ctx := context.Background()
	fmt.Println(prices.Get(ctx, "Vienna"))
	fmt.Println(prices.Get(ctx, "Vienna"))
	breaker.Trip() // opens it, like 5 failures
	price, err := prices.Get(ctx, "Graz")
	fmt.Println(price, errors.Is(err, circuitbreaker.ErrOpen))
	fmt.Println(prices.Get(ctx, "Vienna"))
	fmt.Println(calls, "calls")
	// Output:
	// 490 <nil>
	// 490 <nil>
	// 0 true
	// 490 <nil>
	// 2 calls
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
