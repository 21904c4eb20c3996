package durabletest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// Pages have each item once that the query selects.
func (s *suite) listed() {
	n := s.join(s.a, lanes(core.Lane{Name: "hot"}, core.Lane{Name: "slow"}))
	ids := s.add("a@hot", "a@hot", "b@slow", "@hot", "@slow", "c@hot")
	late := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Lane: "slow", Rank: 2, Delay: long})))[0].ID
	claimed := s.claims(n, 5, "a@hot", "@hot", "c@hot", "b@slow", "@slow")
	s.end(n, durable.End{Kind: durable.EndRetry, Err: "timeout of carrier", After: long}, durable.Retry, claimed[0])
	s.end(n, durable.End{Kind: durable.EndDead, Err: "100% wrong"}, durable.Dead, claimed[1])
	s.end(n, done, durable.Done, claimed[2])
	classed := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Key: "d", Lane: "hot", Class: "stripe"}, durable.Insert{Class: "stripe"})))
	of := list(classed[0].ID, classed[1].ID)
	must[[]durable.State](s)(s.a.Cancel(s.ctx, s.queue, of[:1], anyState, "left"))
	all, waits := slices.Concat(ids, list(late), of), durable.Ready|durable.Retry
	for _, c := range []struct {
		q    durable.Query
		want []durable.ItemID
	}{
		{durable.Query{}, all}, {durable.Query{Key: "a"}, ids[:2]}, {durable.Query{Lane: "hot"}, list(ids[0], ids[1], ids[3], ids[5], of[0])},
		{durable.Query{Class: "stripe"}, of}, {durable.Query{Class: "stripe", Lane: "hot"}, of[:1]}, {durable.Query{Class: "strip"}, nil}, {durable.Query{Class: "stripe", Key: "d"}, of[:1]},
		{durable.Query{Class: "stripe", State: durable.Ready}, of[1:]}, {durable.Query{Lane: "hot", Key: "d"}, of[:1]},
		{durable.Query{State: durable.Blocked}, ids[1:2]}, {durable.Query{State: durable.Running}, list(ids[2], ids[4])}, {durable.Query{State: durable.Retry}, ids[:1]},
		{durable.Query{State: durable.Ready | durable.Done, Key: "c"}, ids[5:6]}, {durable.Query{State: durable.Finished, Lane: "hot"}, list(ids[3], ids[5], of[0])},
		{durable.Query{State: waits, Delayed: true}, list(ids[0], late)}, {durable.Query{State: waits, Due: true}, of[1:]}, {durable.Query{State: durable.Ready, Delayed: true}, list(late)},
		{durable.Query{Err: "carrier"}, ids[:1]}, {durable.Query{Err: "%"}, ids[3:4]}, {durable.Query{MinAge: long}, nil}, {durable.Query{MaxAge: long}, all},
		{durable.Query{Key: "a", Lane: "slow"}, nil}, {durable.Query{State: durable.Halted}, nil}, {durable.Query{Key: "z"}, nil},
	} {
		for limit := range 4 {
			c.q.Limit = limit + 1
			var got []durable.ItemID
			for _, i := range must[[]durable.Item](s)(walk(s, s.b, c.q)) {
				got = append(got, i.ID)
			}
			s.equal(fmt.Sprintf("%+v", c.q), got, c.want)
			s.equal(fmt.Sprintf("count %+v", c.q), must[int](s)(s.a.Count(s.ctx, s.queue, c.q)), len(c.want))
		}
	}
}

