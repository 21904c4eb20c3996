package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func lanes(t testing.TB, spec string) []core.Lane {
	t.Helper()
	lanes, err := core.ParseLanes(spec)
	if err != nil {
		t.Fatal(err)
	}
	return lanes
}

// occupied makes a coordinator of one slot, which is taken until the gate is opened.
func occupied(t *testing.T, opts core.Options) (*core.Coordinator[coretest.Body], *gate) {
	t.Helper()
	opts.MaxConcurrency = 1
	c := bodies(t, opts)
	g := newGate()
	enqueue(t, c, g.body)
	synctest.Wait()
	return c, g
}

// Higher lanes first, and within one who came first.
func TestLanesGoInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		c, g := occupied(t, core.Options{Lanes: lanes(t, "hot, normal, slow")})
		for _, name := range []string{"slow 1", "normal 1", "hot 1", "slow 2", "hot 2", "normal 2", "hot 3"} {
			lane, _, _ := strings.Cut(name, " ")
			enqueue(t, c.Lane(lane), j.noting(name))
		}
		g.open()
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		j.check(t, "hot 1", "hot 2", "hot 3", "normal 1", "normal 2", "slow 1", "slow 2")
	})
}

// Weak point 9: priority applies only to moving items into an inner queue, so that
// a late one of high priority waits behind hundreds of low ones. Here the lane is
// chosen when a slot gets free.
func TestLateHighItemIsNext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begun := time.Now()
		c := bodies(t, core.Options{MaxConcurrency: 2, Lanes: lanes(t, "hot, normal, slow")})
		for range 500 {
			enqueue(t, c.Lane("slow"), takes(time.Second))
		}
		for i := range 5 {
			time.Sleep(time.Second / 2)
			var began time.Duration
			enqueue(t, c.Lane("hot"), func(context.Context) error {
				began = time.Since(begun)
				return nil
			})
			time.Sleep(time.Second / 2)
			synctest.Wait()
			checkEqual(t, "the hot one began after", began, time.Duration(i+1)*time.Second)
		}
		checkError(t, "Drain", c.Drain(t.Context()), nil)
	})
}

// Docs: "hot:4" is a lane with at most four running. What it leaves is for others.
func TestLaneLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 6, Lanes: lanes(t, "hot:4, normal, slow:1")})
		g := newGate()
		c.Pause()
		for _, lane := range []string{"hot", "slow", "normal"} {
			for range 10 {
				enqueue(t, c.Lane(lane), g.body)
			}
		}
		c.Resume()
		running := func() (n []int) {
			synctest.Wait()
			for _, l := range c.Stats().Lanes {
				n = append(n, l.Running)
			}
			return n
		}
		checkSlice(t, "running", running(), []int{4, 2, 0})
		checkError(t, "SetMaxConcurrency", c.SetMaxConcurrency(100), nil)
		checkSlice(t, "running with more slots", running(), []int{4, 10, 1})
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
	})
}

// Items of which nobody says the lane go into "normal", or into the last.
func TestDefaultLane(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for spec, want := range map[string]string{
			"hot, normal, slow": "normal",
			"normal:1, slow":    "normal",
			"hot, cold":         "cold",
			"hot, Normal, slow": "slow",
		} {
			c := bodies(t, core.Options{Lanes: lanes(t, spec)})
			s, ok := c.Lookup(enqueue(t, c, quick))
			if !ok || s.Lane != want {
				t.Errorf("lanes %q: got lane %q, want %q", spec, s.Lane, want)
			}
		}
	})
}

func TestUnknownLane(t *testing.T) {
	bubble(t, func(t *testing.T) {
		laned, plain := bodies(t, core.Options{Lanes: lanes(t, "hot, cold")}), bodies(t, core.Options{Name: "plain"})
		for _, test := range []struct {
			c    *core.Coordinator[coretest.Body]
			lane string
			want []string // parts of the error
		}{
			{laned, "Hot", []string{`"Hot"`, `"hot"`, `"cold"`}}, // case matters
			{laned, "", []string{`""`, `"hot"`, `"cold"`}},
			{laned, "hot:4", []string{`"hot:4"`}},
			{plain, "normal", []string{`"normal"`, "plain"}},
			{plain, "", []string{`""`, "plain"}},
		} {
			view := test.c.Lane(test.lane)
			_, err := view.Enqueue(t.Context(), quick)
			checkError(t, "Enqueue", err, core.ErrUnknownLane)
			_, tryErr := view.TryEnqueue(quick)
			checkError(t, "TryEnqueue", tryErr, core.ErrUnknownLane)
			checkError(t, "Do", view.Do(t.Context(), quick), core.ErrUnknownLane)
			for _, part := range test.want {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("lane %q: got error %q, want it to contain %q", test.lane, err, part)
				}
			}
		}
		checkEqual(t, "rejected", laned.Stats().Rejected, 9)
		closeDown(t, plain)
		_, err := plain.Lane("x").TryEnqueue(quick)
		checkError(t, "TryEnqueue after Close", err, core.ErrClosed)
	})
}

