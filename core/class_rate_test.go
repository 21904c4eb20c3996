package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// starts notes when items start, in milliseconds since starts was made.
type starts struct {
	journal
	begun time.Time
}

func newStarts() *starts { return &starts{begun: time.Now()} }

func (s *starts) body(name string) coretest.Body {
	return func(context.Context) error {
		s.note(fmt.Sprint(name, " ", time.Since(s.begun).Milliseconds()))
		return nil
	}
}

// Items start when their tokens come, whatever the limit is: at 100 a second with a burst of 20, to the nanosecond.
func TestClassStartsAtItsRate(t *testing.T) {
	for _, limit := range []int{1, 8, 2000} {
		bubble(t, func(t *testing.T) {
			c := coordinator(t, func(context.Context, int) error { return nil }, core.Options{MaxConcurrency: limit, MaxQueued: 1000, MaxTracked: 1000, Classes: []core.Class{{Name: "api", Rate: core.Rate{PerSecond: 100, Burst: 20}}}})
			begun := time.Now()
			for i := range 1000 {
				enqueue(t, c.Class("api"), i)
			}
			checkError(t, "Drain", c.Drain(t.Context()), nil)
			i := 0
			for s := range c.Operations(core.OperationQuery{}) {
				if got, want := s.Started.Sub(begun), time.Duration(max(0, i-19))*10*time.Millisecond; got != want {
					t.Fatalf("limit %d: item %d started after %v, want %v", limit, i, got, want)
				}
				i++
			}
			checkEqual(t, "items", i, 1000)
		})
	}
}

// An expensive item of a higher lane gets its tokens before cheap ones of a lower lane, which could start. Another class goes on.
func TestHigherLaneGetsTokensFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStarts()
		c := bodies(t, core.Options{MaxConcurrency: 4, Ageing: -1, Lanes: lanes(t, "hot, cold"),
			Classes: []core.Class{{Name: "api", CostRate: core.Rate{PerSecond: 10, Burst: 10}}, {Name: "other"}}})
		hot, cold := c.Lane("hot").Class("api"), c.Lane("cold").Class("api")
		enqueue(t, hot.Cost(10), s.body("first"))
		synctest.Wait()
		for range 3 {
			enqueue(t, cold.Cost(1), s.body("cheap"))
		}
		enqueue(t, hot.Cost(8), s.body("expensive"))
		enqueue(t, cold.Class("other"), s.body("other"))
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		s.check(t, "first 0", "other 0", "expensive 800", "cheap 900", "cheap 1000", "cheap 1100")
	})
}

// Ageing bounds that: an expensive item of a lower lane gets its tokens although cheap ones keep coming in a higher lane.
func TestAgeingReservesTokens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 4, Ageing: time.Second, Lanes: lanes(t, "hot, cold"),
			Classes: []core.Class{{Name: "api", CostRate: core.Rate{PerSecond: 10, Burst: 10}}}})
		s := newStarts()
		for range 13 {
			enqueue(t, c.Class("api").Lane("hot").Cost(1), quick)
		}
		synctest.Wait()
		for range 2 {
			enqueue(t, c.Class("api").Lane("cold").Cost(10), s.body("expensive"))
		}
		time.Sleep(time.Millisecond)
		for range 100 {
			enqueue(t, c.Class("api").Lane("hot").Cost(1), quick)
		}
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		s.check(t, "expensive 1900", "expensive 3200")
	})
}

// A cost above the burst starts at a full bucket and leaves a debt. A cancelled item takes nothing.
func TestCostAboveTheBurst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStarts()
		c := bodies(t, core.Options{Classes: []core.Class{{Name: "api", CostRate: core.Rate{PerSecond: 10, Burst: 10}}}})
		api := c.Class("api")
		enqueue(t, api.Cost(1), s.body("one"))
		enqueue(t, api.Cost(35), s.body("huge"))
		cancelled := enqueue(t, api.Cost(10), s.body("never"))
		next := enqueue(t, api.Cost(1), s.body("next"))
		synctest.Wait()
		checkExplained(t, c, next, `operation # is pending: class "api" has its next token in 100ms; 2 items before it go first`)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := c.Stats().Classes[0]; got.Cost != (core.RateStats{PerSecond: 10, Burst: 10, Used: 36, Debt: 25}) || time.Until(got.Next) != 3500*time.Millisecond {
			t.Errorf("stats: %v", got)
		}
		checkEqual(t, "Cancel", c.Cancel(cancelled, nil), true)
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		s.check(t, "one 0", "huge 100", "next 2700")
	})
}

