package core

import (
	"cmp"
	"slices"
)

// condition is a pattern that an engine watches in two places: among the facts of its own
// operations in the window, and on the sink.
type condition struct {
	own, shared gate
	ledger      *ledger
}

// condition makes a condition. It may be called with the engine's mu held.
func (l *ledger) condition(text string, engine waker, eager bool) *condition {
	p := compile(text)
	if len(p.terms) == 0 {
		return nil
	}
	c := &condition{ledger: l}
	c.own = gate{pattern: p, waker: engine, eager: eager, of: l, find: l.sink.find}
	c.shared = gate{pattern: p, waker: engine, eager: eager, of: l.sink, find: l.sink.find}
	l.sink.lockAt(l.sink.names.clock.now())
	defer l.sink.mu.Unlock()
	l.names.addGate(&c.own)
	l.sink.addGate(&c.shared)
	return c
}

// detach stops watching.
func (c *condition) detach() {
	if c == nil {
		return
	}
	s := c.ledger.sink
	s.mu.Lock()
	for len(c.shared.kept) > 0 {
		s.unkeep(&c.shared)
	}
	c.ledger.names.removeGate(&c.own)
	s.names.removeGate(&c.shared)
	s.unlock()
}

// holds reports whether a matching fact may be present. It costs two atomic loads.
func (c *condition) holds() bool { return c != nil && (c.own.shut() || c.shared.shut()) }

// verdict is the state of a condition at one moment.
type verdict struct {
	holds   bool
	signal  Signal // the newest
	held    bool   // a held fact matches
	since   int64  // if held is false: since when the condition holds
	expires int64  // the next time at which the state may change without a new event; the constant never if there is none
}

// look returns the state of the condition. Fields held and since count only facts newer than
// beyond. It wakes nothing for facts that have expired: see gate.leave.
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
		if held := g.held.last(); held > beyond {
			v.held = true
			v.expires = min(v.expires, s.held[held].until)
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

// standing is a fact that makes a condition hold.
type standing struct {
	signal Signal
	until  int64 // never: until it is removed
}

// standing lists the facts that make the condition hold, newest first, as many as an explanation
// names.
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

// rule says which signals hold up the items of a lane or class, or all items.
type rule struct {
	cancelOn *condition // nil: none
	deferOn  *condition // nil: none
	maxDefer int64      // < 0: no limit
}

func (r *rule) empty() bool { return r.cancelOn == nil && r.deferOn == nil }

func (r *rule) detach() {
	r.cancelOn.detach()
	r.deferOn.detach()
}

// deferral returns whether DeferOn holds, and the latest time until which it can defer o, or never.
// Resumed is the Seq of the newest signal that matches ResumeOn.
func (r *rule) deferral(o *Operation, now int64, resumed uint64) (v verdict, due int64) {
	v, due = r.deferOn.look(now, resumed), never
	v.holds = v.holds && v.signal.Seq >= resumed
	if r.maxDefer >= 0 && !v.held {
		due = later(max(o.enqueued, v.since), r.maxDefer)
	}
	return v, due
}
