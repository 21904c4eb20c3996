// Package durabletest checks that a store keeps the promises of package durable. [Run] checks
// all that [durable.Store] promises:
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
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// cases are the tests of the suite.
var cases = map[string]func(s *suite){
	"insert": (*suite).insert, "leases": (*suite).leases, "losses": (*suite).losses, "lanes of nobody": (*suite).strays, "unique": (*suite).unique, "replace and skip": (*suite).stands, "extra": (*suite).extra, "delays": (*suite).delays,
	"ended contexts": (*suite).contexts, "attempts": (*suite).attempts, "lists": (*suite).lists, "pages": (*suite).listed, "move": (*suite).move, "results": (*suite).results, "depths": (*suite).depths, "many nodes": (*suite).chaos, "finished by a body": (*suite).finished, "ticks": (*suite).ticks,
	"steps": (*suite).records, "signals": (*suite).signals, "parking": (*suite).parking, "attempts of parks": (*suite).attemptOfParks, "cancel in order": (*suite).cancelInOrder, "cancelled twice": (*suite).cancelledTwice, "classes of steps": (*suite).steppedClasses, "undoing": (*suite).undoing, "signals meet parks": (*suite).meetings,
	"classes": (*suite).classes, "rates": (*suite).rates, "costs": (*suite).costs, "costs of items alone": (*suite).costsAlone, "gates": (*suite).gates, "shadows": (*suite).shadows, "pauses": (*suite).pauses, "rates of keys": (*suite).keyRates, "same as Memory": (*suite).random,
}

// Run runs the suite. Open opens the database; each call of it opens the same one, as another
// process would. The database need not be empty: each test has a queue of its own. Open
// closes what it has opened by t.Cleanup. The suite takes real time, because a database does:
// some seconds, and more if EPHEMERAL_LONG is set. The tests are parallel, so they end after the
// function that calls Run.
func Run(t *testing.T, open func(t testing.TB) durable.Store) {
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runCase(t, name, open, run)
		})
	}
}

// RunInBubble is Run for a database in this process that takes the time from package time: each test runs in a bubble
// of testing/synctest, in which an hour takes no time. Open is called in it.
func RunInBubble(t *testing.T, open func(t testing.TB) durable.Store) {
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runCase(t, name, open, run) })
		})
	}
}

func runCase(t *testing.T, name string, open func(t testing.TB) durable.Store, run func(s *suite)) {
	run(&suite{T: t, ctx: context.Background(), open: func() durable.Store { return open(t) }, a: open(t), b: open(t), queue: fmt.Sprintf("%s %x", name, rand.Uint64())})
}

type suite struct {
	*testing.T
	ctx   context.Context
	a, b  durable.Store // the same database
	open  func() durable.Store
	queue string
}

const (
	long  = time.Hour              // does not end during a test
	short = 250 * time.Millisecond // ends during a test: pass waits for that
)

// tick makes calls differ in their times, also in a bubble.
func (s *suite) tick() { time.Sleep(time.Microsecond) }

func (s *suite) pass() { time.Sleep(short + 10*time.Millisecond) }

// expire ends the lease of a node. It is long until then, so what the node has done took no time.
func (s *suite) expire(store durable.Store, n durable.Node) {
	s.Helper()
	n.Lease = short
	must[durable.Beaten](s)(store.Beat(s.ctx, n, ""))
	s.pass()
}

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
	s.tick()
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
	s.tick()
	return must[durable.Turned](s)(s.a.Turn(s.ctx, n, nil, want)).Items
}

// endAll ends claims, and claims only the items that are handed over.
func endAll(s *suite, store durable.Store, n durable.Node, ends ...durable.End) ([]durable.Ended, error) {
	s.tick()
	t, err := store.Turn(s.ctx, n, ends, durable.Want{})
	return t.Ends, err
}

// endOf is the end of a claim.
func endOf(i durable.Item, e durable.End) durable.End {
	e.ID, e.Key, e.Token = i.ID, i.Key, i.Token
	return e
}

// claims makes up to most claims and checks the data of the items.
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
		ends = append(ends, endOf(i, e))
	}
	for _, ended := range must[[]durable.Ended](s)(endAll(s, s.a, n, ends...)) {
		ended.Promoted = false
		s.equal("end", ended, durable.Ended{Outcome: durable.OutcomeEnded, State: want})
	}
}

// item returns an item as the second opening of the database shows it.
func (s *suite) item(id durable.ItemID) durable.Item {
	s.Helper()
	x, ok, err := s.b.Explain(s.ctx, s.queue, id)
	s.ok(err)
	if !ok {
		s.Fatalf("there is no item %d", id)
	}
	return x.Item
}

