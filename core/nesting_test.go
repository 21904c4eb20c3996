package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// A body may wait for other coordinators, and these for others still. As long as
// each can end they do; the wait that closes a circle is refused, and then the
// others end. A bubble reports what hangs.

// keyedBody is an item with a key.
type keyedBody struct {
	key  string
	body coretest.Body
}

func keyedBodies(t testing.TB, opts core.Options) *core.Coordinator[keyedBody] {
	t.Helper()
	c, err := core.NewKeyedCoordinator(
		func(b keyedBody) string { return b.key },
		func(ctx context.Context, b keyedBody) error { return b.body(ctx) }, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// do is a body that has another coordinator run an item, and waits for it.
func do[T any](c interface {
	Do(ctx context.Context, item T) error
}, item T) coretest.Body {
	return func(ctx context.Context) error { return c.Do(ctx, item) }
}

// enqueueTwo is a body that enqueues two items on a queue that has room for one.
func enqueueTwo[T any](c core.Enqueuer[T], item T) coretest.Body {
	return func(ctx context.Context) error {
		for range 2 {
			if _, err := c.Enqueue(ctx, item); err != nil {
				return err
			}
		}
		return nil
	}
}

// before is a body that begins when g is opened.
func (g *gate) before(body coretest.Body) coretest.Body {
	return func(ctx context.Context) error {
		<-g.opened
		return body(ctx)
	}
}

// settled is a body that begins when all others have come to rest.
func settled(body coretest.Body) coretest.Body {
	return func(ctx context.Context) error {
		synctest.Wait()
		return body(ctx)
	}
}

// call makes a call aside, lets it come to rest, and returns how to wait for it.
func call(t testing.TB, what coretest.Body) (result func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- what(t.Context()) }()
	synctest.Wait()
	return func() error { return <-done }
}

func checkWaits(t testing.TB, c core.Inspector, running, pending int) {
	t.Helper()
	synctest.Wait()
	if s := c.Stats(); s.Running != running || s.Pending != pending {
		t.Errorf("%s: got %d running and %d pending, want %d and %d", c.Name(), s.Running, s.Pending, running, pending)
	}
}

// One waits for the other, which waits for the one.
func TestNestedThereAndBack(t *testing.T) {
	for _, limit := range []int{1, 2} {
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
			everyConstructor(t, func(t *testing.T, c constructor) {
				a, b := c.make(t, core.Options{MaxConcurrency: limit}), c.make(t, core.Options{MaxConcurrency: limit})
				var ran atomic.Bool
				err := a.Do(t.Context(), do(b, settled(do(a, func(context.Context) error { ran.Store(true); return nil }))))
				free := c.slots(limit) > 1
				if free {
					checkError(t, "with a free slot", err, nil)
				} else {
					checkError(t, "without a free slot", err, core.ErrWouldDeadlock)
				}
				checkEqual(t, "ran", ran.Load(), free)
				checkWaits(t, a, 0, 0)
				checkError(t, "Drain", errors.Join(a.Drain(t.Context()), b.Drain(t.Context())), nil)
			})
		})
	}
}

// However long the way back is.
func TestNestedLongWayBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var way []bodyCoordinator
		for _, c := range constructors {
			way = append(way, c.make(t, core.Options{MaxConcurrency: 1, Name: c.name}))
		}
		var walk func(i int, last coretest.Body) coretest.Body
		walk = func(i int, last coretest.Body) coretest.Body {
			if i == len(way) {
				return last
			}
			return do(way[i], walk(i+1, last))
		}
		checkError(t, "there", walk(0, quick)(t.Context()), nil)
		for _, c := range way {
			checkError(t, "and back to "+c.Name(), walk(0, do(c, quick))(t.Context()), core.ErrWouldDeadlock)
		}
		// Twice through the same is no circle while there is room.
		for _, c := range way {
			c.SetMaxConcurrency(2)
		}
		checkError(t, "twice", walk(0, do(way[0], quick))(t.Context()), nil)
	})
}

