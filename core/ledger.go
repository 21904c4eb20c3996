package core

import (
	"slices"
	"sync/atomic"
	"time"
)

// ledger is a coordinator's own view of the signals its operations raised, which
// lasts exactly as long as the operations are in its window. The facts themselves
// are with the operations; the ledger counts their names and tells those who
// watch them. Every fact goes to the sink as well, under the same Seq, and the
// sink's lock guards both: an operation's signal enters and leaves both at once.
type ledger struct {
	sink   *Sink
	source string // name of the coordinator
	panics atomic.Uint64

	onSignal  []*subscription
	onRetract []*hook[Retraction]

	mu      *spinMutex // the sink's; taken after engine.mu
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
	l.sink, l.source, l.mu = sink, source, &sink.mu
	l.names.mu, l.names.clock = l.mu, sink.names.clock
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
	if (n.name == "" || n.cause != nil) && !s.admits(&n, o.id) {
		return false
	}
	var after aftermath
	now := l.names.clock.now()
	shared := s.enter(n.name, l.onSignal)
	if shared == nil {
		s.block(&n, o.id, BlockedDepth)
		return false
	}
	d := o.details()
	if d == departed {
		s.names.release(shared)
		l.mu.Unlock()
		return false
	}
	if n.key == "" {
		n.key = o.key
	}
	f, seq := s.record(shared, &n, o.id, &l.source, now, &after)
	l.add(d, f, seq, 0, &after)
	subs := shared.route.subs
	var signal Signal
	if len(subs) > 0 || l.onSignal != nil {
		signal = f.signal(seq, l.names.clock)
		if l.onSignal == nil {
			enterFirst(subs)
		}
	}
	l.mu.Unlock()
	after.settle()
	deliver(l.onSignal, false, &signal, &l.panics)
	deliver(subs, l.onSignal == nil, &signal, &s.panics)
	return true
}

// add enters a fact that the sink has recorded. Each knows its name by an entry of
// its own.
func (l *ledger) add(d *details, f *fact, seq uint64, until int64, after *aftermath) {
	own := *f
	own.name = l.names.recall(f.name.text)
	if own.name == nil {
		own.name = l.names.intern(f.name.text)
	}
	l.names.enter(own.name)
	if r := own.name.route; len(r.gates)+len(r.monitors) > 0 {
		r.notice(&own, seq, until, l.names.clock, after)
	}
	if len(d.facts) == maxFacts {
		l.drop(&d.facts[0], after)
		l.sink.removeOwned(d.facts[0].seq, f.operation, false, after)
		d.facts = slices.Delete(d.facts, 0, 1)
		l.dropped++
	}
	d.facts = append(d.facts, seqFact{seq, own})
}

// drop stops counting a fact; monitors are not told.
func (l *ledger) drop(f *seqFact, after *aftermath) {
	l.names.refresh(f.fact.name)
	for _, g := range f.fact.name.route.gates {
		g.removeSeq(f.seq, after)
	}
	l.names.leave(f.fact.name, after)
}

// hold records a held fact of o, here and on the sink, if o is running.
func (l *ledger) hold(o *Operation, name string, lease time.Duration) (release func()) {
	s := l.sink
	n := note{name: name}
	if !s.admits(&n, o.id) {
		return func() {}
	}
	var after aftermath
	o.engine.mu.Lock() // so that it does not finish meanwhile
	if o.status != StatusRunning {
		o.engine.mu.Unlock()
		return func() {}
	}
	shared := s.enter(n.name, l.onSignal)
	if shared == nil {
		o.engine.mu.Unlock()
		s.block(&n, o.id, BlockedDepth)
		return func() {}
	}
	o.marks |= holding
	n.key = o.key
	h := s.hold(shared, &n, o.id, &l.source, lease, &after)
	d := o.details()
	l.add(d, &h.fact, h.seq, h.until, &after)
	d.holds = append(d.holds, h)
	l.held = append(l.held, &ownHold{h, o})
	if h.until != 0 && (l.lease == 0 || h.until < l.lease) {
		l.lease = h.until
	}
	signal, subs := h.fact.signal(h.seq, l.names.clock), shared.route.subs
	l.mu.Unlock()
	o.engine.mu.Unlock()
	after.settle()
	deliver(l.onSignal, false, &signal, &l.panics)
	deliver(subs, false, &signal, &s.panics)
	return func() { l.release(o, h) }
}

// release ends a held fact of o.
func (l *ledger) release(o *Operation, h *heldFact) {
	var after aftermath
	l.sink.lockFresh(&after)
	l.expireLeases()
	l.releaseLocked(o, h, &after)
	l.mu.Unlock()
	after.settle()
	l.tellRetracted(after.gone, "")
}