func (s *suite) states(ids ...durable.ItemID) (states []durable.State) {
	s.Helper()
	for _, id := range ids {
		states = append(states, s.item(id).State)
	}
	return states
}

func (s *suite) pruned(keep durable.Keep, most int) int {
	s.Helper()
	s.tick()
	n, _, err := s.b.Prune(s.ctx, s.queue, keep, most)
	s.ok(err)
	return n
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
		clear(s.item(in.ID).Data) // the data belongs to the caller
		i, first := s.item(in.ID), items[n].Key == "" || n%len(data) == 0
		s.equal("state", i.State, map[bool]durable.State{true: durable.Ready, false: durable.Blocked}[first])
		s.equal("data", string(i.Data), string(items[n].Data))
		s.equal("texts", list(i.Key, i.Lane), list(items[n].Key, items[n].Lane))
		s.equal("rest", list(i.Rank, i.Attempts, int(i.Token)), list(n, 0, 0))
		if n > 0 && in.ID <= got[n-1].ID {
			s.Fatalf("id %d after %d", in.ID, got[n-1].ID)
		}
	}
	s.equal("items of another queue", len(must[durable.Page](s)(s.a.Items(s.ctx, s.queue+"2", durable.Query{})).Items), 0)
}

func ignore[V any](_ V, err error) error { return err }

// Only the current token ends a claim. The second time, the outcome is Already. Claims of a
// node that does not beat are free after its lease.
func (s *suite) leases() {
	alive, gone := s.join(s.a), s.join(s.b, func(n *durable.Node) { n.Name = "gone" })
	ids := s.add("a", "a", "")
	claimed := s.claims(gone, 10, "a", "")
	time.Sleep(time.Millisecond)
	beaten := must[durable.Beaten](s)(s.b.Beat(s.ctx, gone, ""))
	s.equal("held", beaten.Claims, list(durable.Held{ID: ids[0], Key: "a", Token: claimed[0].Token}, durable.Held{ID: ids[2], Token: claimed[1].Token}))
	s.equal("the beat has extended the lease", s.item(ids[0]).Expires.After(claimed[0].Expires), true)
	s.expire(s.b, gone)
	turned, err := s.b.Turn(s.ctx, gone, list(durable.End{ID: ids[0], Key: "a", Token: -1, Kind: durable.EndDone}), durable.Want{Max: 1})
	s.equal("claim without a lease", errors.Is(err, durable.ErrLeaseLost), true)
	s.equal("its ends", turned, durable.Turned{Ends: list(durable.Ended{Outcome: durable.OutcomeFenced})})
	s.equal("nodes", must[durable.Stats](s)(s.a.Stats(s.ctx, s.queue)).Nodes, 1)
	s.equal("lost", must[durable.Beaten](s)(s.a.Beat(s.ctx, alive, "")), durable.Beaten{Lost: list(durable.Lost{Name: "gone", Claims: 2}), Due: true})
	s.equal("lost once", must[durable.Beaten](s)(s.a.Beat(s.ctx, alive, "")), durable.Beaten{Due: true})
	beaten, err = s.b.Beat(s.ctx, gone, "")
	s.equal("beat of a node that is gone", errors.Is(err, durable.ErrLeaseLost), true)
	s.equal("states", s.states(ids...), list(durable.Ready, durable.Blocked, durable.Ready))
	got := must[[]durable.Ended](s)(endAll(s, s.b, gone, endOf(claimed[0], done)))
	s.equal("late end", got, list(durable.Ended{Outcome: durable.OutcomeFenced}))
	again := s.claims(alive, 10, "a", "")
	s.equal("a loss beside others is no attempt", list(again[0].Attempts, again[0].Losses), list(1, 1))
	s.ok(s.a.Leave(s.ctx, alive))
	s.ok(s.a.Leave(s.ctx, alive))
	s.equal("after Leave", s.states(ids...), list(durable.Ready, durable.Blocked, durable.Ready))
}

