package core_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// One test for each way in which a program could come to wait for itself. A bubble
// reports what hangs.

// A body that enqueues on its own full coordinator would wait for itself.
func TestDeadlockEnqueueFromBody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: 1})
		checkError(t, "Do", c.Do(t.Context(), func(ctx context.Context) error {
			if _, err := c.Enqueue(ctx, quick); err != nil {
				t.Errorf("Enqueue with room: %v", err)
			}
			_, err := c.Enqueue(ctx, quick)
			checkError(t, "Enqueue without room", err, core.ErrWouldDeadlock)
			_, err = c.Enqueue(context.Background(), quick)
			checkError(t, "Enqueue without room and without the context", err, core.ErrWouldDeadlock)
			_, err = c.TryEnqueue(quick)
			checkError(t, "TryEnqueue", err, core.ErrFull)
			// A goroutine of the body is known by the context.
			done := make(chan error)
			go func() {
				_, err := c.Enqueue(ctx, quick)
				done <- err
			}()
			checkError(t, "Enqueue on a goroutine of the body", <-done, core.ErrWouldDeadlock)
			return nil
		}), nil)
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkEqual(t, "succeeded", c.Stats().Succeeded, 2)
	})
}

func TestDeadlockWaitingFromBody(t *testing.T) {
	calls := map[string]func(ctx context.Context, c *core.Coordinator[coretest.Body], pending core.OperationID) error{
		"Do": func(ctx context.Context, c *core.Coordinator[coretest.Body], _ core.OperationID) error {
			return c.Do(ctx, quick)
		},
		"Wait for itself": func(ctx context.Context, c *core.Coordinator[coretest.Body], _ core.OperationID) error {
			for s := range c.Operations(core.OperationQuery{Status: core.StatusRunning}) {
				return c.Wait(ctx, s.ID)
			}
			return nil
		},
		"Wait for another": func(ctx context.Context, c *core.Coordinator[coretest.Body], pending core.OperationID) error {
			return c.Wait(ctx, pending)
		},
		"Flush": func(ctx context.Context, c *core.Coordinator[coretest.Body], _ core.OperationID) error {
			return c.Flush(ctx)
		},
		"Drain": func(ctx context.Context, c *core.Coordinator[coretest.Body], _ core.OperationID) error {
			return c.Drain(ctx)
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := bodies(t, core.Options{MaxConcurrency: 1})
				g := newGate()
				enqueue(t, c, func(ctx context.Context) error {
					<-g.opened
					pending := core.OperationID(0)
					for s := range c.Operations(core.OperationQuery{Status: core.StatusPending}) {
						pending = s.ID
					}
					checkError(t, "with the body's context", call(ctx, c, pending), core.ErrWouldDeadlock)
					checkError(t, "without", call(context.Background(), c, pending), core.ErrWouldDeadlock)
					derived, cancel := context.WithCancel(ctx)
					defer cancel()
					done := make(chan error)
					go func() { done <- call(derived, c, pending) }()
					checkError(t, "on a goroutine of the body", <-done, core.ErrWouldDeadlock)
					return nil
				})
				enqueue(t, c, quick)
				synctest.Wait()
				g.open()
				checkError(t, "Drain", c.Drain(t.Context()), nil)
				if s := c.Stats(); s.Rejected > 3 || s.Succeeded != 2 {
					t.Errorf("got %v, want both succeeded", s)
				}
			})
		})
	}
}

// Waiting for what is finished is no wait.
func TestWaitFromBodyForFinished(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		id := enqueue(t, c, func(context.Context) error { return errOnPurpose })
		synctest.Wait()
		checkError(t, "Do", c.Do(t.Context(), func(ctx context.Context) error { return c.Wait(ctx, id) }), errOnPurpose)
	})
}

// A body may wait for another coordinator: it is not what that one waits for.
func TestBodyWaitsForAnotherCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		inner, outer := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: 1}), bodies(t, core.Options{})
		checkError(t, "Do", outer.Do(t.Context(), func(ctx context.Context) error {
			for range 5 {
				if _, err := inner.Enqueue(ctx, quick); err != nil {
					return err
				}
			}
			return errors.Join(inner.Do(ctx, quick), inner.Flush(ctx), inner.Drain(ctx), inner.Close())
		}), nil)
	})
}

func TestCloseFromBodyDoesNotWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 2})
		other := enqueue(t, c, untilCancelled)
		waited := make(chan error, 1)
		go func() { waited <- c.Wait(t.Context(), other) }()
		synctest.Wait()
		var cause error
		self := enqueue(t, c, func(ctx context.Context) error {
			checkError(t, "Close", c.Close(), nil)
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		checkError(t, "Wait", <-waited, core.ErrClosed)
		checkError(t, "Close", c.Close(), nil)
		checkError(t, "the cause that the body saw", cause, core.ErrClosed)
		checkEqual(t, "cancelled", c.Stats().Cancelled, 2)
		checkGone(t, c, self)
	})
}

