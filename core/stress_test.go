package core_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// Real goroutines and no bubble, for the races between producers and workers that
// a bubble's calm does not bring about. What goes wrong here hangs, or shows in the
// books.

// stressed scales a number of operations down under the race detector, and in the
// short form, which runs under emulation.
func stressed(n int) int {
	if raceEnabled || testing.Short() {
		return n / 20
	}
	return n
}

// spin wastes a random short time.
func spin(random *rand.Rand) {
	for range random.IntN(200) {
		runtime.KeepAlive(random)
	}
	if random.IntN(50) == 0 {
		runtime.Gosched()
	}
}

func checkAllSucceeded[T any](t *testing.T, c *core.Coordinator[T], want int) {
	t.Helper()
	s := c.Stats()
	if err := coretest.CheckBooks(s); err != nil {
		t.Error(err)
	}
	if s.Succeeded != uint64(want) || s.Pending != 0 || s.Running != 0 {
		t.Errorf("got %v, want %d succeeded and none left", s, want)
	}
}

// The lost wake-up: one operation at a time, so that each arrives when the worker
// of the one before is about to leave, in any phase.
func TestStressOneAtATime(t *testing.T) {
	for _, limit := range []int{1, 2} {
		random := rand.New(rand.NewPCG(1, uint64(limit)))
		c := coordinator(t, func(context.Context, int) error { return nil }, core.Options{MaxConcurrency: limit})
		n := stressed(100_000)
		for i := range n {
			checkError(t, "Do", c.Do(t.Context(), i), nil)
			spin(random)
		}
		checkAllSucceeded(t, c, n)
		c.Close()
	}
}

// The same from two sides, with nobody waiting for the end: a wake-up that is lost
// leaves an item behind for Flush to hang on.
func TestStressSparseArrivals(t *testing.T) {
	c := coordinator(t, func(context.Context, int) error { return nil }, core.Options{MaxConcurrency: 1, MaxQueued: 1 << 20})
	n := stressed(60_000)
	var all sync.WaitGroup
	for g := range uint64(2) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(2, g))
			for i := range n {
				if _, err := c.TryEnqueue(i); err != nil {
					t.Error(err)
				}
				for range 1 + random.IntN(4) {
					spin(random)
				}
				if i%100 == 0 {
					checkError(t, "Flush", c.Flush(t.Context()), nil)
				}
			}
		})
	}
	all.Wait()
	checkError(t, "Drain", c.Drain(t.Context()), nil)
	checkAllSucceeded(t, c, 2*n)
}

