package core

import (
	"slices"
	"sync/atomic"
)

// gate is a standing match of a pattern: it is shut while a matching fact is present
// where it watches, which is a number. That newer facts push one out of a window does
// not open it, because the sink keeps the newest maxKept of these beside the window,
// for each gate. Whoever is gated asks shut, one atomic load, and only then the rest,
// under the lock of the table it watches.
type gate struct {
	pattern
	waker waker
	eager bool // wake for every fact, not only when the gate shuts
	of    interface {
		each(p pattern, visit func(seq uint64, f *fact) (older bool))
	}

	facts   atomic.Int64 // how many are present
	ever    uint64       // how many have come
	newest  seqFact      // of these; not known while its Seq is 0
	relied  uint64       // Seq of the newest when somebody looked: until it goes, or its time is over, the gate stays shut
	held    []uint64     // Seqs of those that are held, in order
	since   int64        // when the first of the others came, or
	resumed uint64       // if not 0, the first of the others after this Seq
	kept    []uint64     // Seqs of what the sink keeps for it, in order
}

// maxKept bounds the memory of a gate to a quarter of a default window.
const maxKept = 256

func (g *gate) shut() bool { return g.facts.Load() != 0 }

// each visits the facts that the gate counts, those from one source newest first,
// until visit wants no older ones from there.
func (g *gate) each(visit func(seq uint64, f *fact) (older bool)) {
	g.of.each(g.pattern, func(seq uint64, f *fact) bool { return !f.notices() || visit(seq, f) })
}

// enter counts a fact that has come.
func (g *gate) enter(seq uint64, f *fact, after *effects) {
	n := g.facts.Load() + 1
	if f.holds() {
		g.held = append(g.held, seq)
	} else if n == int64(len(g.held))+1 {
		g.since, g.resumed = f.at, 0
	}
	g.facts.Store(n)
	g.ever++
	g.newest = seqFact{seq, *f}
	if n == 1 || g.eager {
		after.wake(g.waker)
	}
}

// leave counts a fact less. Whoever waits for one to go by time has an alarm, so that
// nothing needs to be woken then.
func (g *gate) leave(seq uint64, after *effects) {
	n := g.facts.Add(-1)
	i, held := slices.BinarySearch(g.held, seq)
	if held {
		g.held = slices.Delete(g.held, i, i+1)
	}
	if i, kept := slices.BinarySearch(g.kept, seq); kept {
		g.kept = slices.Delete(g.kept, i, i+1)
	}
	if seq == g.newest.seq {
		g.newest = seqFact{}
	}
	if n == 0 || seq == g.relied || held && i == len(g.held) {
		after.wake(g.waker)
	}
}

// last is the newest fact. The gate is shut.
func (g *gate) last() *seqFact {
	if g.newest.seq == 0 {
		g.each(func(seq uint64, f *fact) bool {
			if seq > g.newest.seq {
				g.newest = seqFact{seq, *f}
			}
			return false
		})
	}
	return &g.newest
}

// begun is since when the gate is shut by raised facts newer than beyond, of which there
// are some, while none of the held ones is.
func (g *gate) begun(beyond uint64) int64 {
	if beyond > g.resumed {
		g.resumed, g.since = beyond, g.last().fact.at
		g.each(func(seq uint64, f *fact) bool {
			if seq > beyond {
				g.since = min(g.since, f.at)
			}
			return seq > beyond
		})
	}
	return g.since
}
