//go:build unix

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// A report has what the checks have found.
type report struct {
	faults []string // empty: all promises are kept
	counts map[string]int
}

func (r *report) fault(promise, format string, args ...any) {
	r.faults = append(r.faults, promise+": "+fmt.Sprintf(format, args...))
}

// check checks all promises in a history whose queue was drained.
func check(h *history) *report {
	r := &report{counts: map[string]int{}}
	h.checkItems(r)
	h.checkChanges(r)
	h.checkRate(r)
	h.checkPauses(r)
	h.checkClaims(r)
	h.checkEffects(r)
	h.checkOrder(r)
	h.checkFlows(r)
	return r
}

// checkItems: what was acknowledged is there once, what was refused is not, and all has ended.
func (h *history) checkItems(r *report) {
	refs, uniques := map[string]int64{}, map[string]int64{}
	for _, i := range h.items {
		if other, ok := refs[i.job.Ref]; ok {
			r.fault("B1 once", "items %d and %d are of one call of Enqueue, %s", i.ID, other, i.job.Ref)
		}
		refs[i.job.Ref] = i.ID
		if other, ok := uniques[i.Unique]; ok && i.Unique != "" && !i.replaced() {
			r.fault("B1 unique", "items %d and %d have the Unique id %q", i.ID, other, i.Unique)
		}
		uniques[i.Unique] = i.ID
		if i.State&durable.Finished == 0 {
			r.fault("B1 every item ends", "item %d has not: its state is %d", i.ID, i.State)
		}
	}
	for _, c := range h.calls {
		if c.Op != "enqueue" {
			continue
		}
		added := refs[c.Ref]
		i, ok := h.items[c.Item]
		switch {
		case c.Out == "ok" && !ok:
			r.fault("B1 no item is lost", "item %d, ref %s, was acknowledged and is not there", c.Item, c.Ref)
		case c.Out == "ok" && added != c.Item && (c.Skip == "" || i.Key != c.Skip) && (c.Unique == "" || i.Unique != c.Unique):
			r.fault("B1 no item is lost", "ref %s was acknowledged as item %d, which is that of ref %s", c.Ref, c.Item, i.job.Ref)
		case c.Out == "no" && added != 0:
			r.fault("B1 refused", "ref %s was refused, but is item %d", c.Ref, added)
		}
		if c.Out == "ok" {
			r.counts["acknowledged"]++
		}
		if placed := h.placed[c.Ref]; placed && added == 0 {
			r.fault("B1 transaction", "the transaction with ref %s was committed, and its item is not there", c.Ref)
		}
	}
}

// next are the states to which a state may change.
var next = map[durable.State]durable.State{
	0:                 durable.Blocked | durable.Ready,
	durable.Blocked:   durable.Ready | durable.Running | durable.Cancelled,
	durable.Ready:     durable.Running | durable.Cancelled,
	durable.Retry:     durable.Running | durable.Cancelled,
	durable.Running:   durable.Ready | durable.Retry | durable.Halted | durable.Finished,
	durable.Halted:    durable.Ready | durable.Cancelled,
	durable.Dead:      durable.Blocked | durable.Ready | durable.Cancelled,
	durable.Cancelled: durable.Blocked | durable.Ready,
}

const heads = durable.Ready | durable.Running | durable.Retry | durable.Halted

