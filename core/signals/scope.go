package signals

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
	"github.com/ephemeralgo/ephemeral/core/internal/lists"
)

// The lock of a sink guards the scopes on it as well. So a signal enters and leaves both at once, with one Seq, and a
// raise takes one lock. A coordinator without a sink gets one of its own. Rejected: a lock for each scope, because each
// raise and each eviction took both. A view that filters the sink: the signals of others would push those of an owner
// out of its own window.

// A Scope is a group of owners, such as connections or sessions, that raise their signals on
// one sink. What an owner has raised leaves the sink together with the owner: Evict takes it
// away. Otherwise its signals are like other signals of the sink. A coordinator has a Scope,
// and its operations are the owners.
//
// A Scope counts the signals of its own owners as well, also those that newer ones have pushed
// out of the sink. So its [Gate] and its Count can be exact where the sink forgets. It shows at
// most the newest 1,000 raised signals of an owner, and all its held ones. Older ones leave the
// sink as well, unless they match a gate.
//
// Make a Scope with [NewScope]. It must not be copied. It owns no goroutine and needs no
// closing. All methods are safe for concurrent use, also from handlers.
type Scope struct {
	sink   *Sink
	source string
	panics atomic.Uint64

	onSignal  []*subscription
	onRetract []*hook.Hook[Retraction]

	// Guarded by Sink.mu.
	names   names
	asked   bool                // somebody has asked for names
	present nameCounts          // of all facts, if somebody has asked
	gated   map[*Owner]struct{} // owners that have, or had, facts that gates count
	dropped uint64
	spares  spares[ownFact]
}

// ScopeOptions configure a [Scope]. The zero value is the default.
type ScopeOptions struct {
	OnSignal  func(Signal)     // called for each signal of an owner, before the handlers of the sink; nil: none
	OnRetract func(Retraction) // called for each signal of an owner that is taken back or released; nil: none
}

// NewScope makes a Scope without owners. Source becomes the [Signal].Source of its signals. It
// panics if the sink is nil.
//
//ephemeral:none
func NewScope(on *Sink, source string, opts ScopeOptions) *Scope {
	need(on != nil, "NewScope needs a sink")
	sc := new(Scope)
	sc.Engine().Init(on, source, opts)
	sc.asked = true
	return sc
}

// Raise raises a signal of o. The default of its Key is the key of o. Raise returns false where
// [Sink.Raise] does, and after Evict.
//
//ephemeral:none
func (sc *Scope) Raise(o *Owner, n Note) bool { return sc.raise(o, &n) }

// Raiser returns a [Raiser] for the signals of o.
//
//ephemeral:is
func (sc *Scope) Raiser(o *Owner) Raiser { return ownRaiser{sc, o} }

func (sc *Scope) raise(o *Owner, n *Note) bool {
	s := sc.sink
	if (n.Name == "" || n.cause != nil) && !s.admits(n, o.ID) {
		return false
	}
	now := sc.names.clock.Now()
	shared := s.enter(n.Name, sc.onSignal)
	if shared == nil {
		s.block(n, o.ID, BlockedDepth)
		return false
	}
	if o.rest.Load() == nil {
		o.rest.CompareAndSwap(nil, firstOnly)
	}
	if o.rest.Load() == evicted {
		s.mu.Unlock()
		return false
	}
	if n.Key == "" {
		n.Key = o.Key
	}
	f, seq := s.record(shared, n, o.ID, &sc.source, now)
	sc.add(o, f, seq, nil)
	subs := shared.subs
	var signal Signal
	if len(subs) > 0 || sc.onSignal != nil {
		signal = f.signal(seq, sc.names.clock)
		if sc.onSignal == nil {
			hook.EnterFirst(subs)
		}
	}
	s.unlock()
	if sc.onSignal == nil {
		hook.Deliver(subs, true, &signal, &s.panics)
	} else {
		sc.deliver(&signal, subs)
	}
	return true
}

// deliver calls OnSignal, and then the handlers.
func (sc *Scope) deliver(signal *Signal, subs []*subscription) {
	hook.Deliver(sc.onSignal, false, signal, &sc.panics)
	hook.Deliver(subs, false, signal, &sc.sink.panics)
}