// After two lost leases, only a node that asks for it alone claims an item. Each further loss
// counts as an attempt. If the process lives and gives the item back, its loss does not count.
func (s *suite) losses() {
	alive := s.join(s.a)
	id := s.add("")[0]
	s.equal("none must run alone", len(s.claim(alive, durable.Want{Max: 1, Alone: true})), 0)
	facts := func() []int { i := s.item(id); return list(i.Losses, i.Attempts, int(i.Token)) }
	lose := func(want durable.Want) (item durable.Item) {
		s.Helper()
		gone := s.join(s.a)
		item = s.claim(gone, want)[0]
		s.expire(s.a, gone)
		s.equal("lost", len(must[durable.Beaten](s)(s.b.Beat(s.ctx, alive, "")).Lost), 1)
		return item
	}
	lose(durable.Want{Max: 1})
	s.equal("once", facts(), list(1, 0, 0))
	item := lose(durable.Want{Max: 1})
	s.equal("twice", facts(), list(2, 0, 0))
	back1 := endOf(item, back)
	s.equal("given back", must[[]durable.Ended](s)(endAll(s, s.a, alive, back1)), list(durable.Ended{Outcome: durable.OutcomeAlready, State: durable.Ready}))
	s.equal("taken off", facts(), list(1, 0, 0))
	s.equal("given back twice", must[[]durable.Ended](s)(endAll(s, s.a, alive, back1))[0].Outcome, durable.OutcomeFenced)
	for s.item(id).RunAt.After(time.Now()) {
		s.pass()
	}
	lose(durable.Want{Max: 1})
	s.equal("it waits", s.item(id).RunAt.Sub(s.item(id).Started) >= time.Second, true)
	s.equal("not yet", must[durable.Beaten](s)(s.b.Beat(s.ctx, alive, "")).Suspect, false)
	for !must[durable.Beaten](s)(s.b.Beat(s.ctx, alive, "")).Suspect {
		s.pass()
	}
	s.add("")
	s.equal("others first", s.claim(alive, durable.Want{Max: 10, Aged: 1})[0].ID != id, true)
	item = lose(durable.Want{Max: 1, Alone: true})
	s.equal("it is alone", list(int(item.ID), item.Attempts), list(int(id), 1))
	s.equal("an attempt", facts(), list(3, 1, 0))
	s.equal("given back", must[[]durable.Ended](s)(endAll(s, s.a, alive, endOf(item, back)))[0].Outcome, durable.OutcomeAlready)
	s.equal("taken off", facts(), list(2, 0, 0))
	s.ok(ignore(s.a.Cancel(s.ctx, s.queue, list(id), anyState, "x")))
	s.ok(ignore(s.a.Again(s.ctx, s.queue, list(id), anyState)))
	s.equal("again", facts(), list(0, 0, 0))
	lose(durable.Want{Max: 1})
	s.end(alive, retry, durable.Retry, s.claim(alive, durable.Want{Max: 1})[0])
	s.equal("an ordinary end", facts()[0], 0)
}

// Beats and Stats show lanes that have items and no live node.
func (s *suite) strays() {
	s.add("@hot", "@slow", "a@old", "a@slow")
	s.equal("nobody", must[durable.Stats](s)(s.a.Stats(s.ctx, s.queue)).Strays, []string(nil))
	n := s.join(s.a, lanes(core.Lane{Name: "hot"}))
	s.equal("beat", must[durable.Beaten](s)(s.b.Beat(s.ctx, n, "")).Strays, list("old", "slow"))
	s.equal("stats", must[durable.Stats](s)(s.a.Stats(s.ctx, s.queue)).Strays, list("old", "slow"))
	other := s.join(s.b, lanes(core.Lane{Name: "slow"}))
	s.equal("one has it", must[durable.Beaten](s)(s.b.Beat(s.ctx, n, "")).Strays, list("old"))
	s.ok(s.b.Leave(s.ctx, other))
	n.Lanes = append(n.Lanes, core.Lane{Name: "slow"}, core.Lane{Name: "old"})
	s.claims(n, 10, "@hot", "@slow", "a@old")
}

func (s *suite) unique() {
	in := func(id string, span time.Duration) durable.Insert { return durable.Insert{Unique: id, UniqueFor: span} }
	first := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(in("b", long), in("a", short), in("b", long), in("", 0), in("", 0))))
	s.equal("same call", first[2], durable.Inserted{ID: first[0].ID, Duplicate: true})
	s.ok(ignore(s.a.Cancel(s.ctx, s.queue, list(first[0].ID), anyState, "x")))
	s.equal("pruned", s.pruned(durable.Keep{}, 10), 1)
	s.pass()
	got := must[[]durable.Inserted](s)(s.b.Insert(s.ctx, s.queue, list(in("a", long), in("b", long))))
	s.equal("its time is over", got[0].Duplicate, false)
	s.equal("later", got[1], durable.Inserted{ID: first[0].ID, Duplicate: true})
	other := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue+"2", list(in("b", long))))
	s.equal("other queue", other[0].Duplicate, false)
	for n := range 25 { // unique ids are deleted as fast as items
		must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue+"3", list(in(fmt.Sprint(n), time.Microsecond))))
	}
	s.pass()
	for calls, more := 0, true; more && calls < 10; calls++ {
		_, again, err := s.a.Prune(s.ctx, s.queue+"3", durable.Keep{Done: -1, Dead: -1, Cancelled: -1}, 10)
		s.ok(err)
		more = again
		s.equal("more ids", again && calls >= 2, false)
	}
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

