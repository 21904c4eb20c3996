package durabletest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// Memory passes the suite, and does step by step what Run compares other stores with.
func TestMemory(t *testing.T) {
	RunInBubble(t, memory())
	for name, run := range map[string]func(s *suite){
		"keys": (*suite).keys, "lanes": (*suite).lanes, "limits": (*suite).limits, "ends": (*suite).ends, "tokens": (*suite).tokens,
		"hand over": (*suite).handOver, "cancel": (*suite).cancel, "again": (*suite).again, "pause": (*suite).pause,
		"prune": (*suite).prune, "explain": (*suite).explain,
	} {
		t.Run(name, func(t *testing.T) { runCase(t, name, memory(), run) })
	}
}

// memory returns what opens the same store again and again.
func memory() func(testing.TB) durable.Store {
	store := durable.Memory()
	return func(testing.TB) durable.Store { return store }
}

func (s *suite) keys() {
	n, other := s.join(s.a), s.join(s.b)
	s.add("ada", "", "ada", "bob", "ada", "")
	first := s.claims(n, 10, "ada", "", "bob", "")
	s.claims(other, 10)
	s.end(n, retry, durable.Retry, first[0])
	first = s.claims(other, 10, "ada") // its second attempt
	s.equal("attempts", first[0].Attempts, 2)
	s.end(other, done, durable.Done, first[0])
	first = s.claims(n, 10, "ada")
	s.end(n, back, durable.Ready, first[0])
	first = s.claims(n, 10, "ada")
	s.equal("attempts", first[0].Attempts, 1)
	s.end(n, dead, durable.Dead, first[0])
	s.claims(n, 10, "ada")
}

func (s *suite) lanes() {
	n := s.join(s.a, lanes(core.Lane{Name: "hot", Limit: 2}, core.Lane{Name: "slow"}))
	s.add("@slow", "a@slow", "a@slow", "a@hot", "@hot", "@hot", "@hot", "@none")
	first := s.claims(n, 3, "@hot", "@hot", "@slow")
	s.end(n, done, durable.Done, first[0])
	s.end(n, done, durable.Done, s.claims(n, 10, "@hot", "a@slow")[1])
	s.claims(n, 10)
	s.end(n, done, durable.Done, first[1:]...)
	s.claims(n, 10, "a@hot")
	s.equal("aged", len(s.claim(s.join(s.a), durable.Want{Max: 1, Aged: 1})), 0)
	s.add("b@slow", "@slow")
	s.add("@hot", "c@slow")
	n.Lanes[0].Limit = 0
	s.equal("not so old", string(s.claim(n, durable.Want{Max: 1, Aged: long})[0].Data), "@hot")
	s.add("@hot")
	var got []string
	for _, i := range s.claim(n, durable.Want{Max: 3, Aged: 1}) {
		got = append(got, string(i.Data))
	}
	s.equal("old one first", got, list("b@slow", "@hot", "@slow"))
}

func (s *suite) limits() {
	few := func(n *durable.Node) { n.MaxCluster = 3 }
	n, other := s.join(s.a, few), s.join(s.b, few)
	s.add("", "", "", "", "")
	first := s.claims(n, 2, "", "")
	s.claims(other, 10, "")
	s.claims(n, 10)
	s.end(n, done, durable.Done, first[0])
	s.claims(other, 10, "")
	s.claims(s.join(s.b), 10, "") // has no limit
}

