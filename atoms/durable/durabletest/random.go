package durabletest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// random makes the same random calls on the store and on durable.Memory, and compares all
// answers. It translates IDs and tokens of the store to IDs and tokens of Memory. It
// compares times only if they do not depend on the speed of the store.
func (s *suite) random() {
	seeds, steps := uint64(3), 80
	if os.Getenv("EPHEMERAL_LONG") != "" {
		seeds, steps = 10, 100
	}
	for seed := range seeds {
		d := &differ{suite: &suite{T: s.T, ctx: s.ctx, a: s.a, b: s.b, queue: fmt.Sprint(s.queue, " of seed ", seed)}, rand: rand.New(rand.NewPCG(seed, seed)),
			often: [][]int{{0, 3, 9, 11, 11}, {0, 3, 13}, {0, 3, 9, 15, 16, 16}}[seed%3], model: durable.Memory(), ids: map[durable.ItemID]durable.ItemID{}, tokens: map[int64]int64{}, seqs: map[int64]int64{}}
		for range steps {
			d.step()
		}
	}
}

type differ struct {
	*suite
	rand   *rand.Rand
	often  []int // which calls are made more often
	model  durable.Store
	ids    map[durable.ItemID]durable.ItemID // key: of the store; value: of Memory
	back   []durable.ItemID                  // IDs of the store; the place plus 1 is the ID of Memory
	tokens map[int64]int64                   // key: of the store; value: of Memory
	seqs   map[int64]int64                   // of signals: key: of the store; value: of Memory
	nodes  [][2]durable.Node                 // the node of the store, and the node of Memory
	ends   [][2]durable.End                  // of all claims so far
	calls  []string
}

// same compares two answers.
func (d *differ) same(what string, got any, err error, want any, wantErr error) {
	d.Helper()
	d.calls = append(d.calls, what)
	if (err == nil) != (wantErr == nil) || errors.Is(err, durable.ErrOrder) != errors.Is(wantErr, durable.ErrOrder) || !reflect.DeepEqual(got, want) {
		if text, _ := json.Marshal(got); len(text) > 2 { // texts of facts may be equal
			other, _ := json.Marshal(want)
			d.Logf("got  %s\nwant %s", text, other)
		}
		d.Fatalf("%s: after %q:\ngot  %+v, %v\nwant %+v, %v", d.queue, d.calls[max(0, len(d.calls)-12):], got, err, want, wantErr)
	}
}

func (d *differ) id(id durable.ItemID) durable.ItemID {
	if known, ok := d.ids[id]; ok || id == 0 {
		return known
	}
	return -id
}

// item translates an item of the store, and clears in both items what may differ.
func (d *differ) item(i durable.Item, ours bool) durable.Item {
	if ours {
		i.ID, i.Token = d.id(i.ID), d.tokens[i.Token]
	}
	later := i.RunAt.After(time.Now().Add(long / 2))
	i.RunAt, i.Enqueued, i.Shadow = time.Time{}, time.Time{}, i.Shadow.Round(rounded)
	for _, t := range []*time.Time{&i.Started, &i.Ended, &i.Expires, &i.Failing} {
		if !t.IsZero() {
			*t = time.Unix(1, 0)
		}
	}
	if later {
		i.RunAt = time.Unix(1, 0)
	}
	if len(i.Data) == 0 {
		i.Data = nil
	}
	return i
}

func (d *differ) items(items []durable.Item, ours bool) (all []durable.Item) {
	for _, i := range items {
		all = append(all, d.item(i, ours))
	}
	return all
}

// claimed remembers claims. Both stores must have claimed the same items.
func (d *differ) claimed(got, want []durable.Item) {
	for n := range min(len(got), len(want)) {
		d.tokens[got[n].Token] = want[n].Token
		d.ends = append(d.ends, [2]durable.End{endOf(got[n], durable.End{}), endOf(want[n], durable.End{})})
	}
}

