// Package durabletest checks that a store keeps what [durable.Store] promises:
//
//	func TestStore(t *testing.T) {
//		durabletest.Run(t, func(t testing.TB) durable.Store { return open(t, path) })
//	}
//
// It is imported by tests only.
package durabletest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// Run runs the suite. Open opens the database; each call of it opens the same one, as another
// process would. The database need not be empty: each test has a queue of its own. Open
// closes what it has opened by t.Cleanup. The suite takes real time, because a database does:
// some seconds.
func Run(t *testing.T, open func(t testing.TB) durable.Store) {
	for name, run := range map[string]func(s *suite){
		"insert": (*suite).insert, "keys": (*suite).keys, "lanes": (*suite).lanes, "limits": (*suite).limits, "ends": (*suite).ends,
		"tokens": (*suite).tokens, "hand over": (*suite).handOver, "leases": (*suite).leases, "cancel": (*suite).cancel,
		"again": (*suite).again, "unique": (*suite).unique, "pause": (*suite).pause, "delays": (*suite).delays, "prune": (*suite).prune,
		"items": (*suite).items, "explain": (*suite).explain, "ended contexts": (*suite).contexts, "many nodes": (*suite).chaos,
		"same as Memory": (*suite).random,
	} {
		t.Run(name, func(t *testing.T) {
			run(&suite{T: t, ctx: context.Background(), a: open(t), b: open(t), queue: fmt.Sprintf("%s %x", name, rand.Uint64())})
		})
	}
}

type suite struct {
	*testing.T
	ctx   context.Context
	a, b  durable.Store // the same database
	queue string
}

const (
	long  = time.Hour              // does not end during a test
	short = 100 * time.Millisecond // ends during a test: pass waits for that
)

func (s *suite) pass() { time.Sleep(short + 10*time.Millisecond) }

func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("got error %v", err)
	}
}

func (s *suite) equal(what string, got, want any) {
	s.Helper()
	if !reflect.DeepEqual(got, want) {
		s.Fatalf("%s: got %+v, want %+v", what, got, want)
	}
}

func must[V any](s *suite) func(V, error) V {
	return func(v V, err error) V {
		s.Helper()
		s.ok(err)
		return v
	}
}

// add inserts an item with a key for each word, whose data is the word itself. A word is
// "key", "key@lane", or "@lane".
func (s *suite) add(words ...string) (ids []durable.ItemID) {
	s.Helper()
	var items []durable.Insert
	for _, word := range words {
		key, lane, _ := strings.Cut(word, "@")
		items = append(items, durable.Insert{Key: key, Lane: lane, Rank: slices.Index([]string{"", "hot", "slow"}, lane), Data: []byte(word)})
	}
	for _, in := range must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, items)) {
		s.equal("duplicate", in.Duplicate, false)
		ids = append(ids, in.ID)
	}
	return ids
}

// join joins a node without lanes and limits, changed by the functions.
func (s *suite) join(store durable.Store, change ...func(*durable.Node)) durable.Node {
	s.Helper()
	n := durable.Node{Queue: s.queue, Name: "node", Lease: long, MaxConcurrency: 10, Lanes: []core.Lane{{}}}
	for _, c := range change {
		c(&n)
	}
	n.ID = must[durable.NodeID](s)(store.Join(s.ctx, n))
	return n
}

func lanes(l ...core.Lane) func(*durable.Node) { return func(n *durable.Node) { n.Lanes = l } }

func (s *suite) claim(n durable.Node, want durable.Want) []durable.Item {
	s.Helper()
	return must[[]durable.Item](s)(s.a.Claim(s.ctx, n, want))
}

// claims claims up to most items and checks their data.
func (s *suite) claims(n durable.Node, most int, words ...string) []durable.Item {
	s.Helper()
	items := s.claim(n, durable.Want{Max: most})
	var got []string
	for _, i := range items {
		got = append(got, string(i.Data))
	}
	s.equal("claimed", got, words)
	return items
}

// end ends claims in one way and checks the states of the items.
func (s *suite) end(n durable.Node, e durable.End, want durable.State, items ...durable.Item) {
	s.Helper()
	var ends []durable.End
	for _, i := range items {
		e.ID, e.Token = i.ID, i.Token
		ends = append(ends, e)
	}
	for _, ended := range must[[]durable.Ended](s)(s.a.End(s.ctx, n, ends)) {
		s.equal("end", ended, durable.Ended{Outcome: durable.OutcomeEnded, State: want})
	}
}

