package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// Weak point 6.3: an unexpected end of the loop that runs things is silent and for
// good. Here a handler that ends its goroutine, as t.FailNow does, ends a worker and
// not the coordinator, whenever it is called.
func TestHandlerEndsItsGoroutineWhileWorking(t *testing.T) {
	for name, listen := range map[string]func(opts *core.Options, handle func()){
		core.SignalStarted: func(opts *core.Options, handle func()) {
			opts.Sink.Subscribe(core.SignalStarted, func(core.Signal) { handle() })
		},
		core.SignalStopped: func(opts *core.Options, handle func()) {
			opts.Sink.Subscribe(core.SignalStopped, func(core.Signal) { handle() })
		},
		"OnSignal":  func(opts *core.Options, handle func()) { opts.OnSignal = func(core.Signal) { handle() } },
		"OnRetract": func(opts *core.Options, handle func()) { opts.OnRetract = func(core.Retraction) { handle() } },
		"retraction subscriber": func(opts *core.Options, handle func()) {
			opts.Sink.SubscribeRetracted("*", func(core.Retraction) { handle() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			everyConstructor(t, func(t *testing.T, kind constructor) {
				var handled atomic.Int64
				opts := core.Options{MaxConcurrency: 2, Sink: core.NewSink(core.SinkOptions{}), MaxTracked: -1}
				listen(&opts, func() {
					handled.Add(1)
					runtime.Goexit()
				})
				c := kind.make(t, opts)
				var finalized atomic.Int64
				c.OnFinalized(func(core.Snapshot) { // other handlers
					finalized.Add(1)
					if finalized.Load()%2 == 0 {
						runtime.Goexit()
					}
				})
				for i := range 10 {
					_, err := c.TryEnqueue(func(ctx context.Context) error {
						core.OperationFrom(ctx).Hold("held", 0) // released at the end
						if i%3 == 0 {
							runtime.Goexit()
						}
						return nil
					})
					checkError(t, "TryEnqueue", err, nil)
				}
				checkError(t, "Drain", c.Drain(t.Context()), nil)
				checkError(t, "Close", c.Close(), nil)
				s := c.Stats()
				if err := coretest.CheckBooks(s); err != nil {
					t.Error(err)
				}
				if s.Succeeded+s.Failed != 10 || finalized.Load() != 10 || handled.Load() == 0 {
					t.Errorf("got %v, %d finalized and %d handled, want all 10 finished and finalized", s, finalized.Load(), handled.Load())
				}
			})
		})
	}
}

// A handler that ends its goroutine when the body has returned does not change what
// came of the operation.
func TestHandlerOfStoppedEndsItsGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		c.Sink().Subscribe(core.SignalStopped, func(core.Signal) { runtime.Goexit() })
		checkError(t, "success", c.Do(t.Context(), quick), nil)
		checkError(t, "failure", c.Do(t.Context(), func(context.Context) error { return errOnPurpose }), errOnPurpose)
		err := c.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
		if _, ok := errors.AsType[*core.PanicError](err); !ok {
			t.Errorf("got error %v, want a PanicError", err)
		}
	})
}

// One that does so before the body has begun does not keep it from running: who
// waits for what the body does would wait for ever.
func TestHandlerEndsItsGoroutineBeforeTheBody(t *testing.T) {
	everyConstructor(t, func(t *testing.T, kind constructor) {
		sink := core.NewSink(core.SinkOptions{})
		var ended []string
		handle := func(s core.Signal) {
			ended = append(ended, s.Name)
			runtime.Goexit()
		}
		sink.Subscribe(core.SignalForced, handle)
		sink.Subscribe(core.SignalStarted, handle)
		c := kind.make(t, core.Options{MaxConcurrency: 1, MaxTracked: -1, Sink: sink, DeferOn: "wait", MaxDefer: time.Second})
		c.OnFinalized(func(core.Snapshot) { // of the one before, when the next has been chosen
			ended = append(ended, "finalized")
			runtime.Goexit()
		})
		sink.Raise("wait")
		ran := 0
		for range 2 {
			_, err := c.TryEnqueue(func(context.Context) error { ran++; return nil })
			checkError(t, "TryEnqueue", err, nil)
		}
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		synctest.Wait()
		checkEqual(t, "bodies run", ran, 2)
		checkEqual(t, "succeeded", c.Stats().Succeeded, 2)
		one := []string{core.SignalForced, core.SignalStarted, "finalized"}
		checkSlice(t, "what was told", ended, slices.Concat(one, one))
	})
}

