package fromcsharp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A circuit breaker counts recent failures.
func Example_circuitBreaker() {
	ctx := context.Background()
	api := core.Must(core.NewCoordinator(func(ctx context.Context, request string) error {
		err := send(ctx, request)
		if err != nil {
			core.OperationFrom(ctx).Raise("api.failure")
		}
		return err
	}, core.Options{}))
	defer api.Close()

	failures := api.Monitor("api.failure", 30*time.Second)
	defer failures.Stop()

	call := func(ctx context.Context, request string) error {
		if failures.Count() >= 5 {
			slog.Debug("no calls", "for", failures.Below(5))
			return errCircuitOpen
		}
		return api.Do(ctx, request)
	}
	var err error
	for range 6 {
		err = call(ctx, "unreachable")
	}
	fmt.Println(err)
	// Output: circuit is open
}

// The limit follows the results.
func Example_adaptiveConcurrency() {
	sink := signals.NewSink(signals.SinkOptions{})
	work := core.Must(core.NewCoordinator(send, core.Options{MaxConcurrency: 4, Sink: sink}))
	defer work.Close()

	change := func(by int) {
		limit := min(max(1, work.Stats().Limit+by), 32)
		if err := work.SetMaxConcurrency(limit); err != nil {
			panic(err) // the limit is not from 1 to 32
		}
	}
	sink.Subscribe("system.load.high", func(signals.Signal) { change(-2) })
	sink.Subscribe("system.load.low", func(signals.Signal) { change(+2) })

	completed := sink.Monitor("processing.complete", 10*time.Second)
	defer completed.Stop()
	failed := sink.Monitor("processing.failed", 10*time.Second)
	defer failed.Stop()

	adjust := func() { // call it every 10 seconds, for example
		bad, all := failed.Count(), failed.Count()+completed.Count()
		switch {
		case 10*bad > all:
			change(-2)
		case 50*bad < all:
			change(+2)
		}
	}

	sink.Raise("system.load.low")
	fmt.Println(work.Stats().Limit)
	sink.Raise("processing.failed")
	adjust()
	fmt.Println(work.Stats().Limit)
	// Output:
	// 6
	// 4
}

// Figures of the last minute, from signals.
func Example_metrics() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{Capacity: 10_000, MaxAge: 5 * time.Minute})

	widgets := core.Must(core.NewKeyedCoordinator(func(id string) string { return id },
		func(ctx context.Context, id string) error {
			op := core.OperationFrom(ctx)
			if err := send(ctx, id); err != nil {
				op.Raise("processing.failed")
				return err
			}
			op.Raise("processing.complete")
			return nil
		}, core.Options{MaxConcurrency: 4, Sink: sink}))
	defer widgets.Close()

	succeeded, failed := sink.Monitor("processing.complete", time.Minute), sink.Monitor("processing.failed", time.Minute)
	defer succeeded.Stop()
	defer failed.Stop()

	for i := range 100 {
		core.Must(widgets.Enqueue(ctx, fmt.Sprint("WIDGET-", i%10)))
	}
	if err := widgets.Drain(ctx); err != nil {
		panic(err)
	}
	fmt.Println(succeeded.Count(), "succeeded,", failed.Count(), "failed, at most", widgets.Stats().Limit, "at once")
	// Output: 100 succeeded, 0 failed, at most 4 at once
}

// These functions stand for your code.

var errCircuitOpen = errors.New("circuit is open")

func send(_ context.Context, request string) error {
	if request == "unreachable" {
		return errors.New("no answer")
	}
	return nil
}
