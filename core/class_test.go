package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// However the limit, the lanes and the keys are, never more of a class run than may, all of its items run, and each
// starts as soon as a slot of the class is free.
func TestClassLimitIsKeptAndUsed(t *testing.T) {
	const items, limit = 120, 3
	for name, opts := range map[string]core.Options{
		"plain": {MaxConcurrency: 8},
		"lanes": {MaxConcurrency: 8, Lanes: lanes(t, "hot:6, normal")},
		"keys":  {MaxConcurrency: 8, MaxPerKey: 8},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				opts.Classes = []core.Class{{Name: "other"}, {Name: "thumbnail", Limit: limit}}
				begun := time.Now()
				c := explainedJobs(t, opts)
				for i := range items {
					view := c.Class("thumbnail")
					if name == "lanes" && i%2 == 0 {
						view = view.Lane("hot")
					}
					enqueue(t, view, job{fmt.Sprint(i % 2), func(context.Context) error {
						if s := c.Stats(); s.Classes[1].Running > limit {
							t.Errorf("%d run, want at most %d", s.Classes[1].Running, limit)
						}
						time.Sleep(time.Second)
						return nil
					}})
				}
				checkError(t, "Drain", c.Drain(t.Context()), nil)
				checkEqual(t, "took", time.Since(begun), items/limit*time.Second)
				checkEqual(t, "succeeded", c.Stats().Succeeded, items)
			})
		})
	}
}

// explainedJobs makes a coordinator of jobs, with keys if there is a MaxPerKey.
func explainedJobs(t testing.TB, opts core.Options) *core.Coordinator[job] {
	if opts.MaxPerKey > 0 {
		return jobs(t, opts)
	}
	return coordinator(t, func(ctx context.Context, j job) error { return j.run(ctx) }, opts)
}

// A busy class delays no item that is not of it, but the later ones of its key. Its own items keep their turn.
func TestBusyClassDelaysNoOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ran []string
		noting := func(what string) coretest.Body {
			return func(context.Context) error { ran = append(ran, what); return nil }
		}
		c := jobs(t, core.Options{MaxConcurrency: 2, Classes: []core.Class{{Name: "big", Limit: 1}}})
		big, g := c.Class("big"), newGate()
		first := enqueue(t, big, job{"", g.body})
		enqueue(t, big, job{"ann", noting("big of ann")})
		enqueue(t, big, job{"", noting("big")})
		behind := enqueue(t, c, job{"ann", noting("small of ann")})
		enqueue(t, c, job{"bob", noting("small of bob")})
		enqueue(t, c, job{"", noting("small")})
		synctest.Wait()
		checkSlice(t, "ran beside the class", ran, []string{"small of bob", "small"})
		checkExplained(t, c, behind, "operation # is pending: 1 item before it goes first")
		c.SetMaxConcurrency(1)
		enqueue(t, c, job{"", noting("late")})
		g.open()
		checkError(t, "Wait", c.Wait(t.Context(), first), nil)
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkSlice(t, "ran", ran[2:], []string{"big of ann", "big", "late", "small of ann"})
	})
}

// The next of a key may start when the one before it, which waited for its class, is cancelled.
func TestCancelledItemOfABusyClassLetsItsKeyGoOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := jobs(t, core.Options{MaxConcurrency: 4, Classes: []core.Class{{Name: "big", Limit: 1}, {Name: "small", Limit: 1}}})
		g := newGate()
		enqueue(t, c.Class("big"), job{"", g.body})
		waits := enqueue(t, c.Class("big"), job{"ann", quick})
		next := enqueue(t, c.Class("small"), job{"ann", quick})
		synctest.Wait()
		checkStatus(t, c, next, core.StatusPending)
		checkEqual(t, "cancelled", c.Cancel(waits, nil), true)
		synctest.Wait()
		checkStatus(t, c, next, core.StatusSucceeded)
		g.open()
	})
}

