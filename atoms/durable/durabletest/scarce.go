package durabletest

import (
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// bucketOf is what the store shows of the cost of a class, in whole tokens.
func (s *suite) bucketOf(class string) string {
	s.Helper()
	for _, c := range must[durable.Stats](s)(s.b.Stats(s.ctx, s.queue)).Classes {
		if c.Name == class {
			return fmt.Sprintf("used %d, debt %.0f", c.Cost.Used, c.Cost.Debt)
		}
	}
	return "none"
}

// explained is what the second opening of the database says.
func (s *suite) explained(id durable.ItemID) durable.Explanation {
	s.Helper()
	x, ok, err := s.b.Explain(s.ctx, s.queue, id)
	s.ok(err)
	s.equal("explained", ok, true)
	return x
}

// A claim takes the cost of its item. While the next item of a class lacks it, no other one of the class is claimed. Charges
// count at once, also without a claim; what an end gives back counts only if it is the one that ends the claim.
func (s *suite) costs() {
	gpt := durable.Class{Name: "gpt", CostRate: core.Rate{PerSecond: 1e-3, Burst: 100}}
	n := s.join(s.a, classes(gpt))
	var items []durable.Insert
	for _, cost := range []int64{60, 30, 30, 5, 0} {
		items = append(items, durable.Insert{Class: "gpt", Cost: cost, Data: fmt.Append(nil, cost)})
	}
	ids := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, append(items, durable.Insert{Data: []byte("free")})))
	s.equal("kept", s.item(ids[2].ID).Cost, int64(30))
	t, got := s.waits(n)
	s.equal("claimed", got, list("60", "30", "free", "wait gpt"))
	first := t.Items[0]
	s.equal("until the next item has its cost", t.Waits[0].Next > 19000*time.Second && t.Waits[0].Next <= 20000*time.Second+time.Microsecond && t.Waits[0].Half == t.Waits[0].Next, true)
	s.equal("bucket", s.bucketOf("gpt"), "used 90, debt 0")

	s.ok(s.b.Charge(s.ctx, s.queue, "gpt", 7, 40))
	s.equal("charged", s.bucketOf("gpt"), "used 130, debt 30")
	s.equal("why", strings.Contains(s.explained(ids[2].ID).String(), "class gpt has its next token of CostRate in "), true)
	s.equal("without a cost", s.explained(ids[4].ID).Class.Next.IsZero(), true)
	s.ok(s.b.Charge(s.ctx, s.queue, "other", 7, 40)) // it has no rate
	wrong := endOf(first, durable.End{Kind: durable.EndDone, Cost: -60})
	wrong.Token--
	right := endOf(first, durable.End{Kind: durable.EndDone, Cost: -60})
	_, got = s.waits(n, wrong)
	s.equal("a claim that was lost gives nothing back", list[any](got, s.bucketOf("gpt")), list[any](list("wait gpt"), "used 130, debt 30"))
	_, got = s.waits(n, right)
	s.equal("given back, and taken", list[any](got, s.bucketOf("gpt")), list[any](list("30", "wait gpt"), "used 100, debt 0"))
	s.waits(n, right)
	s.equal("given back once", s.bucketOf("gpt"), "used 100, debt 0")

	s.expire(s.a, n) // a crash gives nothing back
	n = s.join(s.a, classes(gpt))
	must[durable.Beaten](s)(s.a.Beat(s.ctx, n, ""))
	s.equal("after a crash", s.bucketOf("gpt"), "used 100, debt 0")
	s.ok(s.a.SetClass(s.ctx, s.queue, durable.Class{Name: "gpt", CostRate: core.Rate{PerSecond: 1e-3, Burst: 1000}}))
	_, got = s.waits(n)
	s.equal("no tokens come from a change", got, list("free", "wait gpt"))
	s.ok(s.a.ResetClass(s.ctx, s.queue, "gpt"))

	// What is given back counts up to the burst that is in force now.
	for _, burst := range list(3, 8) {
		s.ok(s.a.SetClass(s.ctx, s.queue, durable.Class{Name: "new", CostRate: core.Rate{PerSecond: 1e-3, Burst: burst}}))
	}
	s.ok(s.b.Charge(s.ctx, s.queue, "new", 0, -1))
	must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Class: "new", Cost: 4, Data: []byte("4")}, durable.Insert{Class: "new", Cost: 1})))
	_, got = s.waits(n)
	s.equal("given back after a change", got, list("4", "wait gpt", "wait new"))
	s.ok(s.a.ResetClass(s.ctx, s.queue, "new"))
	s.waits(n)

	// More than the burst needs a full bucket. A hand-over needs the cost, too. A full bucket takes nothing back.
	big := durable.Class{Name: "big", Rate: core.Rate{PerSecond: 1e-3, Burst: 9}, CostRate: core.Rate{PerSecond: 1e-3, Burst: 100}}
	n = s.join(s.b, classes(big))
	more := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Key: "a", Class: "big", Cost: 500, Data: []byte("500")}, durable.Insert{Key: "a", Class: "big", Cost: 1, Data: []byte("1")},
		durable.Insert{Key: "a", Class: "big", Cost: 101, Data: []byte("101")})))
	t, got = s.waits(n)
	s.equal("more than the burst", list[any](got, s.bucketOf("big")), list[any](list("500", "wait gpt"), "used 500, debt 400"))
	t, got = s.waits(n, endOf(t.Items[0], durable.End{Kind: durable.EndDone, HandOver: true, Calls: 3}))
	s.equal("not handed over", list[any](t.Ends[0].Next == nil, got), list[any](true, list("wait big", "wait gpt")))
	x := s.explained(more[1].ID)
	s.equal("the cost", x.Class.NextCost.Equal(x.Class.Next) && x.Class.Next.After(x.Time.Add(390000*time.Second)), true)
	s.ok(s.b.Charge(s.ctx, s.queue, "big", 1000, 0)) // in 992,000 s
	x = s.explained(more[1].ID)
	s.equal("the rate", strings.Contains(x.String(), "class big has its next token of Rate in ") && x.Class.NextCost.Before(x.Class.Next) && x.Class.NextCost.After(x.Time), true)
	s.ok(s.b.Charge(s.ctx, s.queue, "big", -1000, 0))
	s.equal("calls", must[durable.Stats](s)(s.b.Stats(s.ctx, s.queue)).Classes[0].Calls.Used, int64(4))
	s.ok(s.b.Charge(s.ctx, s.queue, "big", 0, -1000))
	s.equal("only to the burst", s.bucketOf("big"), "used -500, debt 0")
	t, got = s.waits(n)
	s.equal("one", got, list("1", "wait gpt"))
	t, _ = s.waits(n, endOf(t.Items[0], durable.End{Kind: durable.EndDone, HandOver: true, Cost: -1}))
	s.equal("handed over", string(t.Ends[0].Next.Data), "101")
	s.equal("debt", s.bucketOf("big"), "used -399, debt 1")
}

