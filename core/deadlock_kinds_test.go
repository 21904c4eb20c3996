package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// The ways in which a program could come to wait for itself, on every kind of
// coordinator.

// fillUp enqueues until there is no room; the body under test runs meanwhile, so
// what it enqueues itself is pending as well.
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
func callEverything(t testing.TB, c bodyCoordinator, s core.Signal) {
	sink := c.Sink()
	sink.Raise("called")
	sink.Hold("called", "", 0)()
	sink.Retract("called")
	sink.Subscribe("other", func(core.Signal) {})()
	sink.Monitor("called", time.Hour).Stop()
	sink.Resize(500, time.Hour)
	sink.Stats()
	for range sink.Sense(core.Query{Pattern: "called"}) {
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
	for range c.Sense(core.Query{}) {
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
			handle := func(where string, s core.Signal) {
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
			sink := core.NewSink(core.SinkOptions{})
			cancel = sink.Subscribe("go", func(s core.Signal) { handle("subscriber", s) })
			sink.SubscribeRetracted("go", func(r core.Retraction) { handle("retraction subscriber", r.Signal) })
			c = kind.make(t, core.Options{
				MaxConcurrency: 2, Sink: sink, DeferOn: "wait", CancelOn: "stop",
				OnSignal:  func(s core.Signal) { handle("OnSignal", s) },
				OnRetract: func(r core.Retraction) { handle("OnRetract", r.Signal) },
			})
			c.OnFinalized(func(s core.Snapshot) { handle("OnFinalized", core.Signal{Operation: s.ID}) })
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
