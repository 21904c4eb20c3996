package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

func Example_gobreakerBefore() {
	ctx := context.Background()
	breaker := gobreaker.NewCircuitBreaker[string](gobreaker.Settings{
		Name:         "pages",
		Interval:     30 * time.Second,
		BucketPeriod: 3 * time.Second,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.TotalFailures >= 3 },
		Timeout:      time.Minute,
		MaxRequests:  1,
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, context.Canceled) },
		OnStateChange: func(name string, from, to gobreaker.State) {
			fmt.Println(name, "is", to)
		},
	})

	for _, url := range []string{"/gone", "/gone", "/gone", "/cat"} {
		_, err := breaker.Execute(func() (string, error) { return get(ctx, url) })
		fmt.Println(err)
	}
	// Output:
	// /gone: not found
	// /gone: not found
	// pages is open
	// /gone: not found
	// circuit breaker is open
}

func Example_gobreakerAfter() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	breaker := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{
		Name:      "pages",
		Window:    30 * time.Second,
		Threshold: 3,
		OpenFor:   time.Minute,
		HalfOpen:  1,
	}))
	defer breaker.Close()
	defer sink.Subscribe("circuit.open.*", func(s signals.Signal) { fmt.Println(s.Name) })()

	guarded := circuitbreaker.WrapResult(breaker, get)
	for _, url := range []string{"/gone", "/gone", "/gone", "/cat"} {
		_, err := guarded(ctx, url)
		if open, ok := errors.AsType[*circuitbreaker.OpenError](err); ok {
			fmt.Println("open, try again in", open.Wait.Round(time.Second))
		} else {
			fmt.Println(err)
		}
	}
	// Output:
	// /gone: not found
	// /gone: not found
	// circuit.open.pages
	// /gone: not found
	// open, try again in 1m0s
}
