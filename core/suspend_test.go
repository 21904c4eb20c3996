package core_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// Waits that give up their slot.

// keyedBody is an item with a key.
type keyedBody struct {
	key  string
	body coretest.Body
}

func keyedBodies(_ testing.TB, opts core.Options) *core.Coordinator[keyedBody] {
	key := func(b keyedBody) string { return b.key }
	return core.Must(core.NewKeyedCoordinator(key, func(ctx context.Context, b keyedBody) error { return b.body(ctx) }, opts))
}

// do is a body that has another coordinator run an item, and waits for it.
func do[T any](c interface {
	Do(ctx context.Context, item T) error
}, item T) coretest.Body {
	return func(ctx context.Context) error { return c.Do(ctx, item) }
}

// before is a body that begins when g is opened.
func (g *gate) before(body coretest.Body) coretest.Body {
	return func(ctx context.Context) error {
		<-g.opened
		return body(ctx)
	}
}

// call makes a call on another goroutine, waits until nothing moves, and returns a function
// that waits for the call.
func call(t testing.TB, what coretest.Body) (result func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- what(t.Context()) }()
	synctest.Wait()
	return func() error { return <-done }
}

func checkWaits(t testing.TB, c core.Inspector, running, suspended, pending int) {
	t.Helper()
	synctest.Wait()
	if s := c.Stats(); s.Running != running || s.Suspended != suspended || s.Pending != pending {
		t.Errorf("%s: got %d running, %d suspended and %d pending, want %d, %d and %d", c.Name(), s.Running, s.Suspended, s.Pending, running, suspended, pending)
	}
}

// suspended is a body that is suspended until g is opened, and then runs the body.
func (g *gate) suspended(body coretest.Body) coretest.Body {
	return func(ctx context.Context) error {
		err := core.OperationFrom(ctx).Suspend(ctx, "the gate", func(context.Context) error {
			<-g.opened
			return nil
		})
		return errors.Join(err, body(ctx))
	}
}

// While the body waits, other operations can have its slot. It gets a slot back before a pending operation of
// its lane starts.
func TestSuspendFreesTheSlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1})
		answer, after, busy := newGate(), newGate(), newGate()
		first := enqueue(t, c, answer.suspended(after.body))
		checkWaits(t, c, 0, 1, 0)
		enqueue(t, c, busy.body)
		enqueue(t, c, quick)
		checkWaits(t, c, 1, 1, 1)
		checkExplained(t, c, first, "operation # is suspended: its body waits for the gate, for 0s")
		if s, _ := c.Lookup(first); s.Status != core.StatusSuspended || len(s.WaitsFor) != 1 || s.WaitsFor[0] != "the gate" {
			t.Errorf("got %v that waits for %q, want it suspended for the gate", s.Status, s.WaitsFor)
		}
		answer.open()
		checkWaits(t, c, 1, 1, 1) // no slot yet
		checkExplained(t, c, first, "operation # is suspended: its wait is over and it waits for a slot; the only slot is taken by operation %d, for 0s", first+1)
		busy.open()
		checkWaits(t, c, 1, 0, 1) // it goes before what is pending
		after.open()
		checkError(t, "flush", c.Flush(t.Context()), nil)
	})
}

// Panic and Goexit pass through, with the slot.
func TestSuspendPassesPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1})
		for _, end := range []func(){func() { panic("no answer") }, runtime.Goexit} {
			g, busy := newGate(), newGate()
			recovered := 0
			id := enqueue(t, c, func(ctx context.Context) error {
				defer func() { recovered = c.Stats().Running }()
				return core.OperationFrom(ctx).Suspend(ctx, "the gate", func(context.Context) error { <-g.opened; end(); return nil })
			})
			synctest.Wait()
			enqueue(t, c, busy.body)
			checkWaits(t, c, 1, 1, 0)
			g.open()
			checkWaits(t, c, 1, 1, 0)
			busy.open()
			var panicked *core.PanicError
			if err := c.Wait(t.Context(), id); !errors.As(err, &panicked) || recovered != 1 {
				t.Errorf("got %v with %d running, want a panic with its slot", err, recovered)
			}
			coretest.Check(t, !strings.Contains(string(panicked.Stack), "engineFrame"), "the stack shows frames that mean nothing to users:\n%s", panicked.Stack)
		}
	})
}