// Charge takes more or gives back, not above the burst. After the end it does nothing.
func TestCharge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStarts()
		c := bodies(t, core.Options{MaxConcurrency: 2, Classes: []core.Class{{Name: "api", Rate: core.Rate{PerSecond: 1, Burst: 5}, CostRate: core.Rate{PerSecond: 10, Burst: 100}}}})
		api := c.Class("api")
		var op *core.Operation
		charge := func(calls, cost int) {
			checkError(t, "Do", api.Do(t.Context(), func(ctx context.Context) error {
				op = core.OperationFrom(ctx)
				op.Charge(calls, cost)
				return nil
			}), nil)
		}
		used := func() [2]int64 { k := c.Stats().Classes[0]; return [2]int64{k.Calls.Used, k.Cost.Used} }
		charge(0, 150)
		checkEqual(t, "used", used(), [2]int64{1, 150})
		op.Charge(9, 9)
		(*core.Operation)(nil).Charge(9, 9)
		checkEqual(t, "used after the end", used(), [2]int64{1, 150})
		g := newGate()
		enqueue(t, api, func(ctx context.Context) error { op = core.OperationFrom(ctx); return g.body(ctx) })
		synctest.Wait()
		enqueue(t, api.Cost(10), s.body("in debt"))
		synctest.Wait()
		s.check(t)
		op.Charge(0, -1000)
		synctest.Wait()
		s.check(t, "in debt 0")
		checkEqual(t, "debt", c.Stats().Classes[0].Cost.Debt, 0)
		enqueue(t, api.Cost(91), s.body("no more than the burst"))
		synctest.Wait()
		s.check(t)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		s.check(t, "no more than the burst 100")
		g.open()
		c.Do(t.Context(), func(ctx context.Context) error { core.OperationFrom(ctx).Charge(9, 9); return nil }) // no class
	})
}

// A new rate counts from its beginning, for waiting items, too. Used tokens stay used.
func TestSetClass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStarts()
		c := bodies(t, core.Options{Classes: []core.Class{{Name: "api", Rate: core.Rate{PerSecond: 1, Burst: 1}, DeferOn: "down"}}})
		api := c.Class("api")
		for range 6 {
			enqueue(t, api, s.body("item"))
		}
		synctest.Wait()
		checkError(t, "SetClass", c.SetClass(core.Class{Name: "api", Rate: core.Rate{PerSecond: 10, Burst: 1}}), nil)
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		s.check(t, "item 0", "item 100", "item 200")
		checkError(t, "SetClass", c.SetClass(core.Class{Name: "api", Limit: 1, DeferOn: "down"}), nil)
		synctest.Wait()
		s.check(t, "item 200", "item 200", "item 200")
		checkEqual(t, "rate", c.Stats().Classes[0].Calls, core.RateStats{})
		checkError(t, "unknown", c.SetClass(core.Class{Name: "Api"}), core.ErrUnknownClass)
		for want, class := range map[string]core.Class{
			"only Limit, Rate and CostRate can change": {DeferOn: "up"},
			"limit is -1":            {Limit: -1},
			"rate is NaN":            {Rate: core.Rate{PerSecond: math.NaN()}},
			"rate is +Inf":           {CostRate: core.Rate{PerSecond: math.Inf(1)}},
			"rate is -1":             {CostRate: core.Rate{PerSecond: -1}},
			"burst is -1":            {Rate: core.Rate{PerSecond: 1, Burst: -1}},
			"but there is no rate":   {Rate: core.Rate{Burst: 1}},
			"SetClass of \"api\": R": {Rate: core.Rate{PerSecond: 1e10}},
		} {
			class.Name = "api"
			if err := c.SetClass(class); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("SetClass(%+v): got error %v, want it to contain %q", class, err, want)
			}
		}
	})
}

