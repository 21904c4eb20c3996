package core_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// An item lacks room only if the queue is full after everything that can start has
// been started. Each case counts how many of many items are accepted at once, none of
// which ends.
func TestRoomIsCountedAfterAllHasStarted(t *testing.T) {
	lanes := core.Must(core.ParseLanes("hot:1, normal:2"))
	lanes[0].Depth = 1
	for _, test := range []struct {
		name  string
		opts  core.Options
		lane  string
		keys  int // 0: without keys
		pause bool
		want  int
	}{
		{name: "limit and queue", opts: core.Options{MaxConcurrency: 10, MaxQueued: 1}, want: 11},
		{name: "default queue", opts: core.Options{MaxConcurrency: 5000}, want: 5000 + 1024},
		{name: "no queue", opts: core.Options{MaxConcurrency: 10, MaxQueued: -1}, want: 10},
		{name: "paused", opts: core.Options{MaxConcurrency: 10, MaxQueued: 3}, pause: true, want: 3},
		{name: "paused, no queue", opts: core.Options{MaxConcurrency: 10, MaxQueued: -1}, pause: true, want: 0},
		{name: "lane with a depth", opts: core.Options{MaxConcurrency: 10, MaxQueued: 3, Lanes: lanes}, lane: "hot", want: 2},
		{name: "lane without", opts: core.Options{MaxConcurrency: 10, MaxQueued: 3, Lanes: lanes}, lane: "normal", want: 5},
		{name: "keys", opts: core.Options{MaxConcurrency: 10, MaxQueued: 2}, keys: 3, want: 5},
		{name: "keys, no queue", opts: core.Options{MaxConcurrency: 10, MaxQueued: -1}, keys: 3, want: 3},
		{name: "deferred", opts: core.Options{MaxConcurrency: 10, MaxQueued: 2, DeferOn: "wait"}, want: 2},
		{name: "deferred, no queue", opts: core.Options{MaxConcurrency: 10, MaxQueued: -1, DeferOn: "wait"}, want: 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newGate()
				work := func(context.Context, int) error { <-g.opened; return nil }
				c := core.Must(core.NewCoordinator(work, test.opts))
				if test.keys > 0 {
					c = core.Must(core.NewKeyedCoordinator(func(i int) string { return strconv.Itoa(i % test.keys) }, work, test.opts))
				}
				release := c.Sink().Hold("wait", "", 0)
				in := c
				if test.lane != "" {
					in = c.Lane(test.lane)
				}
				if test.pause {
					c.Pause()
				}
				accepted := 0
				for i := range 3 * max(10, test.want) {
					if _, err := in.TryEnqueue(context.Background(), i); err == nil {
						accepted++
					} else {
						checkError(t, "TryEnqueue", err, core.ErrFull)
					}
				}
				checkEqual(t, "accepted", accepted, test.want)
				release()
				c.Resume()
				g.open()
				checkError(t, "Drain", c.Drain(t.Context()), nil)
			})
		})
	}
}

// DropOldest drops nothing that could start.
func TestDropOldestOfAnIdleCoordinatorDropsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGate()
		c := bodies(t, core.Options{MaxConcurrency: 10, MaxQueued: 1, DropOldest: true})
		for range 11 {
			enqueue(t, c, g.body)
		}
		checkEqual(t, "dropped", c.Stats().Dropped, 0)
		enqueue(t, c, g.body)
		checkEqual(t, "dropped of one more", c.Stats().Dropped, 1)
		g.open()
		none := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: -1, DropOldest: true})
		stay := newGate()
		enqueue(t, none, stay.body)
		_, err := none.TryEnqueue(context.Background(), quick) // without a queue there is no oldest one
		checkError(t, "no queue", err, core.ErrFull)
		stay.open()
	})
}

// Without a queue Enqueue waits until its item can start: when a slot and its key are free, or the limit is raised,
// whatever waits before it.
func TestEnqueueWithoutAQueueWaitsForASlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := keyedBodies(t, core.Options{MaxConcurrency: 1, MaxQueued: -1})
		g := newGate()
		enqueue(t, c, keyedBody{"ada", g.body})
		var order []string
		var mu sync.Mutex
		add := func(ctx context.Context, key string) func() error {
			return call(t, func(context.Context) error {
				_, err := c.Enqueue(ctx, keyedBody{key, func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, key)
					return nil
				}})
				return err
			})
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := add(soon, "ada")
		second := add(t.Context(), "bob")
		c.SetMaxConcurrency(2)
		synctest.Wait()
		started := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(order)
		}
		checkEqual(t, "started", started(), 1) // not ada's second item, because its key is busy
		checkError(t, "the second one", second(), nil)
		checkError(t, "the first one", first(), context.DeadlineExceeded)
		third := add(t.Context(), "cyd")
		checkError(t, "the third one", third(), nil)
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkEqual(t, "started", started(), 2)
	})
}

