package core_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func wantAllocs(t *testing.T, what string, want float64, fn func()) {
	t.Helper()
	if got := testing.AllocsPerRun(2000, fn); got > want {
		t.Errorf("%s: got %v allocations, want %v", what, got, want)
	}
}

// What is promised to cost no allocation, in a window that is full.
func TestSignalsAllocateNothing(t *testing.T) {
	skipRace(t)
	for _, capacity := range []int{1000, 1 << 16} {
		s := signals.NewSink(signals.SinkOptions{Capacity: capacity})
		names := []string{"a", "a.b", "file.saved", "cache.hit", "error.timeout"}
		for i := range 2 * capacity {
			s.Raise(names[i%len(names)])
		}
		i := 0
		raise := func() {
			s.RaiseKey(names[i%len(names)], "key")
			i++
		}
		wantAllocs(t, "raise without subscribers", 0, raise)

		m := s.Monitor("error.*", time.Millisecond)
		unlimited := s.Monitor("error.*", 0)
		wantAllocs(t, "raise with monitors", 0, raise)

		heard := 0
		s.Subscribe("file.saved", func(signals.Signal) { heard++ })
		for i := range 100 {
			s.Subscribe(fmt.Sprintf("other.%d.*", i), func(signals.Signal) { t.Error("called") })
		}
		raise()
		wantAllocs(t, "raise with an exact subscriber and 100 others", 0, raise)
		coretest.Check(t, heard != 0, "the subscriber was not called")

		c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil },
			core.Options{Sink: s, CancelOn: "stop.*", DeferOn: "wait"}))
		wantAllocs(t, "raise with gates", 0, raise)
		c.Close()

		s.Has("a*")
		wantAllocs(t, "Has, exact", 0, func() { s.Has("a") })
		wantAllocs(t, "Has, absent", 0, func() { s.Has("none") })
		wantAllocs(t, "Has, pattern", 0, func() { s.Has("a*") })
		wantAllocs(t, "Count, pattern", 0, func() { s.Count("a*") })
		wantAllocs(t, "Monitor.Count", 0, func() { m.Count(); unlimited.Count() })
		wantAllocs(t, "Monitor.Last", 0, func() { unlimited.Last() })
		wantAllocs(t, "Monitor.Below", 0, func() { m.Below(3) })
		wantAllocs(t, "Stats", 0, func() { s.Stats() })
	}

	aged := signals.NewSink(signals.SinkOptions{MaxAge: time.Hour})
	aged.Raise("a")
	wantAllocs(t, "Has with an age", 0, func() { aged.Has("a") })
	wantAllocs(t, "raise with an age", 0, func() { aged.Raise("a") })
	wantAllocs(t, "Resize, back and forth", 0, func() {
		for _, capacity := range []int{1000, 10_000, 50_000} {
			aged.Resize(capacity, time.Hour)
			aged.Raise("a")
		}
	})
}

// The memory of a sink grows with what is in it, so a program may have a sink for each
// request.
func TestFirstSignalOfASinkIsCheap(t *testing.T) {
	skipRace(t)
	const n = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		signals.NewSink(signals.SinkOptions{}).Raise("a")
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / n; got > 6<<10 {
		t.Errorf("got %d bytes for a sink of one signal, want at most 6 KiB", got)
	} else {
		t.Logf("%d bytes", got)
	}
}

// Enqueue and run: one allocation, the operation. Signals use the memory of earlier operations; the second needs one
// more allocation.
func TestRunAllocatesOnce(t *testing.T) {
	skipRace(t)
	const n = 20_000
	for facts, want := range []float64{1, 1, 2, 2} {
		c := core.Must(core.NewCoordinator(func(ctx context.Context, i int) error {
			for range facts {
				core.OperationFrom(ctx).Raise(allocNames[i%len(allocNames)])
			}
			return nil
		}, core.Options{MaxConcurrency: 8}))
		defer c.Close()
		ctx := context.Background()
		run := func() {
			for i := range n {
				if _, err := c.Enqueue(ctx, i); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
		run() // fills the window
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run()
		runtime.ReadMemStats(&after)
		got := float64(after.Mallocs-before.Mallocs) / n
		if got > want+0.25 { // plus the occasional cost of starting a worker or waiting for room
			t.Errorf("got %.3f allocations per operation with %d signals, want %v", got, facts, want)
		}
		t.Logf("%.3f allocations per operation with %d signals", got, facts)
	}
}

// A body that asks whether its context has ended allocates nothing. Do from a body makes the operation, its context, the
// wait, and a channel; for another coordinator, two.
func TestBodiesAllocateFew(t *testing.T) {
	skipRace(t)
	other := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{MaxConcurrency: 2}))
	defer other.Close()
	var c *core.Coordinator[int]
	c = core.Must(core.NewCoordinator(func(ctx context.Context, item int) error {
		if item == 0 {
			wantAllocs(t, "Err", 0, func() { coretest.Check(t, ctx.Err() == nil, "it has ended") })
			wantAllocs(t, "Do, own", 4, func() { coretest.Check(t, c.Do(ctx, 1) == nil, "it failed") })
			wantAllocs(t, "Do, other", 5, func() { coretest.Check(t, other.Do(ctx, 1) == nil, "it failed") })
		}
		return nil
	}, core.Options{MaxConcurrency: 2}))
	defer c.Close()
	if err := c.Do(context.Background(), 0); err != nil {
		t.Error(err)
	}
}

// allocNames are more names than the window of operations has places.
var allocNames = func() (names [5000]string) {
	for i := range names {
		names[i] = fmt.Sprint("file.saved:", i)
	}
	return names
}()

// Ten times as many coordinators and handlers take some ten times as long, not a hundred times: to come and to go.
func TestManyCoordinatorsCostNoMoreEach(t *testing.T) {
	if coretest.Race {
		t.Skip("the race detector makes many cost more")
	}
	t.Run("handlers of a dispatcher and of its end", func(t *testing.T) {
		long.Linear(t, 15_000, func(n int) {
			d := core.Must(core.NewDispatcher(core.Options{}))
			defer d.Close()
			ends := make([]func(), n)
			for i := range ends {
				a, b := d.OnClosed(func() {}), d.Handle("name", func(context.Context, signals.Signal) error { return nil })
				ends[i] = func() { a(); b() }
			}
			for _, end := range ends {
				end()
			}
		})
	})
	t.Run("gates", func(t *testing.T) {
		long.Linear(t, 5_000, func(n int) {
			s := signals.NewSink(signals.SinkOptions{})
			all := make([]*core.Coordinator[int], n)
			for i := range all {
				all[i] = core.Must(core.NewCoordinator(func(context.Context, int) error { return nil },
					core.Options{Sink: s, DrainOn: "drain", CancelOn: fmt.Sprint("stop.", i)}))
			}
			s.Raise("drain")
			for _, c := range all {
				c.Close()
			}
		})
	})
}
