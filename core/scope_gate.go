package core

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// A Gate watches for the signals that match a pattern, in two places: on the sink, and among the
// signals that the owners of its scope have raised. It is shut while there is one. Newer signals
// do not open it: see [Sink]. To ask whether it is shut costs a nanosecond, so it can be asked
// before each step of a program. A nil Gate is open.
//
// The sink keeps a Gate until Stop. All methods are safe for concurrent use.
type Gate struct {
	own, shared gate
	scope       *Scope
}

// Gate makes a Gate. It calls wake when the gate may have shut or opened, without a lock, on the
// goroutine that raises, releases or retracts; nil means nothing. Wake should return soon. It is
// not called when a signal leaves because of its age or lease: see [Gate.Look]. Gate returns nil
// for a pattern that matches nothing, like "".
//
//ephemeral:pattern {pattern}
func (sc *Scope) Gate(pattern string, wake func()) *Gate {
	if wake == nil {
		return sc.Engine().Gate(pattern, nil, false)
	}
	return sc.Engine().Gate(pattern, &waking{wake}, false)
}

// waking is a waker that calls a function.
type waking struct{ fn func() }

func (w *waking) wake() { w.fn() }

// Gate is Scope.Gate for a waker. It may be called with locks of the caller held. An eager gate
// wakes for every signal, not only when it shuts.
func (e *forEngine) Gate(pattern string, w waker, eager bool) *Gate {
	p := compile(pattern)
	if len(p.terms) == 0 {
		return nil
	}
	s, g := e.sink, &Gate{scope: e.scope()}
	g.own = gate{pattern: p, waker: w, eager: eager, of: g.scope}
	g.shared = gate{pattern: p, waker: w, eager: eager, of: s}
	s.lockAt(s.names.clock.now())
	defer s.mu.Unlock()
	e.names.addGate(&g.own)
	s.addGate(&g.shared)
	return g
}

// Stop ends the watching. The gate is open from then on. It may be called many times.
func (g *Gate) Stop() {
	if g == nil {
		return
	}
	s := g.scope.sink
	s.mu.Lock()
	for len(g.shared.kept) > 0 {
		s.unkeep(&g.shared)
	}
	g.scope.names.gates = without(g.scope.names.gates, &g.own)
	g.scope.names.changed()
	s.names.gates = without(s.names.gates, &g.shared)
	s.names.changed()
	for _, part := range []*gate{&g.own, &g.shared} {
		part.facts.Store(0)
		part.newest, part.held = seqFact{}, nil
	}
	s.unlock()
}

// Shut reports whether a matching signal may be present: it may have become too old since the
// last look. It costs two atomic loads.
func (g *Gate) Shut() bool { return g != nil && (g.own.shut() || g.shared.shut()) }

// Look returns the newest matching signal. Again is after what time the gate may open without a
// signal that is released, retracted or evicted: by the age or the lease of one. It is the largest Duration if
// that cannot happen. If shut is false, the gate is open.
func (g *Gate) Look() (newest Signal, again time.Duration, shut bool) {
	if !g.Shut() {
		return Signal{}, 0, false
	}
	now := g.scope.names.clock.now()
	shut, newest, _, _, expires := g.Engine().Look(now, 0)
	if again = maxDuration; expires != never {
		again = time.Duration(expires - now)
	}
	return newest, again, shut
}

// gateForEngine is a Gate with the methods that only coordinators need.
type gateForEngine Gate

// Engine is for the coordinators of this library, as [Scope.Engine] is.
func (g *Gate) Engine() *gateForEngine { return (*gateForEngine)(g) }

// Look returns the state of a gate that is not nil. Signal is the newest one. Held says that a held signal matches;
// otherwise, since is when the gate shut. Held and since count only signals newer than beyond.
// Expires is the next time at which the state may change without a new event, or never. Look
// wakes nothing for facts that have expired: see gate.leave.
func (g *gateForEngine) Look(now int64, beyond uint64) (shut bool, signal Signal, held bool, since, expires int64) {
	if !(*Gate)(g).Shut() {
		return
	}
	expires = never
	s := g.scope.sink
	s.lockAt(now)
	defer s.mu.Unlock()
	for _, part := range [...]*gate{&g.own, &g.shared} {
		if !part.shut() {
			continue
		}
		newest := part.last()
		part.relied = newest.seq
		if !shut || newest.seq > signal.Seq {
			signal = newest.fact.signal(newest.seq, s.names.clock)
		}
		if last := len(part.held) - 1; last >= 0 && part.held[last] > beyond {
			held = true
			expires = min(expires, s.held[part.held[last]].until)
		} else if newest.seq > beyond {
			if began := part.begun(beyond); since == 0 || began < since {
				since = began
			}
		}
		expires = min(expires, s.end(newest.seq, &newest.fact, part == &g.own))
		shut = true
	}
	return shut, signal, held, since, expires
}

// Standing yields the signals that keep the gate shut, newest first, at most that many, and when
// they end; never: not by themselves.
func (g *gateForEngine) Standing(now int64, most int) iter.Seq2[Signal, int64] {
	return func(yield func(Signal, int64) bool) {
		if !(*Gate)(g).Shut() {
			return
		}
		type standing struct {
			signal Signal
			until  int64
		}
		var all []standing
		s := g.scope.sink
		s.lockAt(now)
		for _, part := range [...]*gate{&g.own, &g.shared} {
			part.each(func(seq uint64, f *fact) (older bool) {
				i, twice := slices.BinarySearchFunc(all, seq, func(have standing, seq uint64) int { return cmp.Compare(seq, have.signal.Seq) })
				if i == most || twice {
					return twice
				}
				all = slices.Insert(all, i, standing{f.signal(seq, s.names.clock), s.end(seq, f, part == &g.own)})
				all = all[:min(len(all), most)]
				return true
			})
		}
		s.mu.Unlock()
		for _, x := range all {
			if !yield(x.signal, x.until) {
				return
			}
		}
	}
}

// Matches is how many signals have ever matched, with those that were there when the gate was
// made.
func (g *gateForEngine) Matches() uint64 {
	g.scope.sink.mu.Lock()
	defer g.scope.sink.mu.Unlock()
	return g.shared.ever // includes the signals that owners have raised
}
