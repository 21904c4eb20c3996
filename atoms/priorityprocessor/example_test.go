package priorityprocessor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/priorityprocessor"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example() {
	primary := func(ctx context.Context, order string) error { return errors.New("connection refused") }
	backup := func(ctx context.Context, order string) error {
		fmt.Println("the backup charges", order)
		return nil
	}
	charge := core.Must(priorityprocessor.New([]priorityprocessor.Processor[string]{
		{Name: "primary", Priority: 1, Do: primary},
		{Name: "backup", Priority: 2, Do: backup},
	}, priorityprocessor.Options{}))
	defer charge.Close()

	for _, order := range []string{"order-1", "order-2", "order-3", "order-4"} {
		if err := charge.Do(context.Background(), order); err != nil {
			panic(err)
		}
	}
	for _, p := range charge.Processors() {
		fmt.Printf("%s: healthy %t, %d attempts\n", p.Name, p.Healthy, p.Succeeded+p.Failed) // primary: healthy false, 3 attempts
	}
	// Output:
	// the backup charges order-1
	// the backup charges order-2
	// the backup charges order-3
	// the backup charges order-4
	// primary: healthy false, 3 attempts
	// backup: healthy true, 4 attempts
}

// Do returns what a processor returns.
func ExampleNewResult() {
	rates := core.Must(priorityprocessor.NewResult([]priorityprocessor.ResultProcessor[string, float64]{
		{Name: "live", Priority: 1, Do: func(ctx context.Context, currency string) (float64, error) {
			return 0, errors.New("connection refused")
		}},
		{Name: "yesterday's", Priority: 2, Do: func(ctx context.Context, currency string) (float64, error) {
			return 1.25, nil
		}},
	}, priorityprocessor.Options{}))
	defer rates.Close()

	fmt.Println(rates.Do(context.Background(), "CHF"))
	// Output: 1.25 <nil>
}

// A coordinator limits the work and keeps the order of each widget. Two processors do the work.
// The sink has the signals.
func Example_workflow() {
	sink := signals.NewSink(signals.SinkOptions{Capacity: 10_000, MaxAge: 5 * time.Minute})
	var calls atomic.Int64
	widgets := core.Must(priorityprocessor.New([]priorityprocessor.Processor[string]{
		{Name: "a", Priority: 1, Do: func(ctx context.Context, widget string) error {
			if calls.Add(1) <= 2 {
				return errors.New("still warming up")
			}
			return nil
		}, Probe: func(ctx context.Context) error { return nil }},
		{Name: "b", Priority: 2, Do: func(ctx context.Context, widget string) error { return nil }},
	}, priorityprocessor.Options{Sink: sink, Verbose: true}))
	defer widgets.Close()
	work := core.Must(core.NewKeyedCoordinator(func(widget string) string { return widget }, widgets.Do,
		core.Options{MaxConcurrency: 4, Sink: sink}))
	defer work.Close()

	ctx := context.Background()
	for i := range 100 {
		if _, err := work.Enqueue(ctx, fmt.Sprintf("WIDGET-%d", i%10)); err != nil {
			panic(err)
		}
	}
	if err := work.Flush(ctx); err != nil {
		panic(err)
	}
	fmt.Println("processed:", work.Stats().Enqueued)
	fmt.Println("success:", sink.Count("processing.complete:*"))
	fmt.Println("failed:", sink.Count("processing.failed:*"))
	fmt.Println("failovers:", sink.Count("failover.requested:*"))
	fmt.Println("concurrency:", work.Stats().Limit)
	// Output:
	// processed: 100
	// success: 100
	// failed: 2
	// failovers: 2
	// concurrency: 4
}

