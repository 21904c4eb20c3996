package core_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func TestRate(t *testing.T) {
	for _, c := range []struct {
		rate core.Rate
		want string // in the error, or ""
	}{
		{core.Rate{}, ""},
		{core.Rate{PerSecond: bucket.Unlimited}, ""},
		{core.Rate{PerSecond: -1}, "core: rate is -1, but must be 0"},
		{core.Rate{PerSecond: math.NaN()}, "core: rate is NaN, but"},
		{core.Rate{PerSecond: math.Inf(1)}, "core: rate is +Inf, but"},
		{core.PerMinute(math.Inf(-1)), "core: rate is -Inf, but"},
		{core.AtMost(0, time.Second), "core: rate is -1, but must be 0"},
		{core.AtMost(-3, time.Second), "core: rate is -3, but must be 0"},
		{core.AtMost(3, 0), "core: rate is -1, but must be 0"},
		{core.Rate{PerSecond: 1e-10}, "core: rate is 1e-10, but"},
		{core.Rate{PerSecond: 1e10}, "core: rate is 1e+10, but"},
		{core.Rate{PerSecond: 1, Burst: -1}, "core: burst is -1, but must be at least 1"},
	} {
		got, err := c.rate.Resolved()
		if c.want == "" {
			checkError(t, "Resolved", err, nil)
			checkEqual(t, "Resolved", got, core.Rate{PerSecond: c.rate.PerSecond, Burst: 20})
		} else {
			checkSays(t, "Resolved", err, c.want)
		}
	}
}

// Exactly this many tokens come within a minute: not one more, and none a nanosecond later.
func TestPerMinuteIsExact(t *testing.T) {
	const minute = 60e9
	for n := int64(1); n < 100_000; n += 7 {
		m, mark := bucket.Start(0, core.PerMinute(float64(n)).PerSecond, n), bucket.Mark{}
		m.Take(&mark, 0, n)
		if at := m.Due(mark, n, 0); at != minute {
			t.Fatalf("%d a minute: all are there at %d", n, at)
		}
	}
}

// No window of the length per has more than n calls, however they come. Callers that are always
// there get n in each.
func TestAtMostInAnyWindow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		n, per := 1+rnd.IntN(50), time.Duration(1+rnd.Int64N(int64(time.Minute)))
		rate, err := core.AtMost(n, per).Resolved()
		if err != nil {
			continue // more than 1e9 a second
		}
		m, mark := bucket.Start(0, rate.PerSecond, int64(rate.Burst)), bucket.Mark{}
		m.Fill(0)
		var begun []int64
		for now := int64(0); len(begun) < 3*n; {
			if now = m.Due(mark, 1, now); !m.Take(&mark, now, 1) {
				t.Fatalf("%d in %v: no token at %d, when it is due", n, per, now)
			}
			begun = append(begun, now)
			if rnd.IntN(4) == 0 {
				now += rnd.Int64N(int64(per))
			}
		}
		for i := n; i < len(begun); i++ {
			if span := begun[i] - begun[i-n]; span < int64(per) {
				t.Fatalf("%d in %v: %d calls within %v", n, per, n+1, time.Duration(span))
			}
		}
	}
}

// A body that waits for an item that waits for a token is in no circle: the token comes. Neither is one that waits for
// a key without tokens.
func TestWaitForATokenIsNoCircle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		slow := core.Rate{PerSecond: 1, Burst: 1}
		c := keyedBodies(t, core.Options{MaxConcurrency: 1, KeyRate: slow, Classes: []core.Class{{Name: "api", Rate: slow}}})
		begun := time.Now()
		for range 2 {
			enqueue(t, c.Class("api"), keyedBody{"", quick})
			enqueue(t, c, keyedBody{"ann", quick})
		}
		var class, key error
		enqueue(t, c, keyedBody{"", func(ctx context.Context) error {
			class = c.Class("api").Do(ctx, keyedBody{"", quick})
			key = c.Do(ctx, keyedBody{"ann", quick})
			return nil
		}})
		checkError(t, "WaitIdle", c.WaitIdle(t.Context()), nil)
		checkError(t, "Do in a class", class, nil)
		checkError(t, "Do for a key", key, nil)
		checkEqual(t, "took", time.Since(begun), 2*time.Second)
	})
}

