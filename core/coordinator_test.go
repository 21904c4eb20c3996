package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func TestItemsStartInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got []int
		c := coordinator(t, func(_ context.Context, i int) error { got = append(got, i); return nil },
			core.Options{MaxConcurrency: 1})
		var want []int
		for i := range 500 {
			enqueue(t, c, i)
			want = append(want, i)
		}
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkSlice(t, "started", got, want)
	})
}

// Weak point 6.3: a body that never suspends stops the pump. Here each has a
// worker of its own.
func TestBlockingBodiesRunSideBySide(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 3})
		g := newGate()
		for range 5 {
			enqueue(t, c, g.body)
		}
		synctest.Wait()
		if s := c.Stats(); s.Running != 3 || s.Pending != 2 {
			t.Errorf("got %d running and %d pending, want 3 and 2", s.Running, s.Pending)
		}
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
	})
}

// The bubble would report a goroutine that is left, and a coordinator that was
// neither used nor closed is just garbage.
func TestIdleCoordinatorOwnsNoGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) { bodies(t, core.Options{DeferOn: "a", CancelOn: "b", DrainOn: "c"}) })
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		checkError(t, "Do", c.Do(t.Context(), quick), nil)
	})
}

// Weak point 2: one number drives both the window and the queue.
func TestQueueIsNotTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1, MaxTracked: 1})
		g := newGate()
		enqueue(t, c, g.body)
		for range 1000 {
			enqueue(t, c, quick)
		}
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkEqual(t, "tracked", c.Stats().Tracked, 1)
	})
}

func TestTryEnqueueOnFullQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: 2})
		g := newGate()
		enqueue(t, c, g.body)
		synctest.Wait()
		enqueue(t, c, quick)
		enqueue(t, c, quick)
		id, err := c.TryEnqueue(quick)
		checkError(t, "TryEnqueue", err, core.ErrFull)
		checkEqual(t, "id", id, 0)
		checkEqual(t, "rejected", c.Stats().Rejected, 1)
		g.open()
		synctest.Wait()
		enqueue(t, c, quick)
	})
}

func TestEnqueueWaitsForRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		c := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: 1})
		g := newGate()
		enqueue(t, c, g.body)
		synctest.Wait()
		enqueue(t, c, j.noting("queued"))
		for i := range 3 { // first come, first served
			go func() {
				if _, err := c.Enqueue(t.Context(), j.noting(fmt.Sprint("waited ", i))); err != nil {
					t.Errorf("Enqueue: %v", err)
				}
			}()
			synctest.Wait()
		}
		// Who comes later does not overtake those who wait.
		if _, err := c.TryEnqueue(quick); !errors.Is(err, core.ErrFull) {
			t.Errorf("TryEnqueue: got %v, want %v", err, core.ErrFull)
		}
		checkEqual(t, "enqueued", c.Stats().Enqueued, 2)
		g.open()
		synctest.Wait()
		j.check(t, "queued", "waited 0", "waited 1", "waited 2")
	})
}

func TestEnqueueGivesUpWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: 1})
		g := newGate()
		enqueue(t, c, g.body)
		synctest.Wait()
		enqueue(t, c, quick)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		begun := time.Now()
		id, err := c.Enqueue(ctx, func(context.Context) error { t.Error("it ran"); return nil })
		checkError(t, "Enqueue", err, errOnPurpose)
		checkEqual(t, "id", id, 0)
		checkEqual(t, "it took", time.Since(begun), time.Second)
		_, err = c.Enqueue(ctx, quick) // which has ended already
		checkError(t, "Enqueue", err, errOnPurpose)
		checkEqual(t, "rejected", c.Stats().Rejected, 2)
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
	})
}

func TestDropOldest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		c := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: 2, DropOldest: true})
		g := newGate()
		enqueue(t, c, g.body)
		synctest.Wait()
		oldest := enqueue(t, c, j.noting("first"))
		enqueue(t, c, j.noting("second"))
		enqueue(t, c, j.noting("third"))
		s := checkStatus(t, c, oldest, core.StatusDropped)
		checkError(t, "its error", s.Err, core.ErrDropped)
		checkError(t, "Wait", c.Wait(t.Context(), oldest), core.ErrDropped)
		if _, err := c.Enqueue(t.Context(), j.noting("fourth")); err != nil { // does not wait
			t.Errorf("Enqueue: %v", err)
		}
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		j.check(t, "third", "fourth")
		if s := c.Stats(); s.Dropped != 2 || s.Rejected != 0 {
			t.Errorf("got %v, want 2 dropped and none rejected", s)
		}
	})
}

