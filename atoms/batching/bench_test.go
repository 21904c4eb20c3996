package batching_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
)

func benchmark(b *testing.B, callers int, call func(*batching.Batcher[int], context.Context, int) error) {
	x := newBatcher(b, func(context.Context, []int) error { return nil }, batching.Options[int]{MaxDelay: time.Millisecond})
	ctx := context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range (b.N + callers - 1) / callers {
				_ = call(x, ctx, i)
			}
		})
	}
	all.Wait()
	_ = x.Drain(ctx)
}

func BenchmarkDo64(b *testing.B)       { benchmark(b, 64, (*batching.Batcher[int]).Do) }
func BenchmarkEnqueue(b *testing.B)    { benchmark(b, 1, (*batching.Batcher[int]).Enqueue) }
func BenchmarkEnqueueBy8(b *testing.B) { benchmark(b, 8, (*batching.Batcher[int]).Enqueue) }