// Weak points 5.9, 6.9 and 8: what one kind of coordinator can do, another cannot.
// Here all can do everything.
func TestEveryKindCanDoEverything(t *testing.T) {
	everyConstructor(t, func(t *testing.T, kind constructor) {
		sink := core.NewSink(core.SinkOptions{})
		var raised atomic.Int64
		c := kind.make(t, core.Options{
			Name: "orders", Sink: sink, MaxConcurrency: 2, MaxQueued: 10, MaxTracked: 4, MaxAge: time.Minute,
			CancelOn: "stop", DeferOn: "wait", ResumeOn: "go", MaxDefer: -1, DrainOn: "drain",
			OnSignal: func(core.Signal) { raised.Add(1) },
		})
		var finalized atomic.Int64
		c.OnFinalized(func(core.Snapshot) { finalized.Add(1) })
		checkEqual(t, "Name", c.Name(), "orders")

		// Gates.
		sink.Raise("stop")
		_, err := c.TryEnqueue(quick)
		checkRefusal(t, err, "stop")
		sink.Retract("stop")
		sink.Raise("wait")
		id, err := c.TryEnqueue(raise("said"))
		checkError(t, "TryEnqueue", err, nil)
		time.Sleep(time.Hour)
		checkEqual(t, "deferred", lookup(t, c, id).Status, core.StatusPending)
		sink.Raise("go")
		checkError(t, "Wait", c.Wait(t.Context(), id), nil)

		// Signals, in the window and on the sink, with the name as source.
		if !c.Has("sa*") || c.Count("said") != 1 || raised.Load() != 1 {
			t.Errorf("got Has %t, Count %d, OnSignal %d, want true, 1, 1", c.Has("sa*"), c.Count("said"), raised.Load())
		}
		for s := range c.Sense(core.Query{Pattern: "said"}) {
			checkEqual(t, "operation of the signal", s.Operation, id)
			checkEqual(t, "source of the signal", s.Source, "orders")
		}
		m := c.Monitor("said", time.Hour)
		checkEqual(t, "monitored", m.Count(), 1)
		m.Stop()

		// The window: pins, size, echoes, eviction.
		unpin, ok := c.Pin(id)
		checkEqual(t, "Pin", ok, true)
		for range 10 {
			checkError(t, "Do", c.Do(t.Context(), quick), nil)
		}
		synctest.Wait()
		checkEqual(t, "in the window", len(slices.Collect(c.Operations(core.OperationQuery{}))), 5)
		checkEqual(t, "pinned", lookup(t, c, id).Pins, 1)
		unpin()
		if _, ok := c.Lookup(id); ok {
			t.Error("found what has been unpinned")
		}
		checkEqual(t, "finalized", finalized.Load(), 7)

		// Limits, pause, cancel.
		c.SetMaxConcurrency(1)
		checkEqual(t, "limit", c.Stats().Limit, 1)
		c.Pause()
		id, err = c.TryEnqueue(quick)
		checkError(t, "TryEnqueue", err, nil)
		checkExplained(t, c, id, "operation # is pending: the coordinator is paused")
		checkEqual(t, "Cancel", c.Cancel(id, errOnPurpose), true)
		checkError(t, "Wait", c.Wait(t.Context(), id), errOnPurpose)
		c.Resume()

		// The end: idle, by a signal meant for it.
		sink.RaiseKey("drain", "invoices")
		checkError(t, "Do", c.Do(t.Context(), quick), nil)
		sink.RaiseKey("drain", "ord*")
		checkError(t, "Do after the end of the intake", c.Do(t.Context(), quick), core.ErrClosed)
		checkError(t, "Close", c.Close(), nil)
		s := c.Stats()
		if err := coretest.CheckBooks(s); err != nil {
			t.Error(err)
		}
		if s.Tracked != 0 || uint64(finalized.Load()) != s.Enqueued {
			t.Errorf("got %v and %d finalized, want all of them", s, finalized.Load())
		}
	})
}

// Weak point 3.2: GetSignals returns the live list.
func TestSignalsAreACopy(t *testing.T) {
	inBody(t, core.Options{}, func(ctx context.Context, op *core.Operation, c *core.Coordinator[coretest.Body]) {
		op.Raise("a")
		got := op.Signals()
		op.Raise("b")
		op.Retract("a")
		if len(got) != 1 || got[0].Name != "a" {
			t.Errorf("got %v, want what it was", got)
		}
		got = op.Signals()
		got[0].Name = "changed"
		checkEqual(t, "signal", op.Signals()[0].Name, "b")
	})
}

// Weak point 3.1: a body that keeps raising grows without bound, in the echo too.
func TestEchoIsBoundedBySignalsToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: -1})
		c.Do(t.Context(), func(ctx context.Context) error {
			for range 5000 {
				core.OperationFrom(ctx).Raise("x")
			}
			return nil
		})
		synctest.Wait()
		for e := range c.Echoes(core.Query{}) {
			checkEqual(t, "signals in the echo", len(e.Signals), 1000)
		}
	})
}

