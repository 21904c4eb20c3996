package core

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ledger is a coordinator's view of the signals that its operations raised. A
// signal is in it exactly as long as its operation is in the window. The
// operations keep the facts themselves; the ledger counts their names and
// notifies the watchers. Every fact goes to the sink as well, under the same Seq,
// and the sink's lock guards both: an operation's signal enters and leaves both
// at once.
type ledger struct {
	sink   *Sink
	source string // name of the coordinator
	panics atomic.Uint64

	onSignal  []*subscription
	onRetract []*hook[Retraction]

	// Guarded by Sink.mu.
	names   names
	asked   bool                    // somebody has asked for names; written with engine.mu held as well
	present nameCounts              // of all facts, if somebody has asked
	gated   map[*Operation]struct{} // operations that have, or had, facts that gates count
	dropped uint64
	spares  spares[ownFact]
}

func (l *ledger) init(sink *Sink, source string, opts *Options) {
	l.sink, l.source = sink, source
	l.names.base, l.names.facts = sink.names.base, l
	if opts.OnSignal != nil {
		l.onSignal = []*subscription{newHook(pattern{}, opts.OnSignal)}
	}
	if opts.OnRetract != nil {
		l.onRetract = []*hook[Retraction]{newHook(compile("*"), opts.OnRetract)}
	}
}

// raise records a signal of o, here and on the sink.
func (l *ledger) raise(o *Operation, n note) bool {
	s := l.sink
	o.addCause(&n)
	if (n.name == "" || n.cause != nil) && !s.admits(&n, o.id) {
		return false
	}
	now := l.names.clock.now()
	shared := s.enter(n.name, l.onSignal)
	if shared == nil {
		s.block(&n, o.id, BlockedDepth)
		return false
	}
	if o.rest.Load() == nil {
		o.rest.CompareAndSwap(nil, firstOnly)
	}
	if o.rest.Load() == evicted {
		l.sink.mu.Unlock()
		return false
	}
	if n.key == "" {
		n.key = o.key
	}
	f, seq := s.record(shared, &n, o.id, &l.source, now)
	l.add(o, f, seq, nil)
	subs := shared.subs
	var signal Signal
	if len(subs) > 0 || l.onSignal != nil {
		signal = f.signal(seq, l.names.clock)
		if l.onSignal == nil {
			enterFirst(subs)
		}
	}
	s.unlock()
	if l.onSignal == nil {
		deliver(subs, true, &signal, &s.panics)
	} else {
		l.deliver(&signal, subs)
	}
	return true
}

// deliver calls OnSignal, and then the handlers, even if OnSignal ends the goroutine.
func (l *ledger) deliver(signal *Signal, subs []*subscription) {
	defer deliver(subs, false, signal, &l.sink.panics)
	deliver(l.onSignal, false, signal, &l.panics)
}

// add enters a fact of o that the sink has recorded. If the fact is held, h is not nil.
func (l *ledger) add(o *Operation, f *fact, seq uint64, h *heldFact) {
	own := ownFact{seq: seq, name: f.name, key: f.key, at: f.at, more: f.more}
	if l.asked {
		l.present.add(f.name)
	}
	if r := l.names.of(f.name); r != unwatched {
		noticed := l.fact(o.id, &own)
		l.names.entered(r, &noticed, seq)
		if len(r.gates) > 0 {
			put(&l.gated, o, struct{}{})
		}
	}
	d := o.rest.Load()
	switch {
	case h != nil:
		put(&o.details().holds, seq, h)
	case o.first == nil && len(d.facts) == d.from:
		o.first = l.spares.single()
		*o.first = own
	default:
		d = o.details()
		shown := len(d.facts) - d.from
		if o.first != nil {
			shown++
		}
		if shown == maxFacts {
			l.dropOldest(o, d)
		}
		if d.facts == nil {
			d.facts = l.spares.list()
		}
		d.facts = append(d.facts, own)
	}
}

