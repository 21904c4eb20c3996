package core

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
)

// Nothing is kept for a key that has nothing pending and nothing running, not even room for it.
func TestIdleKeysCostNothing(t *testing.T) {
	n := Often(100_000, 20_000)
	for name, opts := range map[string]Options{
		"keys":           {},
		"keys and lanes": {Lanes: []Lane{{Name: "a"}, {Name: "b"}, {Name: "c"}}},
		"dropping":       {DropOldest: true},
	} {
		t.Run(name, func(t *testing.T) {
			opts.MaxQueued, opts.MaxTracked, opts.EchoCapacity = 2*n, -1, -1
			c := Must(NewKeyedCoordinator(strconv.Itoa, func(context.Context, int) error { return nil }, opts))
			// run has n items wait at once, with so many keys.
			run := func(keys int) (most uint64) {
				c.Pause()
				for i := range n {
					if _, err := c.TryEnqueue(context.Background(), i%keys); err != nil {
						t.Fatal(err)
					}
				}
				if got := c.Stats().Pending; got != n {
					t.Fatalf("got %d pending, want %d", got, n)
				}
				most = heap()
				c.Resume()
				if err := c.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				return most
			}
			run(1) // what is kept for a peak of items, whatever their keys
			before := heap()
			most := run(n)
			after := heap()

			b := &c.scheduler
			if len(b.keys.live) != 0 || b.keys.peak > 64 || b.n != 0 {
				t.Errorf("got %d keys in a table made for %d, and %d operations, want none", len(b.keys.live), b.keys.peak, b.n)
			}
			for i := range b.lanes {
				if l := &b.lanes[i]; l.lines[0].n != 0 {
					t.Errorf("lane %d is not empty", i)
				}
			}
			grown, kept := int64(most-before), int64(after-before)
			t.Logf("%d bytes per item that waits, %d in all when none does", grown/int64(n), kept)
			if kept > 64<<10 {
				t.Errorf("%d bytes are kept after %d keys, of %d while they waited", kept, n, grown)
			}
			runtime.KeepAlive(c)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Waiters that have given up leave the queue at once. Neither they nor those that were let in stay in memory.
func TestWaitersLeaveTheirLane(t *testing.T) {
	for _, givesUp := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := Must(NewKeyedCoordinator(strconv.Itoa, func(context.Context, int) error { return nil },
				Options{Lanes: []Lane{{Name: "a", Depth: 1}, {Name: "b", Depth: 1}}}))
			c.Pause()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for i := range 50 {
				go c.Lane([]string{"a", "b"}[i%2]).Enqueue(ctx, i)
			}
			synctest.Wait()
			if n := c.scheduler.waiting; n != 48 {
				t.Errorf("%d wait for room, want 48", n)
			}
			if givesUp {
				cancel()
				synctest.Wait()
				if n := len(c.scheduler.keys.live); n > 2 {
					t.Errorf("got %d keys, want those of the accepted items at most", n)
				}
			}
			c.Resume()
			synctest.Wait()
			if n := c.scheduler.waiting; n != 0 {
				t.Errorf("%d wait for room, want none", n)
			}
			for i := range c.queues {
				if q := &c.queues[i]; q.n+q.waiters.n != 0 {
					t.Errorf("lane %d: %d wait, want none", i, q.n)
				}
			}
			if n := len(c.scheduler.keys.live); n != 0 {
				t.Errorf("got %d keys, want none", n)
			}
		})
	}
}