// A suspended operation needs no second token to go on. Pause and a full coordinator do not save tokens beyond the
// burst, except the tokens of the last 20 ms, which make up for late timers.
func TestResumedOperationNeedsNoToken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, answer := newStarts(), newGate()
		c := bodies(t, core.Options{MaxConcurrency: 1, Classes: []core.Class{{Name: "api", Rate: core.Rate{PerSecond: 1, Burst: 1}}}})
		waits := enqueue(t, c.Class("api"), answer.suspended(s.body("resumed")))
		for range 4 {
			enqueue(t, c.Class("api"), s.body("next"))
		}
		synctest.Wait()
		answer.open()
		checkError(t, "Wait", c.Wait(t.Context(), waits), nil)
		c.Pause()
		time.Sleep(time.Minute)
		c.Resume()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		s.check(t, "resumed 0", "next 60000", "next 60980", "next 61980", "next 62980")
	})
}

// An unlimited rate is a rate, and a limited one after it starts with a full bucket.
func TestUnlimitedRate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStarts()
		unlimited := core.Rate{PerSecond: bucket.Unlimited, Burst: 1}
		c := bodies(t, core.Options{Classes: []core.Class{{Name: "api", Rate: unlimited, CostRate: unlimited}}})
		for range 3 {
			checkError(t, "Do", c.Class("api").Cost(1e9).Do(t.Context(), s.body("item")), nil)
		}
		checkError(t, "SetClass", c.SetClass(core.Class{Name: "api", Rate: core.Rate{PerSecond: 1, Burst: 2}}), nil)
		for range 3 {
			checkError(t, "Do", c.Class("api").Do(t.Context(), s.body("limited")), nil)
		}
		s.check(t, "item 0", "item 0", "item 0", "limited 0", "limited 0", "limited 1000")
	})
}

// On a real clock, with timers that are late, a rate is never exceeded, and reached, even a high one
// with a small burst. A machine that has much to do may stop the program for longer than tokens
// are kept, so the second promise has three attempts.
func TestRateOnARealClock(t *testing.T) {
	span := time.Duration(long.Often(10_000, 200)) * time.Millisecond
	var all sync.WaitGroup
	for _, rate := range []float64{100, 1000, 10_000} {
		for _, burst := range []int{1, 10, 100} {
			all.Go(func() { // not a parallel test: there would be only one for each processor
				reached := 0.0
				for attempt := 0; attempt < 3 && reached < 0.98; attempt++ {
					started, came := startedOf(t, core.Rate{PerSecond: rate, Burst: burst}, span)
					if started > came+float64(burst) {
						t.Errorf("%g a second, burst %d: %g started, %g tokens came", rate, burst, started, came)
					}
					if reached = started / came; span < time.Second {
						return
					}
				}
				if reached < 0.98 {
					t.Errorf("%g a second, burst %d: only %.1f %% were reached", rate, burst, 100*reached)
				}
			})
		}
	}
	all.Wait()
}

// startedOf returns how many operations of a class with that rate start, and how many tokens come.
func startedOf(t *testing.T, rate core.Rate, span time.Duration) (started, came float64) {
	var n atomic.Int64
	c := coordinator(t, func(context.Context, int) error { n.Add(1); return nil },
		core.Options{MaxConcurrency: 4, MaxQueued: 200_000, Classes: []core.Class{{Name: "api", Rate: rate}}})
	api, begun := c.Class("api"), time.Now()
	for i := range int(2*rate.PerSecond*span.Seconds()) + rate.Burst {
		enqueue(t, api, i)
	}
	<-time.After(span)
	started = float64(n.Load())
	came = rate.PerSecond * time.Since(begun).Seconds()
	checkError(t, "Close", c.Close(), nil)
	return started, came
}

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
			checkSays(t, "SetClass", c.SetClass(class), want)
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

// When the intake ends while an item waits for room and for tokens of its key, the next item of the key starts at once.
func TestEndOfIntakeLetsTheNextOfAKeyStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStarts()
		c := keyedBodies(t, core.Options{
			MaxConcurrency: 2, KeyCostRate: core.Rate{PerSecond: 1, Burst: 1}, Lanes: lanes(t, "hot, normal"),
			Classes: []core.Class{{Name: "big", Depth: -1}},
		})
		enqueue(t, c.Cost(1), keyedBody{"ann", s.body("first")})
		synctest.Wait()
		big := c.Class("big").Lane("hot").Cost(1)
		waits := call(t, do(big, keyedBody{"ann", s.body("never")}))
		enqueue(t, c, keyedBody{"ann", s.body("next")})
		synctest.Wait()
		s.check(t, "first 0")
		c.Complete()
		checkError(t, "Do", waits(), core.ErrClosed)
		synctest.Wait()
		s.check(t, "next 0")
	})
}
