package whatif_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/whatif"
)

// May the batch take 8 more slots, without the p99 of interactive operations getting worse than 200 ms?
func Example() {
	orders := core.Must(core.NewCoordinator(func(_ context.Context, span time.Duration) error {
		time.Sleep(span)
		return nil
	}, core.Options{MaxConcurrency: 24, Lanes: []core.Lane{{Name: "interactive"}, {Name: "batch", Limit: 8}}}))

	var file bytes.Buffer // in production a file, for an hour
	recording := core.Must(whatif.Record(orders, &file))
	for range 50 {
		orders.Lane("interactive").Enqueue(context.Background(), time.Millisecond)
		orders.Lane("batch").Enqueue(context.Background(), 2*time.Millisecond)
	}
	orders.Drain(context.Background())
	if err := recording.Close(); err != nil {
		fmt.Println(err)
	}
	var written whatif.Counts = recording.Counts()

	trace := core.Must(whatif.Read(&file))
	opts := trace.Options // as recorded
	opts.Lanes = slices.Clone(opts.Lanes)
	opts.Lanes[1].Limit += 8
	report := core.Must(whatif.Run(trace, opts))
	fmt.Println(strings.Split(report.String(), "\n")[1])
	var is whatif.Result = report.Simulated
	for _, w := range is.Waits {
		if w.Lane == "interactive" {
			fmt.Println(w.Started, "of", written.Operations, "are interactive; the batch may take 8 more:", w.P99 <= 200*time.Millisecond)
		}
	}
	// Output:
	// Changed: limit of lane batch 8 -> 16.
	// 50 of 100 are interactive; the batch may take 8 more: true
}
