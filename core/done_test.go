package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// OnDone gets the item. A panic in it is counted and hinders nothing. TestEngineModel checks that it is called once for
// each end of whatever kind.
func TestOnDone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []any
		c := coordinator(t, func(context.Context, string) error { return nil }, core.Options{OnDone: func(s core.Snapshot) {
			told = append(told, s.Item)
			panic("on purpose")
		}})
		for _, item := range []string{"a", "b"} {
			checkError(t, "Do", c.Do(t.Context(), item), nil)
		}
		checkSlice(t, "told", told, []any{"a", "b"})
		checkEqual(t, "panics", c.Stats().Panics, 2)
	})
}

// Callers that wait for an operation get their answer after OnDone.
func TestOnDoneGoesBeforeAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type coordinator = *core.Coordinator[coretest.Body]
		ofAll := func(wait func(coordinator, context.Context) error) func(context.Context, coordinator, core.OperationID) error {
			return func(ctx context.Context, c coordinator, _ core.OperationID) error { return wait(c, ctx) }
		}
		for name, wait := range map[string]func(ctx context.Context, c coordinator, id core.OperationID) error{
			"Wait":     func(ctx context.Context, c coordinator, id core.OperationID) error { return c.Wait(ctx, id) },
			"Flush":    ofAll(coordinator.Flush),
			"WaitIdle": ofAll(coordinator.WaitIdle),
			"Drain":    ofAll(coordinator.Drain),
			"Stop":     ofAll(coordinator.Stop),
			"Close":    ofAll(func(c coordinator, _ context.Context) error { return c.Close() }),
			"own": func(ctx context.Context, c coordinator, id core.OperationID) error {
				return c.Do(ctx, func(ctx context.Context) error { return c.Wait(ctx, id) })
			},
		} {
			for _, late := range []bool{false, true} { // late: the call comes while OnDone runs
				if late && name == "own" {
					continue // the slot is taken
				}
				g, telling := newGate(), newGate()
				c := bodies(t, core.Options{MaxConcurrency: 2, OnDone: func(s core.Snapshot) {
					if s.Parent == 0 && s.Key == "" && !telling.isOpen() {
						<-telling.opened
					}
				}})
				id := enqueue(t, c, func(ctx context.Context) error { <-g.opened; return nil })
				synctest.Wait()
				if late {
					g.open()
					synctest.Wait()
				}
				done := make(chan error, 1)
				go func() { done <- wait(t.Context(), c, id) }()
				synctest.Wait()
				g.open()
				synctest.Wait()
				select {
				case err := <-done:
					t.Errorf("%s, late %t: returned %v while OnDone was told", name, late, err)
				default:
				}
				telling.open()
				checkError(t, name, <-done, nil)
				c.Close()
			}
		}
	})
}

// In OnDone, a call that would wait for the coordinator gets an error, on whatever goroutine it is made. Close
// does not wait.
func TestOnDoneMayNotWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var c, other *core.Coordinator[coretest.Body]
		calls := 0
		other = bodies(t, core.Options{MaxConcurrency: 1})
		c = bodies(t, core.Options{MaxConcurrency: 1, OnDone: func(s core.Snapshot) {
			calls++
			ctx := context.Background()
			checkError(t, "Wait", c.Wait(ctx, s.ID), core.ErrWouldDeadlock)
			checkError(t, "Flush", c.Flush(ctx), core.ErrWouldDeadlock)
			checkError(t, "WaitIdle", c.WaitIdle(ctx), core.ErrWouldDeadlock)
			checkError(t, "Drain", c.Drain(ctx), core.ErrWouldDeadlock)
			checkError(t, "Stop", c.Stop(ctx), core.ErrWouldDeadlock)
			checkError(t, "Do", c.Do(ctx, quick), core.ErrWouldDeadlock)
			if calls == 4 {
				c.Close()
				return
			}
			checkError(t, "Do of another", other.Do(ctx, quick), nil)
		}})
		checkError(t, "on a worker", c.Do(t.Context(), quick), nil)
		for range 2 {
			c.Pause()
			id := enqueue(t, c, quick)
			synctest.Wait()
			checkEqual(t, "on a goroutine of the caller", c.Cancel(id, nil), true)
		}
		id := enqueue(t, c, quick)
		checkError(t, "on a worker of another", other.Do(t.Context(), func(context.Context) error { c.Cancel(id, nil); return nil }), nil)
		checkEqual(t, "calls", calls, 4)
		checkEqual(t, "closed", c.Stats().Closed, true)
	})
}