// Weak point 9: the inner coordinator is hidden, so that of all it can do nothing
// can be reached. Here a lane is a view of the coordinator.
func TestLaneIsAViewOfItsCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, g := occupied(t, core.Options{Lanes: lanes(t, "hot, normal"), Name: "views"})
		hot := c.Lane("hot")
		id := enqueue(t, hot, raise("said"))
		if s, ok := c.Lookup(id); !ok || s.Lane != "hot" {
			t.Errorf("got %+v, want it in lane hot", s)
		}
		var found []core.OperationID
		for s := range c.Operations(core.OperationQuery{Lane: "hot"}) {
			found = append(found, s.ID)
		}
		checkSlice(t, "operations of the lane", found, []core.OperationID{id})
		checkEqual(t, "name", hot.Name(), "views")
		if hot.Sink() != c.Sink() {
			t.Error("the view has a sink of its own")
		}
		if _, ok := hot.Pin(id); !ok {
			t.Error("Pin by the view: got false")
		}
		finalized := 0
		hot.OnFinalized(func(core.Snapshot) { finalized++ })
		hot.Pause()
		checkEqual(t, "paused", c.Stats().Paused, true)
		c.Resume()
		g.open()
		checkError(t, "Wait", hot.Wait(t.Context(), id), nil)
		checkEqual(t, "said", hot.Has("said"), true)
		if _, err := hot.Lane("normal").TryEnqueue(quick); err != nil { // a view of a view
			t.Error(err)
		}
		checkError(t, "Close", hot.Close(), nil)
		checkEqual(t, "finalized", finalized, 3)
		_, err := c.TryEnqueue(quick)
		checkError(t, "TryEnqueue after Close", err, core.ErrClosed)
	})
}

// Weak point 9: what it hands out of its counters is one array that later calls
// overwrite.
func TestLaneStatsAreACopy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, g := occupied(t, core.Options{Lanes: []core.Lane{{Name: "hot", Limit: 3}, {Name: "normal", Depth: 7}}, MaxQueued: 5})
		enqueue(t, c.Lane("hot"), quick)
		enqueue(t, c.Lane("hot"), quick)
		before := c.Stats()
		want := []core.LaneStats{{Name: "hot", Pending: 2, Limit: 3, Depth: 5}, {Name: "normal", Running: 1, Depth: 7}}
		checkSlice(t, "lanes", before.Lanes, want)
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		c.Stats()
		checkSlice(t, "lanes, as they were", before.Lanes, want)
		checkSlice(t, "lanes", c.Stats().Lanes, []core.LaneStats{{Name: "hot", Limit: 3, Depth: 5}, {Name: "normal", Depth: 7}})
		if got := bodies(t, core.Options{}).Stats().Lanes; got != nil {
			t.Errorf("lanes of a coordinator without any: got %v", got)
		}
	})
}

// Weak point 9: lanes are unbounded and Enqueue ignores its context, so that nothing
// slows a producer down. Here each lane has a queue of its own.
func TestLaneHasAQueueOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		c, g := occupied(t, core.Options{Lanes: []core.Lane{{Name: "hot", Depth: 1}, {Name: "normal"}}, MaxQueued: 2})
		hot := c.Lane("hot")
		enqueue(t, hot, j.noting("hot 1"))
		for _, name := range []string{"hot 2", "hot 3"} { // first come, first served
			go func() {
				if _, err := hot.Enqueue(t.Context(), j.noting(name)); err != nil {
					t.Errorf("Enqueue: %v", err)
				}
			}()
			synctest.Wait()
		}
		_, err := hot.TryEnqueue(quick)
		checkError(t, "TryEnqueue into a full lane", err, core.ErrFull)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		begun := time.Now()
		_, err = hot.Enqueue(ctx, quick)
		checkError(t, "Enqueue into a full lane", err, errOnPurpose)
		checkEqual(t, "it took", time.Since(begun), time.Second)
		// Nobody is in the way of the other lane.
		enqueue(t, c, j.noting("normal 1"))
		enqueue(t, c, j.noting("normal 2"))
		_, err = c.TryEnqueue(quick)
		checkError(t, "TryEnqueue into the other lane, full as well", err, core.ErrFull)
		checkEqual(t, "rejected", c.Stats().Rejected, 3)
		g.open()
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		synctest.Wait()
		j.check(t, "hot 1", "hot 2", "hot 3", "normal 1", "normal 2")
	})
}

// Weak point 2: one number for the window and the queue. A lane's depth is neither
// that of the window nor of another lane.
func TestLaneDepthIsNotTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, g := occupied(t, core.Options{Lanes: []core.Lane{{Name: "deep", Depth: 500}, {Name: "normal", Depth: 1}}, MaxTracked: 1})
		for range 500 {
			enqueue(t, c.Lane("deep"), quick)
		}
		enqueue(t, c, quick)
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkEqual(t, "tracked", c.Stats().Tracked, 1)
	})
}

