package batching_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
)

// loop is what one writes by hand: a channel, a goroutine and a ticker. It has no
// bounds but the channel's, loses what is left at the end, and knows nothing of
// contexts, failures and panics.
type loop[T any] struct {
	items chan waiting[T]
	done  chan struct{}
}

type waiting[T any] struct {
	item T
	err  chan error
}

func newLoop[T any](flush func([]T) error, size int, delay time.Duration) *loop[T] {
	l := &loop[T]{make(chan waiting[T], 1024), make(chan struct{})}
	go func() {
		defer close(l.done)
		ticker := time.NewTicker(delay)
		defer ticker.Stop()
		var (
			batch   []T
			callers []chan error
		)
		send := func() {
			if len(batch) == 0 {
				return
			}
			err := flush(batch)
			for _, c := range callers {
				if c != nil {
					c <- err
				}
			}
			batch, callers = nil, callers[:0]
		}
		for {
			select {
			case w, ok := <-l.items:
				if !ok {
					send()
					return
				}
				batch, callers = append(batch, w.item), append(callers, w.err)
				if len(batch) == size {
					send()
				}
			case <-ticker.C:
				send()
			}
		}
	}()
	return l
}

func (l *loop[T]) Enqueue(item T) { l.items <- waiting[T]{item: item} }

func (l *loop[T]) Do(item T) error {
	err := make(chan error, 1)
	l.items <- waiting[T]{item, err}
	return <-err
}

func (l *loop[T]) Close() { close(l.items); <-l.done }

const (
	benchSize    = 32
	benchCallers = 64
)

func discard(context.Context, []int) error { return nil }

// callers calls fn once for each iteration, from so many goroutines.
func callers(b *testing.B, n int, fn func(int)) {
	b.ReportAllocs()
	var all sync.WaitGroup
	per := (b.N + n - 1) / n
	b.ResetTimer()
	for range n {
		all.Go(func() {
			for i := range per {
				fn(i)
			}
		})
	}
	all.Wait()
}

func newBench(b *testing.B) *batching.Batcher[int] {
	x, err := batching.New(discard, batching.Options[int]{MaxSize: benchSize, MaxDelay: time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.Close() })
	return x
}

func BenchmarkDo64(b *testing.B) {
	b.Run("batcher", func(b *testing.B) {
		x, ctx := newBench(b), b.Context()
		callers(b, benchCallers, func(i int) { x.Do(ctx, i) })
	})
	b.Run("channel and ticker", func(b *testing.B) {
		l := newLoop(func([]int) error { return nil }, benchSize, time.Millisecond)
		callers(b, benchCallers, func(i int) { l.Do(i) })
		b.StopTimer()
		l.Close()
	})
}

func BenchmarkEnqueue(b *testing.B) {
	for _, n := range []int{1, 8} {
		name := map[int]string{1: "1 producer", 8: "8 producers"}[n]
		b.Run("batcher/"+name, func(b *testing.B) {
			x, ctx := newBench(b), context.Background()
			callers(b, n, func(i int) { x.Enqueue(ctx, i) })
			x.Drain(ctx)
		})
		b.Run("channel and ticker/"+name, func(b *testing.B) {
			l := newLoop(func([]int) error { return nil }, benchSize, time.Millisecond)
			callers(b, n, l.Enqueue)
			l.Close()
		})
	}
}
