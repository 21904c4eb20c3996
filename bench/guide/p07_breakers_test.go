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
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

func Example_breaker() {
	sink := signals.NewSink(signals.SinkOptions{})
	breaker := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{
		Name:      "carrier",
		Threshold: 2,                // 2 failures open the breaker
		Window:    30 * time.Second, // each failure counts for 30 seconds
		OpenFor:   20 * time.Millisecond,
		HalfOpen:  1, // one call is the trial
	}))
	defer breaker.Close()

	calls := 0
	call := circuitbreaker.Wrap(breaker, func(ctx context.Context, order string) error {
		if calls++; calls <= 2 {
			fmt.Println(order, "failed")
			return errors.New("carrier does not answer")
		}
		fmt.Println(order, "delivered")
		return nil
	})
	orders := core.Must(core.NewCoordinator(call, core.Options{Sink: sink, MaxConcurrency: 1, Classes: []core.Class{{
		Name:    "carrier",
		DeferOn: "circuit.open.carrier",      // while the breaker is open, items wait
		TrialOn: "circuit.half_open.carrier", // while the breaker is half-open,
		Trials:  1,                           // one item runs
	}}}))
	defer orders.Close()
	closed := make(chan bool)
	defer circuitbreaker.Changes.Subscribe(sink, func(s signals.Signal, c circuitbreaker.Change) {
		fmt.Printf("%s: %s\n", s.Name, c.Reason)
		if s.Name == "breaker.closed.carrier" {
			close(closed)
		}
	})()

	ctx := context.Background()
	for n := range 3 {
		core.Must(orders.Class("carrier").Enqueue(ctx, fmt.Sprint("order-", n+1)))
	}
	<-closed
	core.Must(orders.Class("carrier").Enqueue(ctx, "order-4"))
	if err := orders.Drain(ctx); err != nil {
		panic(err)
	}
	// Output:
	// order-1 failed
	// order-2 failed
	// breaker.opened.carrier: too many failures in the window
	// order-3 delivered
	// breaker.closed.carrier: enough trials have succeeded
	// order-4 delivered
}

func Example_together() {
	sink := signals.NewSink(signals.SinkOptions{})
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
	breaker.Trip() // opens the breaker, like 5 failures
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

func Example_shadow() {
	pay := func(ctx context.Context, order int) error { return nil }
	planned := core.Rate{PerSecond: 0.1, Burst: 10}
	payments := core.Must(core.NewCoordinator(pay, core.Options{
		Classes: []core.Class{{Name: "stripe", Shadow: &core.Limits{Rate: planned}}},
	}))
	defer payments.Close()

	ctx := context.Background()
	for order := range 15 {
		if err := payments.Class("stripe").Do(ctx, order); err != nil { // none waits
			fmt.Println(err)
		}
	}
	s := payments.Stats().Classes[0].Shadow
	fmt.Println(s.Waited, "of", s.Started, "would have waited,", s.Refused, "would have been refused")
	fmt.Println(payments.SetClass(core.Class{Name: "stripe", Rate: planned})) // now it is in force
	// Output:
	// 5 of 15 would have waited, 0 would have been refused
	// <nil>
}
