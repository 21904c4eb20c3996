package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// What stress_test.go does, with keys and lanes.

// ticket is an item with a key and a lane, and what its body does.
type ticket struct {
	key  string
	lane int
	body func(ctx context.Context)
}

var stressLanes = []core.Lane{{Name: "hot", Limit: 2}, {Name: "normal"}, {Name: "slow", Limit: 1}}

// tickets makes a coordinator with keys and lanes, which checks the limits of both
// and the order of each key.
func tickets(t *testing.T, opts core.Options) *core.Coordinator[ticket] {
	t.Helper()
	places := crowd{perKey: max(1, opts.MaxPerKey)}
	for _, l := range opts.Lanes {
		places.limits = append(places.limits, l.Limit)
	}
	c, err := core.NewKeyedCoordinator(
		func(i ticket) string { return i.key },
		func(ctx context.Context, i ticket) error {
			leave, err := places.enter(i.key, i.lane, core.OperationFrom(ctx).ID())
			if err != nil {
				t.Error(err)
			}
			if i.body != nil {
				i.body(ctx)
			}
			leave()
			return nil
		}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// With one slot and one operation at a time, a lost wake-up would leave an item behind.
func TestStressKeysAndLanesOneAtATime(t *testing.T) {
	for _, limit := range []int{1, 2} {
		random := rand.New(rand.NewPCG(11, uint64(limit)))
		c := tickets(t, core.Options{MaxConcurrency: limit, Lanes: stressLanes})
		n := stressed(60_000)
		for range n {
			i := ticket{key: fmt.Sprint(random.IntN(3)), lane: random.IntN(3)}
			checkError(t, "Do", c.Lane(stressLanes[i.lane].Name).Do(t.Context(), i), nil)
			spin(random)
		}
		checkAllSucceeded(t, c, n)
		c.Close()
	}
}

// The end of one operation lets two start, one of its key and one of its lane. These wait for each other, so a
// lost wake-up hangs.
func TestStressEndOfOneStartsTwo(t *testing.T) {
	c := tickets(t, core.Options{MaxConcurrency: 8, Lanes: stressLanes})
	random := rand.New(rand.NewPCG(12, 1))
	slow, normal := c.Lane("slow"), c.Lane("normal")
	n := stressed(20_000)
	for range n {
		start := make(chan struct{})
		var both sync.WaitGroup
		both.Add(2)
		meet := func(context.Context) { both.Done(); both.Wait() }
		enqueue(t, slow, ticket{"a", 2, func(context.Context) { <-start }})
		enqueue(t, normal, ticket{"a", 1, meet})
		enqueue(t, slow, ticket{"b", 2, meet})
		for range random.IntN(40) { // so that at times no worker looks for arrivals
			runtime.Gosched()
		}
		close(start)
		checkError(t, "Flush", c.Flush(t.Context()), nil)
	}
	checkAllSucceeded(t, c, 3*n)
}

// Many producers, few hot keys and many cold ones, so that keys are forgotten and come back all the time, while
// the limit changes. No key has two states, and no limit is exceeded.
func TestStressKeysComeAndGo(t *testing.T) {
	for _, perKey := range []int{1, 3} {
		var running, most atomic.Int64
		c := tickets(t, core.Options{MaxConcurrency: 8, MaxPerKey: perKey, Lanes: stressLanes, MaxQueued: 16, Ageing: time.Millisecond})
		body := func(context.Context) {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			runtime.Gosched()
			running.Add(-1)
		}
		stop := make(chan struct{})
		var resizing, all sync.WaitGroup
		resizing.Go(func() {
			for limit := 8; ; limit = 10 - limit {
				c.SetMaxConcurrency(limit)
				if s := c.Stats(); coretest.CheckBooks(s) != nil || s.Lanes[0].Running > 2 || s.Lanes[2].Running > 1 {
					t.Errorf("got %v", s)
				}
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
		})
		const producers = 8
		n := stressed(10_000)
		for p := range uint64(producers) {
			all.Go(func() {
				random := rand.New(rand.NewPCG(13, p))
				for range n {
					i := ticket{key: fmt.Sprint(random.IntN(4)), lane: random.IntN(3), body: body}
					if random.IntN(2) == 0 {
						i.key = fmt.Sprint(random.IntN(2000))
					}
					accepted(t)(c.Lane(stressLanes[i.lane].Name).Enqueue(t.Context(), i))
				}
			})
		}
		all.Wait()
		close(stop)
		resizing.Wait()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkAllSucceeded(t, c, producers*n)
		if most.Load() > 8 {
			t.Errorf("%d bodies ran at once, want at most 8", most.Load())
		}
	}
}

// Lanes that are deferred and refused while items pass and are cancelled.
func TestStressLaneRules(t *testing.T) {
	sink := core.NewSink(core.SinkOptions{})
	lanes := slices.Clone(stressLanes)
	lanes[0].CancelOn, lanes[1].DeferOn, lanes[2].DeferOn, lanes[2].MaxDefer = "stop", "wait", "wait, busy", time.Microsecond
	c := tickets(t, core.Options{Sink: sink, MaxConcurrency: 4, Lanes: lanes, MaxQueued: 8, MaxDefer: -1, DeferOn: "all.wait", DropOldest: true})
	done := make(chan struct{})
	var chatter sync.WaitGroup
	chatter.Go(func() {
		for {
			for _, name := range []string{"stop", "wait", "busy", "all.wait"} {
				release := sink.Hold(name, "", 0)
				runtime.Gosched()
				release()
			}
			select {
			case <-done:
				return
			default:
				runtime.Gosched()
			}
		}
	})
	var all sync.WaitGroup
	n := stressed(10_000)
	for p := range uint64(4) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(14, p))
			for range n {
				i := ticket{key: fmt.Sprint(random.IntN(6)), lane: random.IntN(3)}
				id, err := c.Lane(lanes[i.lane].Name).Enqueue(t.Context(), i)
				if err != nil {
					checkRefusal(t, err, "stop")
				} else if random.IntN(5) == 0 {
					c.Cancel(id, nil)
				}
			}
		})
	}
	all.Wait()
	close(done)
	chatter.Wait()
	checkError(t, "Drain", c.Drain(t.Context()), nil)
	s := c.Stats()
	if err := coretest.CheckBooks(s); err != nil || s.Pending+s.Running != 0 || s.Enqueued+s.Rejected != uint64(4*n) {
		t.Errorf("got %v and %v, want all %d accounted for", s, err, 4*n)
	}
}