// Several goroutines of a body: suspended from the first wait to the last. What is left
// when the body has returned has no effect.
func TestSuspendByManyGoroutines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1})
		first, second, late := newGate(), newGate(), newGate()
		var all sync.WaitGroup
		enqueue(t, c, func(ctx context.Context) error {
			for _, g := range []*gate{first, second} {
				all.Go(func() { g.suspended(quick)(ctx) })
			}
			all.Wait()
			go late.suspended(quick)(ctx)
			synctest.Wait() // it is suspended by the late one
			return nil
		})
		checkWaits(t, c, 0, 1, 0)
		first.open()
		checkWaits(t, c, 0, 1, 0)
		second.open()
		checkError(t, "flush", c.Flush(t.Context()), nil)
		busy := newGate()
		enqueue(t, c, busy.body)
		late.open()
		checkWaits(t, c, 1, 0, 0)
		busy.open()
	})
}

// Inside another Suspend, outside of an operation and after its end, only the wait
// counts.
func TestSuspendInsideAndOutside(t *testing.T) {
	bubble(t, func(t *testing.T) {
		failure := errors.New("no answer")
		fails := func(context.Context) error { return failure }
		var none *core.Operation
		checkError(t, "outside", none.Suspend(t.Context(), "an answer", fails), failure)
		c := bodies(t, core.Options{MaxConcurrency: 1})
		var ended context.Context
		checkError(t, "inside", c.Do(t.Context(), func(ctx context.Context) error {
			ended = ctx
			o := core.OperationFrom(ctx)
			return o.Suspend(ctx, "one", func(ctx context.Context) error { return o.Suspend(ctx, "two", fails) })
		}), failure)
		checkError(t, "after the end", core.OperationFrom(ended).Suspend(ended, "an answer", fails), failure)
		checkWaits(t, c, 0, 0, 0)
	})
}

// By default 1,024 operations may be suspended, also with a small queue. So a ForEach calls in the function of
// Suspend can call the coordinator of its body.
func TestDefaultOfMaxSuspended(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, queued := range []int{-1, 1} {
			c := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: queued})
			checkError(t, "Do", c.Do(t.Context(), func(ctx context.Context) error {
				return core.OperationFrom(ctx).Suspend(ctx, "the items", func(ctx context.Context) error {
					return core.ForEach(ctx, upTo(3), func(ctx context.Context, _ int) error { return c.Do(ctx, quick) }, core.Options{})
				})
			}), nil)
		}
		c, g := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: 1}), newGate()
		for range 1025 {
			go c.Enqueue(t.Context(), g.suspended(quick))
		}
		checkWaits(t, c, 0, 1025, 0)
		checkExplained(t, c, enqueue(t, c, quick), "operation # is pending: 1025 operations are suspended, and only 1024 of them lend their slots")
		g.open()
	})
}

// While more are suspended than MaxSuspended, nothing pending starts, and Explain says so.
func TestMaxSuspended(t *testing.T) {
	for most, test := range map[int]struct {
		items int
		want  string
	}{
		3:  {10, "4 operations are suspended, and only 3 of them lend their slots; 6 items before it go first"},
		1:  {2, "2 operations are suspended, and only 1 of them lends its slot"},
		-1: {1, "1 operation is suspended, and does not lend its slot"},
	} {
		bubble(t, func(t *testing.T) {
			c, g := bodies(t, core.Options{MaxConcurrency: 1, MaxSuspended: most}), newGate()
			for range test.items {
				enqueue(t, c, g.suspended(quick))
			}
			checkExplained(t, c, enqueue(t, c, quick), "operation # is pending: "+test.want)
			g.open()
			// A wait for an own item does not count, because the item could not start otherwise.
			checkError(t, "an own item, while suspended", c.Do(t.Context(), func(ctx context.Context) error {
				return core.OperationFrom(ctx).Suspend(ctx, "an item", func(ctx context.Context) error { return c.Do(ctx, quick) })
			}), nil)
		})
	}
}