// Operations that have nothing to do with each other come to wait for each other,
// because all slots are taken. The last is refused, the others finish.
func TestNestedCrossing(t *testing.T) {
	for _, limit := range []int{1, 2, 3} {
		bubble(t, func(t *testing.T) {
			a, b := bodies(t, core.Options{MaxConcurrency: limit}), bodies(t, core.Options{MaxConcurrency: limit})
			var results []func() error
			var gates []*gate
			for range limit { // all slots, before any waits
				one, other := newGate(), newGate()
				gates = append(gates, one, other)
				results = append(results,
					call(t, do(a, one.before(do(b, quick)))),
					call(t, do(b, other.before(do(a, quick)))))
			}
			checkWaits(t, a, limit, 0)
			checkWaits(t, b, limit, 0)
			for _, g := range gates[:len(gates)-1] {
				g.open()
				synctest.Wait()
			}
			checkWaits(t, a, limit, limit-1)
			checkWaits(t, b, limit, limit)
			gates[len(gates)-1].open()
			for i, result := range results {
				want := error(nil)
				if i == len(results)-1 {
					want = core.ErrWouldDeadlock
				}
				checkError(t, fmt.Sprintf("limit %d, no. %d", limit, i), result(), want)
			}
		})
	}
}

// A body that waits for all operations of the coordinator that waits for it would
// wait for ever. It is told so and nothing is changed. Close cancels, and so need
// not wait for ever.
func TestNestedFlushDrainAndClose(t *testing.T) {
	everyConstructor(t, func(t *testing.T, c constructor) {
		a, b := c.make(t, core.Options{}), c.make(t, core.Options{})
		checkError(t, "Flush", a.Do(t.Context(), do(b, settled(a.Flush))), core.ErrWouldDeadlock)
		checkError(t, "Drain", a.Do(t.Context(), do(b, settled(a.Drain))), core.ErrWouldDeadlock)
		checkEqual(t, "closed by a Drain that was refused", a.Stats().Closed, false)

		var cause error
		err := a.Do(t.Context(), func(ctx context.Context) error {
			err := b.Do(ctx, func(context.Context) error { return a.Close() })
			cause = context.Cause(ctx)
			return err
		})
		checkError(t, "Close", err, core.ErrClosed)
		checkError(t, "cause in the body", cause, core.ErrClosed)
		checkError(t, "Close", b.Close(), nil)
	})
}

// Those who wait for all of each other.
func TestNestedFlushesCross(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{MaxConcurrency: 8}), bodies(t, core.Options{MaxConcurrency: 8})
		g := newGate()
		first := call(t, do(a, g.before(b.Flush)))
		second := call(t, do(b, g.before(a.Flush)))
		third := call(t, do(b, quick)) // not one of them
		g.open()
		x, y := first(), second()
		if (x == nil) == (y == nil) {
			t.Errorf("got %v and %v, want one of them refused", x, y)
		}
		checkError(t, "the refused one", errors.Join(x, y), core.ErrWouldDeadlock)
		checkError(t, "another", third(), nil)
	})
}

// A Flush waits for what was accepted before it, and that need not wait for what
// came later.
func TestNestedFlushIsNotRefusedForLaterOperations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{MaxConcurrency: 2}), bodies(t, core.Options{MaxConcurrency: 3})
		old, g := newGate(), newGate()
		call(t, do(a, old.body))
		flush := call(t, do(b, a.Flush)) // for old
		waiting := call(t, do(a, do(b, g.body)))
		a.SetMaxConcurrency(1) // what waits takes it all, but old has its slot
		enqueue(t, a, quick)
		again := call(t, do(b, func(ctx context.Context) error {
			checkError(t, "Flush of those that wait, too", a.Flush(ctx), nil)
			return nil
		}))
		checkWaits(t, a, 2, 1)
		old.open()
		checkError(t, "Flush", flush(), nil)
		g.open()
		checkError(t, "Do", waiting(), nil)
		checkError(t, "Do", again(), nil)
	})
}

// A Flush whose operations wait for the slot, in a lane or of a key, of a later
// operation which waits for the flushing one.
func TestNestedFlushOfWhatCannotStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lanes := core.Must(core.ParseLanes("hot, slow:1"))
		a := core.Must(core.NewKeyedCoordinator(func(b keyedBody) string { return b.key },
			func(ctx context.Context, b keyedBody) error { return b.body(ctx) },
			core.Options{MaxConcurrency: 4, Lanes: lanes}))
		b := bodies(t, core.Options{MaxConcurrency: 3})
		busy, g := newGate(), newGate()
		var flushing core.OperationID
		first := call(t, do(a.Lane("hot"), keyedBody{"x", busy.body}))
		old := call(t, do(a.Lane("slow"), keyedBody{"x", quick})) // waits for its key
		flush := call(t, do(b, func(ctx context.Context) error {
			flushing = core.OperationFrom(ctx).ID()
			return a.Flush(ctx)
		}))
		later := call(t, do(a.Lane("slow"), keyedBody{"y", g.before(func(ctx context.Context) error {
			return b.Wait(ctx, flushing)
		})}))
		checkWaits(t, a, 2, 1)
		g.open()
		checkError(t, "what waits for the flushing one", later(), core.ErrWouldDeadlock)
		busy.open()
		checkError(t, "the rest", errors.Join(first(), old(), flush()), nil)
	})
}