// Weak point 11: ids are unique only probably, and carry no order.
func TestIDs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{}), bodies(t, core.Options{})
		last := make(map[*core.Coordinator[coretest.Body]]core.OperationID)
		seen := make(map[core.OperationID]bool)
		for range 1000 {
			for _, c := range []*core.Coordinator[coretest.Body]{a, b} {
				id := enqueue(t, c, quick)
				if id <= last[c] || seen[id] {
					t.Fatalf("got id %d after %d, seen before is %t; want ascending ids in each, no id twice", id, last[c], seen[id])
				}
				last[c], seen[id] = id, true
			}
		}
		checkEqual(t, "String", last[a].String(), fmt.Sprint(uint64(last[a])))
		checkError(t, "Drain", errors.Join(a.Drain(t.Context()), b.Drain(t.Context())), nil)
	})
}

func TestOutcomes(t *testing.T) {
	boom := errors.New("boom")
	for _, test := range []struct {
		name  string
		body  coretest.Body
		want  core.Status
		check func(t *testing.T, err error)
	}{
		{"success", quick, core.StatusSucceeded, func(t *testing.T, err error) { checkError(t, "error", err, nil) }},
		{"failure", func(context.Context) error { return boom }, core.StatusFailed,
			func(t *testing.T, err error) { checkError(t, "error", err, boom) }},
		{"panic", func(context.Context) error { panic(boom) }, core.StatusFailed, func(t *testing.T, err error) {
			checkError(t, "error", err, boom) // unwraps
			p, ok := errors.AsType[*core.PanicError](err)
			if !ok || p.Value != boom || !strings.Contains(string(p.Stack), "TestOutcomes") {
				t.Errorf("got %#v, want a PanicError with the value and the stack of the panic", err)
			}
			checkEqual(t, "text", err.Error(), "ephemeral: operation panicked: boom")
		}},
		{"panic with text", func(context.Context) error { panic("text") }, core.StatusFailed, func(t *testing.T, err error) {
			if errors.Unwrap(err) != nil {
				t.Errorf("unwraps to %v, want nothing", errors.Unwrap(err))
			}
		}},
		{"goexit", func(context.Context) error { runtime.Goexit(); return nil }, core.StatusFailed, func(t *testing.T, err error) {
			if p, ok := errors.AsType[*core.PanicError](err); !ok || p.Value != nil || len(p.Stack) == 0 {
				t.Errorf("got %#v, want a PanicError with a stack and no value", err)
			}
			if !strings.Contains(err.Error(), "Goexit") {
				t.Errorf("got text %q, want it to mention Goexit", err)
			}
		}},
		// Weak point 5.7: on its own it is a failure like others.
		{"returns Canceled", func(context.Context) error { return context.Canceled }, core.StatusFailed,
			func(t *testing.T, err error) { checkError(t, "error", err, context.Canceled) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				sink := core.NewSink(core.SinkOptions{})
				w := coretest.Watch(t, sink, core.SignalPanic)
				c := bodies(t, core.Options{MaxConcurrency: 1, Sink: sink})
				id := enqueue(t, c, test.body)
				after := enqueue(t, c, quick) // the worker, or another, goes on
				synctest.Wait()
				test.check(t, c.Wait(t.Context(), id))
				test.check(t, checkStatus(t, c, id, test.want).Err)
				checkStatus(t, c, after, core.StatusSucceeded)
				if strings.HasPrefix(test.name, "panic") {
					w.Expect(core.SignalPanic)
				}
				w.None()
				closeDown(t, c)
			})
		})
	}
}

func TestCancelPending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1})
		g := newGate()
		enqueue(t, c, g.body)
		id := enqueue(t, c, func(context.Context) error { t.Error("a cancelled operation ran"); return nil })
		other := enqueue(t, c, quick)
		checkEqual(t, "Cancel", c.Cancel(id, errOnPurpose), true)
		checkEqual(t, "Cancel again", c.Cancel(id, nil), false)
		s := checkStatus(t, c, id, core.StatusCancelled)
		checkError(t, "its error", s.Err, errOnPurpose)
		g.open()
		synctest.Wait()
		checkStatus(t, c, other, core.StatusSucceeded)
		checkEqual(t, "cancelled", c.Stats().Cancelled, 1)
	})
}