// Processors react to a signal. Its key is the item.
func Example_listening() {
	sink := signals.NewSink(signals.SinkOptions{})
	orders := core.Must(priorityprocessor.New([]priorityprocessor.Processor[string]{
		{Name: "a", Priority: 1, Do: func(ctx context.Context, order string) error { return errors.New("out of service") }},
		{Name: "b", Priority: 2, Do: func(ctx context.Context, order string) error {
			fmt.Println("b has", order)
			return nil
		}},
	}, priorityprocessor.Options{Sink: sink}))
	defer orders.Close()

	listener := core.Must(core.NewProcessor(func(ctx context.Context, s signals.Signal) error {
		return orders.Do(ctx, s.Key)
	}, core.Options{MaxConcurrency: 1, Sink: sink}))
	defer sink.Subscribe("order.placed", listener.Process)()

	sink.RaiseKey("order.placed", "WIDGET-123")
	sink.RaiseKey("order.placed", "WIDGET-124")
	if err := listener.Drain(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// b has WIDGET-123
	// b has WIDGET-124
}

// A processor that has failed too often is probed until a probe succeeds.
func ExampleProcessor() {
	var repaired atomic.Bool
	ping := func(ctx context.Context) error {
		if !repaired.Load() {
			return errors.New("no answer")
		}
		return nil
	}
	work := core.Must(priorityprocessor.New([]priorityprocessor.Processor[string]{
		{Name: "primary", Priority: 1, Probe: ping, Do: func(ctx context.Context, item string) error {
			fmt.Println("primary:", item)
			return ping(ctx)
		}},
		{Name: "backup", Priority: 2, Do: func(ctx context.Context, item string) error {
			fmt.Println("backup:", item)
			return nil
		}},
	}, priorityprocessor.Options{
		Threshold:     1,
		ProbeAfter:    time.Millisecond, // by default 5 seconds,
		MaxProbeAfter: time.Millisecond, // and up to a minute
	}))
	defer work.Close()

	ctx := context.Background()
	work.Do(ctx, "one")
	work.Do(ctx, "two")
	repaired.Store(true)
	if _, err := work.Sink().WaitFor(ctx, priorityprocessor.Restored.Name()); err != nil {
		panic(err)
	}
	work.Do(ctx, "three")
	// Output:
	// primary: one
	// backup: one
	// backup: two
	// primary: three
}

// While another part of the program holds this signal, items start with priority 2.
func ExampleFailover_Do_route() {
	say := func(name string) core.Work[string] {
		return func(ctx context.Context, item string) error {
			fmt.Println(name, "does", item)
			return nil
		}
	}
	sink := signals.NewSink(signals.SinkOptions{})
	work := core.Must(priorityprocessor.New([]priorityprocessor.Processor[string]{
		{Name: "here", Priority: 1, Do: say("here")},
		{Name: "there", Priority: 2, Do: say("there")},
	}, priorityprocessor.Options{Sink: sink}))
	defer work.Close()

	ctx := context.Background()
	release := sink.Hold(priorityprocessor.CommandRoute+"2", "", 10*time.Minute)
	work.Do(ctx, "one")
	release()
	work.Do(ctx, "two")
	// Output:
	// there does one
	// here does two
}

// When all processors have failed, the error has their attempts. The payload of signals is a
// Report.
func ExampleError() {
	charge := core.Must(priorityprocessor.New([]priorityprocessor.Processor[string]{
		{Name: "primary", Priority: 1, Do: func(context.Context, string) error { return errors.New("connection refused") }},
		{Name: "backup", Priority: 2, Do: func(context.Context, string) error { return errors.New("disk full") }},
	}, priorityprocessor.Options{Threshold: 1}))
	defer charge.Close()
	charge.Sink().Subscribe(priorityprocessor.SignalUnhealthy+":*", func(s signals.Signal) {
		report := s.Payload().(priorityprocessor.Report)
		fmt.Println(report.Processor, "is unhealthy:", report.Err)
	})

	var failed *priorityprocessor.Error
	if errors.As(charge.Do(context.Background(), "order-1"), &failed) {
		last := func(attempts []priorityprocessor.Attempt) string { return attempts[len(attempts)-1].Processor }
		fmt.Println(len(failed.Attempts), "attempts, the last by", last(failed.Attempts))
	}
	healthy := func(p priorityprocessor.ProcessorStatus) bool { return p.Healthy }
	fmt.Println("one is healthy:", slices.ContainsFunc(charge.Processors(), healthy))
	// Output:
	// primary is unhealthy: connection refused
	// backup is unhealthy: disk full
	// 2 attempts, the last by backup
	// one is healthy: false
}