// An item of a key that is taken, in the end, by who waits for it.
func TestNestedOwnKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := keyedBodies(t, core.Options{MaxConcurrency: 8}), bodies(t, core.Options{MaxConcurrency: 8})
		checkError(t, "the same key", a.Do(t.Context(), keyedBody{"x", do(b, do(a, keyedBody{"x", quick}))}), core.ErrWouldDeadlock)
		checkError(t, "another key", a.Do(t.Context(), keyedBody{"x", do(b, do(a, keyedBody{"y", quick}))}), nil)
		checkError(t, "back from another key", a.Do(t.Context(), keyedBody{"x", do(b, do(a, keyedBody{"y", do(b, do(a, keyedBody{"x", quick}))}))}), core.ErrWouldDeadlock)
		// It is the key it had when it was enqueued that counts.
		checkError(t, "renamed", a.Do(t.Context(), keyedBody{"x", func(ctx context.Context) error {
			core.OperationFrom(ctx).SetKey("y")
			return b.Do(ctx, do(a, keyedBody{"y", quick}))
		}}), nil)
		two := keyedBodies(t, core.Options{MaxConcurrency: 8, MaxPerKey: 2})
		twice := do(two, keyedBody{"x", quick})
		checkError(t, "two of a key", do(two, keyedBody{"x", do(b, twice)})(t.Context()), nil)
		thrice := do(two, keyedBody{"x", do(b, twice)})
		checkError(t, "three of a key", do(two, keyedBody{"x", do(b, thrice)})(t.Context()), core.ErrWouldDeadlock)
	})
}

// Two keys, crossing.
func TestNestedKeysCross(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := keyedBodies(t, core.Options{MaxConcurrency: 8}), bodies(t, core.Options{MaxConcurrency: 8})
		g := newGate()
		first := call(t, do(a, keyedBody{"x", do(b, do(a, keyedBody{"y", quick}))})) // y is free
		checkError(t, "x, then y", first(), nil)
		second := call(t, do(a, keyedBody{"y", g.before(do(b, do(a, keyedBody{"x", quick})))}))
		first = call(t, do(a, keyedBody{"x", do(b, do(a, keyedBody{"y", quick}))})) // waits for second
		checkWaits(t, a, 2, 1)
		g.open()
		checkError(t, "y, then x", second(), core.ErrWouldDeadlock)
		checkError(t, "x, then y", first(), nil)
	})
}

// A lane whose slots are all taken by who waits for it.
func TestNestedOwnLane(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := core.Must(core.NewCoordinator(coretest.Run, core.Options{MaxConcurrency: 8, Lanes: core.Must(core.ParseLanes("hot:2, slow:1"))}))
		b := bodies(t, core.Options{MaxConcurrency: 8})
		hot, slow := a.Lane("hot"), a.Lane("slow")
		checkError(t, "the same lane", do(slow, do(b, do(slow, quick)))(t.Context()), core.ErrWouldDeadlock)
		checkError(t, "another lane", do(slow, do(b, do(hot, quick)))(t.Context()), nil)
		checkError(t, "two in a lane", do(hot, do(b, do(hot, quick)))(t.Context()), nil)
		checkError(t, "three in a lane", do(hot, do(b, do(hot, do(b, do(hot, quick)))))(t.Context()), core.ErrWouldDeadlock)
		checkError(t, "back from another lane", do(slow, do(b, do(hot, do(b, do(slow, quick)))))(t.Context()), core.ErrWouldDeadlock)

		// By operations that have nothing to do with each other.
		g, other := newGate(), newGate()
		parents := []func() error{
			call(t, do(hot, g.before(do(b, do(hot, quick))))),
			call(t, do(hot, other.before(do(b, do(hot, quick))))),
		}
		g.open()
		checkWaits(t, a, 2, 1)
		other.open()
		checkError(t, "the last", parents[1](), core.ErrWouldDeadlock)
		checkError(t, "the first", parents[0](), nil)
	})
}