// A handler runs on the raiser's goroutine with no lock held, so it may do
// anything: raise, subscribe, enqueue, cancel itself, close.
func TestHandlerMayDoAnything(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, MaxConcurrency: 2})
		var j journal
		var cancel func()
		cancel = sink.Subscribe("go", func(s core.Signal) {
			j.note("handler")
			sink.Raise("raised")
			stop := sink.Subscribe("other", func(core.Signal) {})
			stop()
			if _, err := c.TryEnqueue(quick); err != nil {
				t.Errorf("TryEnqueue: %v", err)
			}
			c.Stats()
			c.Lookup(s.Operation)
			c.SetMaxConcurrency(3)
			c.Pause()
			c.Resume()
			if unpin, ok := c.Pin(s.Operation); ok {
				unpin()
			}
			c.Cancel(s.Operation, errOnPurpose)
			checkError(t, "Drain", c.Drain(context.Background()), core.ErrWouldDeadlock)
			cancel() // itself
			checkError(t, "Close", c.Close(), nil)
		})
		sink.Subscribe("raised", func(core.Signal) { j.note("nested") })
		err := c.Do(t.Context(), func(ctx context.Context) error {
			core.OperationFrom(ctx).Raise("go")
			core.OperationFrom(ctx).Raise("go") // unsubscribed
			return context.Cause(ctx)
		})
		checkError(t, "Do", err, errOnPurpose)
		j.check(t, "handler", "nested")
		checkError(t, "Close", c.Close(), nil)
	})
}

// A handler on OnSignal, OnRetract and OnFinalized, too.
func TestCallbacksMayClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var c *core.Coordinator[coretest.Body]
		c = bodies(t, core.Options{
			OnSignal:  func(core.Signal) { c.Close() },
			OnRetract: func(core.Retraction) { c.Close() },
		})
		c.OnFinalized(func(core.Snapshot) { c.Close() })
		checkError(t, "Do", c.Do(t.Context(), func(ctx context.Context) error {
			core.OperationFrom(ctx).Raise("x")
			core.OperationFrom(ctx).Retract("x")
			return nil
		}), nil)
		checkError(t, "Close", c.Close(), nil)
	})
}

// A body that waits for a lock that a handler of its signal needs, and the like,
// are the program's own; but a handler that enqueues on a full coordinator that
// waits for this very raiser must not hang.
func TestHandlerEnqueuesOnFullCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, MaxConcurrency: 1, MaxQueued: 1})
		defer sink.Subscribe("again", func(core.Signal) {
			_, err := c.Enqueue(context.Background(), quick)
			checkError(t, "Enqueue", err, core.ErrWouldDeadlock)
		})()
		g := newGate()
		enqueue(t, c, func(ctx context.Context) error {
			<-g.opened
			core.OperationFrom(ctx).Raise("again")
			return nil
		})
		synctest.Wait()
		enqueue(t, c, quick)
		g.open()
		checkError(t, "Flush", c.Flush(t.Context()), nil)
	})
}