// checkChanges goes through the changes in their order: states follow each other, tokens rise, a key
// has a head if it has items, and only one, the next head is the right one, and limits hold.
func (h *history) checkChanges(r *report) {
	states := map[int64]durable.State{}
	tokens := map[string]int64{}           // by key
	waiting := map[string]map[int64]bool{} // items of a key that are heads or blocked
	running := limits{}                    // by lane and class, and "" for all
	type part struct {
		tx  uint64
		key string
	}
	last := map[part]int{} // changes of a transaction
	for n, c := range h.changes {
		last[part{c.Tx, h.items[c.Item].Key}] = n
	}
	for n, c := range h.changes {
		i, at := h.items[c.Item], fmt.Sprintf("change %d of item %d, key %q, from state %d to %d", c.Seq, c.Item, h.items[c.Item].Key, c.Old, c.State)
		again := i.replaced() && c.Token == 0 && (c.State == c.Old || c.Old == durable.Retry && c.State == durable.Ready)                        // by Replace
		undo := i.job.Trip != nil && c.Token == 0 && c.Old&(durable.Waiting|durable.Halted) != 0 && c.State&(durable.Blocked|durable.Ready) != 0 // by Cancel
		if states[c.Item] != c.Old || next[c.Old]&c.State == 0 && !again && !undo {
			promise := "states"
			if c.Old == durable.Cancelled {
				promise = "B9 a cancelled item does not start"
			}
			r.fault(promise, "%s: it was in state %d", at, states[c.Item])
		}
		states[c.Item] = c.State
		if c.State == durable.Running {
			if c.Token <= tokens[i.Key] {
				r.fault("B5 tokens rise", "%s: token %d is after %d", at, c.Token, tokens[i.Key])
			}
			if i.Key != "" {
				tokens[i.Key] = c.Token
			}
			running.add(i.Lane, i.Class, 1)
			r.counts["at once"] = max(r.counts["at once"], running[""])
			if h.limits.broken(running) {
				r.fault("B4 limits", "%s: claims that are live are %v, limits %v", at, running, h.limits)
			}
		}
		if c.Old == durable.Running {
			running.add(i.Lane, i.Class, -1)
		}
		h.count(r, c)
		if i.Key == "" {
			continue
		}
		if waiting[i.Key] == nil {
			waiting[i.Key] = map[int64]bool{}
		}
		if of := waiting[i.Key]; c.Old == durable.Blocked && c.State&heads != 0 {
			for other := range of {
				if o := h.items[other]; states[other] == durable.Blocked && cmp.Or(cmp.Compare(o.Rank, i.Rank), cmp.Compare(o.ID, i.ID)) < 0 {
					r.fault("B2 order of a key", "%s: item %d was before it", at, other)
				}
			}
		}
		waiting[i.Key][c.Item] = true
		if c.State&durable.Finished != 0 {
			delete(waiting[i.Key], c.Item)
		}
		if last[part{c.Tx, i.Key}] == n {
			h.checkHeads(r, at, states, waiting[i.Key])
		}
	}
}

// A bucket has tokens by the clock of the database, at first all of them. While that clock goes back no token comes in.
type bucket struct {
	rate core.Rate
	full bool // it was
	left float64
	last int64
}

// take takes tokens at a time, and returns how many are left.
func (b *bucket) take(n float64, at int64) float64 {
	if !b.full {
		b.left, b.full = float64(b.rate.Burst), true
	}
	b.left = min(float64(b.rate.Burst), b.left+b.rate.PerSecond*float64(max(0, at-b.last))/1e6) - n
	b.last = at
	return b.left
}

// checkRate: each claim of the class has a token and what its item costs, and each claim of a key has a token.
func (h *history) checkRate(r *report) {
	class := classOf(h.limits[""])
	calls, costs, keys := bucket{rate: class.Rate}, bucket{rate: class.CostRate}, map[string]*bucket{}
	for _, c := range h.changes { // claims of a class with a rate, or of a key, wait for each other
		i := h.items[c.Item]
		if c.State != durable.Running || class.Rate.PerSecond == 0 {
			continue
		}
		if keys[i.Key] == nil {
			keys[i.Key] = &bucket{rate: keyRate(h.limits[""])}
		}
		if left := keys[i.Key].take(1, c.Started); i.Key != "" && left < -1e-4 {
			r.fault("rates of keys", "change %d claims item %d, of key %s, at %d us before its token: %.3f are there", c.Seq, c.Item, i.Key, c.Started, left)
		}
		if i.Class == "" {
			continue
		}
		r.counts["of the class"]++
		if left := calls.take(1, c.Started); left < -1e-6 {
			r.fault("rates", "change %d claims item %d, of the class, at %d us before its token: %.3f are there", c.Seq, c.Item, c.Started, left)
		}
		if left := costs.take(float64(i.Cost), c.Started); left < -1e-6 {
			r.fault("costs", "change %d claims item %d, of the class, at %d us before its cost: %.3f are there", c.Seq, c.Item, c.Started, left)
		}
	}
}