// item returns an item as the second opening of the database shows it.
func (s *suite) item(id durable.ItemID) durable.Item {
	s.Helper()
	items := must[[]durable.Item](s)(s.b.Items(s.ctx, s.queue, durable.Query{After: id - 1, Limit: 1}))
	if len(items) == 0 || items[0].ID != id {
		s.Fatalf("there is no item %d", id)
	}
	return items[0]
}

func (s *suite) states(ids ...durable.ItemID) (states []durable.State) {
	s.Helper()
	for _, id := range ids {
		states = append(states, s.item(id).State)
	}
	return states
}

func list[V any](v ...V) []V { return v }

var (
	done  = durable.End{Kind: durable.EndDone}
	retry = durable.End{Kind: durable.EndRetry, Err: "no"}
	dead  = durable.End{Kind: durable.EndDead, Err: "dead"}
	back  = durable.End{Kind: durable.EndGivenBack}
)

func (s *suite) insert() {
	data := [][]byte{{}, {0}, []byte(`{"a":1}`), []byte("\xff\x00'; drop table items; --"), make([]byte, durable.MaxData)}
	texts := []string{"", "a", "A", "é%_'\"\\", strings.Repeat("x", durable.MaxText), strings.Repeat("x", durable.MaxText-1) + "y"}
	var items []durable.Insert
	for _, text := range texts {
		for _, d := range data {
			items = append(items, durable.Insert{Key: text, Lane: text, Rank: len(items), Data: d})
		}
	}
	got := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, items))
	for n, in := range got {
		i, first := s.item(in.ID), items[n].Key == "" || n%len(data) == 0
		s.equal("state", i.State, map[bool]durable.State{true: durable.Ready, false: durable.Blocked}[first])
		s.equal("data", string(i.Data), string(items[n].Data))
		s.equal("texts", list(i.Key, i.Lane), list(items[n].Key, items[n].Lane))
		s.equal("rest", list(i.Rank, i.Attempts, int(i.Token)), list(n, 0, 0))
		if n > 0 && in.ID <= got[n-1].ID {
			s.Fatalf("id %d after %d", in.ID, got[n-1].ID)
		}
	}
	s.equal("items of another queue", len(must[[]durable.Item](s)(s.a.Items(s.ctx, s.queue+"2", durable.Query{}))), 0)
}

// One item of a key at a time, in order; items without a key have none.
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

// Higher lanes are first; a node claims of its lanes only; when the head of a key leaves, the
// highest lane is next; an old item can be first.
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

// Each kind of end: the state, what becomes of the key, and the fields.
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
		s.ok(ignore(s.a.Cancel(s.ctx, s.queue, ids, "end of case")))
	}
	s.add("")
	s.end(n, durable.End{Kind: durable.EndHalted}, durable.Dead, s.claims(n, 1, "")...)
}

func ignore[V any](_ V, err error) error { return err }

// Only the current token ends a claim, once, and says so when it is tried again.
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
			got := must[[]durable.Ended](s)(s.b.End(s.ctx, n, list(durable.End{ID: item.ID, Token: token, Kind: durable.EndDone})))
			s.equal("old token", got, list(durable.Ended{Outcome: durable.OutcomeFenced}))
		}
		s.end(other, retry, durable.Retry, item) // the node does not matter
		got := must[[]durable.Ended](s)(s.b.End(s.ctx, n, list(durable.End{ID: item.ID, Token: item.Token, Kind: durable.EndDone})))
		s.equal("twice", got, list(durable.Ended{Outcome: durable.OutcomeAlready, State: durable.Retry}))
		last = item
	}
	got := must[[]durable.Ended](s)(s.a.End(s.ctx, n, list(durable.End{ID: last.ID + 1000000, Token: last.Token, Kind: durable.EndDone})))
	s.equal("no such item", got, list(durable.Ended{Outcome: durable.OutcomeFenced}))
}

