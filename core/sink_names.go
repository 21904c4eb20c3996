package core

import (
	"sync/atomic"
	"time"
)

// names is what a sink or a coordinator knows about the names of its facts: the watchers of
// each name, and the number of facts with the names that were asked for. A fact has its name as
// text. So a name that nobody asks for costs nothing but its text.
//
// All methods are called with mu held, except those that say so.
type names struct {
	base
	routes
	answers
}

// base is what names share with their sink.
type base struct {
	mu     *spinMutex // Sink.mu
	unlock func()     // unlocks mu and settles effects
	clock  clock
	after  *effects // effects of changes, for unlock
	ring   *ring
	panics *atomic.Uint64
}

// entered tells the counters, gates and monitors of a route about a new fact.
func (t *names) entered(r *route, f *fact, seq uint64) {
	for _, c := range r.counters {
		if c.n++; c.n == 1 {
			c.said.Store(saysNothing)
		}
	}
	r.notice(f, seq, t.after)
}

// leave counts one fact less.
func (t *names) leave(f *fact, seq uint64) {
	if t.leaves() {
		t.leaveRoute(t.of(f.name), f, seq)
	}
}

// leaveRoute does the same for a fact with that route.
func (t *names) leaveRoute(r *route, f *fact, seq uint64) {
	for _, c := range r.counters {
		if c.n--; c.n == 0 {
			c.said.Store(saysNothing)
		}
		t.after.wake(c.gone)
	}
	t.leaveGates(r, f, seq)
}

// leaveGates counts one fact less at the gates.
func (t *names) leaveGates(r *route, f *fact, seq uint64) {
	for _, g := range r.gates {
		if f.notices() {
			g.leave(seq, t.after)
		}
	}
}

// retracted removes a fact from monitors that was taken back.
func (t *names) retracted(f *fact, seq uint64) {
	if t.monitors.len() == 0 {
		return
	}
	for _, m := range t.of(f.name).monitors {
		m.remove(seq, f)
		m.check()
	}
}

// addMonitor starts a monitor at Seq next. Known has the facts that are present.
func (t *names) addMonitor(p pattern, span time.Duration, known []seqFact, next uint64) *Monitor {
	m := &Monitor{names: t, pattern: p, span: max(0, int64(span)), from: next, made: next}
	m.backfill(known)
	m.number = watching[*Monitor]{&t.routes, &t.monitors}.add(m)
	return m
}

func (t *names) addGate(g *gate) { g.number = watching[*gate]{&t.routes, &t.gates}.add(g) }

// removeGate detaches a gate: it is open from now on.
func (t *names) removeGate(g *gate) {
	watching[*gate]{&t.routes, &t.gates}.remove(g.number)
	g.facts.Store(0)
	g.newest, g.held = seqFact{}, list[uint64]{}
}

// notice adds a new fact to gates and monitors.
func (r *route) notice(f *fact, seq uint64, after *effects) {
	for _, g := range r.gates {
		g.enter(seq, f, after)
	}
	for _, m := range r.monitors {
		m.record(seq, f)
		m.check()
	}
}
