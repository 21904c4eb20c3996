package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Real goroutines without a bubble, for races between producers and workers that do
// not happen in a bubble. A fault makes a test hang, or shows in the counters.

// stressed scales a number of operations down in the short form.
func stressed(n int) int { return long.Often(n, n/10) }

// spin wastes a random short time.
func spin(random *rand.Rand) {
	for range random.IntN(200) {
		runtime.KeepAlive(random)
	}
	if random.IntN(50) == 0 {
		runtime.Gosched()
	}
}

// beside calls look again and again, on a goroutine, until the one that is returned is called.
func beside(look func()) (stop func()) {
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			look()
			select {
			case <-stopped:
				return
			default:
				runtime.Gosched()
			}
		}
	}()
	return func() { close(stopped); <-ended }
}

func checkAllSucceeded[T any](t *testing.T, c *core.Coordinator[T], want int) {
	t.Helper()
	s := c.Stats()
	checkError(t, "the books", coretest.CheckBooks(s), nil)
	checkEqual(t, "Succeeded, Pending, Running", words(s.Succeeded, s.Pending, s.Running), words(want, 0, 0))
}

// One operation at a time, so that each arrives when the worker of the previous operation is about to
// leave. A lost wake-up hangs.
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

// Two producers, and nobody waits for the end: a lost wake-up leaves an item behind, and Flush hangs.
func TestStressSparseArrivals(t *testing.T) {
	c := coordinator(t, func(context.Context, int) error { return nil }, core.Options{MaxConcurrency: 1, MaxQueued: 1 << 20})
	n := stressed(60_000)
	var all sync.WaitGroup
	for g := range uint64(2) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(2, g))
			for i := range n {
				accepted(t)(c.TryEnqueue(context.Background(), i))
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

// One item waits for the next, which arrives when the worker of the first looks for arrivals for the last time. If
// nobody sees it, both wait for ever.
func TestStressHandOver(t *testing.T) {
	met := make(chan struct{})
	c := coordinator(t, func(ctx context.Context, second bool) error {
		if second {
			close(met)
			return nil
		}
		select {
		case <-met:
		case <-ctx.Done():
		}
		return nil
	}, core.Options{MaxConcurrency: 2})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	random := rand.New(rand.NewPCG(3, 0))
	for range stressed(200_000) {
		met = make(chan struct{})
		accepted(t)(c.TryEnqueue(ctx, false))
		for range random.IntN(1 << random.IntN(15)) {
			runtime.KeepAlive(random)
		}
		accepted(t)(c.TryEnqueue(ctx, true))
		if err := c.Flush(ctx); err != nil {
			t.Fatalf("an item waits, and there is room: %v", err)
		}
		for range random.IntN(1 << random.IntN(15)) {
			runtime.KeepAlive(random)
		}
	}
}

// Many producers wait for little room, or drop each other's items from a queue that workers empty at the same time.
func TestStressManyProducers(t *testing.T) {
	for queue := 1; queue <= 4; queue++ {
		for _, drops := range []bool{false, true} {
			c := coordinator(t, func(context.Context, int) error { return nil },
				core.Options{MaxConcurrency: 2, MaxQueued: queue, DropOldest: drops})
			const producers = 64
			n := stressed(800)
			var all sync.WaitGroup
			for range producers {
				all.Go(func() {
					for i := range n {
						accepted(t)(c.Enqueue(t.Context(), i))
					}
				})
			}
			all.Wait()
			checkError(t, "Drain", c.Drain(t.Context()), nil)
			checkError(t, "the books", coretest.CheckBooks(c.Stats()), nil)
			if s := c.Stats(); s.Enqueued != uint64(producers*n) || s.Succeeded+s.Dropped != s.Enqueued || s.Dropped > 0 && !drops {
				t.Errorf("got %v, want all %d to have succeeded, or else dropped if %t", s, producers*n, drops)
			}
		}
	}
}

// Each question ends, and each change, while 16 goroutines raise new names and one that gates match. In the long form,
// with a large window, the better of two takes a second at most.
func TestStressQuestionsEnd(t *testing.T) {
	capacity := long.Often(1<<19, 1<<15)
	s := signals.NewSink(signals.SinkOptions{Capacity: capacity, MaxAge: -1})
	for i := range capacity {
		s.Raise(fmt.Sprint("old", i))
	}
	for g := range 16 {
		n := 0
		defer beside(func() {
			for range 50 {
				n++
				s.Raise(fmt.Sprint("new", g, ".", n))
				s.Raise("busy")
			}
		})()
	}
	for name, ask := range map[string]func(name string){
		"Has of a name":    func(name string) { s.Has(name) },
		"Has of a pattern": func(name string) { s.Has(name + "*") },
		"Sense": func(name string) {
			for range s.Sense(signals.Query{Pattern: name}) {
			}
		},
		"Sense of many": func(string) {
			for range s.Sense(signals.Query{Pattern: "busy"}) {
			}
		},
		"Follow":   func(string) { s.Follow("old1*, busy", func(signals.Signal) {})() },
		"Monitor":  func(string) { s.Monitor("old1*, busy", time.Minute).Stop() },
		"WaitGone": func(name string) { checkError(t, "WaitGone", s.WaitGone(t.Context(), name), nil) },
		"Resize":   func(string) { s.Resize(1000, 0); s.Resize(capacity, 0) },
		"a gate": func(string) {
			opts := core.Options{Sink: s, CancelOn: "busy", DeferOn: "b*", ResumeOn: "busy", DrainOn: "busy", Classes: []core.Class{{Name: "class", TrialOn: "bus*", Trials: 1}}}
			coordinator(t, func(context.Context, int) error { return nil }, opts).Close()
		},
	} {
		took := time.Hour
		for try := range 2 {
			began := time.Now()
			ask(fmt.Sprint("absent", try, ".", name))
			took = min(took, time.Since(began))
		}
		coretest.Check(t, took <= time.Second || long.Often(1, 0) == 0, "%s takes %v", name, took)
	}
}

// A limit that changes all the time is never exceeded.
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
	limit := 8
	stop := beside(func() { c.SetMaxConcurrency(limit); limit = 10 - limit })
	n := stressed(100_000)
	for i := range n {
		accepted(t)(c.Enqueue(t.Context(), i))
	}
	stop()
	checkError(t, "Drain", c.Drain(t.Context()), nil)
	checkAllSucceeded(t, c, n)
	coretest.Check(t, most.Load() <= 8, "%d bodies ran at once, want at most 8", most.Load())
}

