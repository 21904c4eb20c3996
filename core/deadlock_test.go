package core_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// One test for each way in which a program could come to wait for itself. A bubble
// reports what hangs.

// A body, or an item of a ForEach or a Map, that closes another coordinator waits for its bodies.
func TestCloseFromAnItem(t *testing.T) {
	loops := map[string]func(ctx context.Context, item func() error) error{
		"Do": func(ctx context.Context, item func() error) error {
			b := bodies(t, core.Options{MaxConcurrency: 2})
			first := enqueue(t, b, func(context.Context) error { return item() })
			return errors.Join(b.Do(ctx, func(context.Context) error { return item() }), b.Wait(ctx, first))
		},
		"ForEach": func(ctx context.Context, item func() error) error {
			return core.ForEach(ctx, upTo(3), func(context.Context, int) error { return item() }, core.Options{})
		},
		"Map": func(ctx context.Context, item func() error) (err error) {
			for _, err = range core.Map(ctx, upTo(3), func(context.Context, int) (int, error) { return 0, item() }, core.Options{}) {
			}
			return err
		},
	}
	for name, loop := range loops {
		bubble(t, func(t *testing.T) {
			a, g := bodies(t, core.Options{}), newGate()
			enqueue(t, a, g.body)
			outside := call(t, func(ctx context.Context) error {
				return loop(ctx, func() error {
					err := a.Close()
					checkEqual(t, "running", a.Stats().Running, 0)
					return err
				})
			})
			g.open()
			checkError(t, name, outside(), nil)
		})
	}
}

// A handler that blocks holds up the worker that called it, and no other.
func TestBlockedHandlerHoldsUpItsWorkerOnly(t *testing.T) {
	listen := map[string]func(c bodyCoordinator, handle func()){
		"OnFinalized": func(c bodyCoordinator, handle func()) {
			c.OnFinalized(func(core.Snapshot) { handle() })
		},
		"retraction": func(c bodyCoordinator, handle func()) {
			c.Sink().SubscribeRetracted("held", func(signals.Retraction) { handle() })
		},
		"retraction on another sink": func(c bodyCoordinator, handle func()) {
			other := signals.NewSink(signals.SinkOptions{})
			other.SubscribeRetracted("held", func(signals.Retraction) { handle() })
			c.Sink().Forward(other, "held")
		},
	}
	for name, listen := range listen {
		t.Run(name, func(t *testing.T) {
			everyConstructor(t, func(t *testing.T, kind constructor) {
				c := kind.make(t, core.Options{MaxConcurrency: 2, MaxTracked: -1})
				blocked, once := newGate(), false
				listen(c, func() {
					if !once {
						once = true
						blocked.body(t.Context())
					}
				})
				holds := func(ctx context.Context) error {
					core.OperationFrom(ctx).Hold("held", 0)
					return nil
				}
				_, err := c.TryEnqueue(context.Background(), holds)
				checkError(t, "TryEnqueue", err, nil)
				synctest.Wait()
				checkEqual(t, "called", once, true)

				// The slot is free.
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				checkError(t, "Do while it blocks", c.Do(ctx, quick), nil)
				blocked.open()
				checkError(t, "Drain", c.Drain(t.Context()), nil)
			})
		})
	}
}

// A handler that blocks does not hold up a caller that waits for room.
func TestBlockedHandlerLeavesRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 2, MaxQueued: 1, MaxTracked: -1})
		blocked, first, second := newGate(), newGate(), newGate()
		once := false
		c.OnFinalized(func(core.Snapshot) {
			if !once {
				once = true
				blocked.body(t.Context())
			}
		})
		for _, g := range []*gate{first, second} {
			enqueue(t, c, g.body)
			synctest.Wait()
		}
		enqueue(t, c, quick) // the queue is full
		waits := call(t, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := c.Enqueue(ctx, quick)
			return err
		})
		first.open()
		synctest.Wait()
		checkEqual(t, "called", once, true)
		checkError(t, "Enqueue", waits(), nil)
		blocked.open()
		second.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
	})
}

// Flush may return while OnFinalized is still running for an operation that has left. Other workers call it for
// the next operations meanwhile. Close waits for all these calls.
func TestCloseWaitsForOnFinalized(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1, MaxTracked: -1})
		var begun, told atomic.Int64
		c.OnFinalized(func(core.Snapshot) {
			begun.Add(1)
			time.Sleep(time.Minute)
			told.Add(1)
		})
		for range 2 {
			checkError(t, "Do", c.Do(t.Context(), quick), nil)
		}
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		synctest.Wait()
		checkEqual(t, "begun at once", begun.Load(), 2)
		checkEqual(t, "told when Flush returns", told.Load(), 0)
		checkError(t, "Close", c.Close(), nil)
		checkEqual(t, "told when Close returns", told.Load(), 2)
	})
}

// The ways in which a program could come to wait for itself, on every kind of
// coordinator.

