package signals

import (
	"cmp"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
)

// A Gate watches for the signals that match a pattern, in two places: on the sink, and among the
// signals that the owners of its scope have raised. It is shut while there is one. Newer signals
// do not open it: see [Sink]. To ask whether it is shut costs a nanosecond, so it can be asked
// before each step of a program. A nil Gate is open.
//
// To wait until signals are gone, also by their age or lease, [Sink.WaitGone] is one call. A Gate is for a scheduler,
// which asks often and must not block.
//
// The sink keeps a Gate until Stop. All methods are safe for concurrent use.
type Gate struct {
	own, shared gatePart
	scope       *Scope
}

// Gate makes a Gate. It calls wake when the gate may have shut or opened, without a lock, on the
// goroutine that raises, releases or retracts; nil means nothing. Meanwhile that goroutine waits. Wake is
// not called when a signal leaves because of its age or lease: [Gate.Look] says when to look again. Gate returns nil
// for a pattern that matches nothing, like "".
//
//ephemeral:pattern {pattern}
func (sc *Scope) Gate(pattern string, wake func()) *Gate {
	var told *gateTold
	if wake != nil {
		told = &gateTold{hook.New(glob.Compile(""), func(struct{}) { wake() }), &sc.panics}
	}
	return sc.gate(pattern, nil, told, false)
}

// gateTold is the function of a user that a gate calls.
type gateTold struct {
	hook   *hook.Hook[struct{}]
	panics *atomic.Uint64
}

func (t *gateTold) Tell() {
	hook.Deliver([]*hook.Hook[struct{}]{t.hook}, false, new(struct{}), t.panics)
}

// Gate is Scope.Gate for a waker. It may be called with locks of the caller held. An eager gate
// wakes for every signal, not only when it shuts.
func (e *forEngine) Gate(pattern string, w hook.Waker, eager bool) *Gate {
	return e.scope().gate(pattern, w, nil, eager)
}

func (sc *Scope) gate(pattern string, w hook.Waker, told *gateTold, eager bool) *Gate {
	p := glob.Compile(pattern)
	if len(p.Terms) == 0 {
		return nil
	}
	s, g := sc.sink, &Gate{scope: sc}
	g.own = gatePart{Pattern: p, waker: w, told: told, eager: eager, of: sc, find: s.find}
	g.shared = gatePart{Pattern: p, waker: w, told: told, eager: eager, of: s, find: s.find}
	s.lockAt(s.names.clock.Now())
	defer s.mu.Unlock()
	sc.names.addGate(&g.own)
	s.addGate(&g.shared)
	return g
}

// Stop ends the watching. The gate is open from then on. Stop waits for running calls of wake,
// but not inside a handler. After it, no call starts. It may be called many times.
func (g *Gate) Stop() {
	if g == nil {
		return
	}
	s := g.scope.sink
	s.mu.Lock()
	for len(g.shared.kept) > 0 {
		s.unkeep(&g.shared)
	}
	g.scope.names.removeGate(&g.own)
	s.names.removeGate(&g.shared)
	told := g.own.told
	if told != nil {
		told.hook.Cancel()
	}
	s.unlock()
	if told != nil {
		told.hook.Wait()
	}
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
	now := g.scope.names.clock.Now()
	shut, newest, _, _, expires := g.Engine().Look(now, 0)
	if again = clock.MaxDuration; expires != clock.Never {
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
// wakes nothing for facts that have expired: see gatePart.leave.
func (g *gateForEngine) Look(now int64, beyond uint64) (shut bool, signal Signal, held bool, since, expires int64) {
	if !(*Gate)(g).Shut() {
		return
	}
	expires = clock.Never
	s := g.scope.sink
	s.lockAt(now)
	defer s.mu.Unlock()
	for _, part := range [...]*gatePart{&g.own, &g.shared} {
		if !part.shut() {
			continue
		}
		newest := part.last()
		part.relied = newest.seq
		if !shut || newest.seq > signal.Seq {
			signal = newest.fact.signal(newest.seq, s.names.clock)
		}
		if last := part.held.Last(); last > beyond {
			held = true
			expires = min(expires, s.held[last].until)
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
		for _, part := range [...]*gatePart{&g.own, &g.shared} {
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