// checkPauses: nothing of what is paused is claimed from the return of Pause until its time is over, or until
// another call for the same begins. All times, also that of a claim, are those of one host, so there is no tolerance.
func (h *history) checkPauses(r *report) {
	type target struct{ class, key string } // both "": the queue
	calls := map[target][]call{}
	for _, c := range h.calls {
		if c.Op == "pause" || c.Op == "resume" {
			of := target{c.Ref, c.Skip}
			calls[of] = append(calls[of], c)
		}
	}
	type span struct{ from, to int64 } // microseconds
	spans := map[target][]span{}
	for of, all := range calls {
		for n, p := range all {
			s := span{p.To / 1000, p.At/1000 + p.Of}
			for m, o := range all {
				if m != n && o.To > p.At {
					s.to = min(s.to, o.At/1000)
				}
			}
			if p.Op == "pause" && p.Out == "ok" && s.from < s.to {
				r.counts["pauses"]++
				spans[of] = append(spans[of], s)
			}
		}
	}
	for _, c := range h.changes {
		i := h.items[c.Item]
		if c.State != durable.Running {
			continue
		}
		of := map[target]bool{{}: true, {class: i.Class}: true, {key: i.Key}: true}
		for t := range of {
			for _, s := range spans[t] {
				if s.from < c.Started && c.Started < s.to {
					r.fault("B13 what is paused does not start", "change %d claims item %d, of class %q and key %q, at %d us; the pause of %q holds from %d to %d us", c.Seq, c.Item, i.Class, i.Key, c.Started, t, s.from, s.to)
				}
			}
		}
	}
}

// count counts the changes that the table shows.
func (h *history) count(r *report, c change) {
	switch {
	case c.freed():
		r.counts["freed"]++
	case c.State == durable.Retry:
		r.counts["retried"]++
	case c.State&(durable.Dead|durable.Halted) != 0:
		r.counts["dead"]++
	case c.State == durable.Cancelled:
		r.counts["cancelled"]++
	}
}

func (h *history) checkHeads(r *report, at string, states map[int64]durable.State, of map[int64]bool) {
	var first []int64
	for id := range of {
		if states[id]&heads != 0 {
			first = append(first, id)
		}
	}
	switch {
	case len(first) > 1:
		r.fault("B3 one claim of a key", "after %s the heads of the key are items %v", at, first)
	case len(first) == 0 && len(of) > 0:
		r.fault("B11 no lost wake-up", "after %s %d items of the key are blocked, and it has no head", at, len(of))
	}
}

// stateOf are the changes that signals about ends tell.
var stateOf = map[string]durable.State{"succeeded": durable.Done, "retried": durable.Retry, "failed": durable.Dead | durable.Halted,
	"snoozed": durable.Ready, "returned": durable.Ready, "cancelled": durable.Cancelled}

// checkClaims: each body has a claim of its own, its process alone ends the claim, unless the lease was
// lost, and what it was told about the end is what has become of that claim.
func (h *history) checkClaims(r *report) {
	claims, ends := map[effect]string{}, map[effect]change{} // by whom
	workers := map[string]bool{}
	for _, c := range h.changes {
		workers[c.Worker] = true
		if c.State == durable.Running {
			claims[effect{c.Item, c.Token}] = c.Worker
		}
		if c.Old == durable.Running {
			claim := effect{c.Item, c.OldToken}
			ends[claim] = c
			switch {
			case c.freed() && c.Live:
				r.fault("B7 a node that lives keeps its claims", "change %d has freed item %d, whose node is still there", c.Seq, c.Item)
			case !c.freed() && c.Worker != claims[claim]:
				r.fault("B5 late ends are refused", "worker %s has ended item %d with change %d, to state %d; its claim with token %d is that of worker %s", c.Worker, c.Item, c.Seq, c.State, c.OldToken, claims[claim])
			}
		}
	}
	for _, o := range h.overs {
		if o.Live && workers[o.Node] && o.Worker != o.Node {
			r.fault("B7 a node that lives keeps its claims", "worker %s has ended the node of worker %s, whose lease was not over", o.Worker, o.Node)
		}
	}
	suspects := map[effect]bool{} // claims of items that have lost so many leases that they run alone
	for _, e := range h.tells {
		suspects[effect{e.Item, e.Token}] = e.Losses >= durable.LossesAlone
	}
	started, running := map[effect]bool{}, map[string]map[effect]bool{} // by worker
	for _, e := range h.bodies {
		claim := effect{e.Item, e.Token}
		beside := running[e.Worker]
		if e.Op == "stop" {
			delete(beside, claim)
			continue
		}
		if claims[claim] == "" || started[claim] {
			r.fault("B3 one body for a claim", "worker %s has started item %d with token %d, which was claimed by %q; and started before: %v", e.Worker, e.Item, e.Token, claims[claim], started[claim])
		}
		if started[claim] = true; e.Tries < 1 || e.Tries > h.items[e.Item].most() {
			r.fault("B8 attempts", "attempt %d of item %d has started, not 1 to %d", e.Tries, e.Item, h.items[e.Item].most())
		}
		for other := range beside {
			if suspects[claim] || suspects[other] {
				r.fault("B8 items that end processes run alone", "worker %s has started item %d with token %d beside item %d with token %d", e.Worker, e.Item, e.Token, other.Item, other.Token)
			}
		}
		if beside == nil {
			beside = map[effect]bool{}
			running[e.Worker] = beside
		}
		beside[claim] = true
	}
	for _, e := range h.tells {
		end, ok := ends[effect{e.Item, e.Token}]
		if e.Out == "fenced" {
			r.counts["fenced"]++
			continue
		}
		lost := end.freed() && e.Out != "returned" // a process that lives gives back what it has lost
		state := stateOf[e.Out]
		if t := h.items[e.Item].job.Trip; e.Out == "retried" && t != nil && t.Undo {
			state |= durable.Ready // to be undone
		}
		if !ok || end.State&state == 0 || lost {
			r.fault("B5 late ends are refused", "worker %s was told that its claim of item %d with token %d has %s; but the claim ended like this: %+v", e.Worker, e.Item, e.Token, e.Out, end)
		}
	}
}