// Items move to a lane if no order of a key can change: those without a key, or all of a key that wait.
func (s *suite) move() {
	n := s.join(s.a, lanes(core.Lane{Name: "hot"}, core.Lane{Name: "slow"}))
	ids := s.add("a@slow", "a@slow", "a@slow", "@slow", "b@slow")
	s.ok(ignore(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Lane: "slow", Class: "stripe", Rank: 2}))))
	move := func(ids []durable.ItemID, lane string, rank int) ([]durable.ItemID, error) {
		return s.b.Move(s.ctx, s.queue, ids, lane, rank)
	}
	for _, part := range [][]durable.ItemID{ids[:2], ids[1:4], ids[2:5]} {
		_, err := move(part, "hot", 1)
		s.equal("a part of a key", errors.Is(err, durable.ErrOrder) && strings.Contains(err.Error(), `"a"`), true)
	}
	s.claims(n, 1, "a@slow")
	s.equal("unchanged", list(s.item(ids[3]).Lane, s.item(ids[1]).Lane), list("slow", "slow"))
	moved, err := move(list(ids[3], ids[2], ids[1], ids[0], ids[1], 1<<60), "hot", 1)
	s.ok(err)
	s.equal("what waits", moved, ids[1:4])
	_, err = move(ids[1:2], "slow", 2)
	s.equal("back again, in part", errors.Is(err, durable.ErrOrder), true)
	s.equal("some are there", must[[]durable.ItemID](s)(move(ids[1:2], "hot", 1)), ids[1:2])
	last := s.add("a@slow")
	s.equal("the others are there", must[[]durable.ItemID](s)(move(last, "hot", 1)), last)
	s.equal("other queue", len(must[[]durable.ItemID](s)(s.a.Move(s.ctx, s.queue+"2", ids, "x", 0))), 0)
	s.claims(n, 1, "@slow") // it is in the higher lane now
	classed := must[durable.Page](s)(s.a.Items(s.ctx, s.queue, durable.Query{Class: "stripe"})).Items[0]
	s.equal("moved", len(must[[]durable.ItemID](s)(move(list(classed.ID), "hot", 1))), 1)
	classed = s.item(classed.ID)
	s.equal("it keeps its class", list(classed.Lane, classed.Class), list("hot", "stripe"))
}

// A result is stored with the end of its item, if that is accepted, and kept as long as the item.
func (s *suite) results() {
	n := s.join(s.a)
	ids := s.add("a", "a", "")
	result := func(id durable.ItemID) string {
		r, ok, err := s.b.Result(s.ctx, s.queue, id)
		s.ok(err)
		return fmt.Sprint(ok, " ", r.State, " ", r.Err, " ", string(r.Data))
	}
	with := func(data string) durable.End {
		return durable.End{Kind: durable.EndDone, Result: []byte(data), HandOver: true}
	}
	claimed := s.claims(n, 10, "a", "")
	s.equal("running", result(ids[0]), "true running  ")
	late := endOf(claimed[0], with("0"))
	late.Token--
	s.equal("fenced", must[[]durable.Ended](s)(endAll(s, s.a, n, late))[0].Outcome, durable.OutcomeFenced)
	ends := must[[]durable.Ended](s)(endAll(s, s.a, n, endOf(claimed[0], with(`{"a":1}`)), endOf(claimed[1], dead)))
	s.equal("a second end", must[[]durable.Ended](s)(endAll(s, s.a, n, endOf(claimed[0], with("2"))))[0].Outcome, durable.OutcomeAlready)
	s.end(n, done, durable.Done, *ends[0].Next)
	s.equal("results", list(result(ids[0]), result(ids[1]), result(ids[2]), result(1<<60)), list(`true done  {"a":1}`, "true done  ", "true dead dead ", "false none  "))
	s.equal("pruned", s.pruned(durable.Keep{}, 10), 3)
	s.equal("gone", result(ids[0]), "false none  ")
}

// Depths count what has not ended, by place and state.
func (s *suite) depths() {
	n := s.join(s.a, lanes(core.Lane{Name: "hot"}))
	s.add("a@hot", "a@hot", "a@hot", "@slow", "@hot")
	s.ok(ignore(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Lane: "slow", Delay: long}, durable.Insert{Lane: "slow", Class: "stripe"}))))
	s.end(n, done, durable.Done, s.claims(n, 2, "a@hot", "@hot")[1])
	time.Sleep(2 * time.Microsecond) // stores count time in microseconds, and Oldest is more than 0
	got := map[string]int{}
	for _, d := range must[[]durable.Depth](s)(s.b.Depths(s.ctx, s.queue)) {
		if d.Oldest <= 0 || d.Oldest > long {
			s.Fatalf("%+v", d)
		}
		got[fmt.Sprintf("%q %v %v", d.Place, d.State, d.Delayed)] += d.Items
	}
	s.equal("depths", got, map[string]int{`"hot" blocked false`: 2, `"hot" running false`: 1, `"slow" ready false`: 1, `"slow" ready true`: 1, `"\x01stripe\x01slow" ready false`: 1})
}