func (l *ledger) releaseLocked(o *Operation, h *heldFact, after *aftermath) {
	l.held = slices.DeleteFunc(l.held, func(have *ownHold) bool { return have.heldFact == h })
	if d := o.rest.Load(); d != departed {
		d.holds = without(d.holds, h)
		l.removeOwn(d, h.seq, true, after)
	}
	signal := h.fact.signal(h.seq, l.names.clock)
	if l.sink.releaseLocked(h, after) {
		after.gone = append(after.gone, signal)
	}
}

// releaseAll ends what o holds, when it has finished.
func (l *ledger) releaseAll(o *Operation, after *aftermath) {
	l.sink.lockFresh(after)
	defer l.mu.Unlock()
	l.expireLeases()
	if d := o.rest.Load(); d != departed {
		for _, h := range d.holds { // replaced, not changed
			l.releaseLocked(o, h, after)
		}
	}
}

// removeOwn takes a fact out of the list of its operation and stops counting it.
func (l *ledger) removeOwn(d *details, seq uint64, retracted bool, after *aftermath) {
	for i := len(d.facts) - 1; i >= 0; i-- {
		if f := &d.facts[i]; f.seq == seq {
			if retracted {
				l.names.refresh(f.fact.name)
				for _, m := range f.fact.name.route.monitors {
					m.remove(seq, &f.fact)
				}
			}
			l.drop(f, after)
			d.facts = slices.Delete(d.facts, i, i+1)
			return
		}
	}
}

// expireLeases ends held facts whose lease is over. mu is held. It wakes nobody:
// the engine, which alone heeds the ledger, has set its alarm to that time.
func (l *ledger) expireLeases() {
	if l.lease == 0 {
		return
	}
	var nobody aftermath
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
				l.removeOwn(d, h.seq, false, &nobody)
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
	s.lockFresh(&after)
	l.expireLeases()
	d := o.rest.Load()
	if d == nil || d == departed {
		l.mu.Unlock()
		after.settle()
		return 0
	}
	for i := len(d.facts) - 1; i >= 0; i-- {
		f := d.facts[i]
		if f.fact.more != nil && f.fact.more.held || !match(f.fact.name.text) {
			continue
		}
		gone = append(gone, f.fact.signal(f.seq, l.names.clock))
		l.removeOwn(d, f.seq, true, &after)
		s.removeOwned(f.seq, o.id, true, &after)
	}
	l.mu.Unlock()
	after.settle()
	slices.Reverse(gone) // tell in the order they were raised
	l.tellRetracted(gone, by)
	return len(gone)
}

func (l *ledger) tellRetracted(gone []Signal, by string) {
	for _, signal := range gone {
		l.sink.tell(l.onRetract, signal, by, &l.panics)
		l.sink.tellRetracted(signal, by)
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
			m.remove(seq, s.ring.at(seq))
		}
	}
	s.remove(seq, after)
}

// bury ends the life of an evicted operation: its signals leave the coordinator
// and, unless it leaves them there, the sink. engine.mu is held, so that the window and what is to be seen of its
// operations agree at every instant. It returns what the operation had, without the
// values; from now on its key does not change.
func (l *ledger) bury(o *Operation, leave bool, after *aftermath) *details {
	if o.rest.CompareAndSwap(nil, departed) {
		return nil // had never anything to show
	}
	l.mu.Lock()
	last := o.rest.Swap(departed)
	last.values = nil
	for i := range last.facts {
		seq := last.facts[i].seq
		l.drop(&last.facts[i], after)
		if leave && l.sink.ring.contains(seq) {
			l.sink.inherit(seq, l.source, after)
		} else {
			l.sink.removeOwned(seq, o.id, false, after)
		}
	}
	l.mu.Unlock()
	return last
}

// inherit makes the fact of an operation the sink's own, like one that was raised
// on it directly, but what was waiting for the fact to go waits no more. mu is held.
func (s *Sink) inherit(seq uint64, source string, after *aftermath) {
	f := s.ring.at(seq)
	s.names.refresh(f.name)
	for _, g := range f.name.route.gates {
		g.removeSeq(seq, after)
	}
	var m more
	if f.more != nil {
		m = *f.more
	}
	m.operation, m.source = f.operation, source
	f.more, f.operation, f.source = &m, 0, nil
}

// signals shows the facts in d. mu is held.
func (l *ledger) signals(d *details) []Signal {
	l.expireLeases()
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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expireLeases()
	return l.names.count(pattern)
}
