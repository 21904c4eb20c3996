package signals

import (
	"cmp"
	"slices"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
)

// keptFact is a fact that has been pushed out of the window and that gates keep.
type keptFact struct {
	seqFact
	gates int // how many gates keep it; it goes with the last
}

// enter locks the sink and returns the route of that name. If the handlers of the name, or those
// in own, are nested too deep, it unlocks the sink and returns nil.
func (s *Sink) enter(name string, own []*subscription) *route {
	s.mu.Lock()
	r := s.names.of(name)
	if !hook.Crowded(r.subs) && !hook.Crowded(own) {
		return r
	}
	return s.enterCrowd(name, own)
}

// record appends a fact to the window. The lock is held.
func (s *Sink) record(r *route, n *Note, operation OperationID, source *string, now int64) (*fact, uint64) {
	now = s.advance(r, now)
	f, seq := s.place()
	f.name, f.key, f.operation, f.source, f.at, f.more = n.Name, n.Key, operation, source, now, nil
	if n.Payload != nil || n.cause != nil || n.copied != nil {
		f.more = n.more()
	}
	s.raised++
	if len(r.counters)+len(r.gates)+len(r.monitors) > 0 {
		s.names.entered(r, f, seq)
	}
	return f, seq
}

// place adds a fact at the end of the window; the caller fills it in. The lock is held.
func (s *Sink) place() (*fact, uint64) {
	r := &s.ring
	if r.full() {
		s.evict()
	}
	seq := r.head
	r.stored++
	return r.push(), seq
}

// advance returns the time for a new fact and lets a few old ones expire, so that
// raising alone keeps the window within its age.
func (s *Sink) advance(r *route, now int64) int64 {
	if now < s.latest {
		now = s.latest // the raiser read the clock before it got the lock
	}
	s.latest = now
	switch {
	case len(r.gates) > 0: // a gate must know whether it was open until now
		for s.expireSome(now, chunk) {
		}
	case s.maxAge != clock.Never:
		s.expireSome(now, 4)
	}
	return now
}

// evict removes the oldest place of the window, a fact or a gap.
func (s *Sink) evict() {
	r := &s.ring
	f := r.at(r.tail)
	r.leave()
	if f.name == "" {
		return
	}
	r.stored--
	s.index.drop(r, r.tail-1)
	if !s.names.leaves() {
		s.evicted++
	} else if route := s.names.of(f.name); len(route.gates)+len(route.counters) == 0 {
		s.evicted++
	} else {
		s.keep(route, f, r.tail-1)
	}
	f.name, f.key, f.source, f.more = "", "", nil, nil // a ring may have more places than its capacity
}

// pushOut evicts a fact from the middle of the window, if it is there.
func (s *Sink) pushOut(seq uint64) {
	if s.ring.contains(seq) {
		f := s.cut(seq)
		s.keep(s.names.of(f.name), &f, seq)
	}
}

// keep evicts a fact that has left the window, unless gates count it: each gate keeps its
// newest maxKept facts.
func (s *Sink) keep(r *route, f *fact, seq uint64) {
	if len(r.gates) == 0 || !f.notices() {
		s.evicted++
		s.names.leaveRoute(r, f, seq)
		return
	}
	i, _ := s.keptAt(seq)
	s.kept = slices.Insert(s.kept, i, keptFact{seqFact{seq, *f}, len(r.gates)})
	for _, g := range r.gates {
		i, _ := slices.BinarySearch(g.kept, seq)
		g.kept = slices.Insert(g.kept, i, seq)
		if len(g.kept) > maxKept {
			s.unkeep(g)
		}
	}
}

// unkeep makes a gate give up its oldest kept fact.
func (s *Sink) unkeep(g *gatePart) {
	seq := g.kept[0]
	g.kept = slices.Delete(g.kept, 0, 1)
	i, _ := s.keptAt(seq)
	if s.kept[i].gates--; s.kept[i].gates == 0 {
		s.evicted++
		s.remove(seq, false)
	}
}

// keptAt returns the index of the fact of that Seq in kept, or where it would be.
func (s *Sink) keptAt(seq uint64) (i int, found bool) {
	return slices.BinarySearchFunc(s.kept, seq, func(k keptFact, seq uint64) int { return cmp.Compare(k.seq, seq) })
}

// find returns the fact of that Seq if it is in the window, held or kept, or nil.
func (s *Sink) find(seq uint64) *fact {
	if s.ring.contains(seq) {
		return s.ring.at(seq)
	}
	if h := s.held[seq]; h != nil {
		return &h.fact
	}
	if i, found := s.keptAt(seq); found {
		return &s.kept[i].fact
	}
	return nil
}

// remove removes a fact, unless it has gone already.
func (s *Sink) remove(seq uint64, retracted bool) {
	if s.find(seq) == nil {
		return
	}
	f := s.cut(seq)
	if retracted {
		s.names.retracted(&f, seq)
	}
	s.names.leave(&f, seq)
}

// cut removes a fact from the kept ones, or from the window, where it leaves a gap.
func (s *Sink) cut(seq uint64) (f fact) {
	if !s.ring.contains(seq) {
		i, _ := s.keptAt(seq)
		f = s.kept[i].fact
		if s.kept = slices.Delete(s.kept, i, i+1); len(s.kept) == 0 {
			s.kept = nil
		}
		return f
	}
	s.index.drop(&s.ring, seq)
	place := s.ring.at(seq)
	f = *place
	*place = fact{at: f.at}
	s.ring.stored--
	return f
}