// Work that enqueues work: with default options all of it is done, and WaitIdle waits
// for all of it.
func TestCrawlLosesNothing(t *testing.T) {
	const pages, links = 20_000, 10
	for _, kind := range []string{"plain", "20 keys", "one key"} {
		var (
			c    *core.Coordinator[int]
			seen sync.Map
			done atomic.Int64
		)
		visit := func(ctx context.Context, page int) error {
			for link := page*links + 1; link <= page*links+links && link < pages; link++ {
				if _, old := seen.LoadOrStore(link, true); old {
					t.Errorf("page %d was seen before", link)
				}
				if _, err := c.Enqueue(ctx, link); err != nil {
					t.Errorf("page %d: %v", link, err)
				}
			}
			done.Add(1)
			return nil
		}
		switch kind {
		case "plain":
			c = core.Must(core.NewCoordinator(visit, core.Options{}))
		case "20 keys":
			c = core.Must(core.NewKeyedCoordinator(func(page int) string { return strconv.Itoa(page % 20) }, visit, core.Options{}))
		default:
			c = core.Must(core.NewKeyedCoordinator(func(int) string { return "one" }, visit, core.Options{}))
		}
		accepted(t)(c.Enqueue(t.Context(), 0))
		checkError(t, "WaitIdle", c.WaitIdle(t.Context()), nil)
		if s := c.Stats(); done.Load() != pages || s.Succeeded != pages || s.Overflow == 0 {
			t.Errorf("%s: %d pages were visited, want %d: %v", kind, done.Load(), pages, s)
		}
	}
}

// An item that waits for room keeps nobody waiting who could start: neither an item of another class, nor one of another
// key that shares its room. It starts itself as soon as it can.
func TestWaiterForRoomDelaysNoOther(t *testing.T) {
	for name, busy := range map[string]struct {
		opts        core.Options
		class, free string // classes
		key         string
	}{
		"class": {opts: core.Options{Classes: []core.Class{{Name: "a", Limit: 1}}}, class: "a"},
		"class without a queue": {
			opts: core.Options{Classes: []core.Class{{Name: "a", Limit: 1}, {Name: "b", Limit: 2, Depth: -1}}}, class: "a", free: "b"},
		"key":          {key: "a"},
		"key in lanes": {opts: core.Options{Lanes: core.Must(core.ParseLanes("hot, normal:3"))}, key: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				busy.opts.MaxConcurrency, busy.opts.MaxQueued = 4, 3
				c, g, free := keyedBodies(t, busy.opts), newGate(), newGate()
				in, out := c, c
				if busy.class != "" {
					in = c.Class(busy.class)
				}
				if busy.free != "" {
					out = c.Class(busy.free)
				}
				for range 4 {
					enqueue(t, in, keyedBody{busy.key, g.body})
				}
				_, err := in.TryEnqueue(t.Context(), keyedBody{busy.key, g.body})
				checkError(t, "one too many", err, core.ErrFull)
				waits := call(t, func(ctx context.Context) error {
					_, err := in.Enqueue(ctx, keyedBody{busy.key, g.body})
					return err
				})
				enqueue(t, out, keyedBody{"b", free.body})
				checkError(t, "Enqueue", call(t, func(ctx context.Context) error {
					_, err := out.Enqueue(ctx, keyedBody{"c", free.body})
					return err
				})(), nil)
				checkWaits(t, c, 3, 0, 3)
				g.open()
				checkError(t, "the one that waits", waits(), nil)
				free.open()
				checkError(t, "Drain", c.Drain(t.Context()), nil)
				checkEqual(t, "succeeded", c.Stats().Succeeded, 7)
			})
		})
	}
}

// The time of an item that gets room is looked at before that of those that still wait for room.
func TestDeferredItemsThatWaitForRoomStartInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 3, MaxQueued: 1, DeferOn: "wait", MaxDefer: 5 * time.Second})
		c.Sink().Raise("wait")
		begun, took := time.Now(), make([]time.Duration, 3)
		for i := range took {
			go c.Enqueue(t.Context(), func(context.Context) error {
				took[i] = time.Since(begun)
				time.Sleep(time.Minute)
				return nil
			})
			time.Sleep(time.Duration(i) * time.Second) // after the first: 0 s, after the second: 1 s
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		checkSlice(t, "started after", took, []time.Duration{5 * time.Second, 5 * time.Second, 6 * time.Second})
	})
}
