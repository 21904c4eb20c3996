package core_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
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
		checkExplained(t, c, next, `operation # is pending: class "api" has its next token of CostRate in 100ms; 2 items before it go first`)
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
			"only Limit, Rate, CostRate and Shadow can change": {DeferOn: "up"},
			"limit is -1":            {Limit: -1},
			"rate is NaN":            {Rate: core.Rate{PerSecond: math.NaN()}},
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

// A key without tokens waits, and other keys do not. When its buckets are full again, the key takes no
// memory.
func TestKeyRate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStarts()
		c := keyedBodies(t, core.Options{MaxConcurrency: 2, KeyRate: core.Rate{PerSecond: 1, Burst: 2}, KeyCostRate: core.Rate{PerSecond: 10, Burst: 10}})
		var ann core.OperationID
		for range 4 {
			ann = enqueue(t, c, keyedBody{"ann", s.body("ann")})
		}
		enqueue(t, c.Cost(30), keyedBody{"bob", s.body("bob 30")})
		last := enqueue(t, c.Cost(1), keyedBody{"bob", s.body("bob 1")})
		for range 4 {
			enqueue(t, c, keyedBody{"", s.body("none")})
		}
		synctest.Wait()
		checkExplained(t, c, last, `operation # is pending: key "bob" has its next token of KeyCostRate in 2.1s`)
		checkExplained(t, c, ann, `operation # is pending: key "ann" has its next token of KeyRate in 1s; 1 item before it goes first`)
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		s.checkAnyOrder(t, "ann 0", "ann 0", "ann 1000", "ann 2000", "bob 1 2100", "bob 30 0", "none 0", "none 0", "none 0", "none 0")
	})
}

// Throttled and Free are raised at changes, not for each item, and their handlers may call back.
func TestThrottledAndFree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var c *core.Coordinator[coretest.Body]
		var got []string
		sink, begun := new(signals.Sink), time.Now()
		for _, kind := range []signals.Kind[core.ClassChange]{core.Throttled, core.Free} {
			kind.Subscribe(sink, func(s signals.Signal, change core.ClassChange) {
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
		sink, g := new(signals.Sink), newGate()
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
