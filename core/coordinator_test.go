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
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Nothing here is closed. The bubble would report a goroutine that is left.
func TestNothingOwnsAGoroutineWhileIdle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		bodies(t, core.Options{DeferOn: "a", CancelOn: "b", DrainOn: "c"})
		checkError(t, "Do", bodies(t, core.Options{}).Do(t.Context(), quick), nil)
		var j journal
		p, d := processor(t, j.noted(""), core.Options{}), dispatcher(t, core.Options{})
		d.Handle("*", j.noted(""))
		p.Process(named("a"))
		flushed(t, p)
		d.Dispatch(named("b"))
		flushed(t, d)
		j.check(t, "a", "b")
	})
}

// No lock is held while the context is asked why it has ended.
func TestEnqueueGivesUpWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: 1})
		g := newGate()
		enqueue(t, c, g.body)
		synctest.Wait()
		enqueue(t, c, quick)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		ctx = asking{ctx, c}
		begun := time.Now()
		flushed := call(t, func(context.Context) error { return c.Flush(ctx) })
		id, err := c.Enqueue(ctx, func(context.Context) error { t.Error("it ran"); return nil })
		checkError(t, "Enqueue", err, errOnPurpose)
		checkEqual(t, "id", id, 0)
		checkError(t, "Flush", flushed(), errOnPurpose)
		checkEqual(t, "it took", time.Since(begun), time.Second)
		_, err = c.Enqueue(ctx, quick) // its context has ended already
		checkError(t, "Enqueue", err, errOnPurpose)
		checkEqual(t, "rejected", c.Stats().Rejected, 2)
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
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
			if !ok {
				t.Fatalf("got %#v, want a PanicError", err)
			}
			checkEqual(t, "value", p.Value, any(boom))
			checkSays(t, "stack", string(p.Stack), "TestOutcomes")
			checkEqual(t, "text", err.Error(), "core: operation panicked: boom")
		}},
		{"panic with text", func(context.Context) error { panic("text") }, core.StatusFailed, func(t *testing.T, err error) {
			coretest.Check(t, errors.Unwrap(err) == nil, "unwraps to %v, want nothing", errors.Unwrap(err))
		}},
		{"goexit", func(context.Context) error { runtime.Goexit(); return nil }, core.StatusFailed, func(t *testing.T, err error) {
			if p, ok := errors.AsType[*core.PanicError](err); !ok || p.Value != nil || len(p.Stack) == 0 {
				t.Errorf("got %#v, want a PanicError with a stack and no value", err)
			}
			checkSays(t, "text", err, "Goexit")
		}},
		// A body that was not cancelled has failed.
		{"returns Canceled", func(context.Context) error { return context.Canceled }, core.StatusFailed,
			func(t *testing.T, err error) { checkError(t, "error", err, context.Canceled) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				sink := signals.NewSink(signals.SinkOptions{})
				w := coretest.Watch(t, sink, core.SignalPanicked)
				c := bodies(t, core.Options{MaxConcurrency: 1, Sink: sink})
				id := enqueue(t, c, test.body)
				after := enqueue(t, c, quick) // the worker, or another, goes on
				synctest.Wait()
				test.check(t, c.Wait(t.Context(), id))
				test.check(t, checkStatus(t, c, id, test.want).Err)
				checkStatus(t, c, after, core.StatusSucceeded)
				if strings.HasPrefix(test.name, "panic") {
					w.Expect(core.SignalPanicked)
				}
				w.None()
				closeDown(t, c)
			})
		})
	}
}

// A cancelled operation is counted as cancelled, with its cause, unless its body succeeds.
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
		{"body asks late", errOnPurpose, func(ctx context.Context) error { return errors.Join(ctx.Err(), context.Cause(ctx)) }, core.StatusCancelled, errOnPurpose},
		{"no cause", nil, untilCancelled, core.StatusCancelled, core.ErrCancelled},
		{"body returns another error", nil, func(ctx context.Context) error { <-ctx.Done(); return errOnPurpose }, core.StatusCancelled, errOnPurpose},
		{"body panics", nil, func(ctx context.Context) error { <-ctx.Done(); panic(errOnPurpose) }, core.StatusCancelled, errOnPurpose},
		{"body succeeds all the same", nil, func(ctx context.Context) error { <-ctx.Done(); return nil }, core.StatusSucceeded, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := bodies(t, core.Options{})
				cancelled := make(chan struct{}) // without this, the body may end between the two Cancels
				id := enqueue(t, c, func(ctx context.Context) error { <-cancelled; return test.body(ctx) })
				synctest.Wait()
				checkStatus(t, c, id, core.StatusRunning)
				checkEqual(t, "Cancel", c.Cancel(id, test.cause), true)
				checkEqual(t, "Cancel again", c.Cancel(id, errors.New("too late")), true)
				close(cancelled)
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

// Do ends with its context. It returns the cause and cancels its operation with it, without waiting for the body.
func TestDo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		var cause error
		begun := time.Now()
		checkError(t, "Do", c.Do(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			time.Sleep(time.Minute)
			return cause
		}), errOnPurpose)
		checkEqual(t, "Do took", time.Since(begun), time.Second)
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkError(t, "the body's cause", cause, errOnPurpose)
	})
}

func TestWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxFailed: 1})
		checkError(t, "of another coordinator", c.Wait(t.Context(), enqueue(t, bodies(t, core.Options{}), quick)), core.ErrUnknown)
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
		checkError(t, "another failure", c.Do(t.Context(), func(context.Context) error { return errOnPurpose }), errOnPurpose)
		checkError(t, "evicted", c.Wait(t.Context(), failed), core.ErrUnknown)
		closeDown(t, c)
		checkError(t, "of a closed coordinator", c.Wait(t.Context(), id), core.ErrUnknown)

		// A caller that waits gets the result, even if the operation leaves the window at once.
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

// Pause and Resume raise a signal when they change something, and nothing starts in between.
func TestPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 10})
		w := coretest.Watch(t, sink, "coordinator.*")
		c := bodies(t, core.Options{Sink: sink, Name: "orders"})
		for range 1000 {
			c.Pause()
			c.Pause()
			c.Resume()
			c.Resume()
			w.ExpectExactly(core.SignalPaused, core.SignalResumed)
		}
		checkEqual(t, "stored", sink.Stats().Stored, 10)
		checkEqual(t, "in the coordinator's window", c.Count("*"), 0)
		c.Pause()
		checkEqual(t, "key", w.ExpectExactly(core.SignalPaused)[0].Key, "orders")
		id := enqueue(t, c, quick) // still accepted
		synctest.Wait()
		checkStatus(t, c, id, core.StatusPending)
		c.Resume()
		checkError(t, "Wait", c.Wait(t.Context(), id), nil)
		w.ExpectExactly(core.SignalResumed)
		closeDown(t, c)
		closeDown(t, c)
		w.ExpectExactly(core.SignalClosed)
	})
}

func TestSetMaxConcurrencyRefusesNoSlots(t *testing.T) {
	c := bodies(t, core.Options{MaxConcurrency: 5})
	for _, n := range []int{0, -1} {
		checkSays(t, "SetMaxConcurrency", c.SetMaxConcurrency(n), fmt.Sprint(n))
	}
	checkEqual(t, "limit", c.Stats().Limit, 5)
}

// Operations that are too old leave the window by a timer, with their signals, even if nobody calls the
// coordinator.
func TestIdleWindowAges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, MaxAge: time.Minute})
		var finalized atomic.Value
		c.OnFinalized(func(core.Snapshot) { finalized.Store(time.Now()) })
		checkError(t, "Do", c.Do(t.Context(), raise("fact")), nil)
		begun := time.Now()
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		checkEqual(t, "there, and finalized, before its time", words(sink.Has("fact"), c.Has("fact"), finalized.Load()), "true true <nil>")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		at, _ := finalized.Load().(time.Time)
		if age := at.Sub(begun); age < time.Minute || age > time.Minute+time.Second {
			t.Errorf("finalized at the age of %v, want %v", age, time.Minute)
		}
		checkEqual(t, "there when it has left", [2]bool{sink.Has("fact"), c.Has("fact")}, [2]bool{})
	})
}

// Handlers run without a lock. Operations that are in the window at Close are finalized as well.
func TestOnFinalized(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: 2, MaxConcurrency: 1})
		var j journal
		cancel := c.OnFinalized(func(s core.Snapshot) {
			checkEqual(t, "the last snapshot", words(s.Status, s.Key, s.Has("said")), "succeeded key true")
			// No lock is held: everything can be called.
			c.Stats()
			c.Lookup(s.ID)
			c.Has("said")
			c.Cancel(s.ID, nil)
			if unpin, ok := c.Pin(s.ID); ok {
				t.Error("an operation that has left could be pinned")
				unpin()
			}
			// The echo exists already.
			checkEqual(t, "echoes", len(slices.Collect(c.Echoes(signals.Query{Operation: s.ID}))), 1)
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
		j.checkAnyOrder(t, "a", "b")
		closeDown(t, c)
		j.checkAnyOrder(t, "c", "d")
		cancel()
		cancel()
	})
}