func classes(c ...durable.Class) func(*durable.Node) {
	return func(n *durable.Node) { n.Classes = c }
}

// put inserts an item of a class for each key.
func (s *suite) put(class string, keys ...string) (ids []durable.ItemID) {
	s.Helper()
	var items []durable.Insert
	for _, key := range keys {
		items = append(items, durable.Insert{Key: key, Class: class, Data: []byte(class + key)})
	}
	s.tick()
	for _, in := range must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, items)) {
		ids = append(ids, in.ID)
	}
	return ids
}

// waits claims, and returns what is claimed and which classes have no room.
func (s *suite) waits(n durable.Node, ends ...durable.End) (t durable.Turned, got []string) {
	s.Helper()
	s.tick()
	t = must[durable.Turned](s)(s.b.Turn(s.ctx, n, ends, durable.Want{Max: 10}))
	for _, i := range t.Items {
		got = append(got, string(i.Data))
	}
	for _, w := range t.Waits {
		got = append(got, "wait "+w.Class)
	}
	return t, got
}

// What SetClass sets counts for all nodes until it is reset, also for nodes that join later. A
// class that no node has keeps its values. A token does not come back.
func (s *suite) classes() {
	few := durable.Class{Name: "few", Limit: 2}
	rare := durable.Class{Name: "rare", Rate: core.Rate{PerSecond: 1e-3, Burst: 3}}
	n, other := s.join(s.a, classes(few, rare)), s.join(s.b)
	other.Classes = list(durable.Class{Name: "any"})
	s.put("few", "a", "a", "", "b")
	s.put("rare", "", "c", "d", "e")
	s.put("", "a", "f")
	s.equal("known by beats", must[durable.Beaten](s)(s.b.Beat(s.ctx, other, "")).Classed, true)
	t, got := s.waits(n)
	s.equal("in classes", got, list("fewa", "few", "rare", "rarec", "rared", "f", "wait few", "wait rare"))
	wait := t.Waits[1]
	s.equal("next token", wait.Next > 15*time.Minute && wait.Next <= 1000*time.Second && wait.Half == wait.Next && t.Waits[0].Next == 0, true)
	items := t.Items
	t, got = s.waits(other, endOf(items[3], back), endOf(items[0], durable.End{Kind: durable.EndDone, HandOver: true}))
	s.equal("given back, and handed over", list[any](got, string(t.Ends[1].Next.Data)), list[any](list("wait few", "wait rare"), "fewa"))
	x, _, err := s.b.Explain(s.ctx, s.queue, items[3].ID)
	s.ok(err)
	s.equal("explained", list[any](x.Class.Name, x.Class.Calls.Used, x.Class.Next.Sub(x.Time) > 15*time.Minute, x.Class.NextCost.IsZero()), list[any]("rare", int64(3), true, true))

	s.ok(s.a.SetClass(s.ctx, s.queue, durable.Class{Name: "few", Limit: 1}))
	n = s.join(s.a, classes(few, rare))
	t, got = s.waits(n, endOf(*t.Ends[1].Next, durable.End{Kind: durable.EndDone, HandOver: true}))
	s.equal("the set limit counts", list[any](got, t.Ends[0].Next == nil), list[any](list("a", "wait few", "wait rare"), true))
	s.ok(s.b.ResetClass(s.ctx, s.queue, "few"))
	_, got = s.waits(other)
	s.equal("reset", got, list("fewb", "wait rare"))
	s.ok(s.b.SetClass(s.ctx, s.queue, durable.Class{Name: "rare", Rate: core.Rate{PerSecond: 1e-3, Burst: 2}}))
	_, got = s.waits(other)
	s.equal("no tokens come from a change", got, list("wait rare"))
	s.ok(s.b.SetClass(s.ctx, s.queue, durable.Class{Name: "rare"}))
	_, got = s.waits(other)
	s.equal("no rate", got, list("rarec", "raree"))
	stats := must[durable.Stats](s)(s.b.Stats(s.ctx, s.queue)).Classes
	s.equal("stats", stats, list(durable.ClassStats{Name: "few", Running: 2, Limit: 2}, durable.ClassStats{Name: "rare", Running: 4, Set: true}))
}

