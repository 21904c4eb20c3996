package fromcsharp_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Handlers by pattern, in the background.
func Example_dispatcher() {
	ctx := context.Background()
	dispatcher := core.Must(core.NewDispatcher(core.Options{MaxConcurrency: 8}))
	defer dispatcher.Close()

	dispatcher.Handle("error.*, timeout", sendAlert)
	dispatcher.Handle("progress:*", recordMetric)

	requests := core.Must(core.NewCoordinator(work, core.Options{OnSignal: dispatcher.Dispatch}))
	defer requests.Close()

	if err := requests.Do(ctx, "error.payment"); err != nil {
		panic(err)
	}
	if err := dispatcher.Flush(ctx); err != nil { // waits for all signals so far; more may come
		panic(err)
	}
	// Output: alert: error.payment
}

// Every signal, in the background. When too many wait, the oldest are dropped.
func Example_processor() {
	ctx := context.Background()
	processor := core.Must(core.NewProcessor(func(ctx context.Context, s signals.Signal) error {
		fmt.Println("logged", s.Name, s.Key)
		return nil
	}, core.Options{MaxConcurrency: 4, MaxQueued: 1000}))
	defer processor.Close()

	sink := signals.NewSink(signals.SinkOptions{})
	sink.Subscribe("*", processor.Process) // or Options.OnSignal: processor.Process
	sink.RaiseKey("rate-limit", "payments-api")

	if err := processor.Drain(ctx); err != nil {
		panic(err)
	}
	// Output: logged rate-limit payments-api
}

// Signals as telemetry.
func Example_telemetry() {
	ctx := context.Background()
	var client telemetry

	track := func(ctx context.Context, s signals.Signal) error {
		if err := client.event(ctx, s); err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(s.Name, "error"):
			return client.exception(ctx, s)
		case strings.HasPrefix(s.Name, "perf"):
			return client.metric(ctx, s)
		}
		return nil
	}
	processor := core.Must(core.NewProcessor(track, core.Options{MaxConcurrency: 8, MaxQueued: 5000}))
	defer processor.Close()

	requests := core.Must(core.NewCoordinator(work, core.Options{OnSignal: processor.Process}))
	defer requests.Close()

	if err := requests.Do(ctx, "error.timeout"); err != nil {
		panic(err)
	}
	if err := processor.Flush(ctx); err != nil {
		panic(err)
	}
	stats := processor.Stats()
	fmt.Println(stats.Pending, "queued,", stats.Succeeded, "processed,", stats.Dropped, "dropped")
	// Output:
	// event error.timeout
	// exception error.timeout
	// 0 queued, 1 processed, 0 dropped
}

// These functions stand for your code.

// work raises its item as a signal.
func work(ctx context.Context, signal string) error {
	core.OperationFrom(ctx).Raise(signal)
	return nil
}

func sendAlert(_ context.Context, s signals.Signal) error {
	fmt.Println("alert:", s.Name)
	return nil
}

func recordMetric(context.Context, signals.Signal) error { return nil }

type telemetry struct{}

func (telemetry) event(_ context.Context, s signals.Signal) error {
	fmt.Println("event", s.Name)
	return nil
}

func (telemetry) exception(_ context.Context, s signals.Signal) error {
	fmt.Println("exception", s.Name)
	return nil
}

func (telemetry) metric(context.Context, signals.Signal) error { return nil }