// some returns random IDs the node of the store, and the node of Memory.
func (d *differ) some() (ours, theirs []durable.ItemID) {
	for range 1 + d.rand.IntN(3) {
		if len(d.back) > 0 {
			n := d.rand.IntN(len(d.back))
			if d.rand.IntN(2) == 0 {
				n = len(d.back) - 1 - n%min(len(d.back), 12) // a recent one
			} else if claims := len(d.ends); claims > 0 && d.rand.IntN(2) == 0 {
				n = int(d.ends[claims-1-n%min(claims, 8)][1].ID) - 1 // claimed a moment ago
			}
			ours, theirs = append(ours, d.back[n]), append(theirs, durable.ItemID(n+1))
		}
	}
	return ours, theirs
}

func pick[V any](d *differ, of ...V) V { return of[d.rand.IntN(len(of))] }

func (d *differ) step() {
	time.Sleep(2 * time.Microsecond) // no two calls at the same time, even if both stores are fast
	if len(d.nodes) < 2 {
		n := durable.Node{Queue: d.queue, Name: fmt.Sprint("node ", len(d.tokens), len(d.calls)), Lease: long, MaxCluster: pick(d, 0, 4, 6),
			Lanes: pick(d, []core.Lane{{Name: "hot", Limit: 3}, {Name: ""}}, []core.Lane{{Name: ""}, {Name: "hot"}}, []core.Lane{{Name: "hot"}}), Classes: pick(d, nil, []durable.Class{d.class("two"), d.class("one")})}
		if d.rand.IntN(4) == 0 {
			n.KeyEvery, n.KeyBurst = long, 3
		}
		ours, theirs := n, n
		ours.ID, theirs.ID = must[durable.NodeID](d.suite)(d.a.Join(d.ctx, n)), must[durable.NodeID](d.suite)(d.model.Join(d.ctx, n))
		d.nodes = append(d.nodes, [2]durable.Node{ours, theirs})
	}
	which := d.rand.IntN(len(d.nodes))
	node := d.nodes[which]
	switch pick(d, d.rand.IntN(17), pick(d, d.often...)) {
	case 0, 1, 2:
		var in []durable.Insert
		for range 1 + d.rand.IntN(4) {
			one := durable.Insert{Key: pick(d, "", "a", "b", "c"), Lane: pick(d, "", "hot"), Class: pick(d, "", "one", "two", "twos"), Data: fmt.Append(nil, d.rand.Uint32()), Cost: pick[int64](d, 0, 0, 1, 3, 20), Rated: true, Delay: pick(d, 0, 0, 0, 0, 0, long)}
			if one.Lane == "" {
				one.Rank = 1
			}
			if d.rand.IntN(4) == 0 {
				one.Unique, one.UniqueFor, one.Replace = pick(d, "u", "v", "w", "x"), long, d.rand.IntN(2) == 0
			}
			one.SkipIfAlive, one.Extra = one.Key != "" && d.rand.IntN(6) == 0, pick(d, "", "", "{}")
			one.RunAt = pick(d, time.Time{}, time.Time{}, time.Unix(1, 0), time.Now().Add(2*long))
			in = append(in, one)
		}
		got, err := d.a.Insert(d.ctx, d.queue, in)
		want, wantErr := d.model.Insert(d.ctx, d.queue, in)
		for n := range min(len(got), len(want)) {
			if !want[n].Duplicate {
				d.ids[got[n].ID], d.back = want[n].ID, append(d.back, got[n].ID)
			}
			got[n].ID = d.id(got[n].ID)
		}
		d.same(fmt.Sprintf("insert %+v", in), got, err, want, wantErr)
	case 3, 4, 5, 6, 7, 8:
		d.turn(node)
	case 9:
		ours, theirs := d.some()
		from := pick(d, anyState, anyState, durable.Blocked|durable.Running|durable.Dead)
		got, err := d.b.Cancel(d.ctx, d.queue, ours, from, "reason")
		want, wantErr := d.model.Cancel(d.ctx, d.queue, theirs, from, "reason")
		d.same(fmt.Sprint("cancel ", theirs), got, err, want, wantErr)
	case 10:
		ours, theirs := d.some()
		from := pick(d, anyState, anyState, durable.Cancelled|durable.Halted)
		got, err := d.a.Again(d.ctx, d.queue, ours, from)
		want, wantErr := d.model.Again(d.ctx, d.queue, theirs, from)
		for n := range got {
			got[n] = d.id(got[n])
		}
		d.same(fmt.Sprint("again ", theirs), got, err, want, wantErr)
	case 11:
		if d.rand.IntN(4) > 0 {
			ours, theirs := d.some()
			lane, rank := pick(d, "hot", ""), 0
			if lane == "" {
				rank = 1
			}
			got, err := d.a.Move(d.ctx, d.queue, ours, lane, rank)
			want, wantErr := d.model.Move(d.ctx, d.queue, theirs, lane, rank)
			for n := range got {
				got[n] = d.id(got[n])
			}
			d.same(fmt.Sprint("move ", theirs, lane), got, err, want, wantErr)
			break
		}
		p, paused := pick(d, durable.Pause{}, durable.Pause{Key: "a"}, durable.Pause{Key: "b"}, durable.Pause{Class: "one"}), d.rand.IntN(2) == 0
		p.For, p.Reason, p.By = pick(d, 0, time.Microsecond, long), "reason", "me"
		d.same(fmt.Sprintf("pause %+v %v", p, paused), nil, d.a.Pause(d.ctx, d.queue, p, paused), nil, d.model.Pause(d.ctx, d.queue, p, paused))
	case 12:
		keep := durable.Keep{Done: pick(d, -1, 0, long), Dead: pick(d, -1, 0, long), Cancelled: pick(d, -1, 0, long), Signals: pick(d, -1, 0, long)}
		got, _, err := d.a.Prune(d.ctx, d.queue, keep, durable.MaxBatch)
		want, _, wantErr := d.model.Prune(d.ctx, d.queue, keep, durable.MaxBatch)
		d.same(fmt.Sprintf("prune %+v", keep), got, err, want, wantErr)
	case 13:
		if calls, cost := d.rand.Int64N(4)-1, d.rand.Int64N(9)-3; d.rand.IntN(3) == 0 {
			class := pick(d, "one", "two")
			d.same(fmt.Sprint("charge ", class, calls, cost), nil, d.b.Charge(d.ctx, d.queue, class, calls, cost), nil, d.model.Charge(d.ctx, d.queue, class, calls, cost))
		} else if class := d.class(pick(d, "one", "two")); d.rand.IntN(2) == 0 {
			d.same(fmt.Sprintf("set %+v", class), nil, d.b.SetClass(d.ctx, d.queue, class), nil, d.model.SetClass(d.ctx, d.queue, class))
		} else {
			d.same("reset "+class.Name, nil, d.b.ResetClass(d.ctx, d.queue, class.Name), nil, d.model.ResetClass(d.ctx, d.queue, class.Name))
		}
	case 14:
		if d.rand.IntN(4) == 0 {
			d.nodes = slices.Delete(d.nodes, which, which+1)
			d.same("leave "+node[0].Name, nil, d.b.Leave(d.ctx, node[0]), nil, d.model.Leave(d.ctx, node[1]))
		}
	case 15:
		d.record()
	case 16:
		d.signal()
	}
	d.look(node)
}