func TestDropOldestOfLane(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, g := occupied(t, core.Options{Lanes: []core.Lane{{Name: "hot", Depth: 2}, {Name: "normal", Depth: 1}}, DropOldest: true})
		other := enqueue(t, c, quick)
		var ids []core.OperationID
		for range 4 {
			ids = append(ids, enqueue(t, c.Lane("hot"), quick))
		}
		checkStatus(t, c, ids[0], core.StatusDropped)
		checkStatus(t, c, ids[1], core.StatusDropped)
		checkStatus(t, c, ids[2], core.StatusPending)
		checkStatus(t, c, other, core.StatusPending) // is older, but of another lane
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkEqual(t, "dropped", c.Stats().Dropped, 2)
	})
}

// Weak point 9: the queued items of a lane are discarded while a signal is present,
// without a trace.
func TestLaneRefusalsAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, g := occupied(t, core.Options{Lanes: []core.Lane{{Name: "bulk", CancelOn: "bulk.stop"}, {Name: "normal"}}, CancelOn: "stop"})
		bulk := c.Lane("bulk")
		var finalized []core.OperationID
		c.OnFinalized(func(s core.Snapshot) { finalized = append(finalized, s.ID) })
		late := enqueue(t, bulk, quick)
		other := enqueue(t, c, quick)
		c.Sink().Raise("bulk.stop")
		_, err := bulk.TryEnqueue(quick)
		checkRefusal(t, err, "bulk.stop")
		g.open()
		synctest.Wait()
		s := checkStatus(t, c, late, core.StatusRefused)
		checkRefusal(t, s.Err, "bulk.stop")
		checkRefusal(t, c.Wait(t.Context(), late), "bulk.stop")
		checkStatus(t, c, other, core.StatusSucceeded)
		if s := c.Stats(); s.Refused != 1 || s.Rejected != 1 {
			t.Errorf("got %v, want one refused and one rejected", s)
		}
		c.Sink().Raise("stop") // goes for all lanes
		_, err = c.TryEnqueue(quick)
		checkRefusal(t, err, "stop")
		_, err = bulk.TryEnqueue(quick)
		checkRefusal(t, err, "stop") // and is named first
		closeDown(t, c)
		checkEqual(t, "finalized", len(finalized), 3)
	})
}

// Items that wait for room are let in when others are refused, and refused in
// turn, also while the other lane is deferred.
func TestRefusedLaneLetsOthersIn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1, DeferOn: "wait", MaxDefer: -1, Lanes: []core.Lane{
			{Name: "bulk", Depth: 1, CancelOn: "bulk.stop"}, {Name: "normal"},
		}})
		c.Sink().Raise("wait")
		enqueue(t, c, quick)
		for range 3 {
			go c.Lane("bulk").Enqueue(t.Context(), quick)
		}
		synctest.Wait()
		checkEqual(t, "pending", c.Stats().Pending, 2)
		c.Sink().Raise("bulk.stop")
		synctest.Wait()
		if s := c.Stats(); s.Refused != 3 || s.Pending != 1 {
			t.Errorf("got %v, want all three of the lane refused", s)
		}
		closeDown(t, c)
	})
}

// Weak point 9: a deferred lane is looked at again only when the next item comes.
// If none does it never runs, and Drain hangs.
func TestDeferredLaneRunsByItself(t *testing.T) {
	for name, end := range map[string]func(c *core.Coordinator[coretest.Body], release func()){
		"released":       func(_ *core.Coordinator[coretest.Body], release func()) { release() },
		"lease ends":     func(*core.Coordinator[coretest.Body], func()) { time.Sleep(time.Hour) },
		"resumed":        func(c *core.Coordinator[coretest.Body], _ func()) { c.Sink().Raise("go") },
		"drained before": func(c *core.Coordinator[coretest.Body], release func()) { c.Complete(); release() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := bodies(t, core.Options{MaxDefer: -1, ResumeOn: "go", Lanes: []core.Lane{{Name: "bulk", DeferOn: "busy"}, {Name: "normal"}}})
				release := c.Sink().Hold("busy", "", time.Hour)
				id := enqueue(t, c.Lane("bulk"), quick)
				checkError(t, "Do in the other lane", c.Do(t.Context(), quick), nil) // is passed over
				checkStatus(t, c, id, core.StatusPending)
				end(c, release)
				synctest.Wait()
				checkStatus(t, c, id, core.StatusSucceeded)
				checkError(t, "Drain", c.Drain(t.Context()), nil)
				release()
			})
		})
	}
}