// An item that must run alone and lacks its cost is passed over, and the next one of its class is claimed.
func (s *suite) costsAlone() {
	gpt := durable.Class{Name: "gpt", CostRate: core.Rate{PerSecond: 1e-3, Burst: 100}}
	alive := s.join(s.a, classes(gpt))
	s.ok(ignore(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Class: "gpt", Cost: 60, Data: []byte("60")}, durable.Insert{Class: "gpt", Cost: 5, Data: []byte("5")}))))
	for range durable.LossesAlone {
		gone := s.join(s.a, classes(gpt))
		s.claims(gone, 2, "60", "5")
		s.ok(s.b.Charge(s.ctx, s.queue, "gpt", 0, -65))
		s.expire(s.a, gone)
		must[durable.Beaten](s)(s.b.Beat(s.ctx, alive, ""))
	}
	s.ok(s.b.Charge(s.ctx, s.queue, "gpt", 0, 90))
	for !must[durable.Beaten](s)(s.b.Beat(s.ctx, alive, "")).Suspect { // a pause of a second
		s.pass()
	}
	s.pass()
	t := must[durable.Turned](s)(s.a.Turn(s.ctx, alive, nil, durable.Want{Max: 1, Alone: true}))
	s.equal("nothing waits for its cost", len(t.Waits), 0)
	s.equal("claimed", len(t.Items) == 1 && string(t.Items[0].Data) == "5", true)
}