// A class is a view, as a lane is, and both go together in either order.
func TestClassIsAViewOfItsCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		opts := core.Options{Name: "orders", MaxConcurrency: 9, Lanes: lanes(t, "hot, normal"), Classes: []core.Class{{Name: "a", Limit: 1}, {Name: "b", Limit: 0}}}
		c, g := bodies(t, opts), newGate()
		for _, view := range []*core.Coordinator[coretest.Body]{c.Class("a").Lane("hot"), c.Lane("hot").Class("a"), c.Class("b").Class("a"), c.Class("b"), c} {
			enqueue(t, view, g.body)
		}
		synctest.Wait()
		checkSlice(t, "classes", c.Stats().Classes, []core.ClassStats{{Name: "a", Pending: 2, Running: 1, Limit: 1}, {Name: "b", Running: 1}})
		var places []string
		for s := range c.Operations(core.OperationQuery{}) {
			places = append(places, s.Lane+"/"+s.Class)
		}
		checkSlice(t, "places", places, []string{"hot/a", "hot/a", "normal/a", "normal/b", "normal/"})
		n := 0
		for range c.Operations(core.OperationQuery{Class: "a", Lane: "hot"}) {
			n++
		}
		checkEqual(t, "found", n, 2)
		_, err := c.Lane("hot").Class("A").TryEnqueue(t.Context(), quick)
		checkError(t, "TryEnqueue", err, core.ErrUnknownClass)
		coretest.Check(t, err == nil || strings.Contains(err.Error(), `"A" is none of ["a" "b"]`), "got error %q, want it to name the class and all there are", err)
		_, err = c.Class("A").Lane("hot").Enqueue(t.Context(), quick)
		checkError(t, "Enqueue", err, core.ErrUnknownClass)
		checkError(t, "Do", c.Class("").Do(t.Context(), quick), core.ErrUnknownClass)
		checkEqual(t, "rejected", c.Stats().Rejected, 3)

		results := core.Must(core.NewResultCoordinator(func(_ context.Context, n int) (string, error) { return fmt.Sprint(n), nil }, opts))
		text, err := results.Lane("hot").Class("b").Do(t.Context(), 7)
		checkError(t, "Do", err, nil)
		checkEqual(t, "result", text, "7")
		_, err = results.Class("c").Lane("hot").Do(t.Context(), 7)
		checkError(t, "Do", err, core.ErrUnknownClass)
		g.open()
	})
}

// An item that waits for its class says so, and which operation has the slot.
func TestExplainClass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, g := bodies(t, core.Options{MaxConcurrency: 9, Classes: []core.Class{{Name: "big", Limit: 2}}}), newGate()
		first := enqueue(t, c.Class("big"), g.body)
		enqueue(t, c.Class("big"), g.body)
		next := enqueue(t, c.Class("big"), quick)
		checkExplained(t, c, next, `operation # is pending: all 2 slots of class "big" are taken, the longest by operation %d, for 0s`, first)
		full := bodies(t, core.Options{Name: "mails", Lanes: lanes(t, "normal"), Classes: []core.Class{{Name: "big", Limit: 1, Depth: -1}}})
		enqueue(t, full.Class("big"), g.body)
		room := enqueue(t, c, do(full.Class("big"), quick))
		checkExplained(t, c, room, `operation # is running: its body waits for room for class "big" in lane "normal" of "mails"`)
		g.open()
	})
}

// A suspended operation gives up the slot of its class, and goes on when it has it back.
func TestSuspendedOperationGivesUpItsClass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, answer, g := bodies(t, core.Options{MaxConcurrency: 9, Classes: []core.Class{{Name: "big", Limit: 1}}}), newGate(), newGate()
		big := c.Class("big")
		waits := enqueue(t, big, answer.suspended(quick))
		takes := enqueue(t, big, g.body)
		synctest.Wait()
		checkStatus(t, c, waits, core.StatusSuspended)
		checkStatus(t, c, takes, core.StatusRunning)
		answer.open()
		checkExplained(t, c, waits, `operation # is suspended: its wait is over and it waits for a slot; the only slot of class "big" is taken by operation %d, for 0s`, takes)
		g.open()
		checkError(t, "Wait", c.Wait(t.Context(), waits), nil)
	})
}