// Weak point 5.1: pending reads -1 for a moment, and drained flashes true while an
// item is about to start.
func TestCountersAreOneCut(t *testing.T) {
	c := coordinator(t, func(context.Context, int) error { return nil }, core.Options{MaxConcurrency: 2})
	stop := make(chan struct{})
	var observer sync.WaitGroup
	observer.Go(func() {
		var last core.Stats
		for {
			s := c.Stats()
			if err := coretest.CheckBooks(s); err != nil {
				t.Error(err)
			}
			if s.Enqueued < last.Enqueued || s.Succeeded < last.Succeeded {
				t.Errorf("counters went back: %v after %v", s, last)
			}
			last = s
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
	checkError(t, "Drain", c.Drain(t.Context()), nil)
	close(stop)
	observer.Wait()
	checkAllSucceeded(t, c, n)
}

// Weak points 5.2: trimming turns pinned operations round, so that their order is
// lost.
func TestPinsDoNotDisturbTheOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: 3, MaxConcurrency: 1, MaxAge: time.Minute})
		var want []core.OperationID
		pin := func() {
			id := enqueue(t, c, quick)
			c.Pin(id)
			want = append(want, id)
		}
		pin()
		for range 10 {
			enqueue(t, c, quick)
			synctest.Wait()
		}
		pin()
		for range 10 {
			enqueue(t, c, quick)
			synctest.Wait()
		}
		pin()
		time.Sleep(time.Hour)
		for range 3 {
			want = append(want, enqueue(t, c, quick))
			synctest.Wait()
		}
		var got []core.OperationID
		for s := range c.Operations(core.OperationQuery{}) {
			got = append(got, s.ID)
		}
		checkSlice(t, "window", got, want)
		closeDown(t, c)
	})
}

// Weak points 5.2, 5.3, 5.4: while the window is trimmed or rebuilt, readers miss
// what is in it, and pins of what is being evicted are granted.
func TestStressWindowReaders(t *testing.T) {
	pinned := make(chan struct{}) // before that, nothing ends and ages
	c := coordinator(t, func(context.Context, int) error { <-pinned; return nil }, core.Options{MaxConcurrency: 2, MaxTracked: 8, MaxAge: time.Millisecond})
	kept, _ := c.TryEnqueue(0)
	if _, ok := c.Pin(kept); !ok {
		t.Fatal("what has not ended cannot be pinned")
	}
	close(pinned)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	read := func(look func()) {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					look()
					runtime.Gosched()
				}
			}
		})
	}
	read(func() {
		if _, ok := c.Lookup(kept); !ok {
			t.Error("Lookup misses an operation that is pinned")
		}
	})
	read(func() {
		for s := range c.Operations(core.OperationQuery{}) {
			if s.ID == kept {
				return
			}
		}
		t.Error("Operations misses an operation that is pinned")
	})
	read(func() {
		for s := range c.Operations(core.OperationQuery{}) {
			if s.ID == kept {
				continue
			}
			if unpin, ok := c.Pin(s.ID); ok {
				if _, found := c.Lookup(s.ID); !found {
					t.Error("a pin was granted, but the operation is gone")
				}
				unpin()
			} else {
				c.Evict(s.ID)
			}
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
	readers.Wait()
	c.Close()
}

// Weak point 5.6: every Pause and Resume adds a signal to a list that is never
// trimmed. They are on the sink, once per change, bounded as all others.
func TestPauseLeavesNothingBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{Capacity: 10})
		c := bodies(t, core.Options{Sink: sink})
		for range 1000 {
			c.Pause()
			c.Pause()
			c.Resume()
			c.Resume()
		}
		if s := sink.Stats(); s.Raised != 2000 || s.Stored != 10 {
			t.Errorf("got %d raised and %d stored, want 2000 and 10", s.Raised, s.Stored)
		}
		checkEqual(t, "in the coordinator's window", c.Count("*"), 0)
	})
}

