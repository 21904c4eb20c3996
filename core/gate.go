package core

import (
	"slices"
	"sync/atomic"
)

// gate is a standing match of a pattern: it remembers the facts it decides by
// until they are retracted, age, or their operation leaves; that newer facts push
// them out of a window does not open it. Whoever is gated asks shut, one atomic
// load, and only then the rest, under the lock of the table it watches.
//
// A gate remembers all held facts and maxStanding others. To make room it forgets
// the oldest of those that were raised directly on a sink under the same name and
// key, because these go together; if there is none, the oldest.
type gate struct {
	pattern pattern
	waker   waker
	eager   bool // wake for every fact, not only when the gate shuts or opens

	newest   atomic.Uint64 // Seq of the newest standing fact; 0: the gate is open
	standing []standing    // by Seq
	facts    int           // of these, how many are not held
	expires  int64         // earliest until of standing; 0: none
	since    int64         // when it shut
}

type standing struct {
	signal Signal
	owner  OperationID // 0: the sink
	at     int64
	until  int64 // 0: until removed
}

const maxStanding = 256

// direct reports whether the fact was raised on the sink itself.
func (s *standing) direct() bool { return s.owner == 0 && !s.signal.Held }

func (g *gate) shut() bool { return g.newest.Load() != 0 }

// add remembers a matching fact.
func (g *gate) add(s standing, after *aftermath) {
	g.expire(s.at, after) // so that it is known when the gate has shut
	if !s.signal.Held {
		if g.facts == maxStanding {
			g.makeRoom(&s)
		}
		g.facts++
	}
	g.standing = append(g.standing, s)
	g.update(after, g.eager)
}

func (g *gate) makeRoom(s *standing) {
	twin := func(have standing) bool {
		return have.direct() && have.signal.Name == s.signal.Name && have.signal.Key == s.signal.Key
	}
	i := -1
	if s.direct() {
		i = slices.IndexFunc(g.standing, twin)
	}
	if i < 0 {
		i = slices.IndexFunc(g.standing, func(have standing) bool { return !have.signal.Held })
	}
	g.standing = slices.Delete(g.standing, i, i+1)
	g.facts--
}

// remove forgets the facts for which gone reports true.
func (g *gate) remove(gone func(*standing) bool, after *aftermath) {
	kept := slices.DeleteFunc(g.standing, func(s standing) bool { return gone(&s) })
	if len(kept) == len(g.standing) {
		return
	}
	g.standing, g.facts = kept, 0
	for i := range kept {
		if !kept[i].signal.Held {
			g.facts++
		}
	}
	g.update(after, true)
}

func (g *gate) removeSeq(seq uint64, after *aftermath) {
	i, found := slices.BinarySearchFunc(g.standing, seq, func(s standing, seq uint64) int {
		switch {
		case s.signal.Seq < seq:
			return -1
		case s.signal.Seq > seq:
			return 1
		}
		return 0
	})
	if found {
		if !g.standing[i].signal.Held {
			g.facts--
		}
		g.standing = slices.Delete(g.standing, i, i+1)
		g.update(after, true)
	}
}

// expire forgets the facts whose time is over.
func (g *gate) expire(now int64, after *aftermath) {
	if g.expires != 0 && g.expires <= now {
		g.remove(func(s *standing) bool { return s.until != 0 && s.until <= now }, after)
	}
}

// update brings newest and expires up to date, and wakes if told to or if the gate
// has shut or opened. When a fact goes and others keep the gate shut, it may have
// to be opened at another time than was expected.
func (g *gate) update(after *aftermath, wake bool) {
	var newest uint64
	g.expires = 0
	for i := range g.standing {
		if until := g.standing[i].until; until != 0 && (g.expires == 0 || until < g.expires) {
			g.expires = until
		}
	}
	if n := len(g.standing); n > 0 {
		newest = g.standing[n-1].signal.Seq
	}
	old := g.newest.Swap(newest)
	if old == 0 && newest != 0 {
		g.since = g.standing[len(g.standing)-1].at
	}
	if wake || (old == 0) != (newest == 0) {
		after.wake(g.waker)
	}
}

// last is the newest standing fact.
func (g *gate) last() (Signal, bool) {
	if len(g.standing) == 0 {
		return Signal{}, false
	}
	return g.standing[len(g.standing)-1].signal, true
}