// A shadow keeps nothing waiting. It says what rates of the same values would: which items, of all processes, and for how long.
func (s *suite) shadows() {
	// A call comes in 1000 s, and a token of the cost in 100 s.
	limits := core.Limits{Rate: core.Rate{PerSecond: 1e-3, Burst: 4}, CostRate: core.Rate{PerSecond: 1e-2, Burst: 100}}
	shadow, wide := durable.Class{Name: "gpt", Shadow: &limits}, core.Rate{PerSecond: 1e-2, Burst: 1000}
	put := func(key string, costs ...int64) {
		s.Helper()
		var items []durable.Insert
		for _, cost := range costs {
			items = append(items, durable.Insert{Key: key, Class: "gpt", Cost: cost})
		}
		s.ok(ignore(s.a.Insert(s.ctx, s.queue, items)))
	}
	turn := func(store durable.Store, n durable.Node, want durable.Want, ends ...durable.End) (items []durable.Item, waits []int) {
		s.Helper()
		t := must[durable.Turned](s)(store.Turn(s.ctx, n, ends, want))
		for _, e := range t.Ends {
			if e.Next != nil {
				items = append(items, *e.Next)
			}
		}
		items = append(items, t.Items...)
		for _, i := range items { // a test takes less than 50 s
			waits = append(waits, int(i.Shadow.Round(100*time.Second)/time.Second))
		}
		return items, waits
	}
	counts := func(what string, want ...int) { // started, waited, longest
		s.Helper()
		for _, c := range must[durable.Stats](s)(s.b.Stats(s.ctx, s.queue)).Classes {
			got := c.Shadow
			s.equal(what, list(int(got.Started), int(got.Waited), int(got.Longest.Round(100*time.Second)/time.Second)), want)
			s.equal(what+": limits", got.Limits == limits && got.Refused == 0 && got.Waiting == 0, len(want) > 0 && want[0] > 0)
		}
	}
	most := durable.Want{Max: 10}

	// In force, and as a shadow: the same items wait, and the first one for as long.
	queue := s.queue
	s.queue += " in force"
	n := s.join(s.a, classes(durable.Class{Name: "gpt", Rate: limits.Rate, CostRate: limits.CostRate}))
	put("", 60, 30, 30, 0, 5)
	t, _ := s.waits(n)
	s.equal("in force", list(len(t.Items), int(t.Waits[0].Next.Round(100*time.Second)/time.Second)), list(2, 2000))
	s.queue = queue
	n, other := s.join(s.a, classes(shadow)), s.join(s.b, classes(shadow)) // the second one changes nothing
	put("", 60, 30, 30, 0, 5)
	items, waits := turn(s.a, n, durable.Want{Max: 3})
	_, later := turn(s.b, other, most)
	s.equal("two processes", append(waits, later...), list(0, 0, 2000, 2000, 2500))
	counts("two processes", 5, 3, 2500)
	x, _, err := s.b.Explain(s.ctx, s.queue, items[0].ID)
	s.ok(err)
	s.equal("explained", list(int(x.Class.Shadow.Started), int(x.Class.Running)), list(5, 5))

	s.ok(s.b.Charge(s.ctx, s.queue, "gpt", 0, 10))
	put("", 5)
	_, waits = turn(s.a, n, most)
	s.equal("charged", waits, list(4000))
	wrong := endOf(items[0], durable.End{Kind: durable.EndDone, Cost: -60})
	wrong.Token--
	turn(s.a, n, durable.Want{}, wrong)
	put("", 0)
	_, waits = turn(s.a, n, most, endOf(items[0], durable.End{Kind: durable.EndDone, Cost: -60}))
	s.equal("given back: it waits for a call only", waits, list(3000))
	put("", 5)
	turn(s.b, other, durable.Want{Max: 1, Ahead: 1}) // a shadow does not keep items from being claimed ahead
	counts("claimed ahead", 8, 6, 4000)

	// A class that is held up claims nothing, and counts nothing. What is lost, given back or handed over counts with each claim.
	put("k", 0, 0)
	s.ok(s.a.Pause(s.ctx, s.queue, durable.Pause{Class: "gpt"}, true))
	turn(s.a, n, most)
	s.ok(s.a.Pause(s.ctx, s.queue, durable.Pause{Class: "gpt"}, false))
	turn(s.a, n, durable.Want{Max: 10, Gates: list(durable.Gate{Class: "gpt"})})
	counts("held up", 8, 6, 4000)
	item, _ := turn(s.a, n, durable.Want{Max: 10, Gates: list(durable.Gate{Class: "gpt", Limit: 10})})
	next, waits := turn(s.a, n, durable.Want{}, endOf(item[0], durable.End{Kind: durable.EndDone, HandOver: true}))
	s.equal("handed over", waits, list(6000))
	turn(s.a, n, most, endOf(next[0], back))
	counts("again", 11, 9, 7000)
	s.equal("not again", s.item(next[0].ID).Shadow, time.Duration(0))
	s.expire(s.b, other)
	must[durable.Beaten](s)(s.a.Beat(s.ctx, n, ""))
	_, waits = turn(s.a, n, most)
	s.equal("lost", waits, list(8000, 9000, 10000))

	// Beside rates in force. The same limits go on, and other ones begin.
	shadow.CostRate, shadow.Limit = wide, 500
	s.ok(s.a.SetClass(s.ctx, s.queue, shadow))
	s.ok(s.a.Charge(s.ctx, s.queue, "gpt", 0, 1000))
	put("", 1, 0)
	_, waits = turn(s.a, n, most)
	s.equal("the rate in force decides", len(waits), 0)
	s.ok(s.a.Charge(s.ctx, s.queue, "gpt", 0, -500))
	_, waits = turn(s.a, n, most)
	s.equal("both", list[any](len(waits), waits[0] > 40000), list[any](2, true))
	s.ok(s.a.SetClass(s.ctx, s.queue, durable.Class{Name: "gpt"}))
	put("", 1)
	_, waits = turn(s.a, n, most)
	s.equal("removed", waits, list(0))
	counts("removed", 0, 0, 0)
	s.ok(s.b.ResetClass(s.ctx, s.queue, "gpt"))
	put("", 101, 0)
	_, waits = turn(s.a, n, most)
	s.equal("it begins again, and no item waits for the debt of another one", waits, list(0, 0))
	counts("begins again", 2, 0, 0)
	for _, extreme := range list(core.Rate{PerSecond: bucket.MinRate, Burst: 1}, core.Rate{PerSecond: bucket.MinRate, Burst: int(bucket.MaxBurst)}, core.Rate{PerSecond: bucket.MaxRate, Burst: 1}) {
		s.ok(s.a.SetClass(s.ctx, s.queue, durable.Class{Name: "gpt", Shadow: &core.Limits{Rate: extreme, CostRate: extreme}}))
		for _, by := range list(bucket.MaxBurst, bucket.MaxBurst, -bucket.MaxBurst) {
			s.ok(s.b.Charge(s.ctx, s.queue, "gpt", by, by))
			put("", bucket.MaxBurst)
			_, waits = turn(s.a, n, most)
			s.equal("not for ever", waits[0] <= 1e9, true)
		}
	}
}