// Weak points 4 and 5.7: a cancelled operation looks like a success, and is
// counted nowhere.
func TestCancelRunning(t *testing.T) {
	for _, test := range []struct {
		name   string
		cause  error
		body   coretest.Body
		want   core.Status
		wanted error
	}{
		{"body returns the cause", errOnPurpose, untilCancelled, core.StatusCancelled, errOnPurpose},
		{"body returns Canceled", errOnPurpose, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, core.StatusCancelled, errOnPurpose},
		{"no cause", nil, untilCancelled, core.StatusCancelled, core.ErrCancelled},
		{"body returns another error", nil, func(ctx context.Context) error { <-ctx.Done(); return errOnPurpose }, core.StatusCancelled, errOnPurpose},
		{"body panics", nil, func(ctx context.Context) error { <-ctx.Done(); panic(errOnPurpose) }, core.StatusCancelled, errOnPurpose},
		{"body succeeds all the same", nil, func(ctx context.Context) error { <-ctx.Done(); return nil }, core.StatusSucceeded, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := bodies(t, core.Options{})
				id := enqueue(t, c, test.body)
				synctest.Wait()
				checkStatus(t, c, id, core.StatusRunning)
				checkEqual(t, "Cancel", c.Cancel(id, test.cause), true)
				checkEqual(t, "Cancel again", c.Cancel(id, errors.New("too late")), true)
				synctest.Wait()
				s := checkStatus(t, c, id, test.want)
				checkError(t, "its error", s.Err, test.wanted)
				checkEqual(t, "Cancel when finished", c.Cancel(id, nil), false)
			})
		})
	}
	bubble(t, func(t *testing.T) {
		checkEqual(t, "Cancel of an unknown one", bodies(t, core.Options{}).Cancel(1<<60, nil), false)
	})
}

func TestDo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		checkError(t, "Do", c.Do(t.Context(), quick), nil)
		checkError(t, "Do", c.Do(t.Context(), func(context.Context) error { return errOnPurpose }), errOnPurpose)

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		var cause error
		begun := time.Now()
		err := c.Do(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			time.Sleep(time.Minute) // Do does not wait for it
			return cause
		})
		checkError(t, "Do", err, errOnPurpose)
		checkEqual(t, "Do took", time.Since(begun), time.Second)
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkError(t, "the body's cause", cause, errOnPurpose)
		checkEqual(t, "cancelled", c.Stats().Cancelled, 1)
		checkError(t, "Do", c.Do(t.Context(), quick), core.ErrClosed)
	})
}

func TestWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: 1})
		checkError(t, "unknown", c.Wait(t.Context(), 1<<60), core.ErrUnknown)
		checkError(t, "none", c.Wait(t.Context(), 0), core.ErrUnknown)
		failed := enqueue(t, c, func(context.Context) error { return errOnPurpose })
		checkError(t, "failed", c.Wait(t.Context(), failed), errOnPurpose)
		checkError(t, "failed, once more", c.Wait(t.Context(), failed), errOnPurpose)

		g := newGate()
		id := enqueue(t, c, g.body)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		checkError(t, "with a deadline", c.Wait(ctx, id), errOnPurpose)
		checkStatus(t, c, id, core.StatusRunning) // it goes on
		g.open()
		checkError(t, "succeeded", c.Wait(t.Context(), id), nil)
		checkError(t, "evicted", c.Wait(t.Context(), failed), core.ErrUnknown)

		// Who waits gets the result, though the operation leaves the window at once.
		c = bodies(t, core.Options{MaxTracked: -1})
		g = newGate()
		id = enqueue(t, c, func(ctx context.Context) error { g.body(ctx); return errOnPurpose })
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- c.Wait(t.Context(), id) }()
		}
		synctest.Wait()
		g.open()
		checkError(t, "not kept", <-done, errOnPurpose)
		checkError(t, "not kept", <-done, errOnPurpose)
	})
}

func TestPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		w := coretest.Watch(t, sink, "coordinator.*")
		c := bodies(t, core.Options{Sink: sink, Name: "orders", MaxConcurrency: 1, MaxQueued: 2})
		g := newGate()
		enqueue(t, c, g.body)
		synctest.Wait()
		waiting := enqueue(t, c, quick) // for a slot
		c.Pause()
		c.Pause()
		checkEqual(t, "paused", c.Stats().Paused, true)
		if s := w.ExpectExactly(core.SignalPaused); s[0].Key != "orders" {
			t.Errorf("got key %q, want the coordinator's name", s[0].Key)
		}
		// Weak point 5.7: an item that waits for a slot still starts.
		g.open()
		synctest.Wait()
		checkStatus(t, c, waiting, core.StatusPending)
		enqueue(t, c, quick) // still accepted
		c.Resume()
		c.Resume()
		synctest.Wait()
		checkStatus(t, c, waiting, core.StatusSucceeded)
		w.ExpectExactly(core.SignalResumed)
		closeDown(t, c)
		closeDown(t, c)
		w.ExpectExactly(core.SignalClosed)
	})
}

// Weak point 12: lowering does not take effect under load; raising adds the
// difference regardless of what runs.
func TestSetMaxConcurrency(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 8})
		var gates []*gate
		for range 30 {
			g := newGate()
			gates = append(gates, g)
			enqueue(t, c, g.body)
		}
		check := func(what string, want int) {
			t.Helper()
			synctest.Wait()
			checkEqual(t, what, c.Stats().Running, want)
		}
		finish := func(n int) {
			for _, g := range gates[:n] {
				g.open()
			}
			gates = gates[n:]
		}
		set := func(n int) {
			t.Helper()
			checkError(t, "SetMaxConcurrency", c.SetMaxConcurrency(n), nil)
		}
		check("at first", 8)
		set(2)
		check("none is stopped", 8)
		finish(3)
		check("none is started while the surplus goes", 5)
		set(8)
		check("raised while some run", 8)
		set(2)
		finish(7)
		check("surplus gone and one more finished", 2)
		set(5)
		check("raised", 5)
		finish(20)
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		for _, n := range []int{0, -1} {
			if err := c.SetMaxConcurrency(n); err == nil || !strings.Contains(err.Error(), fmt.Sprint(n)) {
				t.Errorf("SetMaxConcurrency(%d): got error %v, want one that names the value", n, err)
			}
		}
		checkEqual(t, "limit", c.Stats().Limit, 5)
	})
}

func TestWindowIsBoundedByCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: 3, MaxConcurrency: 1})
		var ids []core.OperationID
		for range 5 {
			ids = append(ids, enqueue(t, c, quick))
			synctest.Wait()
			c.Lookup(ids[0]) // does not refresh it
		}
		var got []core.OperationID
		for s := range c.Operations(core.OperationQuery{}) {
			got = append(got, s.ID)
		}
		checkSlice(t, "window", got, ids[2:])
	})
}

// Weak points 5.2: running operations are evicted by size and by age; age is
// measured from the start.
func TestRunningIsNeverEvicted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: 1, MaxAge: time.Minute, MaxConcurrency: 2})
		g := newGate()
		long := enqueue(t, c, g.body)
		time.Sleep(time.Hour)
		for range 10 {
			checkError(t, "Do", c.Do(t.Context(), quick), nil)
		}
		checkStatus(t, c, long, core.StatusRunning)
		g.open()
		time.Sleep(time.Minute - 1)
		checkStatus(t, c, long, core.StatusSucceeded)
		time.Sleep(time.Nanosecond)
		checkGone(t, c, long)
		closeDown(t, c)
	})
}

// Weak point 5.2: there is no timer, so that on an idle coordinator expired
// operations and their signals stay for ever.
func TestIdleWindowAges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, MaxAge: time.Minute})
		var finalized atomic.Value
		c.OnFinalized(func(core.Snapshot) { finalized.Store(time.Now()) })
		checkError(t, "Do", c.Do(t.Context(), raise("fact")), nil)
		begun := time.Now()
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		if !sink.Has("fact") || !c.Has("fact") || finalized.Load() != nil {
			t.Error("the operation left before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		at, _ := finalized.Load().(time.Time)
		if age := at.Sub(begun); age < time.Minute || age > time.Minute+time.Second {
			t.Errorf("finalized at the age of %v, want %v", age, time.Minute)
		}
		if sink.Has("fact") || c.Has("fact") {
			t.Error("the signals of an operation that has left are still there")
		}
	})
}