// Weak point 9: attempts are used up by every look at the lanes, and one interval
// goes for all, so that no lane's own limit is honoured.
func TestMaxDeferOfLaneIsItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begun := time.Now()
		var j journal
		at := func(name string) coretest.Body {
			return func(context.Context) error {
				j.note(fmt.Sprint(name, " at ", time.Since(begun)))
				return nil
			}
		}
		c := bodies(t, core.Options{MaxConcurrency: 4, MaxDefer: 30 * time.Second, Lanes: []core.Lane{
			{Name: "a", DeferOn: "busy", MaxDefer: 20 * time.Second},
			{Name: "b", DeferOn: "busy", MaxDefer: 7 * time.Second},
			{Name: "c", DeferOn: "busy"}, // that of the options
			{Name: "d", DeferOn: "busy", MaxDefer: -1},
			{Name: "normal"},
		}})
		release := c.Sink().Hold("busy", "", 0)
		for _, lane := range []string{"a", "b", "c", "d"} {
			enqueue(t, c.Lane(lane), at(lane))
		}
		for range 60 { // others come and go, which uses nothing up
			enqueue(t, c, quick)
			time.Sleep(time.Second)
		}
		j.check(t, "b at 7s", "a at 20s", "c at 30s")
		checkEqual(t, "forced", c.Stats().Forced, 3)
		release()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		j.check(t, "d at 1m0s")
	})
}

// That one lane is held up for longer keeps nobody from looking at the others.
func TestDeferredLaneDoesNotHoldUpOthers(t *testing.T) {
	opts := core.Options{MaxConcurrency: 2, DeferOn: "wait", MaxDefer: 5 * time.Second, Lanes: []core.Lane{
		{Name: "a", DeferOn: "a.wait", MaxDefer: -1}, {Name: "b"},
	}}
	t.Run("forced in its time", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			c := bodies(t, opts)
			c.Sink().Raise("wait")
			c.Sink().Raise("a.wait")
			enqueue(t, c.Lane("a"), quick)
			time.Sleep(10 * time.Second) // it would run by now but for its own rule
			begun := time.Now()
			checkError(t, "Do", c.Lane("b").Do(t.Context(), quick), nil)
			checkEqual(t, "deferred for", time.Since(begun), 5*time.Second)
			closeDown(t, c)
		})
	})
	t.Run("resumed", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			opts := opts
			opts.ResumeOn = "go"
			c := bodies(t, opts)
			for _, name := range []string{"wait", "go", "a.wait"} {
				c.Sink().Raise(name)
			}
			enqueue(t, c.Lane("a"), quick)
			synctest.Wait()
			begun := time.Now()
			checkError(t, "Do", c.Lane("b").Do(t.Context(), quick), nil)
			checkEqual(t, "deferred for", time.Since(begun), 0)
			closeDown(t, c)
		})
	})
}

// Weak point 9: every Enqueue leaves a permit behind for an empty pass. While all
// that is pending is deferred, or its key or lane is busy, there is no goroutine
// but those of the bodies: the bubble would report another.
func TestNobodyLooksWhileNothingCanStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := jobs(t, core.Options{MaxConcurrency: 8, MaxDefer: -1, Lanes: []core.Lane{{Name: "a", DeferOn: "busy"}, {Name: "b", DeferOn: "busy"}}})
		c.Sink().Hold("busy", "", 0)
		for i := range 100 {
			enqueue(t, c.Lane([]string{"a", "b"}[i%2]), job{fmt.Sprint(i % 5), quick})
		}
		synctest.Wait()
		checkEqual(t, "pending", c.Stats().Pending, 100)
	})
}

// Weak point 9: a second drain fails, and one that waits ignores its context.
func TestDrainOfLanes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, g := occupied(t, core.Options{Lanes: lanes(t, "hot, normal, slow")})
		for _, lane := range []string{"slow", "hot"} {
			enqueue(t, c.Lane(lane), quick)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		checkError(t, "Drain", c.Drain(ctx), errOnPurpose)
		for _, lane := range []string{"slow", "hot"} {
			_, err := c.Lane(lane).TryEnqueue(quick)
			checkError(t, "TryEnqueue", err, core.ErrClosed)
		}
		g.open()
		for range 2 {
			checkError(t, "Drain", c.Drain(t.Context()), nil)
		}
		checkEqual(t, "succeeded", c.Stats().Succeeded, 3)
	})
}

// Weak point 9: with keys, an item of a higher lane overtakes an earlier one of the
// same key in a lower lane, and nobody says so. It does; two never run at once.
func TestHigherLaneGoesBeforeOrderOfKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		c := jobs(t, core.Options{MaxConcurrency: 4, Lanes: lanes(t, "hot, normal")})
		g := newGate()
		enqueue(t, c, job{"a", g.body})
		synctest.Wait()
		running := 0
		noting := func(name string) coretest.Body {
			return func(context.Context) error {
				running++
				j.note(fmt.Sprint(name, " as ", running))
				time.Sleep(time.Second)
				running--
				return nil
			}
		}
		for _, name := range []string{"normal 1", "normal 2", "hot 1", "hot 2"} {
			lane, _, _ := strings.Cut(name, " ")
			enqueue(t, c.Lane(lane), job{"a", noting(name)})
		}
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		j.check(t, "hot 1 as 1", "hot 2 as 1", "normal 1 as 1", "normal 2 as 1")
	})
}

