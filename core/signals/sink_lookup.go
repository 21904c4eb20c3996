package signals

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
)

// longestHold is how long the index takes in facts under one lock. A new name may take 50
// microseconds, if a part of a large Go map grows. Parts of equal size grow at about the same time.
const longestHold = int64(250 * time.Microsecond)

// catchUp enters the facts into the index that are present at its start. The lock is held, but
// released now and then.
func (s *Sink) catchUp() {
	for to, began := s.ring.head, int64(0); s.index.end < to && s.index.add(&s.ring, 4, to); {
		switch now := s.names.clock.Now(); {
		case began == 0:
			began = now
		case now-began > longestHold:
			s.unlock()
			s.mu.Lock()
			began = 0
		}
	}
}

// countName is part of tally. Facts that come while the index catches up are looked at one by
// one, because raisers may be faster than the index.
func (s *Sink) countName(name string) int {
	s.catchUp()
	_, n := s.index.newest(name)
	n += s.standing.names[name]
	for i := range s.kept {
		if s.kept[i].fact.name == name {
			n++
		}
	}
	for seq := max(s.index.end, s.ring.tail); seq < s.ring.head; seq++ {
		if s.ring.at(seq).name == name {
			n++
		}
	}
	return n
}

// countMatching is part of tally.
func (s *Sink) countMatching(p glob.Pattern) (n int) {
	s.each(p, s.ring.stored, func(uint64, *fact) bool {
		n++
		return true
	})
	return n
}

// each visits all matching facts. Those in the window come newest first, until visit returns
// false. The same holds for kept facts. Held facts come last. There are at most so many facts
// in the window that gates count, so the search of the window may end early. The lock is held.
func (s *Sink) each(p glob.Pattern, most int, visit func(seq uint64, f *fact) (older bool)) {
	for seq := s.ring.head; most > 0 && seq > s.ring.tail; {
		seq--
		f := s.ring.at(seq)
		if f.name == "" || !p.Matches(f.name) {
			continue
		}
		if f.notices() {
			most--
		}
		if !visit(seq, f) {
			break
		}
	}
	for i := len(s.kept) - 1; i >= 0; i-- {
		if k := &s.kept[i]; p.Matches(k.fact.name) && !visit(k.seq, &k.fact) {
			break
		}
	}
	for seq, h := range s.held {
		if p.Matches(h.fact.name) {
			visit(seq, &h.fact)
		}
	}
}