// Resize, cancel, flush, drain and close while producers and bodies are busy.
func TestLifecycleUnderLoad(t *testing.T) {
	for name, end := range map[string]func(c *core.Coordinator[coretest.Body]) error{
		"drain": func(c *core.Coordinator[coretest.Body]) error { return c.Drain(context.Background()) },
		"close": func(c *core.Coordinator[coretest.Body]) error { return c.Close() },
		"both": func(c *core.Coordinator[coretest.Body]) error {
			var all sync.WaitGroup
			all.Go(func() { c.Drain(context.Background()) })
			all.Go(func() { c.Close() })
			all.Go(func() { c.Close() })
			all.Wait()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := bodies(t, core.Options{MaxConcurrency: 4, MaxQueued: 2})
				var producers sync.WaitGroup
				for p := range 8 {
					producers.Go(func() {
						for {
							id, err := c.Enqueue(t.Context(), func(ctx context.Context) error {
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
							if p == 0 {
								c.SetMaxConcurrency(1 + int(id%8))
								c.Cancel(id, nil)
							}
						}
					})
				}
				time.Sleep(50 * time.Millisecond)
				checkError(t, "Flush", c.Flush(t.Context()), nil)
				checkError(t, "end", end(c), nil)
				producers.Wait()
				if err := coretest.CheckBooks(c.Stats()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Bodies that close each other's coordinator.
func TestCloseOfEachOther(t *testing.T) {
	for n := 2; n <= 4; n++ {
		bubble(t, func(t *testing.T) {
			var all []*core.Coordinator[coretest.Body]
			for range n {
				all = append(all, bodies(t, core.Options{MaxConcurrency: 2}))
			}
			begin := newGate()
			var closed []func() error
			for i, c := range all {
				next := all[(i+1)%n]
				closed = append(closed, call(t, do(c, begin.before(func(context.Context) error { return next.Close() }))))
			}
			outside := call(t, func(context.Context) error { return all[0].Close() })
			begin.open()
			for _, err := range closed {
				checkError(t, "what closes", err(), nil)
			}
			checkError(t, "Close from outside", outside(), nil)
			for _, c := range all {
				checkEqual(t, "running", c.Stats().Running, 0)
			}
		})
	}
}

// A Close that can wait does, also inside a body.
func TestCloseOfAnotherWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{}), bodies(t, core.Options{})
		g := newGate()
		enqueue(t, b, g.body)
		for range 2 {
			closed := call(t, do(a, func(context.Context) error {
				checkError(t, "Close", b.Close(), nil)
				checkEqual(t, "running", b.Stats().Running, 0)
				return nil
			}))
			time.Sleep(time.Second)
			g.open()
			checkError(t, "what closes", closed(), nil)
		}
	})
}

// A ForEach or Map waits for its items, whatever they wait for.
func TestCloseFromAnItem(t *testing.T) {
	loops := map[string]func(ctx context.Context, item func(context.Context) error) error{
		"ForEach": func(ctx context.Context, item func(context.Context) error) error {
			return core.ForEach(ctx, upTo(3), func(ctx context.Context, _ int) error { return item(ctx) }, core.Options{})
		},
		"Map": func(ctx context.Context, item func(context.Context) error) (err error) {
			for _, err = range core.Map(ctx, upTo(3), func(ctx context.Context, _ int) (int, error) { return 0, item(ctx) }, core.Options{}) {
			}
			return err
		},
	}
	for name, loop := range loops {
		bubble(t, func(t *testing.T) {
			a := bodies(t, core.Options{})
			err := a.Do(t.Context(), func(ctx context.Context) error {
				return loop(ctx, func(context.Context) error { return a.Close() })
			})
			if err != nil { // it may have had nothing left to do
				checkError(t, name, err, core.ErrClosed)
			}
			checkError(t, "Close", a.Close(), nil)

			a = bodies(t, core.Options{})
			err = a.Do(t.Context(), func(ctx context.Context) error {
				return loop(ctx, func(ctx context.Context) error {
					return loop(ctx, func(context.Context) error { return a.Close() })
				})
			})
			if err != nil {
				checkError(t, name+" in it", err, core.ErrClosed)
			}
			checkError(t, "Close", a.Close(), nil)

			// One that is not inside of a body of it can wait.
			a = bodies(t, core.Options{})
			g := newGate()
			enqueue(t, a, g.body)
			outside := call(t, func(ctx context.Context) error {
				return loop(ctx, func(context.Context) error {
					err := a.Close()
					checkEqual(t, "running", a.Stats().Running, 0)
					return err
				})
			})
			g.open()
			checkError(t, name+" outside", outside(), nil)
		})
	}
}

// A handler that blocks holds up the worker that called it, and nobody else.
func TestBlockedHandlerHoldsUpItsWorkerOnly(t *testing.T) {
	listen := map[string]func(c bodyCoordinator, handle func()){
		"OnFinalized": func(c bodyCoordinator, handle func()) {
			c.OnFinalized(func(core.Snapshot) { handle() })
		},
		"retraction": func(c bodyCoordinator, handle func()) {
			c.Sink().SubscribeRetracted("held", func(core.Retraction) { handle() })
		},
		"retraction on another sink": func(c bodyCoordinator, handle func()) {
			other := core.NewSink(core.SinkOptions{})
			other.SubscribeRetracted("held", func(core.Retraction) { handle() })
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
				_, err := c.TryEnqueue(holds)
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

// Nor those who wait for room that there is.
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

// Of an operation that has left, OnFinalized may still be telling when Flush returns;
// meanwhile another worker tells of the next, however few may run. Close waits.
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

// Goexit in a body, as t.FailNow does, ends a worker but not the coordinator.
func TestGoexitKeepsWorkersComing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 2})
		for range 20 {
			enqueue(t, c, func(ctx context.Context) error { runtime.Goexit(); return nil })
		}
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkEqual(t, "failed", c.Stats().Failed, 20)
		checkError(t, "Close", c.Close(), nil)
	})
}

// nosy is a context of somebody else's making, which looks at the coordinator
// whenever it is asked for a value, as context.Cause does.
type nosy struct {
	context.Context
	look func()
}

func (n nosy) Value(key any) any {
	n.look()
	return n.Context.Value(key)
}

// No lock is held while a caller's context is asked why it ended.
func TestContextIsNotAskedUnderALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		c := core.Must(core.NewCoordinator(func(context.Context, int) error {
			<-finish
			return nil
		}, core.Options{MaxConcurrency: 1, MaxQueued: 1}))
		defer c.Close()
		defer close(finish)
		for range 2 {
			c.Enqueue(t.Context(), 0)
			synctest.Wait()
		}
		timeout, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ctx := nosy{timeout, func() { c.Stats() }}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Enqueue(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Enqueue: got %v, want the end of the context", err)
			}
		})
		wg.Go(func() {
			if err := c.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Flush: got %v, want the end of the context", err)
			}
		})
		wg.Wait()
	})
}