// add enters a fact of o that the sink has recorded. If the fact is held, h is not nil.
func (sc *Scope) add(o *Owner, f *fact, seq uint64, h *heldFact) {
	own := ownFact{seq: seq, name: f.name, key: f.key, at: f.at, more: f.more}
	if sc.asked {
		sc.present.add(f.name)
	}
	if r := sc.names.of(f.name); r != unwatched {
		noticed := sc.fact(o.ID, &own)
		sc.names.entered(r, &noticed, seq)
		if len(r.gates) > 0 {
			lists.Put(&sc.gated, o, struct{}{})
		}
	}
	d := o.rest.Load()
	switch {
	case h != nil:
		lists.Put(&o.more().holds, seq, h)
	case o.first == nil && len(d.facts) == d.from:
		o.first = sc.spares.single()
		*o.first = own
	default:
		d = o.more()
		shown := len(d.facts) - d.from
		if o.first != nil {
			shown++
		}
		if shown == maxFacts {
			sc.dropOldest(o, d)
		}
		if d.facts == nil {
			d.facts = sc.spares.list()
		}
		d.facts = append(d.facts, own)
	}
}

// fact returns an owner's fact in the form that a sink has.
func (sc *Scope) fact(id OperationID, f *ownFact) fact {
	return fact{name: f.name, key: f.key, operation: id, source: &sc.source, at: f.at, more: f.more}
}

// dropOldest drops the oldest fact that an owner raised. The sink still keeps it for
// gates, as when its window is full.
func (sc *Scope) dropOldest(o *Owner, d *ownMore) {
	var oldest ownFact
	if o.first != nil {
		oldest, o.first = *o.first, nil
	} else {
		oldest, d.facts[d.from] = d.facts[d.from], oldest
		if d.from++; d.from == maxFacts/4 { // rarely, because this moves the others
			d.facts, d.from = slices.Delete(d.facts, 0, d.from), 0
		}
	}
	sc.leave(o.ID, &oldest)
	sc.sink.pushOut(oldest.seq)
	d.dropped = true
	sc.dropped++
}

// each visits the facts of owners that matter to gates.
func (sc *Scope) each(p glob.Pattern, _ int, visit func(seq uint64, f *fact) (older bool)) {
	for o := range sc.gated {
		sc.eachOf(o, func(seq uint64, f *fact) bool { return !p.Matches(f.name) || visit(seq, f) })
	}
}

// eachOf visits all facts of an owner: raised facts, newest first, until visit returns
// false; then held facts.
func (sc *Scope) eachOf(o *Owner, visit func(seq uint64, f *fact) (older bool)) {
	raised := func(own *ownFact) bool {
		f := sc.fact(o.ID, own)
		return visit(own.seq, &f)
	}
	older := true
	d := o.rest.Load()
	if d != nil {
		for i := len(d.facts) - 1; i >= d.from && older; i-- {
			older = raised(&d.facts[i])
		}
	}
	if older && o.first != nil {
		raised(o.first)
	}
	if d != nil {
		for seq, h := range d.holds {
			visit(seq, &h.fact)
		}
	}
}

// leave removes a fact of an owner. mu is held.
func (sc *Scope) leave(id OperationID, own *ownFact) {
	f := sc.fact(id, own)
	sc.drop(&f, own.seq)
}

func (sc *Scope) drop(f *fact, seq uint64) {
	if sc.asked {
		sc.present.remove(f.name)
	}
	sc.names.leave(f, seq)
}

// Hold raises a held signal of o. It stays until release is called, until Release, or, if lease
// is positive, until the lease ends; see [Sink.Hold]. The default of its Key is the key of o.
// Where [Scope.Raise] returns false, and after Release, nothing is held, and release does
// nothing.
//
//ephemeral:release {lease}
func (sc *Scope) Hold(o *Owner, n Note, lease time.Duration) (release func()) {
	return sc.hold(o, &n, lease)
}

func (sc *Scope) hold(o *Owner, n *Note, lease time.Duration) (release func()) {
	s := sc.sink
	if !s.admits(n, o.ID) {
		return func() {}
	}
	shared := s.enter(n.Name, sc.onSignal)
	if shared == nil {
		s.block(n, o.ID, BlockedDepth)
		return func() {}
	}
	d := o.more()
	if d == evicted || d.released {
		s.mu.Unlock()
		return func() {}
	}
	if n.Key == "" {
		n.Key = o.Key
	}
	own := fact{name: n.Name, key: n.Key, operation: o.ID, source: &sc.source, more: &more{held: true, payload: n.Payload, cause: n.cause}}
	h := s.hold(own, lease)
	h.owner, h.scope = o, sc
	sc.add(o, &h.fact, h.seq, h)
	signal, subs := h.fact.signal(h.seq, sc.names.clock), shared.subs
	s.unlock()
	sc.deliver(&signal, subs)
	return func() { s.release(h) }
}