// There will be no room for an item as long as what is queued waits for who wants
// to enqueue it.
func TestNestedRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := bodies(t, core.Options{MaxConcurrency: 8})
		one := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: 1})
		checkError(t, "the only slot", one.Do(t.Context(), do(b, enqueueTwo(one, quick))), core.ErrWouldDeadlock)

		two := bodies(t, core.Options{MaxConcurrency: 2, MaxQueued: 1})
		checkError(t, "a free slot", two.Do(t.Context(), do(b, enqueueTwo(two, quick))), nil)

		lanes := []core.Lane{{Name: "hot", Depth: 1}, {Name: "slow", Limit: 1, Depth: 1}}
		laned := core.Must(core.NewCoordinator(coretest.Run, core.Options{MaxConcurrency: 8, Lanes: lanes}))
		hot, slow := laned.Lane("hot"), laned.Lane("slow")
		checkError(t, "the lane", slow.Do(t.Context(), do(b, enqueueTwo(slow, quick))), core.ErrWouldDeadlock)
		checkError(t, "another lane", slow.Do(t.Context(), do(b, enqueueTwo(hot, quick))), nil)

		keyed := keyedBodies(t, core.Options{MaxConcurrency: 8, MaxQueued: 1})
		x, y := keyedBody{"x", quick}, keyedBody{"y", quick}
		checkError(t, "the key", keyed.Do(t.Context(), keyedBody{"x", do(b, enqueueTwo(keyed, x))}), core.ErrWouldDeadlock)
		checkError(t, "another key", keyed.Do(t.Context(), keyedBody{"x", do(b, enqueueTwo(keyed, y))}), nil)
		checkError(t, "Drain", errors.Join(one.Drain(t.Context()), two.Drain(t.Context()), laned.Drain(t.Context()), keyed.Drain(t.Context())), nil)
	})
}

// Those who wait for room themselves count, too: first come, first served.
func TestNestedRoomBehindOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := keyedBodies(t, core.Options{MaxConcurrency: 8, MaxQueued: 1}), bodies(t, core.Options{MaxConcurrency: 8})
		g := newGate()
		enqueueX := func(ctx context.Context) error {
			_, err := a.Enqueue(ctx, keyedBody{"x", quick})
			return err
		}
		parent := call(t, do(a, keyedBody{"x", do(b, g.before(func(ctx context.Context) error {
			_, err := a.Enqueue(ctx, keyedBody{"y", quick})
			return err
		}))}))
		enqueue(t, a, keyedBody{"x", quick})
		others := call(t, enqueueX) // waits for room, outside of any body
		checkWaits(t, a, 1, 1)
		g.open()
		// Although y is free, it stands behind two items of x, of which one has room.
		checkError(t, "parent", parent(), core.ErrWouldDeadlock)
		checkError(t, "others", others(), nil)

		wide := keyedBodies(t, core.Options{MaxConcurrency: 8, MaxQueued: 3})
		busy := newGate()
		for range 8 {
			enqueue(t, wide, keyedBody{fmt.Sprint(wide.Stats().Enqueued), busy.body})
			synctest.Wait()
		}
		for range 3 {
			enqueue(t, wide, keyedBody{"0", quick})
		}
		patient := call(t, do(b, func(ctx context.Context) error {
			_, err := wide.Enqueue(ctx, keyedBody{"0", quick})
			return err
		}))
		busy.open()
		checkError(t, "when nobody waits for who waits", patient(), nil)
	})
}

// Operations that wait for each other by id, or by Future.
func TestNestedWaitsForEachOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var (
			coordinators []*core.ResultCoordinator[answer, string]
			futures      [3]*core.Future[string]
			gates        []*gate
		)
		for i := range futures {
			c, g := answers(t, core.Options{MaxConcurrency: 8}), newGate()
			coordinators, gates = append(coordinators, c), append(gates, g)
			futures[i], _ = c.Submit(t.Context(), func(ctx context.Context) (string, error) {
				g.body(ctx)
				next := (i + 1) % len(futures)
				if i == 0 {
					return coordinators[next].Wait(ctx, futures[next].ID())
				}
				return futures[next].Wait(ctx)
			})
		}
		for _, g := range gates {
			synctest.Wait()
			g.open()
		}
		for i, f := range futures { // the last is refused, and so the others end, with its error
			_, err := f.Wait(t.Context())
			checkError(t, fmt.Sprint("Future ", i), err, core.ErrWouldDeadlock)
		}
		for i, c := range coordinators {
			checkEqual(t, fmt.Sprint("failed in ", i), c.Stats().Failed, 1)
		}
	})
}