// saturate keeps a lane busy: whenever one of its items ends there is another one.
func saturate(t *testing.T, c *core.Coordinator[coretest.Body], takes func() time.Duration) (stop func()) {
	var stopped atomic.Bool
	var item coretest.Body
	item = func(context.Context) error {
		if !stopped.Load() {
			enqueue(t, c, item)
		}
		time.Sleep(takes())
		return nil
	}
	enqueue(t, c, item)
	enqueue(t, c, item)
	return func() { stopped.Store(true) }
}

func second() time.Duration { return time.Second }

// A lower lane does not starve: its items go next when they have waited for the
// time of Ageing, but take no more than every fourth start.
func TestAgeing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begun := time.Now()
		c := bodies(t, core.Options{MaxConcurrency: 1, Ageing: 10 * time.Second, Lanes: lanes(t, "hot, normal, slow")})
		stop := saturate(t, c.Lane("hot"), second)
		var starts []string
		slow := func(lane string) {
			enqueue(t, c.Lane(lane), func(context.Context) error {
				starts = append(starts, fmt.Sprint(lane, " ", time.Since(begun)))
				time.Sleep(time.Second)
				return nil
			})
		}
		time.Sleep(time.Second / 2)
		for range 3 {
			slow("slow")
		}
		time.Sleep(time.Second)
		slow("normal") // is of a higher lane, but has not waited as long
		slow("normal")
		time.Sleep(40 * time.Second)
		stop()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkSlice(t, "starts", starts, []string{"slow 11s", "slow 15s", "slow 19s", "normal 23s", "normal 27s"})
	})
}

// With one item that ages at a time, it starts after Ageing and the rest of one body,
// whatever the bodies take.
func TestAgeingBoundsTheWait(t *testing.T) {
	const ageing, body = 5 * time.Second, time.Second
	for seed := range uint64(20) {
		bubble(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			c := bodies(t, core.Options{MaxConcurrency: 1 + int(seed%3), Ageing: ageing, Lanes: lanes(t, "hot, slow")})
			var bodies atomic.Uint64
			var stops []func()
			for range 1 + seed%3 {
				stops = append(stops, saturate(t, c.Lane("hot"), func() time.Duration {
					return 1 + time.Duration(rand.New(rand.NewPCG(seed, bodies.Add(1))).Int64N(int64(body)))
				}))
			}
			for range 20 {
				time.Sleep(time.Duration(random.Int64N(int64(10 * time.Second))))
				begun := time.Now()
				var waited time.Duration
				checkError(t, "Do", c.Lane("slow").Do(t.Context(), func(context.Context) error {
					waited = time.Since(begun)
					return nil
				}), nil)
				if waited < ageing || waited > ageing+body {
					t.Errorf("seed %d: it waited %v, want between %v and %v", seed, waited, ageing, ageing+body)
				}
			}
			for _, stop := range stops {
				stop()
			}
			checkError(t, "Drain", c.Drain(t.Context()), nil)
		})
	}
}

// However large the backlog that has aged, the higher lane keeps three of four.
func TestAgeingTakesEveryFourthStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var starts []string
		noting := func(lane string) coretest.Body {
			return func(context.Context) error {
				starts = append(starts, lane)
				return nil
			}
		}
		c, g := occupied(t, core.Options{Ageing: time.Minute, Lanes: lanes(t, "hot, normal, slow")})
		for range 100 {
			enqueue(t, c.Lane("slow"), noting("slow"))
			time.Sleep(time.Nanosecond)
			enqueue(t, c.Lane("normal"), noting("normal"))
			time.Sleep(time.Nanosecond)
		}
		time.Sleep(time.Hour)
		for range 100 {
			enqueue(t, c.Lane("hot"), noting("hot"))
		}
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		for i := range 130 {
			want := "hot"
			if i%4 == 0 {
				want = []string{"slow", "normal"}[i/4%2]
			}
			if starts[i] != want {
				t.Fatalf("start %d: got %s, want %s, of %q", i, starts[i], want, starts[:i+1])
			}
		}
	})
}