// unhold removes a held fact of an owner that has ended. mu is held.
func (sc *Scope) unhold(o *Owner, h *heldFact, released bool) {
	own := h.fact
	if released {
		sc.names.retracted(&own, h.seq)
	}
	sc.drop(&own, h.seq)
	delete(o.rest.Load().holds, h.seq)
}

// Release releases all signals that o holds. From now on, Hold does nothing for o.
func (sc *Scope) Release(o *Owner) {
	var after hook.Effects
	sc.release(o, &after)
	after.Settle()
}

// release unlocks now and then, so that others get the lock.
func (sc *Scope) release(o *Owner, after *hook.Effects) {
	s := sc.sink
	s.lockAt(s.names.clock.Now())
	d := o.more()
	if d == evicted {
		s.mu.Unlock()
		return
	}
	d.released = true
	seqs := make([]uint64, 0, len(d.holds))
	for seq := range d.holds {
		seqs = append(seqs, seq)
	}
	s.mu.Unlock()
	slices.Sort(seqs)
	for some := range slices.Chunk(seqs, chunk/16) {
		s.mu.Lock()
		for _, seq := range some {
			if h := d.holds[seq]; h != nil {
				s.releaseLocked(h)
			}
		}
		after.Take(&s.after)
		s.mu.Unlock()
	}
}

// endLeases ends held facts whose lease is over. mu is held. It wakes nothing: see
// gatePart.leave.
func (sc *Scope) endLeases() {
	if s := sc.sink; s.lease != clock.Never {
		s.expireLeases(s.names.clock.Now())
		s.after.Clear()
	}
}

// Retract takes back the newest signal with exactly that name that o raised. It reports whether
// there was one. It also finds signals that o no longer shows, if the sink still keeps them for
// a gate: see [Sink].
//
//ephemeral:pattern {name}
func (sc *Scope) Retract(o *Owner, name string) bool {
	newest := true
	return sc.retract(o, "", func(text string) bool {
		match := newest && text == name
		newest = newest && !match
		return match
	}) > 0
}

// RetractMatching takes back all signals that match pattern and that o raised. It returns how
// many there were.
//
//ephemeral:pattern {pattern}
func (sc *Scope) RetractMatching(o *Owner, pattern string) int {
	p := glob.Compile(pattern)
	return sc.retract(o, byPattern(p), p.Matches)
}

// retract takes back the facts of o that match selects, newest first; held facts are
// released, not retracted. It returns their number.
func (sc *Scope) retract(o *Owner, by string, match func(name string) bool) int {
	var gone []Signal
	s := sc.sink
	s.lockFresh()
	d := o.rest.Load()
	if d == nil || d == evicted {
		s.unlock()
		return 0
	}
	take := func(own *ownFact) bool {
		if !match(own.name) {
			return false
		}
		f := sc.fact(o.ID, own)
		gone = append(gone, f.signal(own.seq, sc.names.clock))
		sc.names.retracted(&f, own.seq)
		sc.drop(&f, own.seq)
		s.remove(own.seq, true)
		return true
	}
	for i := len(d.facts) - 1; i >= d.from; i-- {
		if take(&d.facts[i]) {
			d.facts = slices.Delete(d.facts, i, i+1)
		}
	}
	if o.first != nil && take(o.first) {
		o.first = nil
	}
	for _, f := range slices.Backward(s.keptOf(o, d)) {
		if match(f.fact.name) {
			gone = append(gone, f.fact.signal(f.seq, sc.names.clock))
			for _, m := range sc.names.of(f.fact.name).monitors {
				m.remove(f.seq, &f.fact)
			}
			s.remove(f.seq, true)
		}
	}
	s.unlock()
	slices.Reverse(gone) // handlers are called in the order in which the signals were raised
	sc.tellRetracted(gone, by)
	return len(gone)
}