// A body that waits for itself by way of another one.
func TestNestedWaitForItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{MaxConcurrency: 8}), bodies(t, core.Options{MaxConcurrency: 8})
		err := a.Do(t.Context(), func(ctx context.Context) error {
			self := core.OperationFrom(ctx).ID()
			return b.Do(ctx, func(ctx context.Context) error { return a.Wait(ctx, self) })
		})
		checkError(t, "Do", err, core.ErrWouldDeadlock)
	})
}

// What is finished is not waited for, whoever asks.
func TestNestedWaitForFinished(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{MaxConcurrency: 1}), bodies(t, core.Options{MaxConcurrency: 1})
		id := enqueue(t, a, func(context.Context) error { return errOnPurpose })
		synctest.Wait()
		wait := func(ctx context.Context) error { return a.Wait(ctx, id) }
		checkError(t, "Wait", do(a, do(b, wait))(t.Context()), errOnPurpose)
		checkError(t, "Flush", do(b, func(ctx context.Context) error { return a.Flush(ctx) })(t.Context()), nil)
	})
}

// A body may wait for several things at once, on goroutines of its own; it ends
// when all of them have.
func TestNestedTwoWaitsOfOneBody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{MaxConcurrency: 1}), bodies(t, core.Options{MaxConcurrency: 8})
		both := func(calls ...coretest.Body) coretest.Body {
			return func(ctx context.Context) error {
				errs := make([]error, len(calls))
				var all sync.WaitGroup
				for i, call := range calls {
					all.Go(func() { errs[i] = call(ctx) })
				}
				all.Wait()
				return errors.Join(errs...)
			}
		}
		checkError(t, "both end", do(a, both(do(b, quick), do(b, quick)))(t.Context()), nil)
		g := newGate()
		parent := call(t, do(a, both(do(b, g.body), do(b, do(a, quick)))))
		g.open()
		checkError(t, "one would not", parent(), core.ErrWouldDeadlock)

		// One that ends, and then the other.
		first, second := newGate(), newGate()
		parent = call(t, do(a, both(do(b, first.body), do(b, second.before(do(a, quick))))))
		first.open()
		synctest.Wait() // still one
		second.open()
		checkError(t, "one is left", parent(), core.ErrWouldDeadlock)
		checkError(t, "and none", a.Do(t.Context(), quick), nil)
	})
}

// A wait that its context has ended holds up nobody any more.
func TestNestedWaitEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{MaxConcurrency: 1}), bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: 2})
		g := newGate()
		child := enqueue(t, b, g.before(do(a, quick)))
		impatient := call(t, do(a, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Second, errOnPurpose)
			defer cancel()
			return b.Wait(ctx, child)
		}))
		checkError(t, "impatient", impatient(), errOnPurpose)
		g.open()
		checkError(t, "child", b.Wait(t.Context(), child), nil)

		// For each kind of wait.
		for name, wait := range map[string]coretest.Body{
			"Do":    do(b, quick),
			"Flush": b.Flush,
			"room": func(ctx context.Context) error {
				for {
					if _, err := b.Enqueue(ctx, quick); err != nil {
						return err
					}
				}
			},
		} {
			g := newGate()
			busy := enqueue(t, b, g.before(do(a, quick)))
			impatient := call(t, do(a, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeoutCause(ctx, time.Second, errOnPurpose)
				defer cancel()
				return wait(ctx)
			}))
			checkError(t, name, impatient(), errOnPurpose)
			g.open()
			checkError(t, name+": child", b.Wait(t.Context(), busy), nil)
			checkError(t, name+": Flush", b.Flush(t.Context()), nil)
		}
	})
}