func (s *suite) handOver() {
	n := s.join(s.a, lanes(core.Lane{Name: "hot"}, core.Lane{Name: "slow"}))
	over := func(item durable.Item, kind durable.EndKind) *durable.Item {
		s.Helper()
		e := durable.End{ID: item.ID, Token: item.Token, Kind: kind, HandOver: true}
		got := must[[]durable.Ended](s)(s.a.End(s.ctx, n, list(e)))
		s.equal("outcome", got[0].Outcome, durable.OutcomeEnded)
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
	s.ok(s.b.Pause(s.ctx, s.queue, true))
	s.equal("paused", over(item, durable.EndDone) == nil, true)
	s.ok(s.b.Pause(s.ctx, s.queue, false))
	item = s.claims(n, 1, "a@slow")[0]
	old := n
	n = s.join(s.a, func(n *durable.Node) { n.Lease = 1 })
	s.equal("node without a lease", over(item, durable.EndDone) == nil, true)
	s.claims(old, 1, "a@slow")
}

// Claims of a node that does not beat are free after its lease.
func (s *suite) leases() {
	alive, gone := s.join(s.a), s.join(s.b, func(n *durable.Node) { n.Name, n.Lease = "gone", short })
	ids := s.add("a", "a", "")
	claimed := s.claims(gone, 10, "a", "")
	beaten := must[durable.Beaten](s)(s.b.Beat(s.ctx, gone, ""))
	s.equal("held", beaten.Claims, list(durable.Held{ID: ids[0], Token: claimed[0].Token}, durable.Held{ID: ids[2], Token: claimed[1].Token}))
	s.pass()
	_, err := s.b.Claim(s.ctx, gone, durable.Want{Max: 1})
	s.equal("claim without a lease", errors.Is(err, durable.ErrLeaseLost), true)
	s.equal("nodes", must[durable.Stats](s)(s.a.Stats(s.ctx, s.queue)).Nodes, 1)
	s.equal("lost", must[durable.Beaten](s)(s.a.Beat(s.ctx, alive, "")), durable.Beaten{Lost: list(durable.Lost{Name: "gone", Claims: 2})})
	s.equal("lost once", must[durable.Beaten](s)(s.a.Beat(s.ctx, alive, "")), durable.Beaten{})
	beaten, err = s.b.Beat(s.ctx, gone, "")
	s.equal("beat of a node that is gone", errors.Is(err, durable.ErrLeaseLost), true)
	s.equal("states", s.states(ids...), list(durable.Ready, durable.Blocked, durable.Ready))
	got := must[[]durable.Ended](s)(s.b.End(s.ctx, gone, list(durable.End{ID: ids[0], Token: claimed[0].Token, Kind: durable.EndDone})))
	s.equal("late end", got, list(durable.Ended{Outcome: durable.OutcomeFenced}))
	again := s.claims(alive, 10, "a", "")
	s.equal("attempts count at claim", again[0].Attempts, 2)
	s.ok(s.a.Leave(s.ctx, alive))
	s.ok(s.a.Leave(s.ctx, alive))
	s.equal("after Leave", s.states(ids...), list(durable.Ready, durable.Blocked, durable.Ready))
}

func (s *suite) cancel() {
	n := s.join(s.a)
	ids := s.add("a", "a", "a", "b", "b")
	states := must[[]durable.State](s)(s.b.Cancel(s.ctx, s.queue, []durable.ItemID{ids[1], ids[0], ids[0], 1 << 60}, "left"))
	s.equal("waiting", states, list(durable.Cancelled, durable.Cancelled, 0, 0))
	s.equal("reason", s.item(ids[0]).Err, "left")
	s.equal("other queue", must[[]durable.State](s)(s.a.Cancel(s.ctx, s.queue+"2", ids[2:3], "left")), list(durable.State(0)))
	claimed := s.claims(n, 10, "b", "a")
	for _, reason := range []string{"first", "second"} {
		s.equal("running", must[[]durable.State](s)(s.b.Cancel(s.ctx, s.queue, ids[2:4], reason)), list(durable.Running, durable.Running))
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
	s.equal("halted", must[[]durable.State](s)(s.b.Cancel(s.ctx, s.queue, ids[4:], "x")), list(durable.Cancelled))
	s.claims(n, 10, "b")
}

func (s *suite) again() {
	n := s.join(s.a)
	ids := s.add("a", "a", "a", "a", "")
	s.end(n, dead, durable.Dead, s.claims(n, 10, "a", "")...)
	s.end(n, dead, durable.Dead, s.claims(n, 10, "a")...)
	s.end(n, durable.End{Kind: durable.EndHalted, Err: "e"}, durable.Halted, s.claims(n, 10, "a")...)
	changed := must[[]durable.ItemID](s)(s.b.Again(s.ctx, s.queue, list(ids[4], ids[1], ids[0], ids[3])))
	s.equal("changed", changed, list(ids[0], ids[1], ids[4]))
	s.equal("states", s.states(ids...), list(durable.Blocked, durable.Blocked, durable.Halted, durable.Blocked, durable.Ready))
	i := s.item(ids[4])
	s.equal("item", list[any](i.Attempts, i.Token, i.Err, i.Ended.IsZero()), list[any](0, int64(0), "dead", true))
	s.equal("halted", must[[]durable.ItemID](s)(s.b.Again(s.ctx, s.queue, ids[2:3])), ids[2:3])
	for _, want := range list(ids[2], ids[0], ids[1], ids[3]) { // the head, and then in the old order
		items := s.claim(n, durable.Want{Max: 10})
		items = slices.DeleteFunc(items, func(i durable.Item) bool { return i.Key == "" })
		s.equal("order", items[0].ID, want)
		s.end(n, done, durable.Done, items...)
	}
	s.equal("done", len(must[[]durable.ItemID](s)(s.b.Again(s.ctx, s.queue, ids[:4]))), 0)
}

func (s *suite) unique() {
	in := func(id string, span time.Duration) durable.Insert { return durable.Insert{Unique: id, UniqueFor: span} }
	first := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(in("b", long), in("a", short), in("b", long), in("", 0), in("", 0))))
	s.equal("same call", first[2], durable.Inserted{ID: first[0].ID, Duplicate: true})
	s.ok(ignore(s.a.Cancel(s.ctx, s.queue, list(first[0].ID), "x")))
	s.equal("pruned", must[int](s)(s.a.Prune(s.ctx, s.queue, durable.Keep{}, 10)), 1)
	s.pass()
	got := must[[]durable.Inserted](s)(s.b.Insert(s.ctx, s.queue, list(in("a", long), in("b", long))))
	s.equal("its time is over", got[0].Duplicate, false)
	s.equal("later", got[1], durable.Inserted{ID: first[0].ID, Duplicate: true})
	other := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue+"2", list(in("b", long))))
	s.equal("other queue", other[0].Duplicate, false)
	var added atomic.Int32
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			got, err := []durable.Store{s.a, s.b}[n%2].Insert(s.ctx, s.queue, list(in("y", long), in("x", long)))
			if err != nil {
				s.Error(err)
			} else if !got[1].Duplicate {
				added.Add(1)
			}
		})
	}
	all.Wait()
	s.equal("added", added.Load(), int32(1))
}