// class is a class with random values, whose tokens come too late for the test.
func (d *differ) class(name string) durable.Class {
	limit := pick(d, 0, 1, 2, 3)
	return durable.Class{Name: name, Limit: limit, Rate: pick(d, core.Rate{}, core.Rate{}, core.Rate{PerSecond: 1e-6, Burst: 3}, core.Rate{PerSecond: 1e-7, Burst: 8}),
		CostRate: pick(d, core.Rate{}, core.Rate{}, core.Rate{PerSecond: 1e-6, Burst: 10}, core.Rate{PerSecond: 1e-7, Burst: 4}),
		Shadow:   []*core.Limits{{Rate: core.Rate{PerSecond: 1e-6, Burst: 2}, CostRate: core.Rate{PerSecond: 1e-7, Burst: 4}}, nil, {Rate: core.Rate{PerSecond: 1e-7, Burst: 3}}, nil}[limit]}
}

// rounded is less than the tokens of these classes take to come, and more than a test.
const rounded = 30 * time.Hour

// turn ends random claims, perhaps some that were ended before, and claims.
func (d *differ) turn(node [2]durable.Node) {
	var ours, theirs []durable.End
	for _, n := range d.rand.Perm(len(d.ends))[:min(len(d.ends), d.rand.IntN(5))] {
		if d.rand.IntN(2) == 0 {
			n = len(d.ends) - 1 - n%min(len(d.ends), 8) // a recent one
		}
		e := d.ends[n]
		if slices.ContainsFunc(ours, func(o durable.End) bool { return o.ID == e[0].ID }) {
			continue
		}
		kinds := []durable.EndKind{durable.EndDone, durable.EndDone, durable.EndDone, durable.EndRetry, durable.EndDead, durable.EndHalted, durable.EndSnoozed, durable.EndGivenBack, durable.EndCancelled, durable.EndParked, durable.EndParked, durable.EndHalfUndone}
		steps, version, park := d.steps(2), d.rand.IntN(3), durable.Park{Pattern: pick(d, "x", "x*, y", "y", ""), For: pick(d, 0, long, long)}
		if park.Seq = 5 + d.rand.IntN(2); d.rand.IntN(3) == 0 {
			park = durable.Park{Class: pick(d, "", "one", "two")}
		} else {
			park.Step = fmt.Sprint("wait ", park.Seq)
		}
		kind, after, over := pick(d, kinds...), pick(d, 0, 0, 0, long), d.rand.IntN(2) == 0
		calls, cost := pick[int64](d, 0, 0, 0, -1, 1), pick[int64](d, 0, 0, 0, -3, 2)
		for side, to := range []*[]durable.End{&ours, &theirs} {
			e[side].Kind, e[side].After, e[side].HandOver, e[side].Err = kind, after, over, "100% wrong"
			e[side].Steps, e[side].Version, e[side].Park = steps, version, park
			e[side].Calls, e[side].Cost = calls, cost
			if e[side].Result = nil; over {
				e[side].Result = fmt.Append(nil, after)
			}
			*to = append(*to, e[side])
		}
	}
	w := durable.Want{Max: d.rand.IntN(6), Aged: pick(d, 0, 0, 1, long)}
	w.Ahead = d.rand.IntN(1 + w.Max/2)
	w.Gates = pick(d, nil, nil, nil, nil, []durable.Gate{{Class: "one"}}, []durable.Gate{{Class: "two", Limit: 1}})
	got, err := d.b.Turn(d.ctx, node[0], ours, w)
	want, wantErr := d.model.Turn(d.ctx, node[1], theirs, w)
	for n := range min(len(got.Ends), len(want.Ends)) {
		if got.Ends[n].Next != nil && want.Ends[n].Next != nil {
			d.claimed([]durable.Item{*got.Ends[n].Next}, []durable.Item{*want.Ends[n].Next})
			mine, model := d.item(*got.Ends[n].Next, true), d.item(*want.Ends[n].Next, false)
			got.Ends[n].Next, want.Ends[n].Next = &mine, &model
		}
	}
	d.claimed(got.Items, want.Items)
	d.same(fmt.Sprintf("end %+v", theirs), got.Ends, err, want.Ends, wantErr)
	d.same(fmt.Sprintf("claim %+v by %+v", w, node), d.items(got.Items, true), nil, d.items(want.Items, false), nil)
	for _, waits := range list(got.Waits, want.Waits) {
		for n := range waits {
			waits[n].Next, waits[n].Half = waits[n].Next.Truncate(long), waits[n].Half.Truncate(long)
		}
	}
	d.same("classes that wait", got.Waits, nil, want.Waits, nil)
}