// A body that waits for its own coordinator is suspended by itself. TestPairs has such waits of all kinds, at all limits.
func TestWaitForOwnCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := core.Must(core.NewResultCoordinator(func(ctx context.Context, body func(context.Context) (int, error)) (int, error) { return body(ctx) },
			core.Options{Name: "numbers", MaxConcurrency: 1, Lanes: core.Must(core.ParseLanes("normal:1"))}))
		// The parent goes on before what was pending meanwhile.
		g := newGate()
		order := make(chan string, 2)
		parent := call(t, func(ctx context.Context) error {
			_, err := c.Do(ctx, func(ctx context.Context) (int, error) {
				c.Do(ctx, func(context.Context) (int, error) { <-g.opened; return 0, nil })
				order <- "parent"
				return 0, nil
			})
			return err
		})
		c.Enqueue(t.Context(), func(context.Context) (int, error) { order <- "pending"; return 0, nil })
		g.open()
		checkError(t, "parent", parent(), nil)
		c.Flush(t.Context())
		checkEqual(t, "first", <-order, "parent")
		// A wait that ends with its context takes the slot back, too.
		_, err := c.Do(t.Context(), func(ctx context.Context) (int, error) {
			soon, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := c.Do(soon, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, context.Cause(ctx) })
			return 0, err
		})
		checkError(t, "timeout", err, context.DeadlineExceeded)
		checkError(t, "flush", c.Flush(t.Context()), nil)
		checkWaits(t, c, 0, 0, 0)
	})
}

// asking is a context whose methods ask a coordinator first. context.Cause asks for a value.
type asking struct {
	context.Context
	about core.Inspector
}

func (a asking) Err() error        { a.about.Stats(); return a.Context.Err() }
func (a asking) Value(key any) any { a.about.Stats(); return a.Context.Value(key) }

// The context of a wait for an own item is not called under a lock.
func TestContextOfAWaitMayAskTheCoordinator(t *testing.T) {
	c := bodies(t, core.Options{MaxConcurrency: 1})
	checkError(t, "do", c.Do(t.Context(), func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		id := enqueue(t, c, quick)
		c.Pause()
		defer c.Resume()
		checkError(t, "wait", c.Wait(asking{ctx, c}, id), context.Canceled)
		return nil
	}), nil)
}

// A body that would wait directly for itself gets an error before anything is enqueued.
func TestWaitForItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := keyedBodies(t, core.Options{MaxConcurrency: 4})
		want := core.ErrWouldDeadlock
		checkError(t, "no key", c.Do(t.Context(), keyedBody{"", do(c, keyedBody{"", quick})}), nil)
		checkError(t, "body", c.Do(t.Context(), keyedBody{"ada", func(ctx context.Context) error {
			checkError(t, "itself", c.Wait(context.Background(), core.OperationFrom(ctx).ID()), want)
			checkError(t, "its own key", c.Do(ctx, keyedBody{"ada", quick}), want)
			checkError(t, "another context", c.Do(context.Background(), keyedBody{"bob", quick}), want)
			checkEqual(t, "Stats().Enqueued", c.Stats().Enqueued, 3)
			behind, _ := c.Enqueue(ctx, keyedBody{"ada", quick})
			checkError(t, "behind it", c.Wait(ctx, behind), want)
			checkError(t, "another key", c.Do(ctx, keyedBody{"bob", quick}), nil)
			return nil
		}}), nil)
	})
}

// Two operations each have a key and wait for an item of the other key. If nothing else can end this, the
// newest wait gets an error.
func TestWaitsInACircleOfKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := keyedBodies(t, core.Options{MaxConcurrency: 4})
		first, second, busy := newGate(), newGate(), newGate()
		ada := call(t, do(c, keyedBody{"ada", first.before(do(c, keyedBody{"bob", quick}))}))
		bob := call(t, do(c, keyedBody{"bob", second.before(do(c, keyedBody{"ada", quick}))}))
		enqueue(t, c, keyedBody{"cyd", busy.body})
		first.open()
		synctest.Wait()
		second.open()
		checkWaits(t, c, 1, 2, 2) // perhaps cyd ends the circle
		busy.open()
		checkError(t, "the older one", ada(), nil)
		checkError(t, "the newer one", bob(), core.ErrWouldDeadlock)
		checkWaits(t, c, 0, 0, 0)

		plain := bodies(t, core.Options{MaxConcurrency: 4})
		ids := make(chan core.OperationID, 2)
		other := func(ctx context.Context) error { return plain.Wait(ctx, <-ids) }
		a := enqueue(t, plain, other)
		b := enqueue(t, plain, other)
		ids <- b
		synctest.Wait()
		ids <- a
		checkError(t, "flush", plain.Flush(t.Context()), nil)
		if s := plain.Stats(); s.Failed != 2 { // the older one waits for the one that was refused
			t.Errorf("got %v, want the error of both", s)
		}
	})
}