// expireSome removes up to most places of the window that are too old, and the facts whose
// leases have ended. It reports whether there may be more.
func (s *Sink) expireSome(now int64, most int) (more bool) {
	if s.lease <= now {
		s.expireLeases(now)
	}
	if s.maxAge == clock.Never {
		return false
	}
	for ; most > 0; most-- {
		if len(s.kept) > 0 && s.kept[0].fact.at <= now-s.maxAge {
			s.remove(s.kept[0].seq, false)
			s.expired++
			continue
		}
		if s.ring.tail == s.ring.head {
			return false
		}
		f := s.ring.at(s.ring.tail)
		if f.at > now-s.maxAge {
			return false
		}
		if f.name != "" {
			s.index.drop(&s.ring, s.ring.tail)
			s.names.leave(f, s.ring.tail)
			s.ring.stored--
			s.expired++
		}
		*f = fact{}
		s.ring.leave()
	}
	return true
}

// lockAt locks the sink and expires all that is due at now. It wakes nothing: see
// gatePart.leave.
func (s *Sink) lockAt(now int64) {
	s.mu.Lock()
	for s.expireSome(now, chunk) {
		s.after.Clear()
		s.mu.Unlock()
		s.mu.Lock()
	}
	s.after.Clear()
}

// lockFresh locks the sink and expires all that is due.
func (s *Sink) lockFresh() (now int64) {
	s.prepareZero()
	s.mu.Mutex.Lock() // costs less than spinning; readers rarely contend in a loop
	return s.freshen()
}

// freshen expires all that is due. The lock is held. It is released after each chunk, so that raisers
// get it in between.
func (s *Sink) freshen() (now int64) {
	if s.maxAge == clock.Never && s.lease == clock.Never {
		return 0
	}
	now = s.names.clock.Now()
	for s.expireSome(now, chunk) {
		s.unlock()
		s.mu.Lock()
	}
	return now
}

// unlock unlocks the sink and settles the effects of the changes.
func (s *Sink) unlock() {
	if s.after.Empty() {
		s.mu.Unlock()
		return
	}
	after := s.after
	s.after = hook.Effects{}
	s.mu.Unlock()
	after.Settle()
}

// chunk is how many facts are looked at under one lock: this takes some 50 microseconds.
const chunk = 4096

// addGate attaches a gate; present facts count at once. The lock is held.
func (s *Sink) addGate(g *gatePart) {
	s.names.addGate(g)
	g.since = s.names.clock.Now()
	var held []uint64
	s.each(g.Pattern, s.ring.stored, func(seq uint64, f *fact) bool {
		if !f.notices() {
			return true
		}
		g.facts.Add(1)
		g.ever++
		if f.holds() {
			held = append(held, seq)
		}
		return true
	})
	slices.Sort(held)
	for _, seq := range held {
		g.held.Put(seq, seq)
	}
	for i := len(s.kept) - 1; i >= 0 && len(g.kept) < maxKept; i-- {
		if k := &s.kept[i]; g.Pattern.Matches(k.fact.name) {
			g.kept = append(g.kept, k.seq)
			k.gates++
		}
	}
	slices.Reverse(g.kept)
}

// end returns when a fact will expire. This may differ for the coordinator of its operation
// (own).
func (s *Sink) end(seq uint64, f *fact, own bool) int64 {
	if h := s.held[seq]; h != nil {
		return h.until
	}
	if own {
		return clock.Never
	}
	return clock.Later(f.at, s.maxAge)
}

// inherit makes the fact of an operation a fact of the sink, as if it had been raised
// directly. Those that wait for the fact to go are woken. mu is held.
func (s *Sink) inherit(seq uint64, source string) {
	f := s.ring.at(seq)
	if s.names.gates.Len() > 0 {
		s.names.leaveGates(s.names.of(f.name), f, seq)
	}
	var m more
	if f.more != nil {
		m = *f.more
	}
	m.operation, m.source, m.inherited = f.operation, source, true
	f.more, f.operation, f.source = &m, 0, nil
}

func (s *Sink) raise(n Note) bool {
	s.prepareZero()
	if (n.Name == "" || n.cause != nil) && !s.admits(&n, 0) {
		return false
	}
	now := s.names.clock.Now()
	r := s.enter(n.Name, nil)
	if r == nil {
		s.block(&n, 0, BlockedDepth)
		return false
	}
	f, seq := s.record(r, &n, 0, nil, now)
	subs := r.subs
	if len(subs) == 0 {
		s.unlock()
		return true
	}
	signal := f.signal(seq, s.names.clock)
	hook.EnterFirst(subs)
	s.unlock()
	hook.Deliver(subs, true, &signal, &s.panics)
	return true
}

// admits reports whether the rules allow n. If not, it counts n as blocked.
func (s *Sink) admits(n *Note, operation OperationID) bool {
	if n.Name == "" {
		return false
	}
	why := s.rules.blocks(n.Name, n.cause)
	if why != 0 {
		s.block(n, operation, why)
	}
	return why == 0
}

// block counts a signal that is not recorded. No lock may be held.
func (s *Sink) block(n *Note, operation OperationID, why BlockReason) {
	s.blocked.Add(1)
	if s.rules.onBlocked == nil || blocking() {
		return // signals that OnBlocked raises are counted, but not reported to it
	}
	blocked := Signal{Name: n.Name, Key: n.Key, Operation: operation, payload: n.Payload, cause: n.cause}
	s.tellBlocked(blocked, why)
}
