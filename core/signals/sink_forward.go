package signals

import (
	"maps"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
)

// Forward copies signals from s to another sink: every signal that is raised on s from now
// on, directly or by an operation, and whose name matches pattern. Signals that are on s
// already, held or raised, are not copied. Forward raises the copy on the raiser's
// goroutine, after the handlers of s and before Raise returns. So the signals of one
// goroutine keep their order. Several forwards run in the order in which they were made. No
// lock is held. While a handler of the other sink blocks, the raiser waits.
//
// The copy keeps name, key, payload, operation, source and causes. It gets a Time and a
// Seq of the other sink, and ages and is evicted there. If the signal is retracted on s,
// the copy stays; [Sink.Retract] on the other sink takes it back. To forward a condition
// that ends, hold it. The copy of a held signal is held, with the rest of its lease, and
// is released after the release on s, on the same goroutine. If the end of an operation
// releases the signal, Flush may return before the copy is released; see [Sink.WaitGone].
//
// Sinks may forward to each other, even through other sinks: a signal gets to each sink
// only once. Leaf signals of s, and signals that [Sink.Restore] puts back, are not
// forwarded. If the [Propagation] of the other sink blocks a signal, the [SinkStats] of
// that sink count it.
//
// For the coordinators on s, a forward is a handler with the same pattern: a forward of
// "operation.*" makes them raise [SignalStarted] and [SignalStopped], a forward of "*" does
// not. A forwarded signal costs as much as a few raises; other signals cost nothing.
//
// Cancel waits for copies that are under way, but not inside a handler. It releases the
// signals that this forward holds on the other sink. After cancel, nothing is forwarded.
// Forward panics if to is nil or s.
//
//ephemeral:pattern {pattern}
func (s *Sink) Forward(to *Sink, pattern string) (cancel func()) {
	need(to != nil && to != s, "Forward needs another sink to forward to")
	s.mu.Lock()
	cancel = s.connect(pattern, func(f *forward, p passage) { s.carry(f, to, p) })
	s.mu.Unlock()
	return cancel
}

// connect makes a forward. The lock is held.
func (s *Sink) connect(pattern string, carry func(*forward, passage)) (cancel func()) {
	var f *forward
	f = hook.New(glob.Compile(pattern), func(p passage) { carry(f, p) })
	cut := f.Join(&s.mu, watching[*forward]{&s.names.routes, &s.names.forwards})
	return func() {
		cut()
		s.releaseCopies(f)
	}
}

// forwarder makes the handler for the forwards of a name. There is one handler, called last, so
// that the forwards share their knowledge about a signal.
func (s *Sink) forwarder(forwards []*forward) *subscription {
	return hook.Last(func(signal Signal) { s.send(forwards, passage{signal, &journey{&s.names}}) })
}

// send passes a signal of s to forwards.
func (s *Sink) send(forwards []*forward, p passage) {
	if s.rules.leaf.Matches(p.signal.Name) {
		return
	}
	for i := range forwards {
		hook.Deliver(forwards[i:i+1], false, &p, &s.panics)
	}
}

// carry copies a signal of s to the sink of f.
func (s *Sink) carry(f *forward, to *Sink, p passage) {
	if !p.been.visits(&to.names) {
		return
	}
	if !p.signal.Held {
		to.receive(p, 0, nil)
		return
	}
	if lease, standing := s.leaseLeft(p.signal.Seq); standing {
		to.receive(p, lease, func(h *heldFact) (stays bool) {
			h.by, h.on = f, to
			return s.link(p.signal.Seq, h)
		})
	}
}

// receive records a signal that comes from another sink or is to be held, calls the handlers
// and sends it on. It returns the held fact, if there is one, and whether there is a fact.
// Before its handlers are called, a copy is linked to the original. If the original has gone
// already, the copy does not stay.
func (s *Sink) receive(p passage, lease time.Duration, link func(*heldFact) (stays bool)) (held *heldFact, recorded bool) {
	s.prepareZero()
	from := &p.signal
	n := Note{Name: from.Name, Key: from.Key, Payload: from.payload, cause: from.cause, copied: from}
	if !s.admits(&n, from.Operation) {
		return nil, false
	}
	r := s.enter(n.Name, nil)
	if r == nil {
		s.block(&n, from.Operation, BlockedDepth)
		return nil, false
	}
	var signal Signal
	if from.Held {
		held = s.hold(fact{name: n.Name, key: n.Key, more: n.more()}, lease)
		signal = held.fact.signal(held.seq, s.names.clock)
	} else {
		f, seq := s.record(r, &n, 0, nil, s.names.clock.Now())
		signal = f.signal(seq, s.names.clock)
	}
	subs, forwards := r.subs, []*forward(nil)
	if p.been != nil {
		subs, forwards = r.handlers(), r.forwards
	}
	s.unlock()
	if link != nil && !link(held) {
		defer s.release(held)
	}
	hook.Deliver(subs, false, &signal, &s.panics)
	s.send(forwards, passage{signal, p.been})
	return held, true
}

// leaseLeft returns how long the held fact of that Seq will stand; 0 means until it is
// released. Standing says whether there is such a fact.
func (s *Sink) leaseLeft(seq uint64) (left time.Duration, standing bool) {
	now := s.lockFresh()
	h := s.held[seq]
	if h != nil && h.until != clock.Never {
		left = time.Duration(h.until - now)
	}
	s.unlock()
	return left, h != nil
}

// link makes c end with the held fact of that Seq, unless that fact or the forward has
// ended already.
func (s *Sink) link(seq uint64, c heldCopy) (linked bool) {
	s.lockFresh()
	h := s.held[seq]
	if linked = h != nil && c.madeBy().Cancelled.Load() == 0; linked {
		h.copies = append(h.copies, c)
	}
	s.unlock()
	return linked
}

// releaseCopies releases the copies that f has made and that are still held.
func (s *Sink) releaseCopies(f *forward) {
	s.mu.Lock()
	for _, seq := range slices.Sorted(maps.Keys(s.held)) {
		for _, c := range s.held[seq].copies {
			if c.madeBy() == f {
				s.after.Copies = append(s.after.Copies, c)
			}
		}
	}
	s.unlock()
}
