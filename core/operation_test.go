package core_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// inBody runs a test inside a body, and waits for it.
func inBody(t *testing.T, opts core.Options, test func(ctx context.Context, op *core.Operation, c *core.Coordinator[coretest.Body])) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		c := bodies(t, opts)
		err := c.Do(t.Context(), func(ctx context.Context) error {
			test(ctx, core.OperationFrom(ctx), c)
			return nil
		})
		checkError(t, "Do", err, nil)
		closeDown(t, c)
	})
}

// Code that reports to its operation can be called from anywhere.
func TestOutsideOfAnOperation(t *testing.T) {
	op := core.OperationFrom(context.Background())
	if op != nil {
		t.Fatalf("got operation %v, want nil", op)
	}
	op.Set("x", 1)
	op.SetKey("x")
	op.Hold("x", time.Second)()
	op.WaitsFor("x", time.Time{})()
	if op.Raise("x") || op.RaiseKey("x", "y") || op.Retract("x") || op.RetractMatching("*") != 0 ||
		op.Has("*") || op.Signals() != nil || op.ID() != 0 || op.Parent() != 0 || op.Key() != "" {
		t.Error("a method of a nil operation did something")
	}
	checkEqual(t, "raised by views", [2]bool{op.Because(signals.Signal{Name: "x"}).Raise("y"), op.Scoped("a", "b", "c").Raise("y")}, [2]bool{})
	coretest.Check(t, !signals.NewKind[int]("x").Raise(op, "", 1), "a Kind recorded something on a nil operation")
}

func TestSetAndValue(t *testing.T) {
	type file struct{ path string }
	inBody(t, core.Options{}, func(ctx context.Context, op *core.Operation, c *core.Coordinator[coretest.Body]) {
		op.Set("file", file{"a"})
		op.Set("nothing", nil)
		early, _ := c.Lookup(op.ID())
		op.Set("file", file{"b"})
		late, _ := c.Lookup(op.ID())
		// A snapshot does not change.
		if f, ok := core.Value[file](early, "file"); !ok || f.path != "a" {
			t.Errorf("early snapshot: got %v, %t, want a", f, ok)
		}
		if f, ok := core.Value[file](late, "file"); !ok || f.path != "b" {
			t.Errorf("late snapshot: got %v, %t, want b", f, ok)
		}
		if _, ok := core.Value[string](late, "file"); ok {
			t.Error("a value of another type was found")
		}
		if _, ok := core.Value[file](late, "other"); ok {
			t.Error("a value that was not stored was found")
		}
		if _, ok := late.Values["nothing"]; !ok {
			t.Error("nil was not stored")
		}
		late.Values["file"] = "changed" // the reader's copy
		again, _ := c.Lookup(op.ID())
		if f, _ := core.Value[file](again, "file"); f.path != "b" {
			t.Errorf("got %v after a reader changed its copy, want b", f)
		}
	})
}

func TestOperationRetract(t *testing.T) {
	var taken []string
	opts := core.Options{Sink: signals.NewSink(signals.SinkOptions{}), OnRetract: func(r signals.Retraction) {
		taken = append(taken, fmt.Sprintf("%s by %q", r.Signal.Name, r.Pattern))
	}}
	inBody(t, opts, func(ctx context.Context, op *core.Operation, c *core.Coordinator[coretest.Body]) {
		sink := opts.Sink
		check := func(want ...string) {
			t.Helper()
			var got []string
			for _, s := range op.Signals() {
				got = append(got, s.Name)
			}
			checkSlice(t, "signals of the operation", got, want)
			// The sink shows the same.
			got = nil
			for s := range sink.Sense(signals.Query{Operation: op.ID()}) {
				got = append(got, s.Name)
			}
			checkSlice(t, "signals on the sink", got, want)
			checkEqual(t, "Count", c.Count("*"), len(want))
		}
		sink.Raise("state.on") // not the operation's
		for _, name := range []string{"state.on", "step.1", "state.on", "step.2"} {
			op.Raise(name)
		}
		firstOn := op.Signals()[0].Seq
		checkEqual(t, "Retract", op.Retract("state.on"), true)
		check("state.on", "step.1", "step.2")
		checkEqual(t, "which one is left", op.Signals()[0].Seq, firstOn) // the newest goes
		checkEqual(t, "Retract of a pattern", op.Retract("step.*"), false)
		checkEqual(t, "RetractMatching", op.RetractMatching("step.*, nothing"), 2)
		check("state.on")
		checkEqual(t, "RetractMatching of nothing", op.RetractMatching("step.*"), 0)
		checkEqual(t, "Retract", op.Retract("state.on"), true)
		checkEqual(t, "Retract of nothing", op.Retract("state.on"), false)
		check()
		checkEqual(t, "of the sink", sink.Count("state.on"), 1)
		checkSlice(t, "retractions", taken, []string{
			`state.on by ""`, `step.1 by "step.*, nothing"`, `step.2 by "step.*, nothing"`, `state.on by ""`,
		})
	})
}

func TestOperationHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 2})
		c := bodies(t, core.Options{Sink: sink, MaxConcurrency: 1})
		check := func(what string, want bool) {
			t.Helper()
			checkEqual(t, what+": on the sink", sink.Has("held"), want)
			checkEqual(t, what+": on the coordinator", c.Has("held"), want)
		}
		do := func(body func(op *core.Operation)) {
			t.Helper()
			checkError(t, "Do", c.Do(t.Context(), func(ctx context.Context) error {
				body(core.OperationFrom(ctx))
				return nil
			}), nil)
			synctest.Wait()
		}
		do(func(op *core.Operation) {
			release := op.Hold("held", 0)
			for range 10 {
				sink.Raise("chatter")
			}
			check("held", true)
			checkEqual(t, "Retract", op.Retract("held"), false) // released, not retracted
			release()
			release()
			check("released", false)
		})
		do(func(op *core.Operation) {
			op.Hold("held", time.Second)
			time.Sleep(time.Second - 1)
			check("just before the end of its lease", true)
			time.Sleep(time.Nanosecond)
			check("at the end of its lease", false)
		})
		var late *core.Operation
		var release func()
		do(func(op *core.Operation) {
			late = op
			release = op.Hold("held", 0)
		})
		check("finished", false)
		release()
		late.Hold("held", 0)
		check("held by one that has finished", false)
		if c.Do(t.Context(), func(ctx context.Context) error {
			core.OperationFrom(ctx).Hold("held", 0)
			panic("on purpose")
		}) == nil {
			t.Error("Do of a body that panics: got no error")
		}
		synctest.Wait()
		check("panicked", false)
		closeDown(t, c)
	})
}

// A finished operation in the window can still raise. One that has left the window cannot.
func TestOperationAfterItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink})
		var op *core.Operation
		id := enqueue(t, c, func(ctx context.Context) error {
			op = core.OperationFrom(ctx)
			op.Raise("early")
			return nil
		})
		synctest.Wait()
		// Finished, in the window: others still look at it.
		checkEqual(t, "raised late", [3]bool{op.Raise("late"), sink.Has("late"), c.Has("late")}, [3]bool{true, true, true})
		op.Set("late", 1)
		s, _ := c.Lookup(id)
		checkEqual(t, "len(s.Values), len(s.Signals)", words(len(s.Values), len(s.Signals)), "1 2")
		c.Evict(id)
		checkEqual(t, "raised too late", [3]bool{op.Raise("too late"), sink.Has("*"), c.Has("*")}, [3]bool{})
		op.Set("too late", 1)
		op.SetKey("too late")
		op.Hold("too late", 0)()
		op.WaitsFor("too late", time.Time{})()
		checkEqual(t, "what it still shows", words(op.Retract("early"), op.RetractMatching("*"), op.Has("*"), len(op.Signals())), "false 0 false 0")
		checkEqual(t, "ID", op.ID(), id)
		checkEqual(t, "Key", op.Key(), "")
		for e := range c.Echoes(signals.Query{}) {
			checkEqual(t, "key of the echo", e.Key, "")
		}
	})
}

// An operation shows its newest thousand signals, and so does its echo. The others leave the sink with it too.
func TestSignalsOfOneOperationAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 5000})
		c := bodies(t, core.Options{Sink: sink})
		const n, kept = 2500, 1000
		id := enqueue(t, c, func(ctx context.Context) error {
			for i := range n {
				core.OperationFrom(ctx).Raise(fmt.Sprint("s", i))
			}
			facts := core.OperationFrom(ctx).Signals()
			if len(facts) != kept || facts[kept-1].Name != fmt.Sprint("s", n-1) {
				t.Errorf("got %d signals, the last is %q; want the newest %d", len(facts), facts[len(facts)-1].Name, kept)
			}
			return nil
		})
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		checkEqual(t, "signals dropped", c.Stats().SignalsDropped, n-kept)
		checkEqual(t, "Count", c.Count("*"), kept)
		c.Evict(id)
		checkEqual(t, "on the sink when it has left", sink.Count("*"), 0)
		for e := range c.Echoes(signals.Query{}) {
			checkEqual(t, "signals in the echo", len(e.Signals), kept)
		}
	})
}

// All methods of an operation can be called at the same time.
func TestOperationConcurrentSafe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		id := enqueue(t, c, func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					name := fmt.Sprint("signal.", i%3)
					for range 50 {
						op.Raise(name)
						op.Set(name, i)
						op.SetKey(name)
						op.Hold(name, 0)()
						op.Retract(name)
						op.Has("signal.*")
						ctx.Err()
					}
				})
			}
			all.Wait()
			return nil
		})
		for range 100 {
			c.Lookup(id)
			c.Count("signal.*")
			for range c.Sense(signals.Query{}) {
			}
		}
		checkError(t, "Wait", c.Wait(t.Context(), id), nil)
		checkEqual(t, "left", c.Count("signal.*"), 0)
	})
}

