package core

import (
	"cmp"
	"slices"
)

// condition is a pattern that an engine heeds wherever its facts are: raised by
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
	c.own = gate{pattern: p, waker: engine, eager: eager}
	c.shared = gate{pattern: p, waker: engine, eager: eager}
	l.mu.Lock()
	l.names.addGate(&c.own)
	l.mu.Unlock()
	l.sink.addGate(&c.shared)
	return c
}

// addGate attaches a gate; facts in the window count at once.
func (s *Sink) addGate(g *gate) {
	var after aftermath
	s.lockFresh(&after)
	s.names.addGate(g)
	for seq := s.ring.tail; seq < s.ring.head; seq++ {
		if f := s.ring.at(seq); f.name != nil && g.pattern.matches(f.name.text) && !isLifecycle(f.name.text) {
			until := int64(0)
			if s.maxAge > 0 {
				until = later(f.at, s.maxAge)
			}
			g.add(standing{signal: f.signal(seq, s.names.clock), owner: f.operation, at: f.at, until: until}, &after)
		}
	}
	for _, h := range s.held {
		if g.pattern.matches(h.fact.name.text) {
			g.add(standing{signal: h.fact.signal(h.seq, s.names.clock), owner: h.fact.operation, at: h.fact.at, until: h.until}, &after)
		}
	}
	slices.SortFunc(g.standing, func(a, b standing) int {
		if a.signal.Seq < b.signal.Seq {
			return -1
		}
		return 1
	})
	g.update(&after, false)
	s.mu.Unlock()
	after.settle()
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
	c.ledger.mu.Lock()
	c.ledger.names.gates = without(c.ledger.names.gates, &c.own)
	c.ledger.names.changed()
	s := c.ledger.sink
	s.names.gates = without(s.names.gates, &c.shared)
	s.names.changed()
	for _, g := range []*gate{&c.own, &c.shared} {
		g.standing, g.facts = nil, 0
		g.update(&aftermath{}, false)
	}
	s.mu.Unlock()
}

// holds reports whether a matching fact may stand. It costs two atomic loads.
func (c *condition) holds() bool { return c != nil && (c.own.shut() || c.shared.shut()) }

// verdict is what a condition comes to at some instant.
type verdict struct {
	holds   bool
	signal  Signal // the newest
	since   int64  // since when it holds
	expires int64  // when that may change by itself; 0: never
}

// look finds out exactly, and since when it holds because of facts newer than
// beyond. That facts have expired wakes nobody: whoever looks is the one to be
// woken.
func (c *condition) look(now int64, beyond uint64) (v verdict) {
	if !c.holds() {
		return v
	}
	c.ledger.mu.Lock()
	v.include(&c.own, now, beyond)
	v.include(&c.shared, now, beyond)
	c.ledger.mu.Unlock()
	return v
}

func (v *verdict) include(g *gate, now int64, beyond uint64) {
	var nobody aftermath
	g.expire(now, &nobody)
	newest, ok := g.last()
	if !ok {
		return
	}
	if !v.holds || newest.Seq > v.signal.Seq {
		v.signal = newest
	}
	since := g.since
	if beyond != 0 {
		i := slices.IndexFunc(g.standing, func(s standing) bool { return s.signal.Seq > beyond })
		if i >= 0 {
			since = max(since, g.standing[i].at)
		}
	}
	if !v.holds || since < v.since {
		v.since = since
	}
	if g.expires != 0 && (v.expires == 0 || g.expires < v.expires) {
		v.expires = g.expires
	}
	v.holds = true
}

// standing lists the facts that the condition holds because of, newest first, as
// many as an explanation names.
func (c *condition) standing(now int64) []standing {
	if !c.holds() {
		return nil
	}
	var nobody aftermath
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	c.own.expire(now, &nobody)
	c.shared.expire(now, &nobody)
	all := slices.Concat(c.own.standing, c.shared.standing)
	slices.SortStableFunc(all, func(a, b standing) int { return cmp.Compare(b.signal.Seq, a.signal.Seq) })
	all = slices.CompactFunc(all, func(a, b standing) bool { return a.signal.Seq == b.signal.Seq })
	return all[:min(len(all), maxExplained)]
}