func TestPin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: 2, MaxAge: time.Minute, MaxConcurrency: 1})
		pinned := enqueue(t, c, raise("kept"))
		synctest.Wait()
		unpin, ok := c.Pin(pinned)
		again, ok2 := c.Pin(pinned)
		if !ok || !ok2 {
			t.Fatal("Pin: got false, want true")
		}
		for range 10 {
			checkError(t, "Do", c.Do(t.Context(), quick), nil)
		}
		time.Sleep(time.Hour)
		if s := checkStatus(t, c, pinned, core.StatusSucceeded); s.Pins != 2 || !c.Has("kept") {
			t.Errorf("got %d pins and signal %t, want 2 and true", s.Pins, c.Has("kept"))
		}
		if s := c.Stats(); s.Pinned != 1 || s.Tracked != 1 {
			t.Errorf("got %d pinned and %d tracked, want 1 and 1", s.Pinned, s.Tracked)
		}
		unpin()
		unpin() // counts once
		checkStatus(t, c, pinned, core.StatusSucceeded)
		again()
		checkGone(t, c, pinned) // at once, its time is over
		again()
		if s := c.Stats(); s.Pinned != 0 || s.Tracked != 0 {
			t.Errorf("got %d pinned and %d tracked, want none", s.Pinned, s.Tracked)
		}

		// Unpinned before its time it stays.
		young := enqueue(t, c, quick)
		synctest.Wait()
		unpin, _ = c.Pin(young)
		unpin()
		checkStatus(t, c, young, core.StatusSucceeded)
		closeDown(t, c)
	})
}

// Weak point 5.2: pins alone can grow memory without limit.
func TestPinsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: 2, MaxConcurrency: 1})
		g := newGate()
		var ids []core.OperationID
		for range 3 {
			ids = append(ids, enqueue(t, c, g.body)) // running and pending ones
		}
		unpin, ok := c.Pin(ids[0])
		checkEqual(t, "Pin of a running one", ok, true)
		_, ok = c.Pin(ids[1])
		checkEqual(t, "Pin of a pending one", ok, true)
		none, ok := c.Pin(ids[2])
		checkEqual(t, "Pin of one too many", ok, false)
		none() // does nothing
		_, ok = c.Pin(ids[1])
		checkEqual(t, "Pin of a pinned one", ok, true)
		unpin()
		_, ok = c.Pin(ids[2])
		checkEqual(t, "Pin when there is room", ok, true)
		_, ok = c.Pin(1 << 60)
		checkEqual(t, "Pin of an unknown one", ok, false)
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkEqual(t, "pinned", c.Stats().Pinned, 2)
		closeDown(t, c)
		checkEqual(t, "pinned after Close", c.Stats().Pinned, 0)
	})
}

// Weak point 5.4: removal drops the last words, and does not cancel.
func TestEvict(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1})
		var finalized []core.OperationID
		c.OnFinalized(func(s core.Snapshot) { finalized = append(finalized, s.ID) })
		g := newGate()
		running := enqueue(t, c, g.body)
		pending := enqueue(t, c, quick)
		synctest.Wait()
		checkEqual(t, "Evict of a running one", c.Evict(running), false)
		checkEqual(t, "Evict of a pending one", c.Evict(pending), false)
		checkEqual(t, "Evict of an unknown one", c.Evict(1<<60), false)
		g.open()
		synctest.Wait()
		c.Pin(running)
		checkEqual(t, "Evict of a pinned one", c.Evict(running), true)
		checkEqual(t, "Evict again", c.Evict(running), false)
		checkGone(t, c, running)
		checkSlice(t, "finalized", finalized, []core.OperationID{running})
		if echoes := slices.Collect(c.Echoes(core.Query{})); len(echoes) != 1 || echoes[0].Operation != running {
			t.Errorf("got echoes %v, want that of operation %d", echoes, running)
		}
	})
}