// Weak point 5.8: drain and close after each other fail or not depending on timing,
// and a closed coordinator answers late calls with different errors.
func TestLateCallsOfEveryKind(t *testing.T) {
	everyConstructor(t, func(t *testing.T, kind constructor) {
		c := kind.make(t, core.Options{MaxConcurrency: 1})
		id, _ := c.TryEnqueue(quick)
		checkError(t, "Close", c.Close(), nil)
		for range 2 {
			_, err := c.Enqueue(t.Context(), quick)
			checkError(t, "Enqueue", err, core.ErrClosed)
			_, err = c.TryEnqueue(quick)
			checkError(t, "TryEnqueue", err, core.ErrClosed)
			checkError(t, "Do", c.Do(t.Context(), quick), core.ErrClosed)
			checkError(t, "Wait", c.Wait(t.Context(), id), core.ErrUnknown)
			checkError(t, "Flush", c.Flush(t.Context()), nil)
			checkError(t, "Drain", c.Drain(t.Context()), nil)
			checkError(t, "Close", c.Close(), nil)
			checkError(t, "SetMaxConcurrency", c.SetMaxConcurrency(3), nil)
			c.Complete()
			c.Pause()
			c.Resume()
			_, ok := c.Pin(id)
			if ok || c.Cancel(id, nil) || c.Evict(id) {
				t.Error("something can be done with an operation of a closed coordinator")
			}
			if n := len(slices.Collect(c.Operations(core.OperationQuery{}))); n != 0 {
				t.Errorf("%d operations in the window of a closed coordinator", n)
			}
		}
		checkEqual(t, "rejected", c.Stats().Rejected, 6)
	})
}

// Weak point 6.3: a failing selector ends the loop. It fails on the caller's
// goroutine, and nothing is left of it.
func TestKeyFunctionPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		key := func(i int) string {
			if i < 0 {
				panic("no key")
			}
			return strings.Repeat("x", i)
		}
		c := core.Must(core.NewKeyedCoordinator(key, func(context.Context, int) error { return nil }, core.Options{}))
		r := core.Must(core.NewKeyedResultCoordinator(key, square, core.Options{}))
		for name, call := range map[string]func(){
			"Enqueue":            func() { c.Enqueue(t.Context(), -1) },
			"TryEnqueue":         func() { c.TryEnqueue(-1) },
			"Do":                 func() { c.Do(t.Context(), -1) },
			"Submit":             func() { r.Submit(t.Context(), -1) },
			"Do with a result":   func() { r.Do(t.Context(), -1) },
			"Enqueue for result": func() { r.Enqueue(t.Context(), -1) },
		} {
			func() {
				defer func() { checkEqual(t, name, recover(), any("no key")) }()
				call()
			}()
		}
		checkError(t, "Do", c.Do(t.Context(), 1), nil)
		checkEqual(t, "enqueued", c.Stats().Enqueued+r.Stats().Enqueued, 1)
		checkError(t, "Drain", errors.Join(c.Drain(t.Context()), r.Drain(t.Context())), nil)
	})
}

// Weak point 10: the loop cannot be inspected while it runs. Its operations, and
// their signals, are on the sink.
func TestForEachCanBeWatched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		w := coretest.Watch(t, sink, "item.*")
		err := core.ForEach(t.Context(), upTo(3), func(ctx context.Context, i int) error {
			op := core.OperationFrom(ctx)
			op.Raise(fmt.Sprint("item.", i))
			summary, ok := sink.Operation(op.ID())
			if !ok || len(summary.Signals) != 1 {
				t.Errorf("got %v, %t, want the operation's signal", summary, ok)
			}
			return nil
		}, core.Options{Sink: sink, MaxConcurrency: 1, Name: "import"})
		checkError(t, "ForEach", err, nil)
		for _, s := range w.ExpectExactly("item.0", "item.1", "item.2") {
			checkEqual(t, "source", s.Source, "import")
		}
	})
}

// Weak point 11: ids are unique only probably.
func TestStressIDs(t *testing.T) {
	var (
		mu   sync.Mutex
		seen = make(map[core.OperationID]bool)
		all  sync.WaitGroup
	)
	n := stressed(20_000)
	shared := coordinator(t, func(context.Context, int) error { return nil }, core.Options{MaxQueued: 1 << 20})
	for g := range uint64(4) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(9, g))
			own := coordinator(t, func(context.Context, int) error { return nil }, core.Options{MaxQueued: 1 << 20})
			var ids []core.OperationID
			last := make(map[*core.Coordinator[int]]core.OperationID)
			for i := range n {
				c := own
				if random.IntN(2) == 0 {
					c = shared
				}
				id, err := c.TryEnqueue(i)
				if err != nil || id <= last[c] {
					t.Errorf("got id %d after %d and error %v, want ascending ids", id, last[c], err)
				}
				last[c] = id
				ids = append(ids, id)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, id := range ids {
				if id == 0 || seen[id] {
					t.Errorf("id %d was given out twice, or is none", id)
				}
				seen[id] = true
			}
			checkError(t, "Drain", own.Drain(t.Context()), nil)
		})
	}
	all.Wait()
	checkError(t, "Drain", shared.Drain(t.Context()), nil)
}