// --- the context of a body

type ctxKey struct{}

func TestContextHasValuesButNotTheEndOfItsEnqueuer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		enqueuer, cancel := context.WithTimeoutCause(context.WithValue(t.Context(), ctxKey{}, "value"), time.Hour, errOnPurpose)
		g := newGate()
		check := func(ctx context.Context) {
			t.Helper()
			checkEqual(t, "Value", ctx.Value(ctxKey{}), "value")
			if _, ok := ctx.Deadline(); ok {
				t.Error("the body has the deadline of its enqueuer")
			}
			checkError(t, "Err", ctx.Err(), nil)
			checkError(t, "Cause", context.Cause(ctx), nil)
		}
		for _, useDone := range []bool{false, true} {
			_, err := c.Enqueue(enqueuer, func(ctx context.Context) error {
				if useDone {
					ctx.Done() // makes the real context
				}
				check(ctx)
				<-g.opened
				check(ctx)
				select {
				case <-ctx.Done():
					t.Error("the body's context ended with the enqueuer's")
				default:
				}
				return nil
			})
			checkError(t, "Enqueue", err, nil)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
	})
}

func TestContextCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		begun := make(chan *core.Operation)
		var causes []error
		id := enqueue(t, c, func(ctx context.Context) error {
			var all sync.WaitGroup
			defer all.Wait()
			// Children of every kind end with it.
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			timed, cancel2 := context.WithTimeout(child, time.Hour)
			defer cancel2()
			after := make(chan struct{})
			context.AfterFunc(ctx, func() { close(after) })
			all.Go(func() { <-timed.Done() })
			all.Go(func() { <-after })
			begun <- core.OperationFrom(timed) // found through children
			<-ctx.Done()
			<-timed.Done()
			causes = []error{ctx.Err(), context.Cause(ctx), context.Cause(child), context.Cause(timed)}
			return ctx.Err()
		})
		checkEqual(t, "OperationFrom a child", (<-begun).ID(), id)
		c.Cancel(id, errOnPurpose)
		synctest.Wait()
		if want := []error{context.Canceled, errOnPurpose, errOnPurpose, errOnPurpose}; !slices.Equal(causes, want) {
			t.Errorf("got Err and causes %v, want %v", causes, want)
		}

		// Before any use of Done, Err costs nothing, and it sees the cancellation.
		checkError(t, "Do of a cancelled item", c.Do(t.Context(), func(ctx context.Context) error {
			checkError(t, "Err", ctx.Err(), nil)
			c.Cancel(core.OperationFrom(ctx).ID(), errOnPurpose)
			checkError(t, "Err after Cancel", ctx.Err(), context.Canceled)
			return context.Cause(ctx)
		}), errOnPurpose)
	})
}

// A context has ended when its body has returned, and so have its children.
func TestContextLeakedPastBody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		for _, useDone := range []bool{false, true} {
			var leaked context.Context
			waiting := make(chan struct{})
			_, err := c.Enqueue(context.WithValue(t.Context(), ctxKey{}, "value"), func(ctx context.Context) error {
				leaked = ctx
				if useDone {
					done := ctx.Done()
					go func() { <-done; close(waiting) }()
				} else {
					checkError(t, "Err of the body", ctx.Err(), nil)
					checkError(t, "Err, again", ctx.Err(), nil)
					close(waiting)
				}
				return nil
			})
			checkError(t, "Enqueue", err, nil)
			checkError(t, "Flush", c.Flush(t.Context()), nil)
			synctest.Wait()
			<-waiting
			<-leaked.Done()
			checkError(t, "Err", leaked.Err(), context.Canceled)
			child, cancel := context.WithCancel(leaked)
			checkError(t, "Err of a child", child.Err(), context.Canceled)
			cancel()
			checkEqual(t, "Value", leaked.Value(ctxKey{}), "value")
			coretest.Check(t, core.OperationFrom(leaked) != nil, "the operation is not found any more")
			// The context no longer belongs to the operation, so nothing deadlocks.
			checkError(t, "Flush with it", c.Flush(leaked), nil)
		}
	})
}

// The longest timeouts end nothing.
func TestLongestTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - time.Hour} {
		bubble(t, func(t *testing.T) {
			c := bodies(t, core.Options{Timeout: timeout})
			time.Sleep(time.Minute)
			checkError(t, "Do", c.Do(t.Context(), func(ctx context.Context) error {
				if at, ok := ctx.Deadline(); ok && at.Before(time.Now()) {
					t.Errorf("the deadline is %v", at)
				}
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(time.Hour):
					return ctx.Err()
				}
			}), nil)
			closeDown(t, c)
		})
	}
}