// Weak points 5.5: handlers run while the window lock is held; operations in the
// window at dispose are never finalized.
func TestOnFinalized(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: 2, MaxConcurrency: 1})
		var j journal
		cancel := c.OnFinalized(func(s core.Snapshot) {
			if s.Status != core.StatusSucceeded || !s.Has("said") || s.Key != "key" {
				t.Errorf("got %+v, want the last snapshot with key and signals", s)
			}
			// No lock is held: everything can be called.
			c.Stats()
			c.Lookup(s.ID)
			c.Has("said")
			c.Cancel(s.ID, nil)
			if unpin, ok := c.Pin(s.ID); ok {
				t.Error("an operation that has left could be pinned")
				unpin()
			}
			// Weak point 5.5: a handler cannot see the echo.
			if n := len(slices.Collect(c.Echoes(core.Query{Operation: s.ID}))); n != 1 {
				t.Errorf("got %d echoes of it, want 1", n)
			}
			j.note(s.Values["name"].(string))
		})
		for _, name := range []string{"a", "b", "c", "d"} {
			enqueue(t, c, func(ctx context.Context) error {
				op := core.OperationFrom(ctx)
				op.SetKey("key")
				op.Set("name", name)
				op.Raise("said")
				return nil
			})
		}
		synctest.Wait()
		j.check(t, "a", "b")
		closeDown(t, c)
		j.check(t, "c", "d")
		cancel()
		cancel()
	})
}

// Weak point 5.5: a failing handler stops the others, or the pump.
func TestOnFinalizedPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: -1, MaxConcurrency: 1})
		n := 0
		stop := c.OnFinalized(func(core.Snapshot) { panic("on purpose") })
		c.OnFinalized(func(core.Snapshot) { n++ })
		for range 3 {
			enqueue(t, c, quick)
		}
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		synctest.Wait()
		checkEqual(t, "calls of the other handler", n, 3)
		checkEqual(t, "panics", c.Stats().Panics, 3)
		stop()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
	})
	defer func() {
		if recover() == nil {
			t.Error("OnFinalized(nil) did not panic")
		}
	}()
	bodies(t, core.Options{}).OnFinalized(nil)
}

func TestOperationsQuery(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1})
		g := newGate()
		named := func(name string, body coretest.Body) core.OperationID {
			id := enqueue(t, c, func(ctx context.Context) error {
				core.OperationFrom(ctx).SetKey(name)
				return body(ctx)
			})
			synctest.Wait()
			return id
		}
		ok := named("alice", quick)
		failed := named("bob", func(context.Context) error { return errOnPurpose })
		time.Sleep(time.Minute)
		said := named("alice", raise("file.saved"))
		running := named("carol", g.body)
		pending := enqueue(t, c, quick)
		for _, test := range []struct {
			name string
			q    core.OperationQuery
			want []core.OperationID
		}{
			{"all", core.OperationQuery{}, []core.OperationID{ok, failed, said, running, pending}},
			{"pending", core.OperationQuery{Status: core.StatusPending}, []core.OperationID{pending}},
			{"running", core.OperationQuery{Status: core.StatusRunning}, []core.OperationID{running}},
			{"failed or pending", core.OperationQuery{Status: core.StatusFailed | core.StatusPending}, []core.OperationID{failed, pending}},
			{"finished", core.OperationQuery{Status: core.StatusFinished}, []core.OperationID{ok, failed, said}},
			{"pattern", core.OperationQuery{Pattern: "file.*"}, []core.OperationID{said}},
			{"key", core.OperationQuery{Key: "alice"}, []core.OperationID{ok, said}},
			{"key and status", core.OperationQuery{Key: "alice", Status: core.StatusFailed}, nil},
			{"within", core.OperationQuery{Within: time.Second}, []core.OperationID{said, running, pending}},
		} {
			var got []core.OperationID
			for s := range c.Operations(test.q) {
				got = append(got, s.ID)
			}
			checkSlice(t, test.name, got, test.want)
		}
		for range c.Operations(core.OperationQuery{}) {
			break // leaving early is fine
		}
		// As of the start of the loop, and without a lock.
		n := 0
		for range c.Operations(core.OperationQuery{}) {
			enqueue(t, c, quick)
			n++
		}
		checkEqual(t, "seen", n, 5)
		g.open()
	})
}