// A wait is refused at once, however little time it would have had.
func TestNestedRefusalDoesNotWaitForTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{MaxConcurrency: 1}), bodies(t, core.Options{MaxConcurrency: 8})
		begun := time.Now()
		err := a.Do(t.Context(), do(b, settled(func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return a.Do(ctx, quick)
		})))
		checkError(t, "Do", err, core.ErrWouldDeadlock)
		checkEqual(t, "took", time.Since(begun), 0)
	})
}

// A goroutine that outlives the body it was started by, and waits with its context,
// holds no slot.
func TestNestedWaitOfFinishedOperation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{MaxConcurrency: 1}), bodies(t, core.Options{MaxConcurrency: 1})
		var leaked context.Context
		checkError(t, "Do", a.Do(t.Context(), func(ctx context.Context) error {
			leaked = context.WithoutCancel(ctx)
			return nil
		}), nil)
		g := newGate()
		busy := enqueue(t, b, g.before(do(a, quick)))
		left := call(t, func(context.Context) error { return b.Wait(leaked, busy) })
		own := call(t, func(context.Context) error { return a.Do(leaked, quick) })
		checkError(t, "Do with the context of a finished operation", own(), nil)
		g.open()
		checkError(t, "what it waits for", b.Wait(t.Context(), busy), nil)
		checkError(t, "the goroutine that was left", left(), nil)

		// The same for one that has begun to wait before the body has returned.
		g = newGate()
		busy = enqueue(t, b, g.before(do(a, quick)))
		waited := make(chan error)
		checkError(t, "Do", a.Do(t.Context(), func(ctx context.Context) error {
			go func() { waited <- b.Wait(context.WithoutCancel(ctx), busy) }()
			synctest.Wait()
			return nil
		}), nil)
		g.open()
		checkError(t, "what it waits for", b.Wait(t.Context(), busy), nil)
		checkError(t, "the goroutine that was left", <-waited, nil)
	})
}

// A higher limit lets go on who waits for a slot.
func TestNestedLimitRaised(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{MaxConcurrency: 2}), bodies(t, core.Options{MaxConcurrency: 8})
		g := newGate()
		busy := call(t, do(a, g.body))
		parent := call(t, do(a, do(b, do(a, quick))))
		checkWaits(t, a, 2, 1)
		a.SetMaxConcurrency(3)
		checkError(t, "parent", parent(), nil)
		g.open()
		checkError(t, "busy", busy(), nil)
		a.SetMaxConcurrency(1)
		checkError(t, "lowered", do(a, do(b, do(a, quick)))(t.Context()), core.ErrWouldDeadlock)
		a.SetMaxConcurrency(2)
		checkError(t, "raised", do(a, do(b, do(a, quick)))(t.Context()), nil)
	})
}

// A lower limit can make a wait hopeless that was not. Then it is refused, the
// newest first, and no more than need be.
func TestNestedLimitLowered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{MaxConcurrency: 3}), bodies(t, core.Options{MaxConcurrency: 8})
		g, begun := newGate(), newGate()
		busy := call(t, do(a, g.body))
		first := call(t, do(a, begun.before(do(b, do(a, quick)))))
		other := newGate()
		second := call(t, do(a, other.before(do(b, do(a, quick)))))
		begun.open()
		checkWaits(t, a, 3, 1)
		other.open()
		checkWaits(t, a, 3, 2)
		a.SetMaxConcurrency(2) // busy's slot is the surplus
		checkError(t, "second", second(), core.ErrWouldDeadlock)
		checkWaits(t, a, 2, 1)
		g.open()
		checkError(t, "the others", errors.Join(busy(), first()), nil)

		// What will only have to wait is not refused.
		a.SetMaxConcurrency(3)
		g = newGate()
		busy = call(t, do(a, g.body))
		parent := call(t, do(a, do(b, do(a, g.body))))
		a.SetMaxConcurrency(2)
		checkWaits(t, a, 3, 0)
		g.open()
		checkError(t, "not hopeless", errors.Join(busy(), parent()), nil)
	})
}

// The same for who waits for room.
func TestNestedLimitLoweredWhileWaitingForRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{MaxConcurrency: 2, MaxQueued: 1}), bodies(t, core.Options{MaxConcurrency: 8})
		g, begun := newGate(), newGate()
		busy := call(t, do(a, g.body))
		parent := call(t, do(a, do(b, begun.before(enqueueTwo(a, quick)))))
		begun.open()
		checkWaits(t, a, 2, 1)
		a.SetMaxConcurrency(1)
		checkError(t, "parent", parent(), core.ErrWouldDeadlock)
		g.open()
		checkError(t, "busy", busy(), nil)
		checkError(t, "Flush", a.Flush(t.Context()), nil)
	})
}

