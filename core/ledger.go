package core

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ledger is a coordinator's own view of the signals its operations raised, which
// lasts exactly as long as the operations are in its window. The facts themselves
// are with the operations; the ledger counts their names and tells those who
// watch them. Every fact goes to the sink as well, under the same Seq.
//
// Locks are taken in the order engine.mu, ledger.mu, sink.mu.
type ledger struct {
	sink   *Sink
	source string // name of the coordinator
	panics atomic.Uint64

	onSignal  []*subscription
	onRetract []*hook[Retraction]

	mu      sync.Mutex
	names   names
	held    []*ownHold
	lease   int64 // when the first lease of held ends; 0: never
	dropped uint64
}

// ownHold is a held fact of an operation.
type ownHold struct {
	*heldFact
	owner *Operation
}

func (l *ledger) init(sink *Sink, source string, opts *Options) {
	l.sink, l.source = sink, source
	l.names.mu, l.names.clock = &l.mu, sink.names.clock
	if opts.OnSignal != nil {
		l.onSignal = []*subscription{newHook(pattern{}, opts.OnSignal)}
	}
	if opts.OnRetract != nil {
		l.onRetract = []*hook[Retraction]{newHook(pattern{}, opts.OnRetract)}
	}
}

// raise records a signal of o, here and on the sink.
func (l *ledger) raise(o *Operation, n note) bool {
	s := l.sink
	if (n.name == "" || n.cause != nil) && !s.admits(&n, o.id) {
		return false
	}
	var after aftermath
	now := l.names.clock.now()
	l.mu.Lock()
	d := o.details()
	if d == departed {
		l.mu.Unlock()
		return false
	}
	if n.key == "" {
		n.key = o.key
	}
	shared := s.enter(n.name)
	if shared == nil {
		l.mu.Unlock()
		s.block(&n, o.id, BlockedDepth)
		return false
	}
	f, seq := s.record(shared, &n, o.id, &l.source, now, &after)
	own := *f
	subs := shared.route.subs
	enterAll(subs)
	s.mu.Unlock()

	l.add(d, &own, seq, 0, &after)
	var signal Signal
	if len(subs) > 0 || l.onSignal != nil {
		signal = own.signal(seq, l.names.clock)
	}
	l.mu.Unlock()
	after.settle()
	deliver(l.onSignal, signal, &l.panics)
	deliver(subs, signal, &s.panics)
	return true
}

// add enters a fact that the sink has recorded. Both know its name by entries of
// their own.
func (l *ledger) add(d *details, own *fact, seq uint64, until int64, after *aftermath) {
	own.name = l.names.intern(own.name.text)
	l.names.enter(own.name)
	own.name.route.notice(own, seq, until, l.names.clock, after)
	if len(d.facts) == maxFacts {
		l.drop(&d.facts[0], after)
		d.facts = slices.Delete(d.facts, 0, 1)
		l.dropped++
	}
	d.facts = append(d.facts, seqFact{seq, *own})
}

// drop stops counting a fact; monitors are not told.
func (l *ledger) drop(f *seqFact, after *aftermath) {
	l.names.refresh(f.fact.name)
	for _, g := range f.fact.name.route.gates {
		g.removeSeq(f.seq, after)
	}
	l.names.leave(f.fact.name, after)
}

// hold records a held fact of o, here and on the sink.
func (l *ledger) hold(o *Operation, name string, lease time.Duration) (release func()) {
	s := l.sink
	n := note{name: name}
	if !s.admits(&n, o.id) {
		return func() {}
	}
	var after aftermath
	l.mu.Lock()
	n.key = o.key
	d := o.details()
	if d == departed || d.settled {
		l.mu.Unlock()
		return func() {}
	}
	shared := s.enter(n.name)
	if shared == nil {
		l.mu.Unlock()
		s.block(&n, o.id, BlockedDepth)
		return func() {}
	}
	h := s.hold(shared, &n, o.id, &l.source, lease, &after)
	own, subs := h.fact, shared.route.subs
	enterAll(subs)
	s.mu.Unlock()

	l.add(d, &own, h.seq, h.until, &after)
	d.holds = append(d.holds, h)
	l.held = append(l.held, &ownHold{h, o})
	if h.until != 0 && (l.lease == 0 || h.until < l.lease) {
		l.lease = h.until
	}
	signal := own.signal(h.seq, l.names.clock)
	l.mu.Unlock()
	after.settle()
	deliver(l.onSignal, signal, &l.panics)
	deliver(subs, signal, &s.panics)
	return func() { l.release(o, []*heldFact{h}) }
}

// release ends held facts of o.
func (l *ledger) release(o *Operation, holds []*heldFact) {
	var after aftermath
	var gone []Signal
	l.mu.Lock()
	d := o.rest.Load()
	for _, h := range holds {
		if i := slices.IndexFunc(l.held, func(have *ownHold) bool { return have.heldFact == h }); i >= 0 {
			l.held = slices.Delete(l.held, i, i+1)
			d.holds = without(d.holds, h)
			l.removeOwn(d, h.seq, true, &after)
		}
		l.sink.mu.Lock()
		if l.sink.releaseLocked(h, &after) {
			gone = append(gone, h.fact.signal(h.seq, l.names.clock))
		}
		l.sink.mu.Unlock()
	}
	l.mu.Unlock()
	after.settle()
	l.tellRetracted(gone, "")
}

