package bench

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// BenchmarkCrawl is work that enqueues work, with default options: a million items, of
// which the first hundred thousand enqueue ten more each.
func BenchmarkCrawl(b *testing.B) {
	const items, links = 1_000_000, 10
	for b.Loop() {
		var c *core.Coordinator[int]
		c = core.Must(core.NewCoordinator(func(ctx context.Context, item int) error {
			for link := item*links + 1; link <= item*links+links && link < items; link++ {
				if _, err := c.Enqueue(ctx, link); err != nil {
					return err
				}
			}
			return nil
		}, core.Options{}))
		runtime.GC()
		var before, now runtime.MemStats
		runtime.ReadMemStats(&before)
		var goroutines, heap atomic.Int64
		over := make(chan struct{})
		sampled := make(chan struct{})
		go func() {
			defer close(sampled)
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
				runtime.ReadMemStats(&now)
				goroutines.Store(max(goroutines.Load(), int64(runtime.NumGoroutine())))
				heap.Store(max(heap.Load(), int64(now.HeapAlloc)-int64(before.HeapAlloc)))
			}
		}()
		if _, err := c.Enqueue(context.Background(), 0); err != nil {
			b.Fatal(err)
		}
		if err := c.WaitIdle(context.Background()); err != nil {
			b.Fatal(err)
		}
		close(over)
		<-sampled
		s := c.Stats()
		if s.Succeeded != items {
			b.Fatalf("got %v, want all of them", s)
		}
		b.ReportMetric(float64(goroutines.Load()), "goroutines")
		b.ReportMetric(float64(heap.Load())/1e6, "MB-heap")
		b.ReportMetric(float64(s.Overflow), "overflow")
	}
}