func (s *suite) ends() {
	n := s.join(s.a)
	for _, c := range []struct {
		end      durable.End
		state    durable.State
		attempts int
		next     durable.State
		err      string
	}{
		{durable.End{Kind: durable.EndDone}, durable.Done, 2, durable.Ready, ""},
		{durable.End{Kind: durable.EndRetry, Err: "e", After: long}, durable.Retry, 2, durable.Blocked, "e"},
		{durable.End{Kind: durable.EndDead, Err: "e"}, durable.Dead, 2, durable.Ready, "e"},
		{durable.End{Kind: durable.EndHalted, Err: "e"}, durable.Halted, 2, durable.Blocked, "e"},
		{durable.End{Kind: durable.EndSnoozed, After: long}, durable.Ready, 1, durable.Blocked, "no"},
		{durable.End{Kind: durable.EndGivenBack}, durable.Ready, 1, durable.Blocked, "no"},
		{durable.End{Kind: durable.EndCancelled, Err: "e"}, durable.Cancelled, 2, durable.Ready, "e"},
	} {
		key := fmt.Sprint("key of ", c.end.Kind)
		ids := s.add(key, key)
		s.end(n, retry, durable.Retry, s.claims(n, 1, key)...)
		item := s.claims(n, 1, key)[0]
		s.end(n, c.end, c.state, item)
		s.equal(key, s.states(ids...), list(c.state, c.next))
		i := s.item(ids[0])
		s.equal(key, list[any](i.Attempts, i.Err, i.Token, i.Node), list[any](c.attempts, c.err, item.Token, "node"))
		s.equal(key+" ended", !i.Ended.IsZero(), c.state&(durable.Finished|durable.Halted) != 0)
		s.equal(key+" later", i.RunAt.Sub(i.Enqueued) >= long, c.end.After > 0)
		s.ok(ignore(s.a.Cancel(s.ctx, s.queue, ids, anyState, "end of case")))
	}
	s.add("")
	s.end(n, durable.End{Kind: durable.EndHalted}, durable.Dead, s.claims(n, 1, "")...)
}

func (s *suite) tokens() {
	n, other := s.join(s.a), s.join(s.b)
	s.add("a")
	last := durable.Item{}
	for range 3 {
		item := s.claims(n, 1, "a")[0]
		if item.Token <= last.Token {
			s.Fatalf("token %d after %d", item.Token, last.Token)
		}
		for _, token := range []int64{last.Token, 0, item.Token + 1} {
			got := must[[]durable.Ended](s)(endAll(s, s.b, n, durable.End{ID: item.ID, Key: "a", Token: token, Kind: durable.EndDone}))
			s.equal("old token", got, list(durable.Ended{Outcome: durable.OutcomeFenced}))
		}
		s.end(other, retry, durable.Retry, item) // the node does not matter
		got := must[[]durable.Ended](s)(endAll(s, s.b, n, endOf(item, done)))
		s.equal("twice", got, list(durable.Ended{Outcome: durable.OutcomeAlready, State: durable.Retry}))
		last = item
	}
	got := must[[]durable.Ended](s)(endAll(s, s.a, n, durable.End{ID: last.ID + 1000000, Key: "a", Token: last.Token, Kind: durable.EndDone}))
	s.equal("no such item", got, list(durable.Ended{Outcome: durable.OutcomeFenced}))
}

func (s *suite) handOver() {
	n := s.join(s.a, lanes(core.Lane{Name: "hot"}, core.Lane{Name: "slow"}))
	over := func(item durable.Item, kind durable.EndKind) *durable.Item {
		s.Helper()
		got := must[[]durable.Ended](s)(endAll(s, s.a, n, endOf(item, durable.End{Kind: kind, HandOver: true})))
		s.equal("outcome", got[0].Outcome, durable.OutcomeEnded)
		s.equal("promoted", got[0].Promoted, got[0].Next == nil && kind != durable.EndRetry)
		return got[0].Next
	}
	ids := s.add("a@hot", "a@hot", "a@hot", "a@slow", "a@slow", "a@slow")
	item := s.claims(n, 1, "a@hot")[0]
	next := over(item, durable.EndDone)
	s.equal("next", list[any](next.ID, next.State, next.Attempts, next.Node), list[any](ids[1], durable.Running, 1, "node"))
	s.equal("its token is new", next.Token > item.Token, true)
	s.equal("a retry keeps the key", over(*next, durable.EndRetry) == nil, true)
	next = over(s.claims(n, 1, "a@hot")[0], durable.EndDead)
	s.equal("another lane", over(*next, durable.EndDone) == nil, true)
	item = s.claims(n, 1, "a@slow")[0]
	s.ok(s.b.Pause(s.ctx, s.queue, durable.Pause{}, true))
	s.equal("paused", over(item, durable.EndDone) == nil, true)
	s.ok(s.b.Pause(s.ctx, s.queue, durable.Pause{}, false))
	item = s.claims(n, 1, "a@slow")[0]
	old := n
	n = s.join(s.a, func(n *durable.Node) { n.Lease = 1 })
	s.equal("node without a lease", over(item, durable.EndDone) == nil, true)
	s.claims(old, 1, "a@slow")
}