// checkEffects: an item that is done has an effect with the token of its end, and only that
// one if both were in one transaction.
func (h *history) checkEffects(r *report) {
	tokens := map[int64][]int64{}
	for _, e := range h.effects {
		tokens[e.Item] = append(tokens[e.Item], e.Token)
	}
	for id, i := range h.items {
		got := tokens[id]
		switch {
		case i.State == durable.Done && !slices.Contains(got, i.Token):
			r.fault("B6 effects", "item %d has ended with token %d, and its effects have %v", id, i.Token, got)
		case i.job.Tx && i.State != durable.Done && len(got) > 0:
			r.fault("B6 effects with Finish", "item %d is not done, and has effects with the tokens %v", id, got)
		case i.job.Tx && len(got) > 1:
			r.counts["effects twice"]++
			r.fault("B6 effects with Finish", "item %d has effects with the tokens %v", id, got)
		case len(got) > 1:
			r.counts["repeated"]++
		}
	}
}

// checkOrder: what was added first to a key and lane has its effect first. The order of ids is that of
// commits. Each call has its effect at one moment between its beginning and its end, and the earliest moments in the order
// of ids must be in time. It looks at items that are done and were never dead or cancelled, and at the
// effect of their last claim.
func (h *history) checkOrder(r *report) {
	skip := map[int64]bool{}
	for _, c := range h.changes {
		if c.State&(durable.Dead|durable.Cancelled) != 0 {
			skip[c.Item] = true
		}
	}
	ids := map[string]int64{}
	for id, i := range h.items {
		ids[i.job.Ref] = id
	}
	added, effects := map[int64]call{}, map[int64]call{}
	for _, c := range h.calls {
		if id := ids[c.Ref]; c.Op == "enqueue" && id != 0 {
			added[id] = c
		} else if c.Op == "effect" && h.items[c.Item].Token == c.Token {
			effects[c.Item] = c
		}
	}
	last := map[string][2]int64{} // the moments of the newest item of a key and lane
	for _, id := range slices.Sorted(maps.Keys(h.items)) {
		i := h.items[id]
		if i.Key == "" || skip[id] || i.replaced() || i.State != durable.Done {
			continue
		}
		name := i.Key + " " + i.Lane
		at := last[name]
		at[0] = max(at[0], added[id].At)
		at[1] = max(at[1], at[0], effects[id].At)
		last[name] = at
		for n, c := range []call{added[id], effects[id]} {
			if at[n] > c.To {
				r.fault("B2 order of a key", "key and lane %q: item %d, %s between %d and %d ns, comes after calls that began at %d ns", name, id, c.Op, c.At, c.To, at[n])
			}
		}
	}
}