// The same for who waits for all.
func TestNestedLimitLoweredWhileFlushing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := keyedBodies(t, core.Options{MaxConcurrency: 2}), bodies(t, core.Options{MaxConcurrency: 2})
		g := newGate()
		var flushing core.OperationID
		busy := call(t, do(a, keyedBody{"x", g.body}))
		next := call(t, do(a, keyedBody{"x", quick}))
		flush := call(t, do(b, func(ctx context.Context) error {
			flushing = core.OperationFrom(ctx).ID()
			return a.Flush(ctx)
		}))
		later := call(t, do(a, keyedBody{"y", func(ctx context.Context) error { return b.Wait(ctx, flushing) }}))
		checkWaits(t, a, 2, 1)
		a.SetMaxConcurrency(1) // when busy is done, later has the only slot
		checkError(t, "Flush", flush(), core.ErrWouldDeadlock)
		checkError(t, "later", later(), core.ErrWouldDeadlock) // the result of what it waits for
		g.open()
		checkError(t, "the others", errors.Join(busy(), next()), nil)
	})
}

// ForEach and Map inside a body wait in it, and so do their items outside of it.
func TestNestedForEach(t *testing.T) {
	for _, pause := range []bool{false, true} { // items find the body waiting, or the other way round
		bubble(t, func(t *testing.T) {
			a := bodies(t, core.Options{MaxConcurrency: 1})
			seq := func(yield func(int) bool) {
				for i := range 5 {
					if !yield(i) {
						return
					}
					if pause {
						synctest.Wait()
					}
				}
			}
			var ran atomic.Int64
			back := func(ctx context.Context, i int) error {
				ran.Add(1)
				if i == 3 {
					return a.Do(ctx, quick)
				}
				return nil
			}
			for name, loop := range map[string]coretest.Body{
				"ForEach": func(ctx context.Context) error { return core.ForEach(ctx, seq, back, core.Options{MaxConcurrency: 2}) },
				"ForEachKeyed": func(ctx context.Context) error {
					return core.ForEachKeyed(ctx, seq, func(int) string { return "" }, back, core.Options{})
				},
				"Map": func(ctx context.Context) (err error) {
					for _, one := range core.Map(ctx, seq, func(ctx context.Context, i int) (int, error) { return i, back(ctx, i) }, core.Options{MaxConcurrency: 2}) {
						err = errors.Join(err, one)
					}
					return err
				},
			} {
				checkError(t, name, a.Do(t.Context(), loop), core.ErrWouldDeadlock)
				checkError(t, name+": Do afterwards", a.Do(t.Context(), quick), nil)
				a.SetMaxConcurrency(2)
				ran.Store(0)
				checkError(t, name+" with a free slot", a.Do(t.Context(), loop), nil)
				checkEqual(t, name+": items", ran.Load(), 5)
				a.SetMaxConcurrency(1)
			}
		})
	}
}

// All items of a ForEach wait for the body that wants to start another one.
func TestNestedForEachOfMany(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := bodies(t, core.Options{MaxConcurrency: 1})
		taken := 0
		endless := func(yield func(int) bool) {
			for yield(taken) {
				if taken++; taken > 100 {
					t.Fatal("it takes items although none can end")
				}
				synctest.Wait()
			}
		}
		var causes []error
		err := a.Do(t.Context(), func(ctx context.Context) error {
			return core.ForEach(ctx, endless, func(ctx context.Context, i int) error {
				err := a.Do(ctx, quick)
				causes = append(causes, context.Cause(ctx))
				return err
			}, core.Options{MaxConcurrency: 1, MaxQueued: 1})
		})
		checkError(t, "Do", err, core.ErrWouldDeadlock)
		checkEqual(t, "text", err.Error(), core.ErrWouldDeadlock.Error()) // once
		for _, cause := range causes {
			checkError(t, "cause in an item", cause, core.ErrWouldDeadlock)
		}
	})
}