// A thousand successes do not push a failure out of the window. Its item can be read, but is not in JSON.
func TestFailuresAreKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := coordinator(t, func(_ context.Context, item string) error {
			if item == "secret" {
				return errOnPurpose
			}
			return nil
		}, core.Options{})
		c.Do(t.Context(), "secret")
		for range 1500 {
			c.Do(t.Context(), "quick")
		}
		checkEqual(t, "tracked", c.Stats().Tracked, 201)
		checkEqual(t, "item of a success", lookup(t, c, found(c, core.OperationQuery{Status: core.StatusSucceeded})[0]).Item, nil)
		for s := range c.Operations(core.OperationQuery{Limit: 1}) {
			text, err := json.Marshal(s)
			checkError(t, "MarshalJSON", err, nil)
			checkEqual(t, "item of a failure", s.Item, any("secret"))
			checkEqual(t, "in JSON and logs", strings.Contains(string(text)+logged(s), "secret"), false)
		}
	})
}

// The body sees the deadline of a context whose end cancels the operation.
func TestDeadlinesPassThrough(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		want, _ := ctx.Deadline()
		check := func(what string) coretest.Body {
			return func(ctx context.Context) error {
				if got, ok := ctx.Deadline(); !ok || !got.Equal(want) {
					t.Errorf("%s: got deadline %v, %t, want %v", what, got, ok, want)
				}
				return nil
			}
		}
		c := bodies(t, core.Options{MaxConcurrency: 2})
		checkError(t, "Do", c.Do(ctx, check("Do")), nil)
		checkError(t, "Do in a body", c.Do(ctx, func(ctx context.Context) error { return c.Do(ctx, check("Do in a body")) }), nil)
		one := func(yield func(int) bool) { yield(1) }
		checkError(t, "ForEach", core.ForEach(ctx, one, func(ctx context.Context, _ int) error { return check("ForEach")(ctx) }, core.Options{}), nil)
		g := c.Group(ctx, core.GroupOptions{})
		g.Enqueue(ctx, check("Group"))
		checkError(t, "Group", g.Wait(), nil)
		enqueue(t, c, func(ctx context.Context) error {
			if at, ok := ctx.Deadline(); ok {
				t.Errorf("Enqueue: got deadline %v, want none", at)
			}
			return nil
		})
		checkError(t, "Flush", c.Flush(t.Context()), nil)
	})
}

// Timeout counts from the start and includes suspended time. The operation has failed then.
func TestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1, Timeout: time.Second})
		begun := time.Now()
		var cause error
		id := enqueue(t, c, func(ctx context.Context) error {
			if at, ok := ctx.Deadline(); !ok || !at.Equal(begun.Add(time.Second)) {
				t.Errorf("got deadline %v, %t, want one in a second", at, ok)
			}
			time.Sleep(500 * time.Millisecond)
			err := core.OperationFrom(ctx).Suspend(ctx, "an answer", func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			cause = context.Cause(ctx)
			return fmt.Errorf("no answer: %w", err)
		})
		err := c.Wait(t.Context(), id)
		checkError(t, "Wait", err, core.ErrTimeout)
		checkError(t, "Wait", err, context.DeadlineExceeded)
		checkSays(t, "Wait", err, "no answer")
		checkEqual(t, "took", time.Since(begun), time.Second)
		checkError(t, "cause", cause, core.ErrTimeout)
		checkStatus(t, c, id, core.StatusFailed)
		checkError(t, "returned in time", c.Do(t.Context(), quick), nil)
		checkError(t, "ignored", c.Do(t.Context(), func(context.Context) error { time.Sleep(time.Hour); return nil }), nil)
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		checkError(t, "the earlier deadline", c.Do(soon, func(ctx context.Context) error {
			if at, _ := ctx.Deadline(); time.Until(at) > time.Millisecond {
				t.Errorf("got a deadline in %v", time.Until(at))
			}
			return nil
		}), nil)
		_, err = core.NewCoordinator(coretest.Run, core.Options{Timeout: -1})
		checkError(t, "negative", err, nil) // none
	})
}

// The items of these tests: the body of waiter waits for target, whose OnDone blocks; others only end.
const (
	waiter = iota
	target
	others
)