// What few items have comes back with them. RunAt is an instant of the clock of the store.
func (s *suite) extra() {
	n := s.join(s.a)
	now := s.clock()
	ids := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(
		durable.Insert{Extra: `{"m":{"ä":"<x>"}}`, RunAt: now.Add(-long)}, durable.Insert{}, durable.Insert{Extra: "x", RunAt: now.Add(long), Delay: time.Second},
		durable.Insert{RunAt: now.Add(short), Delay: long})))
	got := s.claim(n, durable.Want{Max: 10})
	s.equal("claimed", list(got[0].Extra, got[1].Extra, fmt.Sprint(len(got))), list(`{"m":{"ä":"<x>"}}`, "", "2"))
	s.equal("an instant that is over is now", got[0].RunAt.Before(got[0].Enqueued), false)
	s.equal("an instant", s.item(ids[2].ID).RunAt.Equal(now.Add(long)), true)
	s.equal("kept", s.item(ids[2].ID).Extra, "x")
	s.equal("the later one counts", s.item(ids[3].ID).RunAt.Sub(s.item(ids[3].ID).Enqueued), long)
	page := must[durable.Page](s)(s.b.Items(s.ctx, s.queue, durable.Query{State: durable.Running}))
	s.equal("on lists", list(page.Items[0].Extra, page.Items[1].Extra), list(`{"m":{"ä":"<x>"}}`, ""))
	s.end(n, durable.End{Kind: durable.EndRetry, Err: "1"}, durable.Retry, got[0])
	since := s.item(got[0].ID).Failing
	s.equal("failing", since.IsZero(), false)
	again := s.claim(n, durable.Want{Max: 10})
	s.equal("again", list(again[0].Extra, again[0].Failing.String()), list(got[0].Extra, since.String()))
	s.end(n, dead, durable.Dead, again[0])
	s.equal("since the first failure", s.item(got[0].ID).Failing.Equal(since), true)
	s.ok(ignore(s.a.Again(s.ctx, s.queue, list(got[0].ID), anyState)))
	s.equal("not since Again", s.item(got[0].ID).Failing.IsZero(), true)
}

// clock is the time of the store.
func (s *suite) clock() time.Time {
	id := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue+" clock", list(durable.Insert{})))[0].ID
	x, _, err := s.a.Explain(s.ctx, s.queue+" clock", id)
	s.ok(err)
	return x.Item.Enqueued
}

