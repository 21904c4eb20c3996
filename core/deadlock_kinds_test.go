package core_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
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

// A body that would wait for itself gets an error.
func TestDeadlockWaitFromBodyOfEveryKind(t *testing.T) {
	everyConstructor(t, func(t *testing.T, kind constructor) {
		c := kind.make(t, core.Options{MaxConcurrency: 2})
		checkError(t, "Do", c.Do(t.Context(), func(ctx context.Context) error {
			self := core.OperationFrom(ctx).ID()
			for name, wait := range map[string]coretest.Body{
				"Wait":  func(ctx context.Context) error { return c.Wait(ctx, self) },
				"Flush": c.Flush,
				"Drain": c.Drain,
				"Idle":  c.WaitIdle,
			} {
				checkError(t, name, wait(ctx), core.ErrWouldDeadlock)
				checkError(t, name+" without the context", wait(context.Background()), core.ErrWouldDeadlock)
			}
			checkError(t, "Do without the context", c.Do(context.Background(), quick), core.ErrWouldDeadlock)
			return nil
		}), nil)
		if s := c.Stats(); s.Closed || s.Enqueued != 1 {
			t.Errorf("got %v, want nothing changed", s)
		}
	})
}

// Close in a body cancels all operations, the body's own too, and does not wait.
func TestDeadlockCloseFromBodyOfEveryKind(t *testing.T) {
	everyConstructor(t, func(t *testing.T, kind constructor) {
		c := kind.make(t, core.Options{MaxConcurrency: 2})
		var cause error
		err := c.Do(t.Context(), func(ctx context.Context) error {
			for range 5 {
				_, err := c.TryEnqueue(context.Background(), untilCancelled)
				checkError(t, "TryEnqueue", err, nil)
			}
			synctest.Wait()
			checkError(t, "Close", c.Close(), nil)
			cause = context.Cause(ctx)
			checkError(t, "Close again", c.Close(), nil)
			_, err := c.Enqueue(context.Background(), quick)
			checkError(t, "Enqueue", err, core.ErrClosed)
			return cause
		})
		checkError(t, "Do", err, core.ErrClosed)
		checkError(t, "cause", cause, core.ErrClosed)
		checkError(t, "Close from outside", c.Close(), nil)
		if s := c.Stats(); s.Cancelled != 6 || s.Pending+s.Running+s.Tracked != 0 {
			t.Errorf("got %v, want all cancelled and none left", s)
		}
	})
}

// A body may resize, pause and cancel, others and itself.
func TestDeadlockControlFromBodyOfEveryKind(t *testing.T) {
	everyConstructor(t, func(t *testing.T, kind constructor) {
		c := kind.make(t, core.Options{MaxConcurrency: 1})
		err := c.Do(t.Context(), func(ctx context.Context) error {
			self := core.OperationFrom(ctx).ID()
			pending, err := c.TryEnqueue(context.Background(), func(context.Context) error { t.Error("it ran"); return nil })
			checkError(t, "TryEnqueue", err, nil)
			for _, limit := range []int{8, 1, 4} {
				c.Pause()
				checkError(t, "SetMaxConcurrency", c.SetMaxConcurrency(limit), nil)
			}
			checkEqual(t, "Cancel of a pending one", c.Cancel(pending, nil), true)
			c.Resume()
			unpin, pinned := c.Pin(self)
			checkEqual(t, "Pin", pinned, true)
			unpin()
			checkEqual(t, "Evict of itself", c.Evict(self), false)
			checkEqual(t, "Cancel of itself", c.Cancel(self, errOnPurpose), true)
			if x, ok := c.Explain(self); !ok || len(x.Reasons) != 0 {
				t.Errorf("Explain: got %v, %t, want no reason", x, ok)
			}
			return ctx.Err()
		})
		checkError(t, "Do", err, errOnPurpose)
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkEqual(t, "cancelled", c.Stats().Cancelled, 2)
	})
}

// callEverything calls everything that a handler may call, except Close.
func callEverything(t testing.TB, c bodyCoordinator, s core.Signal) {
	sink := c.Sink()
	sink.Raise("called")
	sink.Hold("called", "", 0)()
	sink.Retract("called")
	sink.Subscribe("other", func(core.Signal) {})()
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

// Resize, cancel, pause, flush, drain and close, from outside and from bodies, while
// producers and bodies are busy.
func TestDeadlockUnderLoadOfEveryKind(t *testing.T) {
	for name, end := range map[string]func(c bodyCoordinator) error{
		"drain": func(c bodyCoordinator) error { return c.Drain(context.Background()) },
		"close": func(c bodyCoordinator) error { return c.Close() },
		"close from a body": func(c bodyCoordinator) error {
			c.Do(context.Background(), func(context.Context) error { return c.Close() })
			return c.Close()
		},
		"drain while closing": func(c bodyCoordinator) error {
			var all sync.WaitGroup
			all.Go(func() { c.Drain(context.Background()) })
			all.Go(func() { c.Close() })
			all.Wait()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			everyConstructor(t, func(t *testing.T, kind constructor) {
				c := kind.make(t, core.Options{MaxConcurrency: 4, MaxQueued: 2, MaxTracked: 5})
				var producers sync.WaitGroup
				for p := range uint64(8) {
					producers.Go(func() {
						random := rand.New(rand.NewPCG(7, p))
						for {
							what := random.IntN(10)
							id, err := c.Enqueue(t.Context(), func(ctx context.Context) error {
								self := core.OperationFrom(ctx).ID()
								switch what {
								case 0:
									c.SetMaxConcurrency(1 + int(self%8))
								case 1:
									c.Cancel(self, nil)
								case 2:
									c.TryEnqueue(context.Background(), quick)
								case 3:
									core.OperationFrom(ctx).Raise("progress")
								case 4:
									checkError(t, "Flush", c.Flush(ctx), core.ErrWouldDeadlock)
								case 5:
									c.Cancel(self+1, nil)
								}
								select {
								case <-time.After(time.Millisecond):
								case <-ctx.Done():
								}
								return ctx.Err()
							})
							if err != nil {
								checkError(t, "Enqueue", err, core.ErrClosed)
								return
							}
							switch random.IntN(20) {
							case 0:
								c.SetMaxConcurrency(1 + random.IntN(8))
							case 1:
								c.Cancel(id, nil)
							case 2:
								c.Explain(id)
							}
						}
					})
				}
				time.Sleep(50 * time.Millisecond)
				checkError(t, "Flush", c.Flush(t.Context()), nil)
				checkError(t, "end", end(c), nil)
				producers.Wait()
				checkError(t, "the books", coretest.CheckBooks(c.Stats()), nil)
			})
		})
	}
}