// fillUp enqueues until there is no room. The body under test runs meanwhile, so the items
// that it enqueues are pending, too.
func fillUp(t testing.TB, c bodyCoordinator) {
	t.Helper()
	for range 100 {
		if _, err := c.TryEnqueue(context.Background(), quick); err != nil {
			checkError(t, "TryEnqueue", err, core.ErrFull)
			return
		}
	}
	t.Error("the queue is never full")
}

// A body can always enqueue, with room and without, with its context and without, on its goroutine and on another.
func TestEnqueueFromBodyOfEveryKind(t *testing.T) {
	everyConstructor(t, func(t *testing.T, kind constructor) {
		c := kind.make(t, core.Options{MaxConcurrency: 1, MaxQueued: 3})
		checkError(t, "Do", c.Do(t.Context(), func(ctx context.Context) error {
			_, err := c.Enqueue(ctx, quick)
			checkError(t, "Enqueue with room", err, nil)
			fillUp(t, c)
			_, err = c.Enqueue(ctx, quick)
			checkError(t, "Enqueue without room", err, nil)
			_, err = c.Enqueue(context.Background(), quick)
			checkError(t, "Enqueue without room and without the context", err, nil)
			var aside sync.WaitGroup
			aside.Go(func() {
				_, err := c.Enqueue(ctx, quick)
				checkError(t, "Enqueue on a goroutine of the body", err, nil)
			})
			aside.Wait()
			return nil
		}), nil)
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkEqual(t, "succeeded", c.Stats().Succeeded, 7)
		checkEqual(t, "beyond the queue", c.Stats().Overflow, 3)
	})
}

// callEverything calls everything that a handler may call, except Close.
func callEverything(t testing.TB, c bodyCoordinator, s signals.Signal) {
	sink := c.Sink()
	sink.Raise("called")
	sink.Hold("called", "", 0)()
	sink.Retract("called")
	sink.Subscribe("other", func(signals.Signal) {})()
	sink.Monitor("called", time.Hour).Stop()
	sink.Resize(500, time.Hour)
	sink.Stats()
	for range sink.Sense(signals.Query{Pattern: "called"}) {
		break
	}
	if _, err := c.TryEnqueue(context.Background(), quick); err != nil {
		checkError(t, "TryEnqueue", err, core.ErrClosed)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := c.Enqueue(ctx, quick); err != nil {
		checkError(t, "Enqueue", err, core.ErrClosed)
	}
	c.Pause()
	c.SetMaxConcurrency(3)
	c.Resume()
	c.Stats()
	c.Lookup(s.Operation)
	c.Explain(s.Operation)
	c.Has("*")
	c.Monitor("*", time.Second).Stop()
	for range c.Operations(core.OperationQuery{}) {
		break
	}
	for range c.Sense(signals.Query{}) {
		break
	}
	c.OnFinalized(func(core.Snapshot) {})()
	if unpin, ok := c.Pin(s.Operation); ok {
		unpin()
	}
	c.Evict(s.Operation)
	c.Cancel(s.Operation, nil)
}

// Handlers, of signals and of retractions, of the sink and of the coordinator, raise,
// subscribe, enqueue, cancel themselves, and close.
func TestDeadlockHandlersOfEveryKind(t *testing.T) {
	for _, closes := range []bool{false, true} {
		everyConstructor(t, func(t *testing.T, kind constructor) {
			var (
				c      bodyCoordinator
				j      journal
				cancel func()
			)
			once := make(map[string]bool) // handlers here run on one goroutine after the other
			var mu sync.Mutex
			handle := func(where string, s signals.Signal) {
				mu.Lock()
				again := once[where]
				once[where] = true
				mu.Unlock()
				if again || s.Name == "called" {
					return
				}
				callEverything(t, c, s)
				if where == "subscriber" {
					cancel() // itself
				}
				if closes {
					checkError(t, "Close", c.Close(), nil)
				}
				j.note(where)
			}
			sink := signals.NewSink(signals.SinkOptions{})
			cancel = sink.Subscribe("go", func(s signals.Signal) { handle("subscriber", s) })
			sink.SubscribeRetracted("go", func(r signals.Retraction) { handle("retraction subscriber", r.Signal) })
			c = kind.make(t, core.Options{
				MaxConcurrency: 2, Sink: sink, DeferOn: "wait", CancelOn: "stop",
				OnSignal:  func(s signals.Signal) { handle("OnSignal", s) },
				OnRetract: func(r signals.Retraction) { handle("OnRetract", r.Signal) },
			})
			c.OnFinalized(func(s core.Snapshot) { handle("OnFinalized", signals.Signal{Operation: s.ID}) })
			err := c.Do(t.Context(), func(ctx context.Context) error {
				op := core.OperationFrom(ctx)
				op.Raise("go")
				op.Raise("go") // unsubscribed
				op.Retract("go")
				return context.Cause(ctx)
			})
			if want := core.ErrCancelled; err != want {
				t.Errorf("Do: got error %v, want %v", err, want)
			}
			checkError(t, "Close", c.Close(), nil)
			checkError(t, "the books", coretest.CheckBooks(c.Stats()), nil)
			j.check(t, "OnSignal", "subscriber", "OnRetract", "retraction subscriber", "OnFinalized")
		})
	}
}