// Without ageing priority is strict; without saying so it is after ten seconds.
func TestAgeingDefaultAndNone(t *testing.T) {
	for ageing, want := range map[time.Duration]time.Duration{0: 10 * time.Second, -1: 100 * time.Second} {
		bubble(t, func(t *testing.T) {
			begun := time.Now()
			c := bodies(t, core.Options{MaxConcurrency: 1, Ageing: ageing, Lanes: lanes(t, "hot, slow")})
			stop := saturate(t, c.Lane("hot"), second)
			time.AfterFunc(97*time.Second+time.Second/2, stop)
			var waited time.Duration
			checkError(t, "Do", c.Lane("slow").Do(t.Context(), func(context.Context) error {
				waited = time.Since(begun)
				return nil
			}), nil)
			checkEqual(t, fmt.Sprint("waited with Ageing ", ageing), waited, want)
			stop()
			checkError(t, "Drain", c.Drain(t.Context()), nil)
		})
	}
}

// Weak points 12: lowering the limit takes no effect under a backlog; after 8, 2, 8
// there run 14.
func TestLimitUnderBacklog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := jobs(t, core.Options{MaxQueued: 1000, MaxConcurrency: 8, MaxPerKey: 3, Lanes: lanes(t, "hot:5, normal")})
		var (
			mu    sync.Mutex
			gates []*gate // of those that run
		)
		for i := range 600 {
			enqueue(t, c.Lane([]string{"hot", "normal"}[i%2]), job{fmt.Sprint(i % 7), func(ctx context.Context) error {
				g := newGate()
				mu.Lock()
				gates = append(gates, g)
				mu.Unlock()
				return g.body(ctx)
			}})
		}
		running := func(want int) {
			t.Helper()
			synctest.Wait()
			s := c.Stats()
			checkEqual(t, "running", s.Running, want)
			checkError(t, "the books", coretest.CheckBooks(s), nil)
			if n := s.Lanes[0].Running; n > 5 {
				t.Errorf("%d of the lane run, want at most 5", n)
			}
		}
		finish := func() { // at rest
			g := gates[0]
			gates = gates[1:]
			g.open()
		}
		limit := func(n int) { checkError(t, "SetMaxConcurrency", c.SetMaxConcurrency(n), nil) }
		running(8)
		limit(2)
		for n := 7; n >= 2; n-- {
			finish()
			running(n)
		}
		for range 10 { // the surplus is gone, and stays gone
			finish()
			running(2)
		}
		limit(4)
		running(4)
		limit(2)
		limit(8) // while 4 run
		running(8)
		limit(2)
		limit(8) // while 8 run
		running(8)
		for range 20 {
			finish()
			running(8)
		}
		closing := make(chan error)
		go func() { closing <- c.Close() }()
		synctest.Wait()
		for _, g := range gates {
			g.open()
		}
		checkError(t, "Close", <-closing, nil)
	})
}

// Weak point 12: waiters that have given up stay in line until a release passes
// over them.
func TestWhoGivesUpIsNotInTheWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, g := occupied(t, core.Options{Lanes: []core.Lane{{Name: "hot", Depth: 1}, {Name: "normal"}}})
		hot := c.Lane("hot")
		pending := enqueue(t, hot, func(context.Context) error { t.Error("it ran"); return nil })
		ctx, cancel := context.WithCancel(t.Context())
		for range 100 {
			go hot.Enqueue(ctx, func(context.Context) error { t.Error("it ran"); return nil })
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		checkEqual(t, "rejected", c.Stats().Rejected, 100)
		checkEqual(t, "Cancel", c.Cancel(pending, nil), true)
		enqueue(t, hot, quick) // there is room, and nobody before it
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkEqual(t, "succeeded", c.Stats().Succeeded, 2)
	})
}

