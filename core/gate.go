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
// A gate remembers maxStanding facts, the newest, and of facts raised directly on
// a sink only the newest of each name and key, because those go together.
type gate struct {
	pattern pattern
	waker   waker
	eager   bool // wake for every fact, not only when the gate shuts or opens

	newest   atomic.Uint64 // Seq of the newest standing fact; 0: the gate is open
	standing []standing    // by Seq
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
	if s.direct() {
		for i := len(g.standing) - 1; i >= 0; i-- {
			have := &g.standing[i]
			if have.direct() && have.signal.Name == s.signal.Name && have.signal.Key == s.signal.Key {
				g.standing = slices.Delete(g.standing, i, i+1)
				break
			}
		}
	}
	if len(g.standing) == maxStanding {
		g.standing = slices.Delete(g.standing, 0, 1)
	}
	g.standing = append(g.standing, s)
	g.update(after)
}

// remove forgets the facts for which gone reports true.
func (g *gate) remove(gone func(*standing) bool, after *aftermath) {
	kept := slices.DeleteFunc(g.standing, func(s standing) bool { return gone(&s) })
	if len(kept) != len(g.standing) {
		g.standing = kept
		g.update(after)
	}
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
		g.standing = slices.Delete(g.standing, i, i+1)
		g.update(after)
	}
}

// expire forgets the facts whose time is over.
func (g *gate) expire(now int64, after *aftermath) {
	if g.expires != 0 && g.expires <= now {
		g.remove(func(s *standing) bool { return s.until != 0 && s.until <= now }, after)
	}
}

func (g *gate) update(after *aftermath) {
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
	if (old == 0) != (newest == 0) || g.eager {
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
