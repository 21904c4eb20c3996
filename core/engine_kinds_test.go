package core_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A handler that ends its goroutine, as t.FailNow does, ends a worker. Other workers take over.
func TestHandlerEndsItsGoroutineWhileWorking(t *testing.T) {
	for name, listen := range map[string]func(opts *core.Options, handle func()){
		core.SignalStarted: func(opts *core.Options, handle func()) {
			opts.Sink.Subscribe(core.SignalStarted, func(signals.Signal) { handle() })
		},
		core.SignalStopped: func(opts *core.Options, handle func()) {
			opts.Sink.Subscribe(core.SignalStopped, func(signals.Signal) { handle() })
		},
		"OnSignal":  func(opts *core.Options, handle func()) { opts.OnSignal = func(signals.Signal) { handle() } },
		"OnRetract": func(opts *core.Options, handle func()) { opts.OnRetract = func(signals.Retraction) { handle() } },
		"retraction subscriber": func(opts *core.Options, handle func()) {
			opts.Sink.SubscribeRetracted("*", func(signals.Retraction) { handle() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			everyConstructor(t, func(t *testing.T, kind constructor) {
				var handled atomic.Int64
				opts := core.Options{MaxConcurrency: 2, Sink: signals.NewSink(signals.SinkOptions{}), MaxTracked: -1}
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
					_, err := c.TryEnqueue(context.Background(), func(ctx context.Context) error {
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
				checkError(t, "the books", coretest.CheckBooks(s), nil)
				if s.Succeeded+s.Failed != 10 || finalized.Load() != 10 || handled.Load() == 0 {
					t.Errorf("got %v, %d finalized and %d handled, want all 10 finished and finalized", s, finalized.Load(), handled.Load())
				}
			})
		})
	}
}

// A handler that ends its goroutine keeps a signal neither from the handlers of the sink, nor from sinks to which it is
// forwarded, nor from other operations that are stuck at the same time.
func TestHandlerThatEndsItsGoroutineEndsNoOtherCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		first, next, last := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
		exit := func(signals.Signal) { runtime.Goexit() }
		next.Subscribe("*", exit)
		first.Forward(next, "*")
		next.Forward(last, "*")
		c := bodies(t, core.Options{Sink: first, MaxConcurrency: 2, StuckAfter: time.Minute, OnSignal: exit})
		for range 2 {
			enqueue(t, c, func(ctx context.Context) error {
				var all sync.WaitGroup
				all.Go(func() { core.OperationFrom(ctx).Raise("raised") })
				all.Go(func() { core.OperationFrom(ctx).Hold("held", 0) })
				all.Wait()
				time.Sleep(time.Hour)
				return nil
			})
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for _, name := range []string{"raised", "held", core.SignalStuck} {
			checkEqual(t, name, last.Count(name), 2)
		}
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		synctest.Wait() // Drain waits for the operations; a copy on another sink ends right after its operation
		checkEqual(t, "held after the end", last.Has("held"), false)
	})
}

// A handler that ends its goroutine after the body has returned does not change the status of the operation.
func TestHandlerOfStoppedEndsItsGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		c.Sink().Subscribe(core.SignalStopped, func(signals.Signal) { runtime.Goexit() })
		checkError(t, "success", c.Do(t.Context(), quick), nil)
		checkError(t, "failure", c.Do(t.Context(), func(context.Context) error { return errOnPurpose }), errOnPurpose)
		err := c.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
		if _, ok := errors.AsType[*core.PanicError](err); !ok {
			t.Errorf("got error %v, want a PanicError", err)
		}
	})
}

// A handler that ends its goroutine before the body has begun does not keep the body from running.
func TestHandlerEndsItsGoroutineBeforeTheBody(t *testing.T) {
	everyConstructor(t, func(t *testing.T, kind constructor) {
		sink := signals.NewSink(signals.SinkOptions{})
		var ended []string
		handle := func(s signals.Signal) {
			ended = append(ended, s.Name)
			runtime.Goexit()
		}
		sink.Subscribe(core.SignalForced, handle)
		sink.Subscribe(core.SignalStarted, handle)
		c := kind.make(t, core.Options{MaxConcurrency: 1, MaxTracked: -1, Sink: sink, DeferOn: "wait", MaxDefer: time.Second})
		c.OnFinalized(func(core.Snapshot) { // for the previous operation, when the next has been chosen
			ended = append(ended, "finalized")
			runtime.Goexit()
		})
		sink.Raise("wait")
		ran := 0
		for range 2 {
			_, err := c.TryEnqueue(context.Background(), func(context.Context) error { ran++; return nil })
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

func TestSignalsAreACopy(t *testing.T) {
	inBody(t, core.Options{}, func(ctx context.Context, op *core.Operation, c *core.Coordinator[coretest.Body]) {
		op.Raise("a")
		got := op.Signals()
		op.Raise("b")
		op.Retract("a")
		coretest.Check(t, len(got) == 1 && got[0].Name == "a", "got %v, want what it was", got)
		got = op.Signals()
		got[0].Name = "changed"
		checkEqual(t, "signal", op.Signals()[0].Name, "b")
	})
}

// Operations that are pinned stay at their place in the order of the window.
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
		unpin, ok := c.Pin(want[0])
		unpin() // does nothing
		checkEqual(t, "Pin of one that has left", ok, false)
	})
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
				coretest.Check(t, !twice && id > last[i%2], "got id %d, twice %t, after %d", id, twice, last[i%2])
				last[i%2] = id
			}
		})
	}
	all.Wait()
}
