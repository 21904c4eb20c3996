package fixedwork_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/ephemeralgo/ephemeral/atoms/fixedwork"
	"github.com/ephemeralgo/ephemeral/core"
)

func nothing(context.Context, int) error { return nil }

// What a pool costs per item that has nothing to do, with one producer and with
// many, beside the least that could do the same without telling anybody: a channel
// and a few goroutines.
func BenchmarkPool(b *testing.B) {
	for _, workers := range []int{1, 8} {
		b.Run(fmt.Sprintf("workers=%d/pool", workers), func(b *testing.B) {
			pool := core.Must(fixedwork.New(nothing, fixedwork.Options{MaxConcurrency: workers}))
			b.ReportAllocs()
			for b.Loop() {
				core.Must(pool.Enqueue(b.Context(), 1))
			}
			if err := pool.Drain(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
		b.Run(fmt.Sprintf("workers=%d/channel", workers), func(b *testing.B) {
			items := make(chan int, 1024)
			var all sync.WaitGroup
			for range workers {
				all.Go(func() {
					for item := range items {
						nothing(b.Context(), item)
					}
				})
			}
			b.ReportAllocs()
			for b.Loop() {
				items <- 1
			}
			close(items)
			all.Wait()
		})
	}
}
