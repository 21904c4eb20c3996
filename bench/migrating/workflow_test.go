package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/priorityprocessor"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/dynamicworkflow"
)

// A queue for each widget, a primary that is down, and its backup.
func Example_workflow() {
	sink := signals.NewSink(signals.SinkOptions{Capacity: 10_000, MaxAge: 5 * time.Minute})
	processors, err := priorityprocessor.New([]priorityprocessor.Processor[string]{
		{Name: "a", Priority: 1, Do: func(ctx context.Context, widget string) error { return errors.New("down") },
			Probe: func(ctx context.Context) error { return errors.New("still down") }}, // after 5 s, 10 s and so on
		{Name: "b", Priority: 2, Do: func(ctx context.Context, widget string) error { return nil }},
	}, priorityprocessor.Options{Sink: sink})
	if err != nil {
		panic(err)
	}
	defer processors.Close()
	widget := func(id string) string { return id }
	system, err := dynamicworkflow.New(widget, processors.Do, dynamicworkflow.Options{
		Route: dynamicworkflow.Best(2),
		Max:   64,
	}, core.Options{Name: "widgets", Sink: sink})
	if err != nil {
		panic(err)
	}
	defer system.Close()

	ctx := context.Background()
	for i := range 100 {
		if _, err := system.Enqueue(ctx, fmt.Sprint("WIDGET-", i%10)); err != nil {
			panic(err)
		}
	}
	if err := system.Flush(ctx); err != nil {
		panic(err)
	}
	m := system.Metrics(time.Minute)
	fmt.Println("processed:", m.Total)
	fmt.Println("success:", m.Succeeded)
	fmt.Println("failed:", m.Failed)
	fmt.Println("three failovers or more:", m.Failovers >= 3)
	fmt.Println("concurrency:", m.Concurrency)
	fmt.Println("new items go to b:", sink.Has("processor.marked.unhealthy:pri1"))
	// Output:
	// processed: 100
	// success: 100
	// failed: 0
	// three failovers or more: true
	// concurrency: 4
	// new items go to b: true
}