// A circle over several coordinators is not refused; Explain shows it. A wait with a deadline ends it.
func TestWaitsOverCoordinators(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{Name: "a", MaxConcurrency: 1}), bodies(t, core.Options{Name: "b", MaxConcurrency: 1})
		var back error
		var inner core.OperationID
		outer := call(t, do(a, func(ctx context.Context) error {
			return b.Do(ctx, func(ctx context.Context) error {
				soon, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				inner, _ = a.Enqueue(ctx, quick)
				back = a.Wait(soon, inner)
				return nil
			})
		}))
		checkExplained(t, a, inner, `operation # is pending: the only slot is taken by operation %d, for 0s; operation %[1]d: its body waits for operation %d of "b"; operation %[2]d: its body waits for operation # of "a"`,
			firstOf(a, core.StatusRunning), firstOf(b, core.StatusRunning))
		checkError(t, "outer", outer(), nil)
		checkError(t, "the way back", back, context.DeadlineExceeded)
	})
}

// A wait of a body with its own context ends when its operation is cancelled, and when the body has returned while a
// goroutine of it still waits. So does a wait that begins after the cancellation. Do then cancels its item.
func TestWaitsEndWithTheirOperation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, wait := range map[string]func(a, b *core.Coordinator[coretest.Body], stay *gate, ctx context.Context) error{
			"Do, own": func(a, b *core.Coordinator[coretest.Body], stay *gate, ctx context.Context) error {
				return a.Do(ctx, untilCancelled)
			},
			"Do, other": func(a, b *core.Coordinator[coretest.Body], stay *gate, ctx context.Context) error {
				return b.Do(ctx, untilCancelled)
			},
			"Flush, other": func(a, b *core.Coordinator[coretest.Body], stay *gate, ctx context.Context) error {
				enqueue(t, b, stay.body)
				return b.Flush(ctx)
			},
			"Wait, own": func(a, b *core.Coordinator[coretest.Body], stay *gate, ctx context.Context) error {
				return a.Wait(ctx, enqueue(t, a, stay.body))
			},
			"room, other": func(a, b *core.Coordinator[coretest.Body], stay *gate, ctx context.Context) error {
				for range 3 {
					if _, err := b.Enqueue(ctx, stay.body); err != nil {
						return err
					}
				}
				return nil
			},
		} {
			for _, how := range []string{"cancelled", "returned", "cancelled before"} {
				a, b := bodies(t, core.Options{MaxConcurrency: 1}), bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: 1})
				stay, left := newGate(), newGate()
				got := make(chan error, 1)
				id := enqueue(t, a, func(ctx context.Context) error {
					if how == "cancelled before" {
						a.Cancel(core.OperationFrom(ctx).ID(), errOnPurpose)
					}
					if how != "returned" {
						err := wait(a, b, stay, ctx)
						got <- err
						return err
					}
					go func() { got <- wait(a, b, stay, ctx) }()
					<-left.opened
					return nil
				})
				synctest.Wait()
				want := errOnPurpose
				switch how {
				case "cancelled":
					a.Cancel(id, want)
				case "returned":
					left.open()
					want = context.Canceled
				}
				synctest.Wait()
				stay.open() // an own item may have the slot
				checkError(t, name+", "+how, <-got, want)
				checkError(t, name+", Flush", errors.Join(a.Flush(t.Context()), b.Flush(t.Context())), nil)
				if x, s := a.Stats(), b.Stats(); x.Suspended+x.Running+x.Pending+s.Running+s.Pending > 0 {
					t.Errorf("%s, %s: got %v and %v, want nothing left", name, how, x, s)
				}
			}
		}
	})
}

func firstOf(c core.Inspector, status core.Status) core.OperationID {
	for s := range c.Operations(core.OperationQuery{Status: status}) {
		return s.ID
	}
	return 0
}