// All methods that read run beside all methods that change. While operations leave the window, a pinned one
// is always found, and no leaving operation gets a pin.
func TestStressObservers(t *testing.T) {
	pinned := make(chan struct{})
	c := coordinator(t, func(ctx context.Context, i int) error {
		<-pinned
		op := core.OperationFrom(ctx)
		op.Raise("step")
		op.Set("i", i)
		return nil
	}, core.Options{MaxConcurrency: 4, MaxTracked: 20, MaxAge: time.Millisecond, Lanes: []core.Lane{{Name: "hot", Limit: 2}, {Name: "normal"}}, DeferOn: "wait", MaxDefer: time.Microsecond})
	var finalized atomic.Int64
	c.OnFinalized(func(core.Snapshot) { finalized.Add(1) })
	kept := enqueue(t, c, 0)
	if _, ok := c.Pin(kept); !ok {
		t.Fatal("an operation that has not ended cannot be pinned")
	}
	close(pinned)
	var stops []func()
	observe := func(look func(id core.OperationID)) {
		stops = append(stops, beside(func() {
			var newest core.OperationID
			seen := false
			for s := range c.Operations(core.OperationQuery{}) {
				newest, seen = s.ID, seen || s.ID == kept
			}
			if _, ok := c.Lookup(kept); !ok || !seen {
				t.Errorf("an operation that is pinned: Lookup finds it %t, Operations %t", ok, seen)
			}
			if newest != kept {
				look(newest)
			}
		}))
	}
	var explained atomic.Int64
	observe(func(core.OperationID) {
		release := c.Sink().Hold("wait", "", 0)
		c.Sink().Raise("wait")
		for s := range c.Operations(core.OperationQuery{Status: core.StatusPending}) {
			x, _ := c.Explain(s.ID)
			explained.Add(int64(len(x.Reasons)))
			_, err := json.Marshal(x)
			coretest.Check(t, x.String() != "" && err == nil, "got the explanation %q and error %v", x, err)
		}
		release()
		c.Sink().Retract("wait")
	})
	observe(func(id core.OperationID) {
		if unpin, ok := c.Pin(id); ok {
			if _, found := c.Lookup(id); !found {
				t.Error("a pin was granted, but the operation is gone")
			}
			unpin()
		}
	})
	observe(func(id core.OperationID) {
		if unpin, ok := c.Pin(id); ok {
			unpin()
		} else {
			c.Evict(id)
		}
	})
	var last core.Stats
	observe(func(core.OperationID) {
		for range c.Sense(signals.Query{Pattern: "st*"}) {
		}
		for range c.Echoes(signals.Query{}) {
		}
		s := c.Stats()
		checkError(t, "the books", coretest.CheckBooks(s), nil)
		coretest.Check(t, s.Enqueued >= last.Enqueued, "Enqueued went back: %v after %v", s, last)
		coretest.Check(t, s.Succeeded >= last.Succeeded, "Succeeded went back: %v after %v", s, last)
		last = s
	})
	n := 0
	for least := stressed(20_000); n < least || explained.Load() == 0 && n < 50*least; n++ {
		accepted(t)(c.Lane([]string{"hot", "normal"}[n%2]).Enqueue(t.Context(), n))
	}
	checkError(t, "Drain", c.Drain(t.Context()), nil)
	for _, stop := range stops {
		stop()
	}
	coretest.Check(t, explained.Load() != 0, "nothing had to be explained")
	checkAllSucceeded(t, c, n+1)
	c.Close()
	checkEqual(t, "finalized", finalized.Load(), int64(n)+1)
}

// No id is used twice, and the ids of one coordinator ascend.
func TestStressIDs(t *testing.T) {
	var seen sync.Map
	var all sync.WaitGroup
	n := stressed(20_000)
	opts := core.Options{MaxQueued: 1 << 20}
	shared := bodies(t, opts)
	for range 4 {
		all.Go(func() {
			var last [2]core.OperationID
			for i, own := 0, bodies(t, opts); i < n; i++ {
				id := enqueue(t, []*core.Coordinator[coretest.Body]{own, shared}[i%2], quick)
				_, twice := seen.LoadOrStore(id, true)
				coretest.Check(t, !twice, "got id %d twice", id)
				coretest.Check(t, id > last[i%2], "got id %d after %d", id, last[i%2])
				last[i%2] = id
			}
		})
	}
	all.Wait()
}