// A gate holds up its class in its turn, and nothing else. With a limit it lets so many run in all processes.
func (s *suite) gates() {
	n := s.join(s.a)
	n.Classes = list(durable.Class{})
	s.put("c", "a", "a", "b", "")
	s.put("d", "e")
	turn := func(limit int, ends ...durable.End) (t durable.Turned, got string) {
		s.Helper()
		t = must[durable.Turned](s)(s.b.Turn(s.ctx, n, ends, durable.Want{Max: 10, Gates: list(durable.Gate{Class: "c", Limit: limit})}))
		for _, i := range t.Items {
			got += string(i.Data) + " "
		}
		return t, got + fmt.Sprint(t.Waits)
	}
	_, got := turn(0)
	s.equal("closed", got, "de []")
	t, got := turn(1)
	s.equal("a trial", got, "ca [{c 0s 0s}]")
	item := t.Items[0]
	t, got = turn(0, endOf(item, durable.End{Kind: durable.EndDone, HandOver: true}))
	s.equal("not handed over", list[any](t.Ends[0].Next == nil, t.Ends[0].Promoted, got), list[any](true, true, "[]"))
	_, got = turn(2)
	s.equal("two", got, "cb c [{c 0s 0s}]")
	_, items := s.waits(n)
	s.equal("open", items, list("ca"))
}