func TestRateOptionsRefused(t *testing.T) {
	for want, opts := range map[string]core.Options{
		"class 1 of Options.Classes: Rate: core: rate is NaN":          {Classes: []core.Class{{Name: "a", Rate: core.Rate{PerSecond: math.NaN()}}}},
		"class 1 of Options.Classes: CostRate: core: rate is -1":       {Classes: []core.Class{{Name: "a", CostRate: core.Rate{PerSecond: -1}}}},
		"MaxDefer is 1s, but there is no DeferOn":                      {Classes: []core.Class{{Name: "a", MaxDefer: time.Second}}},
		"Trials is 2, but there is no TrialOn":                         {Classes: []core.Class{{Name: "a", Trials: 2}}},
		"Trials is -1":                                                 {Classes: []core.Class{{Name: "a", TrialOn: "x", Trials: -1}}},
		"Options has KeyRate or KeyCostRate, but this is without keys": {KeyCostRate: core.PerMinute(1)},
		"Options.KeyRate: core: rate is +Inf":                          {KeyRate: core.Rate{PerSecond: math.Inf(1)}},
	} {
		_, err := core.NewCoordinator(coretest.Run, opts)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want it to contain %q", err, want)
		}
	}
	c := bodies(t, core.Options{})
	costs := []int{-1, math.MaxInt}
	if math.MaxInt == math.MaxInt32 { // each int fits
		costs = costs[:1]
	}
	for _, cost := range costs {
		if _, err := c.Cost(cost).Enqueue(t.Context(), quick); err == nil || !strings.Contains(err.Error(), "cost is") {
			t.Errorf("cost %d: got error %v", cost, err)
		}
	}
	checkEqual(t, "rejected", c.Stats().Rejected, uint64(len(costs)))
}

// A key without tokens waits, and other keys do not. When its buckets are full again, the key takes no
// memory.
func TestKeyRate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStarts()
		c := jobs(t, core.Options{MaxConcurrency: 2, KeyRate: core.Rate{PerSecond: 1, Burst: 2}, KeyCostRate: core.Rate{PerSecond: 10, Burst: 10}})
		for range 4 {
			enqueue(t, c, job{"ann", s.body("ann")})
		}
		enqueue(t, c.Cost(30), job{"bob", s.body("bob 30")})
		last := enqueue(t, c.Cost(1), job{"bob", s.body("bob 1")})
		for range 4 {
			enqueue(t, c, job{"", s.body("none")})
		}
		synctest.Wait()
		checkExplained(t, c, last, `operation # is pending: key "bob" has its next token in 2.1s`)
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		s.checkAnyOrder(t, "ann 0", "ann 0", "ann 1000", "ann 2000", "bob 1 2100", "bob 30 0", "none 0", "none 0", "none 0", "none 0")
	})
}

// Throttled and Free are raised at changes, not for each item, and their handlers may call back.
func TestThrottledAndFree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var c *core.Coordinator[coretest.Body]
		var got []string
		sink, begun := new(core.Sink), time.Now()
		for _, kind := range []core.Kind[core.ClassChange]{core.Throttled, core.Free} {
			kind.Subscribe(sink, func(s core.Signal, change core.ClassChange) {
				c.Stats()
				next := ""
				if !change.Next.IsZero() {
					next = fmt.Sprint(" next ", change.Next.Sub(begun))
				}
				got = append(got, fmt.Sprint(s.Name, " ", s.Key, " of ", change.Coordinator, " ", time.Since(begun), next))
			})
		}
		c = bodies(t, core.Options{Name: "calls", Sink: sink, Classes: []core.Class{{Name: "api", Rate: core.Rate{PerSecond: 10, Burst: 1}}}})
		for range 30 {
			enqueue(t, c.Class("api"), quick)
		}
		checkError(t, "WaitIdle", c.WaitIdle(t.Context()), nil)
		time.Sleep(time.Second)
		checkError(t, "Do", c.Class("api").Do(t.Context(), quick), nil)
		waits := enqueue(t, c.Class("api"), quick)
		synctest.Wait()
		c.Cancel(waits, nil)
		synctest.Wait()
		checkSlice(t, "signals", got, []string{
			"class.throttled api of calls 0s next 100ms", "class.free api of calls 2.9s",
			"class.throttled api of calls 3.9s next 4s", "class.free api of calls 3.9s"})
	})
}