// Weak points 2 and 9: bad options break things at run time, silently.
func TestLaneOptionsRefused(t *testing.T) {
	many := make([]core.Lane, 65)
	for i := range many {
		many[i].Name = fmt.Sprint(i)
	}
	one := []core.Lane{{Name: "a"}}
	for _, test := range []struct {
		opts core.Options
		want []string // parts of the error
	}{
		{core.Options{Lanes: []core.Lane{{}}}, []string{"lane 1 of Options.Lanes", `name ""`, "blank"}},
		{core.Options{Lanes: []core.Lane{{Name: "a"}, {Name: " \t"}}}, []string{"lane 2", `" \t"`, "blank"}},
		{core.Options{Lanes: []core.Lane{{Name: "a"}, {Name: "b"}, {Name: "a"}}}, []string{"lane 3", `"a"`, "lane 1 already"}},
		{core.Options{Lanes: many}, []string{"Options.Lanes", "65", "64"}},
		{core.Options{Lanes: []core.Lane{{Name: "a", Limit: -2}}}, []string{"lane 1", "limit", "-2", "must not be negative"}},
		{core.Options{Lanes: []core.Lane{{Name: "a", Depth: -3}}}, []string{"lane 1", "depth", "-3", "must not be negative"}},
		{core.Options{Lanes: []core.Lane{{Name: "a", MaxDefer: time.Second}}}, []string{"lane 1", "MaxDefer", "1s", "no DeferOn"}},
		{core.Options{Lanes: []core.Lane{{Name: "a", MaxDefer: -1}}, DeferOn: "x"}, []string{"lane 1", "MaxDefer", "-1ns", "no DeferOn"}},
		{core.Options{Lanes: []core.Lane{{Limit: -1}, {Name: "a", Depth: -1}}}, []string{"lane 1", "blank", "limit", "lane 2", "depth"}}, // all at once
		{core.Options{Ageing: time.Second}, []string{"Options.Ageing", "1s", "no lanes"}},
		{core.Options{Ageing: -1}, []string{"Options.Ageing", "-1ns", "no lanes"}},
		{core.Options{Lanes: one, ResumeOn: "go"}, []string{"Options.ResumeOn", `"go"`, "no DeferOn"}},
		{core.Options{MaxPerKey: -1}, []string{"Options.MaxPerKey", "-1", "must not be negative"}},
		{core.Options{MaxPerKey: -1, Lanes: one, MaxQueued: -1}, []string{"MaxPerKey", "MaxQueued"}},
	} {
		work := func(context.Context, int) error { return nil }
		key := func(int) string { return "" }
		result := func(context.Context, int) (int, error) { return 0, nil }
		errs := map[string]error{}
		_, errs["plain"] = core.NewCoordinator(work, test.opts)
		_, errs["keyed"] = core.NewKeyedCoordinator(key, work, test.opts)
		_, errs["result"] = core.NewResultCoordinator(result, test.opts)
		_, errs["keyed result"] = core.NewKeyedResultCoordinator(key, result, test.opts)
		for kind, err := range errs {
			if err == nil {
				t.Errorf("%s coordinator with %+v: got no error", kind, test.opts)
				continue
			}
			for _, part := range append(test.want, "core: ") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s coordinator with %+v: got error %q, want it to contain %q", kind, test.opts, err, part)
				}
			}
		}
	}

	// What is fine, so that the above is not too strict.
	for _, opts := range []core.Options{
		{Lanes: one, Ageing: time.Second},
		{Lanes: one, Ageing: -1},
		{Lanes: many[:64]},
		{Lanes: []core.Lane{{Name: "a", DeferOn: "x", MaxDefer: -1}}, ResumeOn: "go"},
		{Lanes: []core.Lane{{Name: "a"}, {Name: "A"}}}, // case matters
		{Lanes: []core.Lane{}},
	} {
		if _, err := core.NewCoordinator(coretest.Run, opts); err != nil {
			t.Errorf("%+v: got error %v", opts, err)
		}
	}
}

// Options that make no sense without keys, or in a loop, are refused by name.
func TestOptionsOfOthersRefused(t *testing.T) {
	work := func(context.Context, int) error { t.Error("it ran"); return nil }
	one := core.Options{Lanes: []core.Lane{{Name: "a"}}}
	_, plain := core.NewCoordinator(work, core.Options{MaxPerKey: 2})
	_, result := core.NewResultCoordinator(square, core.Options{MaxPerKey: 2})
	var mapped error
	for _, mapped = range core.Map(t.Context(), upTo(1), square, one) {
	}
	for _, test := range []struct {
		what string
		err  error
		want []string
	}{
		{"MaxPerKey without keys", plain, []string{"Options.MaxPerKey", "2", "without keys"}},
		{"MaxPerKey of results without keys", result, []string{"Options.MaxPerKey", "2", "without keys"}},
		{"MaxPerKey of ForEach", core.ForEach(t.Context(), upTo(1), work, core.Options{MaxPerKey: 2}), []string{"Options.MaxPerKey", "2", "without keys"}},
		{"Lanes of ForEach", core.ForEach(t.Context(), upTo(1), work, one), []string{"Options.Lanes", "ForEach"}},
		{"Lanes of ForEachKeyed", core.ForEachKeyed(t.Context(), upTo(1), strconv.Itoa, work, one), []string{"Options.Lanes", "ForEach"}},
		{"Lanes of Map", mapped, []string{"Options.Lanes", "Map"}},
		{"Ageing of ForEach", core.ForEach(t.Context(), upTo(1), work, core.Options{Ageing: 1}), []string{"Options.Ageing", "1ns"}},
	} {
		if test.err == nil {
			t.Errorf("%s: got no error", test.what)
			continue
		}
		for _, part := range test.want {
			if !strings.Contains(test.err.Error(), part) {
				t.Errorf("%s: got error %q, want it to contain %q", test.what, test.err, part)
			}
		}
	}
}

// The coordinator has its own copy of the lanes it was given.
func TestLanesAreCopied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		given := lanes(t, "hot, normal")
		opts := core.Options{Lanes: given}
		a, b := bodies(t, opts), bodies(t, opts)
		checkSlice(t, "the lanes that were given", given, lanes(t, "hot, normal"))
		given[0].Name = "other"
		for _, c := range []*core.Coordinator[coretest.Body]{a, b} {
			checkError(t, "Do", c.Lane("hot").Do(t.Context(), quick), nil)
		}
	})
}

