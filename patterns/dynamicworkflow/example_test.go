package dynamicworkflow_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/dynamicworkflow"
)

// Items go to the backup while the primary is unhealthy, and every decision is a signal.
func Example() {
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	process := func(ctx context.Context, widget string) error { return nil } // in a program: Do of a priorityprocessor.Failover on the sink
	key := func(widget string) string { return widget }
	system := core.Must(dynamicworkflow.New(key, process, dynamicworkflow.Options{Route: dynamicworkflow.Best(2), Max: 64}, core.Options{Name: "widgets", Sink: sink}))
	defer system.Close()
	defer dynamicworkflow.Decisions.Subscribe(sink, func(s signals.Signal, _ dynamicworkflow.Decision) {
		fmt.Println(s.Key, s.Name)
	})()

	for _, happens := range []string{"widgets.imported", "processor.unhealthy:pri1", "processor.healthy:pri1", "system.load.low"} {
		// Prints WIDGET-123 route.assigned:pri1; then, for the unhealthy primary, widgets
		// processor.marked.unhealthy:pri1 and WIDGET-123 route.assigned:pri2.
		sink.Raise(happens)
		if err := system.Do(ctx, "WIDGET-123"); err != nil {
			panic(err)
		}
	}
	m := system.Metrics(time.Minute)
	fmt.Println(m.Total, "items,", m.Succeeded, "done,", m.Failed, "failed,", m.Failovers, "failovers, at most", m.Concurrency, "at once")
	// Output:
	// WIDGET-123 route.assigned:pri1
	// widgets processor.marked.unhealthy:pri1
	// WIDGET-123 route.assigned:pri2
	// widgets processor.marked.healthy:pri1
	// WIDGET-123 route.assigned:pri1
	// widgets concurrency.increased:to=6
	// WIDGET-123 route.assigned:pri1
	// 4 items, 4 done, 0 failed, 0 failovers, at most 6 at once
}