// An item that is enqueued during Close or Drain is refused, or accepted and finalized.
func TestStressEnqueueWhileClosing(t *testing.T) {
	for round := range stressed(2000) {
		c := tickets(t, core.Options{MaxConcurrency: 2, Lanes: stressLanes, MaxQueued: 4})
		var finalized atomic.Int64
		c.OnFinalized(func(core.Snapshot) { finalized.Add(1) })
		var accepted atomic.Int64
		var all sync.WaitGroup
		for p := range 4 {
			all.Go(func() {
				for i := range 20 {
					_, err := c.Lane(stressLanes[i%3].Name).Enqueue(t.Context(), ticket{key: fmt.Sprint(p), lane: i % 3})
					if err == nil {
						accepted.Add(1)
						continue
					}
					checkError(t, "Enqueue", err, core.ErrClosed)
				}
			})
		}
		runtime.Gosched()
		if round%2 == 0 {
			checkError(t, "Drain", c.Drain(t.Context()), nil)
		}
		checkError(t, "Close", c.Close(), nil)
		all.Wait()
		s := c.Stats()
		if got := finalized.Load(); got != accepted.Load() || s.Enqueued != uint64(got) || s.Pending+s.Running != 0 || coretest.CheckBooks(s) != nil {
			t.Fatalf("round %d: %d accepted, %d finalized, %v", round, accepted.Load(), got, s)
		}
	}
}

// crowd checks, from inside of bodies, how many of a key and a lane run, and in which order.
type crowd struct {
	perKey int
	limits []int // by lane; 0: none

	mu     sync.Mutex
	keys   map[string]int // that run
	lanes  map[int]int
	newest map[string]core.OperationID // by key and lane: who started last
}

// enter is called by a body that starts, and leave when it ends.
func (c *crowd) enter(key string, lane int, id core.OperationID) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys == nil {
		c.keys, c.lanes, c.newest = make(map[string]int), make(map[int]int), make(map[string]core.OperationID)
	}
	c.keys[key]++
	c.lanes[lane]++
	place := fmt.Sprint(lane, " ", key)
	switch {
	case c.keys[key] > c.perKey:
		err = fmt.Errorf("%d of key %q run, want at most %d", c.keys[key], key, c.perKey)
	case c.limits[lane] > 0 && c.lanes[lane] > c.limits[lane]:
		err = fmt.Errorf("%d of lane %d run, want at most %d", c.lanes[lane], lane, c.limits[lane])
	case c.perKey == 1 && id < c.newest[place]: // ids are in the order in which items were accepted
		err = fmt.Errorf("operation %d of lane %d and key %q starts after %d", id, lane, key, c.newest[place])
	}
	c.newest[place] = id
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.keys[key]--
		c.lanes[lane]--
	}, err
}