func TestParseLanes(t *testing.T) {
	for spec, want := range map[string][]core.Lane{
		"hot":                          {{Name: "hot"}},
		"hot:4, normal, slow:2":        {{Name: "hot", Limit: 4}, {Name: "normal"}, {Name: "slow", Limit: 2}},
		" hot : 4 ,\n\tnormal\u00a0":   {{Name: "hot", Limit: 4}, {Name: "normal"}},
		"a b:007":                      {{Name: "a b", Limit: 7}},
		"größe:+1":                     {{Name: "größe", Limit: 1}},
		"Hot,hot":                      {{Name: "Hot"}, {Name: "hot"}},
		"a" + strings.Repeat(" ", 1e5): {{Name: "a"}},
	} {
		got, err := core.ParseLanes(spec)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("ParseLanes(%.40q): got %+v and error %v, want %+v", spec, got, err, want)
		}
	}
	var most []string
	for i := range 64 {
		most = append(most, fmt.Sprint("lane ", i))
	}
	if got, err := core.ParseLanes(strings.Join(most, ",")); err != nil || len(got) != 64 {
		t.Errorf("64 lanes: got %d and error %v", len(got), err)
	}
	for spec, want := range map[string][]string{
		"":                           {"lane 1", `name ""`, "blank"},
		"hot,,slow":                  {"lane 2", "blank"},
		",":                          {"lane 1", "lane 2", "blank"},
		":3":                         {"lane 1", "blank"},
		"hot:":                       {"lane 1", `limit ""`, "number from 1"},
		"hot:0":                      {`limit "0"`, "number from 1"},
		"a, hot:-1":                  {"lane 2", `limit "-1"`, "number from 1"},
		"hot:x":                      {`limit "x"`},
		"hot:1.5":                    {`limit "1.5"`},
		"hot:4:4":                    {`limit "4:4"`},
		"hot:99999999999999999999":   {`limit "99999999999999999999"`},
		"hot:4,hot:4":                {"lane 2", `"hot"`, "lane 1 already"},
		"x:0, ,x":                    {"lane 1", `limit "0"`, "lane 2", "blank", "lane 3", "lane 1 already"}, // all at once
		strings.Repeat("a,", 64):     {"65 lanes", "64"},
		strings.Repeat(",", 100_000): {"100001 lanes", "64"},
	} {
		got, err := core.ParseLanes(spec)
		if err == nil || got != nil {
			t.Errorf("ParseLanes(%.40q): got %+v and error %v, want just an error", spec, got, err)
			continue
		}
		for _, part := range append(want, "core: ", strconv.Quote(spec)) {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("ParseLanes(%.40q): got error %.200q, want it to contain %.60q", spec, err, part)
			}
		}
		if lines := strings.Count(err.Error(), "\n"); lines > 2 {
			t.Errorf("ParseLanes(%.40q): got %d errors, want each thing said once", spec, lines+1)
		}
	}
}

func FuzzParseLanes(f *testing.F) {
	for _, seed := range []string{
		"", "hot", "hot:4, normal, slow:2", " a : 1 ,b", "a:0", "a:-1", "a:+1", "a:1:2", ":", ",", "a,a",
		"a:99999999999999999999", "\xff:3", "a\n:7", "\u00a0a\u00a0:\u20031", strings.Repeat("a,", 70), "é, è", "a:٣",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		got, err := core.ParseLanes(spec)
		if err != nil {
			if got != nil {
				t.Errorf("ParseLanes(%q): got lanes and error %v", spec, err)
			}
			each := []error{err}
			if joined, ok := err.(interface{ Unwrap() []error }); ok {
				each = joined.Unwrap()
			}
			for _, err := range each {
				if text := err.Error(); !strings.HasPrefix(text, "core: ") || !strings.Contains(text, strconv.Quote(spec)) {
					t.Errorf("ParseLanes(%q): got error %q, want it to name the spec", spec, text)
				}
			}
			return
		}
		var again []string
		for _, l := range got {
			if l.Limit < 0 || l != (core.Lane{Name: l.Name, Limit: l.Limit}) || strings.TrimSpace(l.Name) != l.Name || l.Name == "" {
				t.Errorf("ParseLanes(%q): got lane %+v", spec, l)
			}
			text := l.Name
			if l.Limit > 0 {
				text += ":" + strconv.Itoa(l.Limit)
			}
			again = append(again, text)
		}
		if same, err := core.ParseLanes(strings.Join(again, ",")); err != nil || !slices.Equal(same, got) {
			t.Errorf("ParseLanes(%q): got %+v, which comes back as %+v with error %v", spec, got, same, err)
		}
		// And a coordinator takes them.
		if _, err := core.NewCoordinator(coretest.Run, core.Options{Lanes: got}); err != nil {
			t.Errorf("ParseLanes(%q): a coordinator does not take that: %v", spec, err)
		}
	})
}