// A delayed item keeps its place in its key; a retry, too. What waits behind it cannot be moved without it.
func (s *suite) delays() {
	n := s.join(s.a)
	added := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Key: "a", Delay: short, Data: []byte("late")}, durable.Insert{Key: "a", Delay: long})))
	_, err := s.b.Move(s.ctx, s.queue, list(added[1].ID), "hot", 0)
	s.equal("a move without the head", errors.Is(err, durable.ErrOrder), true)
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

func (s *suite) contexts() {
	n := s.join(s.a)
	ids := s.add("a")
	cause := errors.New("durabletest: enough")
	ctx, cancel := context.WithCancelCause(s.ctx)
	cancel(cause)
	_, _, explained := s.a.Explain(ctx, s.queue, ids[0])
	_, _, resulted := s.a.Result(ctx, s.queue, ids[0])
	_, _, pruned := s.a.Prune(ctx, s.queue, durable.Keep{}, 1)
	for name, err := range map[string]error{
		"Insert": ignore(s.a.Insert(ctx, s.queue, list(durable.Insert{}))), "Join": ignore(s.a.Join(ctx, n)), "Beat": ignore(s.a.Beat(ctx, n, "")),
		"Leave": s.a.Leave(ctx, n), "Turn": ignore(s.a.Turn(ctx, n, list(durable.End{ID: ids[0], Kind: durable.EndDone}), durable.Want{Max: 1})),
		"Cancel": ignore(s.a.Cancel(ctx, s.queue, ids, anyState, "x")), "Again": ignore(s.a.Again(ctx, s.queue, ids, anyState)), "SetClass": s.a.SetClass(ctx, s.queue, durable.Class{Name: "c", Limit: 1}), "ResetClass": s.a.ResetClass(ctx, s.queue, "c"), "Pause": s.a.Pause(ctx, s.queue, durable.Pause{}, true), "Charge": s.a.Charge(ctx, s.queue, "c", 1, 1),
		"Items": ignore(s.a.Items(ctx, s.queue, durable.Query{})), "Count": ignore(s.a.Count(ctx, s.queue, durable.Query{})), "Move": ignore(s.a.Move(ctx, s.queue, ids, "x", 0)), "Result": resulted, "Depths": ignore(s.a.Depths(ctx, s.queue)), "Stats": ignore(s.a.Stats(ctx, s.queue)), "Explain": explained,
		"Prune": pruned,
	} {
		if !errors.Is(err, cause) || errors.Is(err, durable.ErrUndecided) {
			s.Errorf("%s: got %v, want the cause of the context", name, err)
		}
	}
	s.claims(n, 10, "a")
}

// chaos runs nodes on both openings. They claim, end, cancel and lose their leases.
// Meanwhile it checks what must hold at every instant.
func (s *suite) chaos() {
	const items, most = 120, 4
	var (
		all, watch sync.WaitGroup
		mu         sync.Mutex
		order      = map[string][]string{} // the items of a key that are done
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
			var held []durable.Item
			for until := time.Now().Add(time.Minute); ended.Load() < items && !s.Failed(); time.Sleep(time.Microsecond) { // in a bubble, the watcher goes on meanwhile
				if rand.N(20) == 0 { // a crash
					held, n.ID = nil, must[durable.NodeID](s)(n.ID, stores[w%2].Leave(s.ctx, n))
					n.ID = must[durable.NodeID](s)(stores[w%2].Join(s.ctx, n))
				}
				var ends []durable.End
				for _, i := range held {
					kinds := list(durable.EndDone, durable.EndDone, durable.EndRetry, durable.EndGivenBack)
					ends = append(ends, endOf(i, durable.End{Kind: kinds[rand.N(len(kinds))], HandOver: rand.N(2) == 0}))
				}
				mu.Lock() // so that the list has the order of the ends
				t, err := stores[w%2].Turn(s.ctx, n, ends, durable.Want{Max: 2})
				var next []durable.Item
				for j, e := range t.Ends {
					if e.Outcome == durable.OutcomeEnded && e.State == durable.Done {
						order[held[j].Key] = append(order[held[j].Key], string(held[j].Data))
						ended.Add(1)
					}
					if e.Outcome == durable.OutcomeBusy {
						next = append(next, held[j])
					}
					if e.Next != nil {
						next = append(next, *e.Next)
					}
				}
				mu.Unlock()
				held = append(next, t.Items...)
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
			if err := errors.Join(err1, err2, invariants(found.Items, most)); err != nil || stats.Items != sum || stats.Running > most {
				s.Errorf("%+v: %v", stats, err)
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Microsecond):
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