// fact returns an operation's fact in the form that a sink has.
func (l *ledger) fact(id OperationID, f *ownFact) fact {
	return fact{name: f.name, key: f.key, operation: id, source: &l.source, at: f.at, more: f.more}
}

// dropOldest drops the oldest fact that an operation raised. The sink still keeps it for
// gates, as when its window is full.
func (l *ledger) dropOldest(o *Operation, d *details) {
	var oldest ownFact
	if o.first != nil {
		oldest, o.first = *o.first, nil
	} else {
		oldest, d.facts[d.from] = d.facts[d.from], oldest
		if d.from++; d.from == maxFacts/4 { // rarely, because this moves the others
			d.facts, d.from = slices.Delete(d.facts, 0, d.from), 0
		}
	}
	l.leave(o.id, &oldest)
	l.sink.pushOut(oldest.seq)
	d.dropped = true
	l.dropped++
}

// each visits the facts of operations that matter to gates.
func (l *ledger) each(p pattern, _ int, visit func(seq uint64, f *fact) (older bool)) {
	for o := range l.gated {
		l.eachOf(o, func(seq uint64, f *fact) bool { return !p.matches(f.name) || visit(seq, f) })
	}
}

// eachOf visits all facts of an operation: raised facts, newest first, until visit returns
// false; then held facts.
func (l *ledger) eachOf(o *Operation, visit func(seq uint64, f *fact) (older bool)) {
	raised := func(own *ownFact) bool {
		f := l.fact(o.id, own)
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

// leave removes a fact of an operation. mu is held.
func (l *ledger) leave(id OperationID, own *ownFact) {
	f := l.fact(id, own)
	l.drop(&f, own.seq)
}

func (l *ledger) drop(f *fact, seq uint64) {
	if l.asked {
		l.present.remove(f.name)
	}
	l.names.leave(f, seq)
}

// hold records a held fact of o, here and on the sink, if o is running or suspended. Mu is
// the engine's; while it is held, o cannot end.
func (l *ledger) hold(o *Operation, mu sync.Locker, name string, lease time.Duration) (release func()) {
	s := l.sink
	n := note{name: name}
	o.addCause(&n)
	if !s.admits(&n, o.id) {
		return func() {}
	}
	mu.Lock()
	if o.status&(StatusRunning|StatusSuspended) == 0 {
		mu.Unlock()
		return func() {}
	}
	shared := s.enter(n.name, l.onSignal)
	if shared == nil {
		mu.Unlock()
		s.block(&n, o.id, BlockedDepth)
		return func() {}
	}
	o.marks |= holding
	own := fact{name: n.name, key: o.key, operation: o.id, source: &l.source, more: &more{held: true}}
	h := s.hold(own, lease)
	h.owner = o
	l.add(o, &h.fact, h.seq, h)
	signal, subs := h.fact.signal(h.seq, l.names.clock), shared.subs
	mu.Unlock()
	s.unlock()
	l.deliver(&signal, subs)
	return func() { s.release(h) }
}

// releaseAll ends the held facts of o, which has finished and so can hold no more. It
// unlocks now and then, so that others get the lock.
func (l *ledger) releaseAll(o *Operation, after *effects) {
	s := l.sink
	s.lockAt(s.names.clock.now())
	holds := o.rest.Load().holds
	seqs := slices.Collect(maps.Keys(holds))
	s.mu.Unlock()
	slices.Sort(seqs)
	for some := range slices.Chunk(seqs, chunk/16) {
		s.mu.Lock()
		for _, seq := range some {
			if h := holds[seq]; h != nil {
				s.releaseLocked(h)
			}
		}
		after.take(&s.after)
		s.mu.Unlock()
	}
}

// endLeases ends held facts whose lease is over. mu is held. It wakes nothing: see
// gate.leave.
func (l *ledger) endLeases() {
	if s := l.sink; s.lease != never {
		s.expireLeases(s.names.clock.now())
		s.after.clear()
	}
}

// retract takes back the facts of o that match selects, newest first; held facts are
// released, not retracted. It returns their number.
func (l *ledger) retract(o *Operation, by string, match func(name string) bool) int {
	var gone []Signal
	s := l.sink
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
		f := l.fact(o.id, own)
		gone = append(gone, f.signal(own.seq, l.names.clock))
		l.names.retracted(&f, own.seq)
		l.drop(&f, own.seq)
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
			gone = append(gone, f.fact.signal(f.seq, l.names.clock))
			for _, m := range l.names.of(f.fact.name).monitors {
				m.remove(f.seq, &f.fact)
			}
			s.remove(f.seq, true)
		}
	}
	s.unlock()
	slices.Reverse(gone) // handlers are called in the order in which the signals were raised
	l.tellRetracted(gone, by)
	return len(gone)
}