// look compares what the stores show.
func (d *differ) look(node [2]durable.Node) {
	d.tick()
	beaten, err := d.b.Beat(d.ctx, node[0], "note")
	want, wantErr := d.model.Beat(d.ctx, node[1], "note")
	for n, c := range beaten.Claims {
		beaten.Claims[n].ID, beaten.Claims[n].Token = d.id(c.ID), d.tokens[c.Token]
	}
	d.same("beat", beaten, err, want, wantErr)
	q := durable.Query{Limit: durable.MaxBatch}
	if d.rand.IntN(3) == 0 {
		q = durable.Query{State: durable.State(d.rand.IntN(256)), Key: pick(d, "", "a"), Lane: pick(d, "", "", "hot"), Class: pick(d, "", "", "two"), Limit: 1 + d.rand.IntN(20),
			Err: pick(d, "", "", "r", "%"), Due: d.rand.IntN(8) == 0, MinAge: pick(d, 0, 0, 0, 1, long), MaxAge: pick(d, 0, 0, 0, 1, long)}
		if q.Delayed = !q.Due && d.rand.IntN(8) == 0; q.Due || q.Delayed {
			q.State = pick(d, durable.Ready, durable.Retry, durable.Ready|durable.Retry)
		}
	}
	got, err := walk(d.suite, d.b, q)
	wants, wantErr := walk(d.suite, d.model, q)
	d.same(fmt.Sprintf("items %+v", q), d.items(got, true), err, d.items(wants, false), wantErr)
	n, err := d.b.Count(d.ctx, d.queue, q)
	d.same(fmt.Sprintf("count %+v", q), n, err, len(wants), nil)
	stats, err := d.a.Stats(d.ctx, d.queue)
	wantStats, wantErr := d.model.Stats(d.ctx, d.queue)
	stats.OldestTransaction = 0 // others use the server too
	stats.Oldest, wantStats.Oldest = min(stats.Oldest, 1), min(wantStats.Oldest, 1)
	for n := range min(len(stats.Classes), len(wantStats.Classes)) {
		d.sameClass(&stats.Classes[n])
		d.sameClass(&wantStats.Classes[n])
	}
	d.samePauses(stats.Pauses)
	d.samePauses(wantStats.Pauses)
	d.same("stats", stats, err, wantStats, wantErr)
	d.same("depths", sum(must[[]durable.Depth](d.suite)(d.a.Depths(d.ctx, d.queue))), nil, sum(must[[]durable.Depth](d.suite)(d.model.Depths(d.ctx, d.queue))), nil)
	key, limit := pick(d, "a", "b", "c"), 1+d.rand.IntN(9)
	kept, err := d.b.Signals(d.ctx, d.queue, key, 0, limit)
	wantKept, wantErr := d.model.Signals(d.ctx, d.queue, key, 0, limit)
	d.same("signals of "+key, d.signals(kept, true), err, d.signals(wantKept, false), wantErr)
	if ours, theirs := d.some(); len(ours) > 0 {
		x, ok, err := d.a.Explain(d.ctx, d.queue, ours[0])
		model, wantOK, wantErr := d.model.Explain(d.ctx, d.queue, theirs[0])
		r, found, err1 := d.b.Result(d.ctx, d.queue, ours[0])
		wantResult, wantFound, err2 := d.model.Result(d.ctx, d.queue, theirs[0])
		j, hasJournal, err3 := d.b.Journal(d.ctx, d.queue, ours[0], true)
		wantJournal, wantHas, err4 := d.model.Journal(d.ctx, d.queue, theirs[0], true)
		d.same(fmt.Sprint("journal of ", theirs[0]), []any{d.journal(j), hasJournal}, err3, []any{d.journal(wantJournal), wantHas}, err4)
		d.same(fmt.Sprint("result of ", theirs[0]), []any{r, found}, err1, []any{wantResult, wantFound}, err2)
		d.same(fmt.Sprint("explain ", theirs[0]), []any{d.explanation(x, true), ok}, err, []any{d.explanation(model, false), wantOK}, wantErr)
	}
}