func (s *suite) pause() {
	n := s.join(s.a)
	s.add("")
	s.ok(s.b.Pause(s.ctx, s.queue, true))
	s.claims(n, 1)
	s.equal("beat", must[durable.Beaten](s)(s.a.Beat(s.ctx, n, "")).Paused, true)
	s.equal("stats", must[durable.Stats](s)(s.a.Stats(s.ctx, s.queue)).Paused, true)
	s.ok(s.b.Pause(s.ctx, s.queue, false))
	s.claims(n, 1, "")
}

// A delayed item keeps its place in its key; a retry, too.
func (s *suite) delays() {
	n := s.join(s.a)
	_, err := s.a.Insert(s.ctx, s.queue, list(durable.Insert{Key: "a", Delay: short, Data: []byte("late")}, durable.Insert{Key: "a", Delay: long}))
	s.ok(err)
	s.claims(n, 1)
	stats := must[durable.Stats](s)(s.b.Stats(s.ctx, s.queue))
	s.equal("stats", list(stats.Items, stats.Delayed, stats.Blocked, stats.Nodes), list(2, 1, 1, 1))
	s.pass()
	item := s.claims(n, 1, "late")
	s.end(n, durable.End{Kind: durable.EndRetry, After: short}, durable.Retry, item...)
	s.claims(n, 1)
	s.pass()
	s.end(n, done, durable.Done, s.claims(n, 1, "late")...)
	s.claims(n, 1)
	stats = must[durable.Stats](s)(s.b.Stats(s.ctx, s.queue))
	s.equal("stats", list(stats.Delayed, stats.Done, int(stats.Oldest)), list(1, 1, 0))
	s.add("")
	s.pass()
	if old := must[durable.Stats](s)(s.b.Stats(s.ctx, s.queue)).Oldest; old < short || old > long {
		s.Fatalf("oldest is %v", old)
	}
}

