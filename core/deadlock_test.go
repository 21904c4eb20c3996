package core_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
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