// A coordinator senses what its operations raised, for as long as they are in its
// window, whatever happens to the sink.
func TestCoordinatorIsSensor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{Capacity: 1})
		c := bodies(t, core.Options{Sink: sink, Name: "orders", MaxConcurrency: 1, MaxTracked: 3})
		m := c.Monitor("say.*", time.Minute)
		defer m.Stop()
		var ids []core.OperationID
		for _, name := range []string{"say.a", "say.b", "say.b"} {
			ids = append(ids, enqueue(t, c, raise(name)))
			synctest.Wait()
		}
		sink.Raise("say.elsewhere")
		if !c.Has("say.a") || c.Has("say.elsewhere") || c.Count("say.*") != 3 || c.Count("say.b") != 2 || c.Count("") != 0 {
			t.Errorf("got Has %t %t, Count %d %d %d, want true false 3 2 0",
				c.Has("say.a"), c.Has("say.elsewhere"), c.Count("say.*"), c.Count("say.b"), c.Count(""))
		}
		var got []core.OperationID
		for s := range c.Sense(core.Query{Pattern: "say.*"}) {
			if s.Source != "orders" {
				t.Errorf("got source %q, want orders", s.Source)
			}
			got = append(got, s.Operation)
		}
		checkSlice(t, "sensed", got, ids)
		checkEqual(t, "monitored", m.Count(), 3)
		c.Evict(ids[1])
		checkEqual(t, "Count after an eviction", c.Count("say.b"), 1)
		checkEqual(t, "monitored after an eviction", m.Count(), 3) // standing
		time.Sleep(time.Minute)
		checkEqual(t, "monitored later", m.Count(), 0)
		for range c.Sense(core.Query{Operation: ids[1]}) {
			t.Error("an evicted operation was sensed")
		}
	})
}

// Weak point 5.9: the time queries filter on the operation's start, so that a
// recent signal of an older running operation is missed.
func TestSenseGoesByTimeOfSignal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		g := newGate()
		enqueue(t, c, func(ctx context.Context) error {
			core.OperationFrom(ctx).Raise("early")
			time.Sleep(time.Hour)
			core.OperationFrom(ctx).Raise("late")
			return g.body(ctx)
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		var got []string
		for s := range c.Sense(core.Query{Within: time.Minute}) {
			got = append(got, s.Name)
		}
		checkSlice(t, "within a minute", got, []string{"late"})
		g.open()
	})
}

func TestSharedOptions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		opts := core.Options{Sink: core.NewSink(core.SinkOptions{}), CancelOn: "stop"}
		a := coordinator(t, func(context.Context, int) error { return nil }, opts)
		b := coordinator(t, func(context.Context, string) error { return nil }, opts)
		checkError(t, "Do", errors.Join(a.Do(t.Context(), 1), b.Do(t.Context(), "x")), nil)
		opts.Sink.Raise("stop")
		checkRefusal(t, a.Do(t.Context(), 1), "stop")
		checkRefusal(t, b.Do(t.Context(), "x"), "stop")
	})
}

// Weak point 5.8: draining twice fails; what Close discards stays pending for ever
// and is counted nowhere.
func TestCloseAccountsForEverything(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 2})
		var finalized atomic.Int64
		c.OnFinalized(func(core.Snapshot) { finalized.Add(1) })
		checkError(t, "Do", c.Do(t.Context(), quick), nil)
		for range 2 {
			enqueue(t, c, untilCancelled)
		}
		var waits []chan error
		for range 10 {
			id := enqueue(t, c, quick)
			done := make(chan error, 1)
			waits = append(waits, done)
			go func() { done <- c.Wait(t.Context(), id) }()
		}
		synctest.Wait()
		closeDown(t, c)
		for _, done := range waits {
			checkError(t, "Wait for one that Close discarded", <-done, core.ErrClosed)
		}
		s := c.Stats()
		if s.Succeeded != 1 || s.Cancelled != 12 || s.Pending+s.Running+s.Tracked != 0 {
			t.Errorf("got %v, want 1 succeeded, 12 cancelled and nothing left", s)
		}
		checkEqual(t, "finalized", finalized.Load(), 13)
	})
}

// Must is for options that are literals.
func TestMustPanicsOnError(t *testing.T) {
	defer func() {
		if r, ok := recover().(error); !ok || r != errOnPurpose {
			t.Errorf("got panic %v, want %v", r, errOnPurpose)
		}
	}()
	checkEqual(t, "Must", core.Must(7, nil), 7)
	core.Must(7, errOnPurpose)
}