func (s *suite) prune() {
	n := s.join(s.a)
	ids := s.add("", "", "", "", "a")
	items := s.claims(n, 10, "", "", "", "", "a")
	s.end(n, done, durable.Done, items[:2]...)
	s.end(n, dead, durable.Dead, items[2])
	s.end(n, durable.End{Kind: durable.EndCancelled}, durable.Cancelled, items[3])
	s.end(n, durable.End{Kind: durable.EndHalted}, durable.Halted, items[4])
	prune := func(keep durable.Keep, most int) int { return must[int](s)(s.b.Prune(s.ctx, s.queue, keep, most)) }
	s.equal("too new", prune(durable.Keep{Done: long, Dead: long, Cancelled: long}, 10), 0)
	s.equal("for ever", prune(durable.Keep{Done: -1, Dead: -1, Cancelled: -1}, 10), 0)
	s.equal("at most", prune(durable.Keep{Done: 0, Dead: -1, Cancelled: -1}, 1), 1)
	s.equal("rest of done", prune(durable.Keep{Done: 0, Dead: -1, Cancelled: -1}, 10), 1)
	s.equal("dead", prune(durable.Keep{Done: 0, Dead: 0, Cancelled: long}, 10), 1)
	s.equal("what is left", s.states(ids[3:]...), list(durable.Cancelled, durable.Halted))
}