func (sc *Scope) tellRetracted(gone []Signal, by string) {
	for _, signal := range gone {
		sc.sink.tell(sc.onRetract, signal, by, &sc.panics)
		sc.sink.tellRetracted(signal, by)
	}
}

// keptOf lists the facts that the sink keeps for gates and the owner no longer shows.
// mu is held.
func (s *Sink) keptOf(o *Owner, d *ownMore) (kept []keptFact) {
	if d.dropped {
		for _, k := range s.kept {
			if k.fact.operation == o.ID {
				kept = append(kept, k)
			}
		}
	}
	return kept
}

// Evict takes the signals of o away, from the scope and from the sink, and releases those that
// o holds. Handlers of retractions are called for the held ones, and not for those that were raised. From now
// on, the scope does nothing for o. It returns what o was, for SignalsOf.
func (sc *Scope) Evict(o *Owner) (last Past) {
	last.ID, last.Key = o.ID, o.Key
	if !o.leave() {
		var after hook.Effects
		sc.release(o, &after)
		sc.evict(o, false, &last, &after)
		after.Settle()
	}
	return last
}

// evict takes the signals of an owner that holds none from the scope and, unless stay is set,
// from the sink. Last becomes what the owner was; its memory of facts is used again. From now on
// the owner's key does not change.
func (sc *Scope) evict(o *Owner, stay bool, last *Past, after *hook.Effects) {
	s := sc.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	defer after.Take(&s.after)
	d := o.rest.Load()
	if d == evicted {
		return
	}
	var list []ownFact
	if spent := last.rest; spent != nil && cap(spent.facts) > 0 { // firstOnly and evicted are never changed
		list, spent.facts, spent.from = spent.facts, nil, 0
	}
	sc.spares.put(last.first, list)
	*last = Past{o.ID, o.Key, o.first, d}
	o.first = nil
	o.rest.Store(evicted)
	last.raised(func(own *ownFact) {
		sc.leave(last.ID, own)
		if stay && s.ring.contains(own.seq) {
			s.inherit(own.seq, sc.source)
		} else {
			s.remove(own.seq, false)
		}
	})
	delete(sc.gated, o)
	for _, k := range s.keptOf(o, d) {
		s.remove(k.seq, false)
	}
}

// Signals lists the signals that o has raised or holds and that were not taken back, oldest
// first.
func (sc *Scope) Signals(o *Owner) []Signal {
	sc.sink.mu.Lock()
	defer sc.sink.mu.Unlock()
	return sc.signals(Past{ID: o.ID, first: o.first, rest: o.rest.Load()})
}

// SignalsOf lists the signals that an owner had when it was evicted, oldest first.
func (sc *Scope) SignalsOf(p Past) []Signal {
	sc.sink.mu.Lock()
	defer sc.sink.mu.Unlock()
	return sc.signals(p)
}

// signals is SignalsOf with mu held, also for an owner that was not evicted.
func (sc *Scope) signals(of Past) (all []Signal) {
	sc.endLeases()
	d := of.rest
	if d == nil {
		return nil
	}
	if n := len(d.facts) - d.from + len(d.holds); n > 0 {
		all = make([]Signal, 0, 1+n)
	}
	of.raised(func(own *ownFact) {
		f := sc.fact(of.ID, own)
		all = append(all, f.signal(own.seq, sc.names.clock))
	})
	for seq, h := range d.holds {
		all = append(all, h.fact.signal(seq, sc.names.clock))
	}
	if len(d.holds) > 0 {
		slices.SortFunc(all, asRaised)
	}
	return all
}

// Count returns how many signals of owners match pattern.
//
//ephemeral:pattern {pattern}
func (sc *Scope) Count(pattern string) int {
	sc.sink.mu.Lock()
	defer sc.sink.mu.Unlock()
	sc.endLeases()
	n, _ := sc.names.count(pattern)
	return n
}

// countName is part of tally.
func (sc *Scope) countName(name string) int { return sc.present.names[name] }

// countMatching is part of tally.
func (sc *Scope) countMatching(p glob.Pattern) (n int) {
	for name, count := range sc.present.names {
		if p.Matches(name) {
			n += count
		}
	}
	return n
}

// causeIn returns the signal that caused ctx, or nil.
func causeIn(ctx context.Context) *link {
	if c, ok := ctx.Value(causeKey{}).(*causedContext); ok {
		return c.link
	}
	return nil
}
