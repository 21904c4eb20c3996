package core

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		c := Must(NewCoordinator(func(ctx context.Context, i int) error { n.Add(1); OperationFrom(ctx).Raise("did"); return nil }, Options{MaxConcurrency: 3}))
		for i := range 5000 {
			if _, err := c.Enqueue(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n.Load() != 5000 || c.Count("did") != 200 {
			t.Fatal(n.Load(), c.Count("did"), c.Stats())
		}
		c.Close()
		t.Log(c.Stats())
	})
}
func TestSmokeDefer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSink(SinkOptions{})
		c := Must(NewCoordinator(func(ctx context.Context, i int) error { return nil }, Options{Sink: s, DeferOn: "busy"}))
		start := time.Now()
		rel := s.Hold("busy", "", 0)
		go func() { time.Sleep(2 * time.Second); rel() }()
		if err := c.Do(t.Context(), 1); err != nil || time.Since(start) != 2*time.Second {
			t.Fatal(err, time.Since(start))
		}
		s.Raise("busy")
		start = time.Now()
		if err := c.Do(t.Context(), 1); err != nil || time.Since(start) != 5*time.Second {
			t.Fatal(err, time.Since(start))
		}
		t.Log(c.Stats())
		c.Close()
	})
}

func TestSmokeMap(t *testing.T) {
	in := slices.Values([]int{1, 2, 3, 4, 5})
	for o, err := range Map(t.Context(), in, func(ctx context.Context, i int) (int, error) { return i * i, nil }, Options{}) {
		t.Log(o, err)
	}
}

// One operation at a time, limit 1: the lost wake-up.
func TestSmokeOneByOne(t *testing.T) {
	for _, limit := range []int{1, 2, 8} {
		c := Must(NewCoordinator(func(ctx context.Context, i int) error { return nil }, Options{MaxConcurrency: limit}))
		for i := range 100000 {
			if err := c.Do(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range 20000 {
					if err := c.Do(t.Context(), i); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		c.Close()
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		_ = time.Now()
	}
}
func BenchmarkRaise(b *testing.B) {
	s := NewSink(SinkOptions{})
	names := []string{"a.b", "file.saved", "error.timeout", "x.y.z", "cache.hit"}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		s.Raise(names[i])
		if i++; i == 5 {
			i = 0
		}
	}
}
func BenchmarkRaiseSub(b *testing.B) {
	s := NewSink(SinkOptions{})
	s.Subscribe("file.saved", func(Signal) {})
	b.ReportAllocs()
	for b.Loop() {
		s.Raise("file.saved")
	}
}
func BenchmarkHas(b *testing.B) {
	s := NewSink(SinkOptions{})
	s.Raise("file.saved")
	for b.Loop() {
		s.Has("file.saved")
	}
}
func BenchmarkRun(b *testing.B) {
	ballast := make([]byte, 64<<20)
	defer func() { _ = ballast[0] }()
	c := Must(NewCoordinator(func(ctx context.Context, i int) error { return nil }, Options{MaxConcurrency: 8}))
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		c.Enqueue(ctx, 1)
	}
	c.Drain(ctx)
}
func BenchmarkRunSignal(b *testing.B) {
	ballast := make([]byte, 64<<20)
	defer func() { _ = ballast[0] }()
	c := Must(NewCoordinator(func(ctx context.Context, i int) error { OperationFrom(ctx).Raise("file.saved"); return nil }, Options{MaxConcurrency: 8}))
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		c.Enqueue(ctx, 1)
	}
	c.Drain(ctx)
}
func BenchmarkDo(b *testing.B) {
	c := Must(NewCoordinator(func(ctx context.Context, i int) error { return nil }, Options{MaxConcurrency: 8}))
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		c.Do(ctx, 1)
	}
	c.Drain(ctx)
}

func TestSize(t *testing.T) {
	t.Log(unsafe.Sizeof(Operation{}), unsafe.Sizeof(task[int]{}), unsafe.Sizeof(details{}), unsafe.Sizeof(fact{}), unsafe.Sizeof(Signal{}))
}