func (s *suite) items() {
	ids := s.add("a@hot", "a@hot", "b@slow", "@hot")
	for _, c := range []struct {
		q    durable.Query
		want []durable.ItemID
	}{
		{durable.Query{}, ids}, {durable.Query{Limit: 2}, ids[:2]}, {durable.Query{After: ids[1]}, ids[2:]},
		{durable.Query{Key: "a"}, ids[:2]}, {durable.Query{Lane: "hot", Limit: 2, After: ids[0]}, list(ids[1], ids[3])},
		{durable.Query{State: durable.Blocked}, ids[1:2]}, {durable.Query{State: durable.Ready | durable.Done, Key: "a"}, ids[:1]},
		{durable.Query{State: durable.Dead}, nil},
	} {
		var got []durable.ItemID
		for _, i := range must[[]durable.Item](s)(s.b.Items(s.ctx, s.queue, c.q)) {
			got = append(got, i.ID)
		}
		s.equal(fmt.Sprintf("%+v", c.q), got, c.want)
	}
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

func (s *suite) contexts() {
	n := s.join(s.a)
	ids := s.add("a")
	cause := errors.New("durabletest: enough")
	ctx, cancel := context.WithCancelCause(s.ctx)
	cancel(cause)
	_, _, explained := s.a.Explain(ctx, s.queue, ids[0])
	for name, err := range map[string]error{
		"Insert": ignore(s.a.Insert(ctx, s.queue, list(durable.Insert{}))), "Join": ignore(s.a.Join(ctx, n)), "Beat": ignore(s.a.Beat(ctx, n, "")),
		"Leave": s.a.Leave(ctx, n), "Claim": ignore(s.a.Claim(ctx, n, durable.Want{Max: 1})), "End": ignore(s.a.End(ctx, n, list(durable.End{ID: ids[0], Kind: durable.EndDone}))),
		"Cancel": ignore(s.a.Cancel(ctx, s.queue, ids, "x")), "Again": ignore(s.a.Again(ctx, s.queue, ids)), "Pause": s.a.Pause(ctx, s.queue, true),
		"Items": ignore(s.a.Items(ctx, s.queue, durable.Query{})), "Stats": ignore(s.a.Stats(ctx, s.queue)), "Explain": explained,
		"Prune": ignore(s.a.Prune(ctx, s.queue, durable.Keep{}, 1)),
	} {
		if !errors.Is(err, cause) || errors.Is(err, durable.ErrUndecided) {
			s.Errorf("%s: got %v, want the cause of the context", name, err)
		}
	}
	s.claims(n, 10, "a")
}

// chaos runs nodes on both openings that claim, end, lose their leases and cancel, and looks
// all the time at what must be so at every instant.
func (s *suite) chaos() {
	const items, most = 120, 4
	var (
		all, watch sync.WaitGroup
		mu         sync.Mutex
		order      = map[string][]string{} // what was done of a key
		ended      atomic.Int32
	)
	stores := []durable.Store{s.a, s.b}
	for p := range 3 {
		all.Go(func() {
			for n := range items / 3 {
				in := durable.Insert{Key: fmt.Sprintf("key %d%d", n%4, p%2), Data: fmt.Appendf(nil, "%d of %d", n, p)}
				if err := ignore(stores[p%2].Insert(s.ctx, s.queue, list(in))); err != nil {
					s.Error(err)
				}
			}
		})
	}
	for w := range 4 {
		n := s.join(stores[w%2], func(n *durable.Node) { n.Name, n.MaxCluster = fmt.Sprint(w), most })
		all.Go(func() {
			for until := time.Now().Add(time.Minute); ended.Load() < items && !s.Failed(); {
				claimed, err := stores[w%2].Claim(s.ctx, n, durable.Want{Max: 2})
				var ends []durable.End
				for _, i := range claimed {
					kinds := list(durable.EndDone, durable.EndDone, durable.EndRetry, durable.EndGivenBack)
					ends = append(ends, durable.End{ID: i.ID, Token: i.Token, Kind: kinds[rand.N(len(kinds))], HandOver: rand.N(2) == 0})
				}
				if rand.N(20) == 0 { // a crash
					err = errors.Join(err, stores[w%2].Leave(s.ctx, n))
					n.ID, _ = stores[w%2].Join(s.ctx, n)
				}
				for len(ends) > 0 && err == nil {
					mu.Lock() // so that order is that of the ends
					var got []durable.Ended
					got, err = stores[w%2].End(s.ctx, n, ends)
					var next []durable.End
					for j, e := range got {
						if e.Outcome == durable.OutcomeEnded && e.State == durable.Done {
							i := claimed[slices.IndexFunc(claimed, func(i durable.Item) bool { return i.ID == ends[j].ID })]
							order[i.Key] = append(order[i.Key], string(i.Data))
							ended.Add(1)
						}
						if e.Next != nil {
							claimed = append(claimed, *e.Next)
							next = append(next, durable.End{ID: e.Next.ID, Token: e.Next.Token, Kind: durable.EndDone})
						}
					}
					mu.Unlock()
					ends = next
				}
				if err != nil || time.Now().After(until) {
					s.Errorf("ended %d of %d items: %v", ended.Load(), items, err)
				}
			}
		})
	}
	stop := make(chan struct{})
	watch.Go(func() {
		for {
			found, err1 := s.b.Items(s.ctx, s.queue, durable.Query{State: durable.Waiting | durable.Running | durable.Halted, Limit: items})
			stats, err2 := s.a.Stats(s.ctx, s.queue)
			sum := stats.Blocked + stats.Ready + stats.Delayed + stats.Running + stats.Retry + stats.Halted + stats.Done + stats.Dead + stats.Cancelled
			if err := errors.Join(err1, err2, invariants(found, most)); err != nil || stats.Items != sum || stats.Running > most {
				s.Errorf("%+v: %v", stats, err)
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	all.Wait()
	close(stop)
	watch.Wait()
	last := map[string]int{} // by key and producer
	for key, words := range order {
		for _, word := range words {
			var n, p int
			fmt.Sscanf(word, "%d of %d", &n, &p)
			by := fmt.Sprint(key, " of ", p)
			if before, ok := last[by]; ok && n <= before {
				s.Fatalf("%s: %v", by, words)
			}
			last[by] = n
		}
	}
	s.equal("keys", slices.Sorted(maps.Keys(order)), list("key 00", "key 01", "key 10", "key 11", "key 20", "key 21", "key 30", "key 31"))
}

// invariants checks items that were read at one instant.
func invariants(items []durable.Item, most int) error {
	heads, running := map[string]int{}, 0
	for _, i := range items {
		if i.Key != "" && i.State != durable.Blocked {
			heads[i.Key]++
		}
		if i.State == durable.Running {
			running++
		}
	}
	for _, i := range items {
		if i.Key != "" && heads[i.Key] != 1 {
			return fmt.Errorf("durabletest: key %q has %d heads", i.Key, heads[i.Key])
		}
	}
	if running > most {
		return fmt.Errorf("durabletest: %d run, more than %d", running, most)
	}
	return nil
}