// A wait for an operation that leaves the window before its OnDone has returned ends with the result, once OnDone has
// returned. A body that waits like this has given up its slot meanwhile.
func TestOperationLeavesTheWindowBeforeOnDoneReturns(t *testing.T) {
	type coordinator = *core.ResultCoordinator[int, int]
	for name, out := range map[string]struct {
		tracked int
		leave   func(t *testing.T, c coordinator)
		inside  func(c coordinator, id core.OperationID)
		err     error // of a body that waits
	}{
		"no window": {tracked: -1},
		"pushed out": {tracked: 1, leave: func(t *testing.T, c coordinator) {
			for range 2 {
				accepted(t)(c.TryEnqueue(t.Context(), others))
			}
		}},
		"evicted": {inside: func(c coordinator, id core.OperationID) { c.Evict(id) }},
		"closed":  {leave: func(t *testing.T, c coordinator) { go c.Close() }, err: core.ErrClosed},
	} {
		for how, wait := range map[string]func(ctx context.Context, c coordinator) (int, error){
			"Do": func(ctx context.Context, c coordinator) (int, error) { return c.Do(ctx, target) },
			"Wait": func(ctx context.Context, c coordinator) (int, error) {
				id, _ := c.TryEnqueue(ctx, target)
				return c.Wait(ctx, id)
			},
			"Future.Wait": func(ctx context.Context, c coordinator) (int, error) {
				return core.Must(c.Submit(ctx, target)).Wait(ctx)
			},
		} {
			for _, own := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, own %t", name, how, own), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						var c coordinator
						end, telling := newGate(), newGate()
						c = core.Must(core.NewResultCoordinator(func(ctx context.Context, item int) (int, error) {
							switch item {
							case waiter:
								return wait(ctx, c)
							case target:
								<-end.opened
							}
							return 10 * item, nil
						}, core.Options{MaxConcurrency: 1, MaxTracked: out.tracked, OnDone: func(s core.Snapshot) {
							if s.Item == target {
								if out.inside != nil {
									out.inside(c, s.ID)
								}
								<-telling.opened
							}
						}}))
						var result int
						answer := call(t, func(ctx context.Context) (err error) {
							if own {
								result, err = c.Do(ctx, waiter)
							} else {
								result, err = wait(ctx, c)
							}
							return err
						})
						end.open()
						synctest.Wait()
						if out.leave != nil {
							out.leave(t, c)
							synctest.Wait()
						}
						if s := c.Stats(); s.Running+s.Pending > 0 || !own && result != 0 {
							t.Errorf("got %v and result %d, want nothing to run, and no result before OnDone has returned", s, result)
						}
						telling.open()
						err := answer()
						if own && out.err != nil {
							checkError(t, how, err, out.err)
						} else if err != nil || result != 10*target {
							t.Errorf("%s: got %d and error %v, want %d", how, result, err, 10*target)
						}
						c.Close()
					})
				})
			}
		}
	}
}

// A body that begins to wait while OnDone runs also gives up its slot, and Explain says what it waits for.
func TestWaitBeginsWhileOnDoneIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		telling := newGate()
		c := core.Must(core.NewResultCoordinator(func(ctx context.Context, a answer) (string, error) { return a(ctx) },
			core.Options{Name: "orders", MaxConcurrency: 1, MaxTracked: -1, OnDone: func(s core.Snapshot) {
				if s.Key == "" && !telling.isOpen() {
					<-telling.opened
				}
			}}))
		f := core.Must(c.Submit(t.Context(), answering("told")))
		synctest.Wait()
		waits := core.Must(c.Submit(t.Context(), f.Wait))
		checkWaits(t, c, 0, 1, 0)
		x, _ := c.Explain(waits.ID())
		checkEqual(t, "explanation", x.String(), fmt.Sprintf(`operation %d is suspended: its body waits for operation %d of "orders"`, waits.ID(), f.ID()))
		telling.open()
		got, err := waits.Wait(t.Context())
		checkResult(t, "Wait", got, err, "told", nil)
	})
}

// If the end of an operation lets others start, they do not wait for a slow OnDone, neither here nor on a sink to
// which signals are forwarded.
func TestSlowOnDoneDelaysNoOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		slow, far := newGate(), signals.NewSink(signals.SinkOptions{})
		c := bodies(t, core.Options{MaxConcurrency: 2, DeferOn: "busy", OnDone: func(core.Snapshot) { <-slow.opened }})
		defer c.Sink().Forward(far, "busy")()
		other := bodies(t, core.Options{Sink: far, DeferOn: "busy"})
		hold := newGate()
		enqueue(t, c, func(ctx context.Context) error {
			core.OperationFrom(ctx).Hold("busy", 0)
			<-hold.opened
			return nil
		})
		synctest.Wait()
		ran := 0
		for range 2 { // the goroutine that runs OnDone has taken one of them
			enqueue(t, c, func(context.Context) error { ran++; return nil })
		}
		enqueue(t, other, quick)
		hold.open()
		synctest.Wait()
		checkEqual(t, "run while OnDone runs", ran, 1)
		checkEqual(t, "run on the other sink", other.Stats().Succeeded, 1)
		slow.open()
		closeDown(t, c)
		closeDown(t, other)
	})
}