func TestStressSaturated(t *testing.T) {
	var running, most atomic.Int64
	c := coordinator(t, func(context.Context, int) error {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		runtime.Gosched()
		running.Add(-1)
		return nil
	}, core.Options{MaxConcurrency: 8})
	n := stressed(200_000)
	for i := range n {
		if _, err := c.Enqueue(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	checkError(t, "Drain", c.Drain(t.Context()), nil)
	checkAllSucceeded(t, c, n)
	if most.Load() > 8 {
		t.Errorf("%d bodies ran at once, want at most 8", most.Load())
	}
}

// Many producers wait for little room.
func TestStressManyProducers(t *testing.T) {
	for queue := 1; queue <= 4; queue++ {
		c := coordinator(t, func(context.Context, int) error { return nil }, core.Options{MaxConcurrency: 2, MaxQueued: queue})
		const producers = 64
		n := stressed(800)
		var all sync.WaitGroup
		for range producers {
			all.Go(func() {
				for i := range n {
					if _, err := c.Enqueue(t.Context(), i); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkAllSucceeded(t, c, producers*n)
	}
}

// Producers that drop each other's items from a queue that workers empty at the
// same time.
func TestStressDropOldest(t *testing.T) {
	for queue := 1; queue <= 2; queue++ {
		c := coordinator(t, func(context.Context, int) error { return nil }, core.Options{MaxConcurrency: 2, MaxQueued: queue, DropOldest: true})
		const producers = 16
		n := stressed(8000)
		var all sync.WaitGroup
		for range producers {
			all.Go(func() {
				for i := range n {
					if _, err := c.Enqueue(t.Context(), i); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		s := c.Stats()
		if err := coretest.CheckBooks(s); err != nil {
			t.Error(err)
		}
		if s.Enqueued != uint64(producers*n) || s.Succeeded+s.Dropped != s.Enqueued {
			t.Errorf("got %v, want all %d either succeeded or dropped", s, producers*n)
		}
	}
}

// Weak point 12: 8, 2, 8 admits 14.
func TestStressDynamicLimit(t *testing.T) {
	var running, most atomic.Int64
	c := coordinator(t, func(context.Context, int) error {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		runtime.Gosched()
		running.Add(-1)
		return nil
	}, core.Options{MaxConcurrency: 8})
	stop := make(chan struct{})
	var resizing sync.WaitGroup
	resizing.Go(func() {
		for limit := 8; ; limit = 10 - limit {
			c.SetMaxConcurrency(limit)
			select {
			case <-stop:
				return
			default:
				runtime.Gosched()
			}
		}
	})
	n := stressed(100_000)
	for i := range n {
		if _, err := c.Enqueue(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	resizing.Wait()
	checkError(t, "Drain", c.Drain(t.Context()), nil)
	checkAllSucceeded(t, c, n)
	if most.Load() > 8 {
		t.Errorf("%d bodies ran at once, want at most 8", most.Load())
	}
}

// Gates that come and go while items pass.
func TestStressGates(t *testing.T) {
	sink := core.NewSink(core.SinkOptions{})
	c := coordinator(t, func(ctx context.Context, i int) error {
		if i%10 == 0 {
			core.OperationFrom(ctx).Hold("busy", 0)
		}
		return nil
	}, core.Options{Sink: sink, DeferOn: "busy, wait", MaxDefer: -1, MaxConcurrency: 4, MaxTracked: 5})
	stop := make(chan struct{})
	var chatter sync.WaitGroup
	chatter.Go(func() {
		for {
			release := sink.Hold("wait", "", 0)
			sink.Raise("wait")
			runtime.Gosched()
			sink.Retract("wait")
			release()
			select {
			case <-stop:
				return
			default:
				runtime.Gosched()
			}
		}
	})
	n := stressed(20_000)
	for i := range n {
		if _, err := c.Enqueue(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	chatter.Wait()
	checkError(t, "Drain", c.Drain(t.Context()), nil)
	checkAllSucceeded(t, c, n)
}

// Everything that looks, beside everything that works.
func TestStressObservers(t *testing.T) {
	c := coordinator(t, func(ctx context.Context, i int) error {
		op := core.OperationFrom(ctx)
		op.Raise("step")
		op.Set("i", i)
		return nil
	}, core.Options{MaxConcurrency: 4, MaxTracked: 20})
	var finalized atomic.Int64
	c.OnFinalized(func(core.Snapshot) { finalized.Add(1) })
	stop := make(chan struct{})
	var observers sync.WaitGroup
	observe := func(look func(id core.OperationID)) {
		observers.Go(func() {
			for {
				var newest core.OperationID
				for s := range c.Operations(core.OperationQuery{}) {
					newest = s.ID
				}
				look(newest)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	observe(func(id core.OperationID) {
		if unpin, ok := c.Pin(id); ok {
			unpin()
		}
	})
	observe(func(id core.OperationID) { c.Evict(id); c.Lookup(id) })
	observe(func(core.OperationID) {
		for range c.Sense(core.Query{Pattern: "st*"}) {
		}
		for range c.Echoes(core.Query{}) {
		}
		if err := coretest.CheckBooks(c.Stats()); err != nil {
			t.Error(err)
		}
	})
	n := stressed(20_000)
	for i := range n {
		if _, err := c.Enqueue(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	checkError(t, "Drain", c.Drain(t.Context()), nil)
	close(stop)
	observers.Wait()
	checkAllSucceeded(t, c, n)
	c.Close()
	if got := finalized.Load(); got != int64(n) {
		t.Errorf("%d operations were finalized, want %d", got, n)
	}
}