// The loop's body runs in the body as well.
func TestNestedMapLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{MaxConcurrency: 1}), bodies(t, core.Options{MaxConcurrency: 8})
		n := 0
		err := a.Do(t.Context(), func(ctx context.Context) error {
			for i, err := range core.Map(ctx, upTo(3), square, core.Options{}) {
				n += i
				checkError(t, "Map", err, nil)
				checkError(t, "Do of another coordinator", b.Do(ctx, quick), nil)
				checkError(t, "Do", a.Do(ctx, quick), core.ErrWouldDeadlock)
				checkError(t, "Do", b.Do(ctx, do(a, quick)), core.ErrWouldDeadlock)
			}
			return nil
		})
		checkError(t, "Do", err, nil)
		checkEqual(t, "sum", n, 5)
	})
}

// A body is known by its context. One that waits with another context is not seen;
// then Close is the way out.
func TestNestedWithoutItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := bodies(t, core.Options{MaxConcurrency: 1}), bodies(t, core.Options{MaxConcurrency: 8})
		parent := call(t, do(a, do(b, func(context.Context) error { return a.Do(context.Background(), quick) })))
		checkWaits(t, a, 1, 1)
		checkError(t, "Close", a.Close(), nil)
		checkError(t, "Do", parent(), core.ErrClosed)
	})
}

// A refused Do leaves nothing behind: what it had enqueued does not run.
func TestNestedRefusedDoCancels(t *testing.T) {
	everyConstructor(t, func(t *testing.T, c constructor) {
		a, b := c.make(t, core.Options{MaxConcurrency: 1}), c.make(t, core.Options{MaxConcurrency: 1})
		var cancelled core.Snapshot
		a.OnFinalized(func(s core.Snapshot) {
			if s.Status == core.StatusCancelled {
				cancelled = s
			}
		})
		err := a.Do(t.Context(), do(b, settled(do(a, func(context.Context) error { t.Error("it ran"); return nil }))))
		checkError(t, "Do", err, core.ErrWouldDeadlock)
		checkError(t, "Close", errors.Join(a.Close(), b.Close()), nil)
		checkError(t, "its error", cancelled.Err, core.ErrWouldDeadlock)
		if s := a.Stats(); s.Cancelled != 1 || s.Failed != 1 || s.Pending != 0 {
			t.Errorf("got %v, want one cancelled and its parent failed", s)
		}
	})
}

// Real goroutines, and more nested calls than slots: some are refused, none hangs,
// and what is not refused is done.
func TestStressNested(t *testing.T) {
	var all [3]*core.Coordinator[keyedBody]
	for i := range all {
		opts := core.Options{MaxConcurrency: 2 + i, MaxQueued: 2, MaxTracked: 10}
		if i > 0 {
			opts.Lanes = core.Must(core.ParseLanes("hot:2, normal"))
		}
		all[i] = keyedBodies(t, opts)
	}
	var leaves, refused atomic.Int64
	var nest func(random *rand.Rand, depth int) keyedBody
	nest = func(random *rand.Rand, depth int) keyedBody {
		key := fmt.Sprint(random.IntN(20))
		if depth == 0 {
			return keyedBody{key, func(context.Context) error { leaves.Add(1); return nil }}
		}
		c := all[random.IntN(len(all))]
		if random.IntN(4) == 0 {
			c = c.Lane("hot") // if there is one
		}
		inner := nest(random, depth-1)
		switch random.IntN(8) {
		case 0:
			return keyedBody{key, c.Flush}
		case 1:
			return keyedBody{key, enqueueTwo(c, inner)}
		}
		return keyedBody{key, do(c, inner)}
	}
	var producers sync.WaitGroup
	n := stressed(8000)
	for p := range uint64(8) {
		producers.Go(func() {
			random := rand.New(rand.NewPCG(5, p))
			for range n {
				c := all[random.IntN(len(all))]
				err := c.Do(t.Context(), nest(random, random.IntN(4)))
				switch {
				case errors.Is(err, core.ErrWouldDeadlock):
					refused.Add(1)
				case err != nil && !errors.Is(err, core.ErrUnknownLane):
					t.Errorf("Do: %v", err)
				}
			}
		})
	}
	producers.Wait()
	for _, c := range all {
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		if err := coretest.CheckBooks(c.Stats()); err != nil {
			t.Error(err)
		}
	}
	if refused.Load() == 0 || leaves.Load() == 0 {
		t.Errorf("got %d refused and %d innermost bodies run, want some of both", refused.Load(), leaves.Load())
	}
}