// A class has a queue of its own in each lane, as deep as it says, or else as the lane's. DropOldest drops from it.
func TestClassHasAQueueOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxQueued: 2, DropOldest: true, Lanes: []core.Lane{{Name: "hot", Depth: 3}, {Name: "normal"}},
			Classes: []core.Class{{Name: "as the lane"}, {Name: "deep", Depth: 4}, {Name: "none", Depth: -1}}})
		c.Pause()
		fill := func(in *core.Coordinator[coretest.Body]) (ids []core.OperationID) {
			for range 5 {
				if id, err := in.TryEnqueue(t.Context(), quick); err == nil {
					ids = append(ids, id)
				}
			}
			return ids
		}
		for class, want := range map[string][2]int{"as the lane": {3, 2}, "deep": {4, 4}, "none": {0, 0}} {
			fill(c.Class(class).Lane("hot"))
			for i, id := range fill(c.Class(class)) {
				status := core.StatusPending
				if i < 5-want[1] {
					status = core.StatusDropped
				}
				checkStatus(t, c, id, status)
			}
			for s := range c.Operations(core.OperationQuery{Class: class, Status: core.StatusPending}) {
				want[map[string]int{"hot": 0, "normal": 1}[s.Lane]]--
			}
			checkEqual(t, class+", room that is left", want, [2]int{})
		}
		c.Resume()
	})
}

func TestClassOptionsRefused(t *testing.T) {
	for want, classes := range map[string][]core.Class{
		`class 1 of Options.Classes: name " " is blank`:                   {{Name: " "}},
		`class 2 of Options.Classes: name "a" is that of class 1 already`: {{Name: "a"}, {Name: "a"}},
		`class 1 of Options.Classes: limit is -1`:                         {{Name: "a", Limit: -1}},
		`Options.Classes has 65 entries, but there can be 64`:             make([]core.Class, 65),
	} {
		_, err := core.NewCoordinator(coretest.Run, core.Options{Classes: classes})
		coretest.Check(t, err != nil && strings.Contains(err.Error(), want), "%.60v: got error %v, want it to contain %q", classes, err, want)
	}
	if err := core.ForEach(t.Context(), upTo(1), func(context.Context, int) error { return nil }, core.Options{Classes: []core.Class{{Name: "a"}}}); err == nil {
		t.Error("ForEach with classes: got no error")
	}
}

// Items without a key run side by side, and take turns with those that have one.
func TestItemsWithoutKeyHaveNoOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begun := time.Now()
		c := jobs(t, core.Options{MaxConcurrency: 8})
		sleep := func(context.Context) error { time.Sleep(time.Second); return nil }
		for range 8 {
			enqueue(t, c, job{"", sleep})
		}
		checkError(t, "WaitIdle", c.WaitIdle(t.Context()), nil)
		checkEqual(t, "eight at once took", time.Since(begun), time.Second)

		c.SetMaxConcurrency(1)
		var ran []string
		c.Pause()
		for i := range 3 {
			for _, key := range []string{"a", ""} {
				enqueue(t, c, job{key, func(context.Context) error { ran = append(ran, key+fmt.Sprint(i)); return nil }})
			}
		}
		c.Resume()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkSlice(t, "in turn", ran, []string{"a0", "0", "1", "2", "a1", "a2"})
		checkError(t, "ForEachKeyed", core.ForEachKeyed(t.Context(), upTo(8), func(int) string { return "" },
			func(context.Context, int) error { time.Sleep(time.Second); return nil }, core.Options{MaxConcurrency: 8}), nil)
		checkEqual(t, "and eight more", time.Since(begun), 2*time.Second)
	})
}

// A body that waits for an item without a key waits for none of its own.
func TestWaitForItemWithoutKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := jobs(t, core.Options{MaxConcurrency: 1})
		var inner error
		checkError(t, "Do", c.Do(t.Context(), job{"", func(ctx context.Context) error {
			inner = c.Do(ctx, job{"", quick})
			return nil
		}}), nil)
		checkError(t, "Do in a body", inner, nil)
		checkError(t, "Close", c.Close(), nil)
	})
}