// sameClass takes away what may differ.
func (d *differ) sameClass(c *durable.ClassStats) {
	if c == nil {
		return
	}
	if c.Next.After(time.Now().Add(long)) {
		c.Next = time.Unix(1, 0)
	}
	if c.NextCost.After(time.Now().Add(long)) {
		c.NextCost = time.Unix(1, 0)
	}
	c.Calls.Debt, c.Cost.Debt, c.Shadow.Longest = math.Round(c.Calls.Debt), math.Round(c.Cost.Debt), c.Shadow.Longest.Round(rounded)
}

// samePauses takes away what may differ.
func (d *differ) samePauses(all []durable.Pause) {
	for n := range all {
		all[n].Since = time.Time{}
		if !all[n].Until.IsZero() {
			all[n].Until = time.Unix(1, 0)
		}
	}
}

func (d *differ) explanation(x durable.Explanation, ours bool) durable.Explanation {
	d.sameClass(x.Class)
	d.samePauses(x.Pauses)
	if !x.KeyNext.IsZero() {
		x.KeyNext = time.Unix(1, 0)
	}
	x.Item, x.Time, x.Attempts = d.item(x.Item, ours), time.Time{}, d.attempts(x.Attempts, ours)
	if x.Head != nil {
		head := d.item(*x.Head, ours)
		x.Head = &head
	}
	for n := range x.Nodes {
		x.Nodes[n].Node.ID = 0
	}
	slices.SortFunc(x.Nodes, func(a, b durable.Serving) int { return cmp.Compare(a.Node.Name, b.Node.Name) })
	return x
}

