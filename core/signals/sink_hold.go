package signals

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
	"github.com/ephemeralgo/ephemeral/core/internal/lists"
)

// heldFact is a fact that is kept outside the window.
type heldFact struct {
	seqFact
	until int64  // never: until it is released
	rank  int    // in leases
	owner *Owner // nil: none
	scope *Scope // of the owner

	copies []heldCopy // elsewhere
	by     *forward   // for a copy: the forward that has made it
	on     *Sink      // for a copy: the sink that it is on
}

// heldCopy is a copy of a held fact, on another sink or behind a Relay.
type heldCopy interface {
	hook.Ending
	madeBy() *forward
}

func (h *heldFact) madeBy() *forward { return h.by }

// Hold raises a held signal. It stands for a condition, such as "update.in-progress", and
// stays until release is called or, if lease is positive, until the lease ends. It does
// not age, newer signals do not push it out, and MaxDefer in core.Options does not limit how
// long it defers items. So it is the best signal for DeferOn and
// CancelOn. When it comes, it may push out one older raised signal. The number
// of held signals is not bounded. Handlers and monitors get a held signal like any
// signal, and its release as a retraction.
//
// Two held signals of the same name and key are two signals: each ends by itself. To renew a
// lease, hold the signal again, and then release the older one: no gate opens in between.
// Handlers get the newer one as well. [Sink.WaitGone] waits until no such signal is left, also
// if a lease ends.
//
// Release may be called many times, from anywhere. In the cases in which [Sink.Raise]
// returns false, nothing is held, and release does nothing.
//
//ephemeral:raises {name}
//ephemeral:release {lease}
func (s *Sink) Hold(name, key string, lease time.Duration) (release func()) {
	return s.holdSignal(Signal{Name: name, Key: key}, lease)
}

func (s *Sink) holdSignal(signal Signal, lease time.Duration) (release func()) {
	signal.Held = true
	h, _ := s.receive(passage{signal: signal}, lease, nil)
	if h == nil {
		return func() {}
	}
	return func() { s.release(h) }
}

// hold records f as a held fact from now on. The lock is held.
func (s *Sink) hold(f fact, lease time.Duration) *heldFact {
	r := s.names.of(f.name)
	f.at = s.advance(r, s.names.clock.Now())
	if s.ring.full() {
		s.evict()
	}
	h := &heldFact{seqFact: seqFact{s.ring.head, f}, until: clock.Never}
	*s.ring.push() = fact{at: f.at} // the Seq of a held fact is a gap in the window
	if lease > 0 {
		h.until = clock.Later(f.at, int64(lease))
		s.fresh.Store(0)
	}
	if h.until != clock.Never {
		heap.Push(&s.leases, h)
		s.lease = s.leases.next()
	}
	lists.Put(&s.held, h.seq, h)
	s.standing.add(f.name)
	s.raised++
	s.names.entered(r, &h.fact, h.seq)
	return h
}

func (s *Sink) release(h *heldFact) {
	s.lockFresh()
	s.releaseLocked(h)
	s.unlock()
}

// releaseLocked releases h, if it is still held.
func (s *Sink) releaseLocked(h *heldFact) {
	if s.held[h.seq] == nil {
		return
	}
	if h.owner != nil || s.retractions.Len() > 0 {
		s.after.Tells = append(s.after.Tells, released{s, h.scope, h.fact.signal(h.seq, s.names.clock)})
	}
	for _, c := range h.copies {
		s.after.Copies = append(s.after.Copies, c)
	}
	s.unhold(h, true)
}

// released is a held fact whose release is to be told to subscribers.
type released struct {
	on     *Sink
	scope  *Scope // nil: none
	signal Signal
}

func (r released) Tell() {
	if r.scope != nil {
		r.scope.tellRetracted([]Signal{r.signal}, "")
		return
	}
	r.on.tellRetracted(r.signal, "")
}

func (s *Sink) unhold(h *heldFact, released bool) {
	h.copies = nil
	if delete(s.held, h.seq); len(s.held) == 0 {
		s.held = nil // a Go map never shrinks
	}
	if h.until != clock.Never {
		heap.Remove(&s.leases, h.rank)
		s.lease = s.leases.next()
	}
	s.standing.remove(h.fact.name)
	if h.owner != nil {
		h.scope.unhold(h.owner, h, released)
	}
	if released {
		s.names.retracted(&h.fact, h.seq)
	}
	s.names.leave(&h.fact, h.seq)
}

func (s *Sink) expireLeases(now int64) {
	for s.lease <= now {
		s.unhold(s.leases[0], false) // copies have the same lease
		s.expired++
	}
}

// leases is a heap of the held facts with a lease: the first ends first.
type leases []*heldFact

// next returns when the first lease ends, or never.
func (l leases) next() int64 {
	if len(l) == 0 {
		return clock.Never
	}
	return l[0].until
}

func (l leases) Len() int { return len(l) }
func (l leases) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(l[i].until, l[j].until), cmp.Compare(l[i].seq, l[j].seq)) < 0
}

func (l leases) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].rank, l[j].rank = i, j
}

func (l *leases) Push(h any) {
	one := h.(*heldFact)
	one.rank = len(*l)
	*l = append(*l, one)
}

func (l *leases) Pop() any {
	last := len(*l) - 1
	h := (*l)[last]
	(*l)[last] = nil
	if *l = (*l)[:last]; last == 0 {
		*l = nil
	}
	return h
}

// End releases a copy.
func (h *heldFact) End(a *hook.Effects) {
	s := h.on
	s.lockAt(s.names.clock.Now())
	s.releaseLocked(h)
	a.Take(&s.after)
	s.mu.Unlock()
}