func (l *ledger) tellRetracted(gone []Signal, by string) {
	each(gone, func(signal Signal) {
		defer l.sink.tellRetracted(signal, by) // runs even if a function of OnRetract ends the goroutine
		l.sink.tell(l.onRetract, signal, by, &l.panics)
	})
}

// keptOf lists the facts that the sink keeps for gates and the operation no longer shows.
// mu is held.
func (s *Sink) keptOf(o *Operation, d *details) (kept []keptFact) {
	if d.dropped {
		for _, k := range s.kept {
			if k.fact.operation == o.id {
				kept = append(kept, k)
			}
		}
	}
	return kept
}

// evictSignals takes the signals of an evicted operation from the coordinator and,
// unless keep is set, from the sink. engine.mu is held, so that the window and the
// signals of its operations agree at every instant. It returns the facts that the
// operation had. From now on the operation's key does not change. Spent are facts of an
// earlier operation, of which the memory may be used again.
func (l *ledger) evictSignals(o *Operation, keep bool, spent ownFacts, after *effects) ownFacts {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	defer after.take(&l.sink.after)
	var list []ownFact
	if d := spent.rest; d != nil && cap(d.facts) > 0 { // firstOnly and evicted are never changed
		list, d.facts, d.from = d.facts, nil, 0
	}
	l.spares.put(spent.first, list)
	last := o.ownFacts()
	o.first = nil
	o.rest.Store(evicted)
	last.raised(func(own *ownFact) {
		l.leave(o.id, own)
		if keep && l.sink.ring.contains(own.seq) {
			l.sink.inherit(own.seq, l.source)
		} else {
			l.sink.remove(own.seq, false)
		}
	})
	delete(l.gated, o)
	d := last.rest
	if d == firstOnly {
		return last
	}
	d.values = nil
	for _, k := range l.sink.keptOf(o, d) {
		l.sink.remove(k.seq, false)
	}
	switch { // in the memory of a suspension is a wait that refers to the operation
	case d.suspension == nil:
	case last.first == nil && !d.dropped && len(d.facts)+len(d.holds) == 0:
		last.rest = nil
	default:
		rest := *d
		rest.suspension, last.rest = nil, &rest
	}
	return last
}

// signals returns the facts of an operation as signals, oldest first. mu is held.
func (l *ledger) signals(facts ownFacts) (signals []Signal) {
	l.endLeases()
	d := facts.rest
	if d == nil {
		return nil
	}
	if n := len(d.facts) - d.from + len(d.holds); n > 0 {
		signals = make([]Signal, 0, 1+n)
	}
	facts.raised(func(own *ownFact) {
		f := l.fact(facts.id, own)
		signals = append(signals, f.signal(own.seq, l.names.clock))
	})
	for seq, h := range d.holds {
		signals = append(signals, h.fact.signal(seq, l.names.clock))
	}
	if len(d.holds) > 0 {
		slices.SortFunc(signals, asRaised)
	}
	return signals
}

func (l *ledger) count(pattern string) int {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	l.endLeases()
	n, _ := l.names.count(pattern)
	return n
}

// countName is part of tally.
func (l *ledger) countName(name string) int { return l.present.names[name] }

// countMatching is part of tally.
func (l *ledger) countMatching(p pattern) (n int) {
	for name, count := range l.present.names {
		if p.matches(name) {
			n += count
		}
	}
	return n
}
