package inspect_test

import (
	"context"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// A graph of 500 operations that wait, without a cycle.
func BenchmarkWaits(b *testing.B) {
	var all []core.Inspector
	for range 4 {
		c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error { <-ctx.Done(); return nil }, core.Options{MaxConcurrency: 8, MaxQueued: 2000}))
		defer c.Close()
		for i := range 2000 {
			c.Enqueue(context.Background(), i)
		}
		all = append(all, c)
	}
	b.ReportAllocs()
	for b.Loop() {
		inspect.Waits(all...)
	}
}