func (s *suite) cancel() {
	n := s.join(s.a)
	ids := s.add("a", "a", "a", "b", "b")
	states := must[[]durable.State](s)(s.b.Cancel(s.ctx, s.queue, []durable.ItemID{ids[1], ids[0], ids[0], 1 << 60}, anyState, "left"))
	s.equal("waiting", states, list(durable.Cancelled, durable.Cancelled, 0, 0))
	s.equal("reason", s.item(ids[0]).Err, "left")
	s.equal("other queue", must[[]durable.State](s)(s.a.Cancel(s.ctx, s.queue+"2", ids[2:3], anyState, "left")), list(durable.State(0)))
	claimed := s.claims(n, 10, "b", "a")
	for _, reason := range []string{"first", "second"} {
		s.equal("running", must[[]durable.State](s)(s.b.Cancel(s.ctx, s.queue, ids[2:4], anyState, reason)), list(durable.Running, durable.Running))
	}
	s.equal("beat", must[durable.Beaten](s)(s.a.Beat(s.ctx, n, "")).Claims[0].Cancel, "first")
	s.end(n, retry, durable.Cancelled, claimed[1])
	s.equal("reason", s.item(ids[2]).Err, "first")
	s.ok(s.a.Leave(s.ctx, n)) // the node of the other one crashes
	n = s.join(s.a)
	item := s.claims(n, 10, "b")[0]
	s.equal("claimed with its cancel", item.Cancel, "first")
	s.end(n, back, durable.Cancelled, item)
	s.end(n, durable.End{Kind: durable.EndHalted}, durable.Halted, s.claims(n, 10, "b")...)
	s.add("b")
	s.claims(n, 10)
	s.equal("halted", must[[]durable.State](s)(s.b.Cancel(s.ctx, s.queue, ids[4:], anyState, "x")), list(durable.Cancelled))
	item = s.claims(n, 10, "b")[0]
	s.end(n, dead, durable.Dead, item)
	ids = s.add("b", "b")
	s.equal("dead", must[[]durable.State](s)(s.b.Cancel(s.ctx, s.queue, list(item.ID), anyState, "x")), list(durable.Cancelled))
	s.equal("head and next", s.states(ids...), list(durable.Ready, durable.Blocked))
}

func (s *suite) again() {
	n := s.join(s.a)
	ids := s.add("a", "a", "a", "a", "")
	s.end(n, dead, durable.Dead, s.claims(n, 10, "a", "")...)
	s.end(n, dead, durable.Dead, s.claims(n, 10, "a")...)
	s.end(n, durable.End{Kind: durable.EndHalted, Err: "e"}, durable.Halted, s.claims(n, 10, "a")...)
	changed := must[[]durable.ItemID](s)(s.b.Again(s.ctx, s.queue, list(ids[4], ids[1], ids[0], ids[3]), anyState))
	s.equal("changed", changed, list(ids[0], ids[1], ids[4]))
	s.equal("states", s.states(ids...), list(durable.Blocked, durable.Blocked, durable.Halted, durable.Blocked, durable.Ready))
	i := s.item(ids[4])
	s.equal("item", list[any](i.Attempts, i.Token, i.Err, i.Ended.IsZero()), list[any](0, int64(0), "dead", true))
	s.equal("halted", must[[]durable.ItemID](s)(s.b.Again(s.ctx, s.queue, ids[2:3], anyState)), ids[2:3])
	for _, want := range list(ids[2], ids[0], ids[1], ids[3]) { // the head, and then in the old order
		items := s.claim(n, durable.Want{Max: 10})
		items = slices.DeleteFunc(items, func(i durable.Item) bool { return i.Key == "" })
		s.equal("order", items[0].ID, want)
		s.end(n, done, durable.Done, items...)
	}
	s.equal("done", len(must[[]durable.ItemID](s)(s.b.Again(s.ctx, s.queue, ids[:4], anyState))), 0)
}

