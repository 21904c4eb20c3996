package core

import (
	"cmp"
	"slices"
)

// condition is a pattern that an engine watches wherever its facts are: raised by
// its own operations, as long as those are in the window, or on the sink.
type condition struct {
	own, shared gate
	ledger      *ledger
}

func (l *ledger) condition(text string, engine waker, eager bool) *condition {
	p := compile(text)
	if len(p.terms) == 0 {
		return nil
	}
	c := &condition{ledger: l}
	c.own = gate{pattern: p, waker: engine, eager: eager, of: l}
	c.shared = gate{pattern: p, waker: engine, eager: eager, of: l.sink}
	l.sink.lockFresh()
	l.names.addGate(&c.own)
	l.sink.addGate(&c.shared)
	l.sink.unlock()
	return c
}

// addGate attaches a gate; what is present counts at once. The lock is held.
func (s *Sink) addGate(g *gate) {
	s.names.addGate(g)
	g.since = s.names.clock.now()
	g.each(func(seq uint64, f *fact) bool {
		g.facts.Add(1)
		g.ever++
		if f.holds() {
			g.held = append(g.held, seq)
		}
		return true
	})
	slices.Sort(g.held)
	for i := len(s.kept) - 1; i >= 0 && len(g.kept) < maxKept; i-- {
		if k := &s.kept[i]; g.pattern.matches(k.fact.name.text) {
			g.kept = append(g.kept, k.seq)
			k.gates++
		}
	}
	slices.Reverse(g.kept)
}

func (t *names) addGate(g *gate) {
	t.gates = append(t.gates[:len(t.gates):len(t.gates)], g)
	t.changed()
}

// detach ends the watching.
func (c *condition) detach() {
	if c == nil {
		return
	}
	s := c.ledger.sink
	s.mu.Lock()
	for len(c.shared.kept) > 0 {
		s.unkeep(&c.shared)
	}
	c.ledger.names.gates = without(c.ledger.names.gates, &c.own)
	c.ledger.names.changed()
	s.names.gates = without(s.names.gates, &c.shared)
	s.names.changed()
	for _, g := range []*gate{&c.own, &c.shared} {
		g.facts.Store(0)
		g.newest, g.held = seqFact{}, nil
	}
	s.unlock()
}

// holds reports whether a matching fact may be present. It costs two atomic loads.
func (c *condition) holds() bool { return c != nil && (c.own.shut() || c.shared.shut()) }

// verdict is what a condition comes to at some instant.
type verdict struct {
	holds   bool
	signal  Signal // the newest
	held    bool   // because of a fact that is held
	since   int64  // if not, since when it holds
	expires int64  // when that may change by itself, or never
}

// look returns the state of the condition. Its fields held and since are about facts newer
// than beyond. It wakes nothing for facts that have expired: see gate.leave.
func (c *condition) look(now int64, beyond uint64) (v verdict) {
	if !c.holds() {
		return v
	}
	v.expires = never
	s := c.ledger.sink
	s.lockAt(now)
	defer s.mu.Unlock()
	for _, g := range [...]*gate{&c.own, &c.shared} {
		if !g.shut() {
			continue
		}
		newest := g.last()
		g.relied = newest.seq
		if !v.holds || newest.seq > v.signal.Seq {
			v.signal = newest.fact.signal(newest.seq, s.names.clock)
		}
		if last := len(g.held) - 1; last >= 0 && g.held[last] > beyond {
			v.held = true
			v.expires = min(v.expires, s.held[g.held[last]].until)
		} else if newest.seq > beyond {
			if since := g.begun(beyond); v.since == 0 || since < v.since {
				v.since = since
			}
		}
		v.expires = min(v.expires, s.end(newest.seq, &newest.fact, g == &c.own))
		v.holds = true
	}
	return v
}

// end is when a fact will go by itself, for an operation's own coordinator or for
// others.
func (s *Sink) end(seq uint64, f *fact, own bool) int64 {
	if h := s.held[seq]; h != nil {
		return h.until
	}
	if own {
		return never
	}
	return later(f.at, s.maxAge)
}

// standing is a fact that a condition holds because of.
type standing struct {
	signal Signal
	until  int64 // or never: until removed
}

// standing lists the facts that the condition holds because of, newest first, as
// many as an explanation names.
func (c *condition) standing(now int64) (all []standing) {
	if !c.holds() {
		return nil
	}
	s := c.ledger.sink
	s.lockAt(now)
	defer s.mu.Unlock()
	for _, g := range [...]*gate{&c.own, &c.shared} {
		g.each(func(seq uint64, f *fact) (older bool) {
			i, twice := slices.BinarySearchFunc(all, seq, func(have standing, seq uint64) int { return cmp.Compare(seq, have.signal.Seq) })
			if i == maxExplained || twice {
				return twice
			}
			all = slices.Insert(all, i, standing{f.signal(seq, s.names.clock), s.end(seq, f, g == &c.own)})
			all = all[:min(len(all), maxExplained)]
			return true
		})
	}
	return all
}