// A handler that panics stops neither the other handlers nor the workers.
func TestOnFinalizedPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: -1, MaxConcurrency: 1})
		var n atomic.Int64 // the calls for two operations may come at once
		stop := c.OnFinalized(func(core.Snapshot) { panic("on purpose") })
		c.OnFinalized(func(core.Snapshot) { n.Add(1) })
		for range 3 {
			enqueue(t, c, quick)
		}
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		synctest.Wait()
		checkEqual(t, "calls of the other handler", n.Load(), 3)
		checkEqual(t, "panics", c.Stats().Panics, 3)
		stop()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
	})
	wantPanic(t, "core: OnFinalized", func() { bodies(t, core.Options{}).OnFinalized(nil) })
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
			{"newest first", core.OperationQuery{NewestFirst: true}, []core.OperationID{pending, running, said, failed, ok}},
			{"first page", core.OperationQuery{Limit: 2}, []core.OperationID{ok, failed}},
			{"second page", core.OperationQuery{Limit: 2, After: failed}, []core.OperationID{said, running}},
			{"last page", core.OperationQuery{Limit: 2, After: running}, []core.OperationID{pending}},
			{"after the last", core.OperationQuery{After: pending}, nil},
			{"second page, newest first", core.OperationQuery{Limit: 2, NewestFirst: true, After: running}, []core.OperationID{said, failed}},
			{"after the first, newest first", core.OperationQuery{NewestFirst: true, After: ok}, nil},
			{"limit of what matches", core.OperationQuery{Limit: 1, Key: "alice", Pattern: "file.*"}, []core.OperationID{said}},
		} {
			checkSlice(t, test.name, found(c, test.q), test.want)
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

// The cost of a page of pending operations depends only on the page, not on how many are pending, from either end and
// from the middle.
func TestPageOfOperationsCostsItsSize(t *testing.T) {
	skipRace(t)
	cost := func(pending int) (allocs []float64) {
		c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{MaxQueued: pending}))
		c.Pause()
		for i := range pending {
			enqueue(t, c, i%2) // boxed for a snapshot, a small number costs nothing
		}
		middle := core.OperationID(0)
		for s := range c.Operations(core.OperationQuery{Limit: pending / 2}) {
			middle = s.ID
		}
		for _, q := range []core.OperationQuery{{}, {NewestFirst: true}, {After: middle}, {After: middle, NewestFirst: true}} {
			q.Status, q.Limit = core.StatusPending, 50
			begun := 0
			allocs = append(allocs, testing.AllocsPerRun(20, func() {
				for s := range c.Operations(q) {
					begun++
					_ = s
				}
			}))
			checkEqual(t, "seen", begun, 21*50)
		}
		checkError(t, "Close", c.Close(), nil)
		return allocs
	}
	checkSlice(t, "allocations for 50 of 50,000", cost(50_000), cost(200))
}

// A coordinator shows what its operations raised, as long as they are in its window, even if the sink loses them.
func TestCoordinatorIsSensor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 1})
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
		for s := range c.Sense(signals.Query{Pattern: "say.*"}) {
			checkEqual(t, "Source", s.Source, "orders")
			got = append(got, s.Operation)
		}
		checkSlice(t, "sensed", got, ids)
		checkEqual(t, "monitored", m.Count(), 3)
		c.Evict(ids[1])
		checkEqual(t, "Count after an eviction", c.Count("say.b"), 1)
		checkEqual(t, "monitored after an eviction", m.Count(), 3) // standing
		time.Sleep(time.Minute + 1)
		checkEqual(t, "monitored later", m.Count(), 0)
		for range c.Sense(signals.Query{Operation: ids[1]}) {
			t.Error("an evicted operation was sensed")
		}
	})
}

// Within compares the time of the signal, not the start of its operation.
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
		for s := range c.Sense(signals.Query{Within: time.Minute}) {
			got = append(got, s.Name)
		}
		checkSlice(t, "within a minute", got, []string{"late"})
		g.open()
	})
}

func TestMustPanicsOnError(t *testing.T) {
	checkEqual(t, "Must", core.Must(7, nil), 7)
	wantPanic(t, errOnPurpose.Error(), func() { core.Must(7, errOnPurpose) })
}

// Operations that are pinned stay at their place in the order of the window.
func TestPinsDoNotDisturbTheOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: 3, MaxConcurrency: 1, MaxAge: time.Minute})
		var want []core.OperationID
		for range 3 {
			id := enqueue(t, c, quick)
			c.Pin(id)
			want = append(want, id)
			for range 10 {
				enqueue(t, c, quick)
				synctest.Wait()
			}
		}
		time.Sleep(time.Hour)
		for range 3 {
			want = append(want, enqueue(t, c, quick))
			synctest.Wait()
		}
		checkSlice(t, "window", found(c, core.OperationQuery{}), want)
		closeDown(t, c)
		unpin, ok := c.Pin(want[0])
		unpin() // does nothing
		checkEqual(t, "Pin of one that has left", ok, false)
	})
}