// While TrialOn matches, at most Trials of the class run. Deferred items do not all start at once.
// After the trial, all may run.
func TestTrials(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink, g := new(core.Sink), newGate()
		c := bodies(t, core.Options{MaxConcurrency: 9, Sink: sink,
			Classes: []core.Class{{Name: "gpt", Limit: 8, DeferOn: "circuit.open.gpt", TrialOn: "circuit.half_open.gpt", Trials: 3}}})
		gpt := c.Class("gpt")
		closes := sink.Hold("circuit.open.gpt", "", 0)
		var last core.OperationID
		for range 20 {
			last = enqueue(t, gpt, g.body)
		}
		synctest.Wait()
		checkExplained(t, c, last, `operation # is pending: deferred because of held signal "circuit.open.gpt"; 19 items before it go first`)
		ends := sink.Hold("circuit.half_open.gpt", "", time.Minute)
		closes()
		synctest.Wait()
		checkEqual(t, "on trial", c.Stats().Classes[0].Running, 3)
		var gates []string
		for _, g := range c.Gates() {
			gates = append(gates, fmt.Sprint(g.Kind, " ", g.Class, " ", g.Pattern, " ", g.Closed))
		}
		checkSlice(t, "gates", gates, []string{"deferred gpt circuit.open.gpt false", "trial gpt circuit.half_open.gpt true"})
		time.Sleep(time.Minute)
		synctest.Wait()
		checkEqual(t, "after the trial", c.Stats().Classes[0].Running, 8)
		ends()
		g.open()
	})
}

// CancelOn refuses items of the class, and MaxDefer bounds their DeferOn, as for a lane.
func TestGatesOfAClass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink, s := new(core.Sink), newStarts()
		c := jobs(t, core.Options{MaxConcurrency: 1, Sink: sink, Classes: []core.Class{
			{Name: "a", DeferOn: "slow", MaxDefer: time.Second}, {Name: "b", CancelOn: "down"}, {Name: "c", DeferOn: "held", MaxDefer: time.Second}}})
		sink.Raise("slow")
		defer sink.Hold("held", "", 0)()
		enqueue(t, c.Class("c"), job{"x", s.body("c")})
		enqueue(t, c.Class("a"), job{"x", s.body("a")})
		enqueue(t, c.Class("a"), job{"y", s.body("a")})
		enqueue(t, c.Class("b"), job{"z", s.body("b")})
		time.Sleep(2 * time.Second)
		s.check(t, "b 0", "a 1000")
		checkEqual(t, "forced", c.Stats().Forced, 1)
		sink.Raise("down")
		_, err := c.Class("b").TryEnqueue(t.Context(), job{"z", quick})
		checkRefusal(t, err, "down")
		if _, err := c.Class("a").TryEnqueue(t.Context(), job{"z", quick}); errors.As(err, new(*core.RefusedError)) {
			t.Error("another class is refused")
		}
		checkError(t, "Close", c.Close(), nil)
	})
}

// An item whose class refuses it is refused at once, also behind an item that is deferred.
func TestRefusedBehindDeferred(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{DeferOn: "wait", Classes: []core.Class{{Name: "b", CancelOn: "down"}}})
		defer c.Sink().Hold("wait", "", 0)()
		first := enqueue(t, c, quick)
		refused := enqueue(t, c.Class("b"), quick)
		c.Sink().Raise("down")
		checkRefusal(t, c.Wait(t.Context(), refused), "down")
		checkStatus(t, c, first, core.StatusPending)
		checkError(t, "Close", c.Close(), nil)
	})
}

// A view with a cost that is used at once allocates nothing more, with lane and class in any order.
func TestCostAllocatesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{Lanes: lanes(t, "hot, normal"), MaxTracked: -1, Classes: []core.Class{{Name: "api", CostRate: core.Rate{PerSecond: 1e9, Burst: 1e9}}}})
		view := c.Class("api").Lane("hot")
		with := testing.AllocsPerRun(100, func() { view.Cost(7).Do(context.Background(), quick) })
		without := testing.AllocsPerRun(100, func() { view.Do(context.Background(), quick) })
		checkEqual(t, "allocations", with, without)
		for _, v := range []*core.Coordinator[coretest.Body]{c.Cost(5).Class("api").Lane("hot"), c.Lane("hot").Cost(5).Class("api")} {
			before := c.Stats().Classes[0].Cost.Used
			checkError(t, "Do", v.Do(t.Context(), quick), nil)
			checkEqual(t, "cost", c.Stats().Classes[0].Cost.Used-before, 5)
		}
		results := core.Must(core.NewResultCoordinator(func(_ context.Context, n int) (int, error) { return n, nil }, core.Options{Classes: []core.Class{{Name: "api", CostRate: core.PerMinute(60)}}}))
		results.Class("api").Cost(3).Do(t.Context(), 1)
		results.Cost(4).Class("api").Do(t.Context(), 1)
		checkEqual(t, "cost of results", results.Stats().Classes[0].Cost.Used, 7)
	})
}