// steps are up to most random steps.
func (d *differ) steps(most int) (steps []durable.Step) {
	for seq := range 1 + d.rand.IntN(most+1) {
		if seq > 0 {
			step := step(fmt.Sprint(pick(d, "a", "b", "c", "d"), seq), seq, pick(d, durable.StepBegun, durable.StepDone, durable.StepDone, durable.StepUndone), pick(d, "", "1"))
			step.Compensates = d.rand.IntN(3) == 0
			steps = append(steps, step)
		}
	}
	return steps
}

// record writes steps of some claims, perhaps old ones.
func (d *differ) record() {
	var ours, theirs []durable.Record
	for range min(len(d.ends), 1+d.rand.IntN(3)) {
		e := d.ends[len(d.ends)-1-d.rand.IntN(min(len(d.ends), 8))]
		if slices.ContainsFunc(ours, func(r durable.Record) bool { return r.ID == e[0].ID }) {
			continue
		}
		r := durable.Record{Version: d.rand.IntN(3), Steps: d.steps(3)}
		for side, to := range []*[]durable.Record{&ours, &theirs} {
			r.ID, r.Token = e[side].ID, e[side].Token
			*to = append(*to, r)
		}
	}
	got, err := d.b.Record(d.ctx, d.queue, ours)
	want, wantErr := d.model.Record(d.ctx, d.queue, theirs)
	d.same(fmt.Sprintf("record %+v", theirs), got, err, want, wantErr)
}

// signal sends signals to keys and items.
func (d *differ) signal() {
	var ours, theirs []durable.Signal
	for range 1 + d.rand.IntN(3) {
		one := durable.Signal{Key: pick(d, "a", "b", "c"), Name: pick(d, "x", "y", "xx", "z"), Data: []byte(pick(d, "{}", "[1]")), UniqueID: pick(d, "", "", "1", "2")}
		ids, models := d.some()
		for side, to := range []*[]durable.Signal{&ours, &theirs} {
			if len(ids) > 0 && len(ids) < 3 {
				one.Key, one.Item = "", [][]durable.ItemID{ids, models}[side][0]
			}
			*to = append(*to, one)
		}
	}
	got, err := d.b.Signal(d.ctx, d.queue, ours)
	want, wantErr := d.model.Signal(d.ctx, d.queue, theirs)
	for n := range min(len(got), len(want)) {
		if !want[n].Duplicate {
			d.seqs[got[n].Seq] = want[n].Seq
		}
		got[n].Seq = d.seqs[got[n].Seq]
	}
	d.same(fmt.Sprintf("signal %+v", theirs), got, err, want, wantErr)
}

// signals takes away what may differ.
func (d *differ) signals(all []durable.Signal, ours bool) []durable.Signal {
	for n := range all {
		all[n].Time = time.Unix(1, 0)
		if ours {
			all[n].Seq, all[n].Taken = d.seqs[all[n].Seq], d.id(all[n].Taken)
		}
	}
	return all
}

// journal takes away what may differ.
func (d *differ) journal(j durable.Journal) durable.Journal {
	about := func(t *time.Time) {
		switch {
		case t.After(time.Now().Add(long / 2)):
			*t = time.Unix(2, 0)
		case !t.IsZero():
			*t = time.Unix(1, 0)
		}
	}
	about(&j.Time)
	for n := range j.Steps {
		about(&j.Steps[n].At)
		about(&j.Steps[n].Until)
		if len(j.Steps[n].Data) == 0 {
			j.Steps[n].Data = nil
		}
	}
	if len(j.Steps) == 0 {
		j.Steps = nil
	}
	if j.Wait != nil {
		about(&j.Wait.Since)
		about(&j.Wait.Until)
	}
	return j
}