// A pause of a key or a class holds up its items and no others, also a hand-over. It says why. It ends by itself, and then items of its
// key are trials until one is done.
func (s *suite) pauses() {
	n := s.join(s.a)
	n.Classes = list(durable.Class{})
	ids := s.add("a", "a", "a", "b")
	inClass := s.put("c", "", "d")
	pause := func(store durable.Store, p durable.Pause, on bool) {
		s.Helper()
		s.ok(store.Pause(s.ctx, s.queue, p, on))
	}
	about := func(id durable.ItemID) (texts []string) {
		s.Helper()
		x, _, err := s.b.Explain(s.ctx, s.queue, id)
		s.ok(err)
		for _, p := range x.Pauses {
			if p.Since.IsZero() || p.Since.After(x.Time) || !p.Until.IsZero() && (p.Until.Before(x.Time) || p.Until.Sub(p.Since) != long) {
				s.Fatalf("%+v at %v", p, x.Time)
			}
			texts = append(texts, fmt.Sprint(p.Class, "/", p.Key, " by ", p.By, ": ", p.Reason))
		}
		return texts
	}
	a := s.claims(n, 1, "a")[0]
	pause(s.b, durable.Pause{Key: "a", By: "web-1", Reason: "first"}, true)
	pause(s.b, durable.Pause{Key: "a", For: long, By: "web-2", Reason: "down"}, true)
	pause(s.a, durable.Pause{Class: "c", By: "web-1"}, true)
	t, got := s.waits(n, endOf(a, durable.End{Kind: durable.EndDone, HandOver: true}))
	s.equal("others", list[any](got, t.Ends[0].Next == nil, t.Ends[0].Promoted, len(t.Waits)), list[any](list("b"), true, true, 0))
	s.equal("explained", list(about(a.ID), about(ids[1]), about(ids[3]), about(inClass[0])), list(list("/a by web-2: down"), list("/a by web-2: down"), nil, list("c/ by web-1: ")))
	stats := must[durable.Stats](s)(s.b.Stats(s.ctx, s.queue))
	s.equal("stats", list[any](stats.Paused, len(stats.Pauses), stats.Pauses[0].Key, stats.Pauses[1].Class), list[any](false, 2, "a", "c"))
	pause(s.b, durable.Pause{Class: "c"}, false)
	pause(s.b, durable.Pause{Key: "z"}, false)
	_, got = s.waits(n)
	s.equal("the class goes on", got, list("c", "cd"))
	pause(s.a, durable.Pause{Key: "a"}, false)
	s.equal("the key goes on", s.claims(n, 9, "a")[0].Trial, false)
	s.equal("nothing is paused", len(must[durable.Stats](s)(s.b.Stats(s.ctx, s.queue)).Pauses), 0)

	n = s.join(s.b)
	s.queue += " trials"
	n.Queue = s.queue
	n = s.join(s.b)
	s.add("a", "a", "b")
	pause(s.a, durable.Pause{Key: "a", For: short, Reason: "down", Auto: true}, true)
	s.claims(n, 9, "b")
	s.pass()
	item := s.claims(n, 9, "a")[0]
	s.equal("a trial", item.Trial, true)
	s.end(n, retry, durable.Retry, item)
	item = s.claims(n, 9, "a")[0]
	s.equal("still", item.Trial, true)
	ended := must[[]durable.Ended](s)(endAll(s, s.a, n, endOf(item, durable.End{Kind: durable.EndDone, HandOver: true})))
	s.equal("no more", ended[0].Next.Trial, false)
	auto := func(p durable.Pause, want string) {
		s.Helper()
		p.Key, p.Auto, p.Reason = "c", true, "auto"
		pause(s.b, p, true)
		got := must[durable.Stats](s)(s.b.Stats(s.ctx, s.queue)).Pauses[0]
		s.equal("in force", list[any](got.Reason, got.Auto), list[any](want, want == "auto"))
	}
	pause(s.a, durable.Pause{Key: "c", Reason: "person"}, true)
	auto(durable.Pause{For: long}, "person")
	auto(durable.Pause{}, "person")
	pause(s.a, durable.Pause{Key: "c", For: long, Reason: "person"}, true)
	auto(durable.Pause{For: short}, "person")
	auto(durable.Pause{For: 2 * long}, "auto")
	pause(s.a, durable.Pause{Key: "c", For: short, Reason: "person"}, true)
	auto(durable.Pause{}, "auto")
	pause(s.a, durable.Pause{Key: "c", For: short, Reason: "person"}, true)
	s.add("c")
	pause(s.a, durable.Pause{Key: "b", For: short}, true)
	pause(s.b, durable.Pause{For: short}, true)
	s.equal("beat", must[durable.Beaten](s)(s.a.Beat(s.ctx, n, "")).Paused, true)
	s.pass()
	s.equal("it ends by itself", must[durable.Beaten](s)(s.a.Beat(s.ctx, n, "")).Paused, false)
	stats = must[durable.Stats](s)(s.b.Stats(s.ctx, s.queue))
	s.equal("no pause", list[any](stats.Paused, len(stats.Pauses)), list[any](false, 0))
	s.add(strings.Repeat("k", durable.MaxText))
	for _, item := range s.claims(n, 9, "c", strings.Repeat("k", durable.MaxText)) {
		s.equal("after the pause of a person", item.Trial, false)
	}
}