func (s *suite) pause() {
	n := s.join(s.a)
	s.add("")
	s.ok(s.b.Pause(s.ctx, s.queue, durable.Pause{}, true))
	s.claims(n, 1)
	s.equal("beat", must[durable.Beaten](s)(s.a.Beat(s.ctx, n, "")).Paused, true)
	s.equal("stats", must[durable.Stats](s)(s.a.Stats(s.ctx, s.queue)).Paused, true)
	s.ok(s.b.Pause(s.ctx, s.queue, durable.Pause{}, false))
	s.claims(n, 1, "")
}

func (s *suite) prune() {
	n := s.join(s.a)
	ids := s.add("", "", "", "", "a")
	items := s.claims(n, 10, "", "", "", "", "a")
	s.end(n, done, durable.Done, items[:2]...)
	s.end(n, dead, durable.Dead, items[2])
	s.end(n, durable.End{Kind: durable.EndCancelled}, durable.Cancelled, items[3])
	s.end(n, durable.End{Kind: durable.EndHalted}, durable.Halted, items[4])
	prune := func(keep durable.Keep, most int) int { return s.pruned(keep, most) }
	s.equal("too new", prune(durable.Keep{Done: long, Dead: long, Cancelled: long}, 10), 0)
	s.equal("for ever", prune(durable.Keep{Done: -1, Dead: -1, Cancelled: -1}, 10), 0)
	s.equal("at most", prune(durable.Keep{Done: 0, Dead: -1, Cancelled: -1}, 1), 1)
	s.equal("rest of done", prune(durable.Keep{Done: 0, Dead: -1, Cancelled: -1}, 10), 1)
	s.equal("dead", prune(durable.Keep{Done: 0, Dead: 0, Cancelled: long}, 10), 1)
	s.equal("what is left", s.states(ids[3:]...), list(durable.Cancelled, durable.Halted))
}

func (s *suite) explain() {
	n := s.join(s.a, func(n *durable.Node) { n.Name, n.MaxCluster = "shop-2", 7 })
	other := s.join(s.b, lanes(core.Lane{Name: "hot", Limit: 4}, core.Lane{}))
	s.ok(ignore(s.b.Beat(s.ctx, other, "gate")))
	ids := s.add("a", "a", "a", "", "")
	explain := func(id durable.ItemID) durable.Explanation {
		s.Helper()
		x, ok, err := s.b.Explain(s.ctx, s.queue, id)
		s.ok(err)
		s.equal("found", ok, true)
		return x
	}
	s.equal("before", explain(ids[4]).Before, 2)
	s.claims(n, 1, "a")
	x := explain(ids[2])
	s.equal("head", list[any](x.Head.ID, x.Head.Node, x.Ahead, x.Running, x.LaneRunning), list[any](ids[0], "shop-2", 2, 1, 1))
	if left := x.Head.Expires.Sub(x.Time); left <= 0 || left > long || x.Head.Started.After(x.Time) {
		s.Fatalf("lease of %v", left)
	}
	s.equal("nodes", x.Nodes, list(durable.Serving{Node: n, Running: 1}, durable.Serving{Node: other, Note: "gate"}))
	x = explain(ids[4])
	s.equal("no key", list[any](x.Head == nil, x.Ahead, x.Before, x.Item.ID), list[any](true, 0, 1, ids[4]))
	_, ok, err := s.a.Explain(s.ctx, s.queue+"2", ids[0])
	s.ok(err)
	s.equal("other queue", ok, false)
}