// Replace and SkipIfAlive meet each state of the item that has the id, or is the head.
func (s *suite) stands() {
	n := s.join(s.a)
	add := func(key, unique string, replace, skip bool, data string) durable.Inserted {
		s.Helper()
		return must[[]durable.Inserted](s)(s.b.Insert(s.ctx, s.queue, list(durable.Insert{Key: key, Unique: unique, UniqueFor: 1000 * long, Replace: replace, SkipIfAlive: skip,
			Data: []byte(data), Extra: data})))[0]
	}
	for name, to := range map[string]func(i durable.Item){
		"ready": nil, "blocked": nil, "paused": func(durable.Item) { s.ok(s.a.Pause(s.ctx, s.queue, durable.Pause{}, true)) },
		"running": func(durable.Item) {},
		"retry": func(i durable.Item) {
			s.end(n, durable.End{Kind: durable.EndRetry, Err: "no", After: long}, durable.Retry, i)
		},
		"snoozed": func(i durable.Item) {
			s.end(n, durable.End{Kind: durable.EndSnoozed, Err: "later", After: long}, durable.Ready, i)
		},
		"halted": func(i durable.Item) { s.end(n, durable.End{Kind: durable.EndHalted, Err: "no"}, durable.Halted, i) },
		"done":   func(i durable.Item) { s.end(n, done, durable.Done, i) },
		"dead":   func(i durable.Item) { s.end(n, dead, durable.Dead, i) },
		"cancelled": func(i durable.Item) {
			s.end(n, durable.End{Kind: durable.EndCancelled, Err: "no"}, durable.Cancelled, i)
		},
		"pruned": func(i durable.Item) {
			s.end(n, done, durable.Done, i)
			s.pruned(durable.Keep{Done: 0, Dead: -1, Cancelled: -1}, 10)
		},
	} {
		key := "k " + name
		if name == "blocked" {
			add(key, "", false, false, "head")
		}
		old := add(key, name, true, false, "old")
		s.equal(name+": added", old.Duplicate, false)
		if to != nil && name != "paused" {
			var mine durable.Item
			for _, i := range s.claim(n, durable.Want{Max: 500}) {
				if i.ID == old.ID {
					mine = i
				} else {
					s.end(n, durable.End{Kind: durable.EndSnoozed, After: long}, durable.Ready, i)
				}
			}
			to(mine)
		} else if to != nil {
			to(durable.Item{})
		}
		waits := name == "ready" || name == "blocked" || name == "paused" || name == "retry" || name == "snoozed"
		alive := waits || name == "running" || name == "halted"
		other := add("other key", name, true, false, "other")
		s.equal(name+": another key", other.OtherKey, waits)
		if !waits { // it has the id now
			s.equal(name+": added for another key", other.Duplicate, false)
			s.ok(ignore(s.a.Cancel(s.ctx, s.queue, list(other.ID), anyState, "x")))
		}
		skipped := add(key, "", false, true, "skipped")
		s.equal(name+": skipped", list(skipped.Duplicate, skipped.ID == old.ID), list(alive, alive && name != "blocked"))
		if !alive {
			s.ok(ignore(s.a.Cancel(s.ctx, s.queue, list(skipped.ID), anyState, "x")))
		}
		newer := add(key, name, true, false, "new")
		s.equal(name+": replaced", list(newer.Duplicate, newer.ID == old.ID), list(waits, waits))
		i := s.item(newer.ID)
		s.equal(name+": new data", list(string(i.Data), i.Extra, fmt.Sprint(i.Attempts), i.Err, i.Note, fmt.Sprint(i.Failing.IsZero())), list("new", "new", "0", "", "", "true"))
		want := durable.Ready
		if name == "blocked" || alive && !waits {
			want = durable.Blocked
		}
		s.equal(name+": state", i.State, want)
		s.equal(name+": one id", add(key, name, false, false, "dup").ID, newer.ID)
		s.ok(s.a.Pause(s.ctx, s.queue, durable.Pause{}, false))
	}
	both := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(
		durable.Insert{Key: "two", SkipIfAlive: true, Unique: "two", UniqueFor: long}, durable.Insert{Key: "two", SkipIfAlive: true, Unique: "three", UniqueFor: long},
		durable.Insert{Key: "two", Unique: "three", UniqueFor: long}, durable.Insert{Key: "two", Unique: "two", UniqueFor: long, Replace: true, Data: []byte("2")})))
	s.equal("in one call", list(both[0].Duplicate, both[1].Duplicate, both[2].Duplicate, both[3].Duplicate), list(false, true, false, true))
	s.equal("the ids", list(both[1].ID, both[3].ID), list(both[0].ID, both[0].ID))
	s.equal("the data", string(s.item(both[0].ID).Data), "2")

	var all sync.WaitGroup // processes with the same job
	added := make(chan bool, 8)
	for range cap(added) {
		all.Go(func() {
			in, err := s.open().Insert(s.ctx, s.queue, list(durable.Insert{Key: "job", SkipIfAlive: true}))
			added <- err == nil && !in[0].Duplicate
		})
	}
	all.Wait()
	count := 0
	for range cap(added) {
		if <-added {
			count++
		}
	}
	s.equal("one of them adds it", count, 1)
}
