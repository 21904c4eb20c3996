package core

import (
	"slices"
	"sync/atomic"
)

// gate counts the facts that match a pattern in one table. It is shut while the count
// is not 0. Facts that are pushed out of the window do not open it, because the sink
// keeps the newest maxKept of them for each gate. An engine first asks shut, which is
// one atomic load. Only if it is shut, it asks more, under the lock of the table.
type gate struct {
	pattern
	number uint64 // among the gates of the table
	waker  waker
	eager  bool // wake for every fact, not only when the gate shuts
	of     interface {
		each(p pattern, most int, visit func(seq uint64, f *fact) (older bool))
	}
	find func(seq uint64) *fact // on the sink

	facts   atomic.Int64 // how many facts are present
	ever    uint64       // how many facts have ever come
	newest  seqFact      // newest present fact; not known while its Seq is 0
	relied  uint64       // Seq of the newest fact at the last look: the gate stays shut until this fact goes or ends
	held    list[uint64] // Seqs of the held facts, each under itself
	since   int64        // when the first raised fact came, or
	resumed uint64       // if this is not 0, when the first raised fact after this Seq came
	kept    []uint64     // Seqs of the facts that the sink keeps for the gate, in order
}

// maxKept bounds the memory of a gate to a quarter of a default window.
const maxKept = 256

func (g *gate) shut() bool { return g.facts.Load() != 0 }

// each visits the facts that the gate counts. Facts of one source come newest first, until
// visit returns false.
func (g *gate) each(visit func(seq uint64, f *fact) (older bool)) {
	most := int(g.facts.Load()) - g.held.len() - len(g.kept)
	g.of.each(g.pattern, most, func(seq uint64, f *fact) bool { return !f.notices() || visit(seq, f) })
}

// enter counts a fact that has come.
func (g *gate) enter(seq uint64, f *fact, after *effects) {
	n := g.facts.Load() + 1
	if f.holds() {
		g.held.put(seq, seq)
	} else if n == int64(g.held.len())+1 {
		g.since, g.resumed = f.at, 0
	}
	g.facts.Store(n)
	g.ever++
	g.newest = seqFact{seq, *f}
	if n == 1 || g.eager {
		after.wake(g.waker)
	}
}

// leave counts one fact less. An engine that waits for a fact to go by time has an alarm,
// so nothing needs to be woken then.
func (g *gate) leave(seq uint64, after *effects) {
	n := g.facts.Add(-1)
	newestHeld := g.held.last() == seq
	g.held.remove(seq)
	if i, kept := slices.BinarySearch(g.kept, seq); kept {
		g.kept = slices.Delete(g.kept, i, i+1)
	}
	if seq == g.newest.seq {
		g.newest = seqFact{}
	}
	if n == 0 || seq == g.relied || newestHeld {
		after.wake(g.waker)
	}
}

// last returns the newest fact. The gate is shut.
func (g *gate) last() *seqFact {
	switch {
	case g.newest.seq != 0:
	case int(g.facts.Load()) == g.held.len():
		seq := g.held.last()
		g.newest = seqFact{seq, *g.find(seq)}
	default:
		g.each(func(seq uint64, f *fact) bool {
			if seq > g.newest.seq {
				g.newest = seqFact{seq, *f}
			}
			return false
		})
	}
	return &g.newest
}

// begun returns since when raised facts newer than beyond have shut the gate. There are
// such facts, and no held fact is newer.
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