// In any time, a key starts no more often than its rate allows: after ends, retries, lost leases, signals, and when it was empty. A retry in the future
// keeps its time, and keys with tokens do not wait.
func (s *suite) keyRates() {
	const every, burst = 100 * time.Millisecond, 2
	n := s.join(s.a, func(n *durable.Node) { n.KeyEvery, n.KeyBurst = every, burst })
	put := func(keys ...string) {
		s.Helper()
		for _, key := range keys {
			s.ok(ignore(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Key: key, Rated: true, Data: []byte(key)}))))
		}
	}
	put("a", "a", "a", "a", "b", "")
	starts := map[string][]time.Time{}
	note := func(items ...durable.Item) {
		for _, i := range items {
			starts[i.Key] = append(starts[i.Key], i.Started)
		}
	}
	first := s.claims(n, 9, "a", "b", "")
	note(first...)
	ended := must[[]durable.Ended](s)(endAll(s, s.b, n, endOf(first[0], durable.End{Kind: durable.EndDone, HandOver: true})))
	second := *ended[0].Next
	note(second)
	s.end(n, done, durable.Done, first[1], first[2])
	ended = must[[]durable.Ended](s)(endAll(s, s.b, n, endOf(second, durable.End{Kind: durable.EndDone, HandOver: true})))
	next := func(store durable.Store, most int) (items []durable.Item) {
		s.Helper()
		for len(items) == 0 {
			items = must[durable.Turned](s)(store.Turn(s.ctx, n, nil, durable.Want{Max: most})).Items
			time.Sleep(time.Millisecond)
		}
		note(items...)
		return items
	}
	third := ended[0].Next // only on a slow machine
	if third == nil {
		third = &next(s.b, 1)[0]
	} else {
		note(*third)
	}
	s.equal("its key", third.Key, "a")
	s.equal("its time", !third.RunAt.Before(starts["a"][0].Add(every)), true)
	s.end(n, retry, durable.Retry, *third)
	x := s.explained(third.ID)
	s.equal("explained", !x.Item.RunAt.After(x.Time) || x.KeyNext.Equal(x.Item.RunAt) && strings.Contains(x.String(), "; key a has its next token of KeyRate in "), true)
	s.equal("a retry waits, too", !s.item(third.ID).RunAt.Before(starts["a"][0].Add(2*every)), true)
	fourth := next(s.a, 1)[0]
	s.end(n, durable.End{Kind: durable.EndSnoozed, After: long}, durable.Ready, fourth)
	s.equal("later", s.item(fourth.ID).RunAt.After(fourth.Started.Add(long-short)), true)
	s.ok(ignore(s.a.Cancel(s.ctx, s.queue, list(fourth.ID), anyState, "x")))
	gone := s.join(s.b, func(n *durable.Node) { n.KeyEvery, n.KeyBurst = every, burst })
	other := n
	n = gone
	fifth := next(s.b, 1)[0]
	n = other
	s.expire(s.b, gone)
	must[durable.Beaten](s)(s.a.Beat(s.ctx, n, ""))
	s.end(n, done, durable.Done, next(s.a, 1)...)
	put("w")
	for _, name := range []string{"x", "y"} {
		woken := next(s.a, 1)[0]
		s.end(n, parked(durable.Park{Step: name, Pattern: name, For: long}), durable.Ready, woken)
		s.signal(durable.Signal{Key: "w", Name: name})
		s.equal("a flow that a signal wakes, too", name == "y" && s.item(woken.ID).RunAt.Before(starts["w"][0].Add(every)), false)
	}
	s.end(n, done, durable.Done, next(s.a, 1)...)
	put("a") // its key was empty
	for range 3 {
		s.end(n, done, durable.Done, next(s.a, 1)...)
		put("a")
	}
	s.equal("all", list[any](len(starts["a"]), fifth.Key), list[any](9, "a"))
	s.end(n, done, durable.Done, next(s.a, 1)...)
	put("p", "p", "p", "p")
	s.end(n, done, durable.Done, next(s.a, 1)...)
	running := next(s.a, 1)
	s.pass()
	s.pruned(durable.Keep{Done: -1, Dead: -1, Cancelled: -1}, durable.MaxBatch) // its bucket is full, without what the running item takes
	s.end(n, done, durable.Done, running...)
	s.end(n, done, durable.Done, next(s.a, 1)...)
	s.end(n, done, durable.Done, next(s.a, 1)...)
	for _, key := range []string{"a", "p"} {
		s.ok(lawOfRates(core.Rate{PerSecond: float64(time.Second) / float64(every), Burst: burst}, starts[key]))
	}
}