// settle releases what o holds when it finishes.
func (l *ledger) settle(o *Operation) {
	d := o.rest.Load()
	if d == nil {
		return
	}
	l.mu.Lock()
	d.settled = true
	holds := slices.Clone(d.holds)
	l.mu.Unlock()
	if len(holds) > 0 {
		l.release(o, holds)
	}
}

// removeOwn takes a fact out of the list of its operation and stops counting it.
func (l *ledger) removeOwn(d *details, seq uint64, retracted bool, after *aftermath) {
	for i := len(d.facts) - 1; i >= 0; i-- {
		if f := &d.facts[i]; f.seq == seq {
			if retracted {
				l.names.refresh(f.fact.name)
				for _, m := range f.fact.name.route.monitors {
					m.remove(seq)
				}
			}
			l.drop(f, after)
			d.facts = slices.Delete(d.facts, i, i+1)
			return
		}
	}
}

// expireLeases ends held facts whose lease is over. mu is held.
func (l *ledger) expireLeases(after *aftermath) {
	if l.lease == 0 {
		return
	}
	now := l.names.clock.now()
	if now < l.lease {
		return
	}
	l.lease = 0
	l.held = slices.DeleteFunc(l.held, func(h *ownHold) bool {
		switch {
		case h.until == 0:
		case h.until <= now:
			if d := h.owner.rest.Load(); d != nil && d != departed {
				d.holds = without(d.holds, h.heldFact)
				l.removeOwn(d, h.seq, false, after)
			}
			return true
		case l.lease == 0 || h.until < l.lease:
			l.lease = h.until
		}
		return false
	})
}

// retract takes back the facts of o that match says, newest first; held facts are
// released, not retracted. It returns how many there were.
func (l *ledger) retract(o *Operation, by string, match func(name string) bool) int {
	var after aftermath
	var gone []Signal
	s := l.sink
	l.mu.Lock()
	d := o.rest.Load()
	if d == nil || d == departed {
		l.mu.Unlock()
		return 0
	}
	for i := len(d.facts) - 1; i >= 0; i-- {
		f := d.facts[i]
		if f.fact.more != nil && f.fact.more.held || !match(f.fact.name.text) {
			continue
		}
		gone = append(gone, f.fact.signal(f.seq, l.names.clock))
		l.removeOwn(d, f.seq, true, &after)
		s.mu.Lock()
		s.removeOwned(f.seq, o.id, true, &after)
		s.mu.Unlock()
	}
	l.mu.Unlock()
	after.settle()
	slices.Reverse(gone) // tell in the order they were raised
	l.tellRetracted(gone, by)
	return len(gone)
}

func (l *ledger) tellRetracted(gone []Signal, by string) {
	if len(gone) == 0 {
		return
	}
	for _, signal := range gone {
		r := Retraction{Signal: signal, Time: l.names.clock.wall(l.names.clock.now()), Pattern: by}
		deliver(l.onRetract, r, &l.panics)
		l.sink.tell(signal, by)
	}
}

// removeOwned removes a fact of an operation, which the window may have evicted
// already. mu is held.
func (s *Sink) removeOwned(seq uint64, owner OperationID, retracted bool, after *aftermath) {
	if !s.ring.contains(seq) || s.ring.at(seq).operation != owner {
		for _, g := range s.names.gates {
			g.removeSeq(seq, after)
		}
		return
	}
	if retracted {
		entry := s.ring.at(seq).name
		s.names.refresh(entry)
		for _, m := range entry.route.monitors {
			m.remove(seq)
		}
	}
	s.remove(seq, after)
}

// bury ends the life of an evicted operation: its signals leave the coordinator
// and the sink. It returns them, for the echo and for those who want to know.
func (l *ledger) bury(o *Operation) (last *details) {
	if o.rest.CompareAndSwap(nil, departed) {
		return nil // had never anything to show
	}
	var after aftermath
	l.mu.Lock()
	last = o.rest.Swap(departed)
	if last == nil || last == departed {
		l.mu.Unlock()
		return nil
	}
	for i := range last.facts {
		l.drop(&last.facts[i], &after)
	}
	l.sink.mu.Lock()
	for i := range last.facts {
		l.sink.removeOwned(last.facts[i].seq, o.id, false, &after)
	}
	l.sink.mu.Unlock()
	l.mu.Unlock()
	after.settle()
	return last
}

// signals shows the facts in d. mu is held.
func (l *ledger) signals(d *details) []Signal {
	if d == nil || len(d.facts) == 0 {
		return nil
	}
	signals := make([]Signal, len(d.facts))
	for i := range d.facts {
		signals[i] = d.facts[i].fact.signal(d.facts[i].seq, l.names.clock)
	}
	return signals
}

func (l *ledger) count(pattern string) int {
	var after aftermath
	l.mu.Lock()
	l.expireLeases(&after)
	n := l.names.count(pattern)
	l.mu.Unlock()
	after.settle()
	return n
}
