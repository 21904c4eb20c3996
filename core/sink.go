package core

import (
	"fmt"
	"sync/atomic"
	"time"
)

// A Sink is a bounded, time-limited window of signals that everybody can raise
// on and sense: the shared memory through which parts of a program take notice of
// each other. Nothing is delivered to anybody who did not subscribe, and nothing
// runs because a signal was raised.
//
// The window holds the newest Capacity signals of the last MaxAge, less those
// that were retracted. A condition that must not be pushed out by chatter is held
// instead: see Hold. What has to be decided by count or presence, however much
// passes, is a [Monitor] or a gate of a coordinator, which do not look at the
// window.
//
// Make a sink with [NewSink]. It owns no goroutine and needs no closing, and its
// memory grows with the signals in the window, by 64 bytes and what is in them
// each. All methods are safe for concurrent use, from handlers as well.
type Sink struct {
	rules   rules
	blocked atomic.Uint64
	panics  atomic.Uint64
	fresh   atomic.Int64 // until when no fact ends by time, 0: not known; see isFresh

	_  cacheLine // who waits for mu spins on its line, not on what it guards
	mu spinMutex
	_  cacheLine

	names   names
	ring    ring
	held    []*heldFact // by Seq
	lease   int64       // when the first lease of held ends; 0: never
	maxAge  int64       // 0: no limit
	latest  int64       // newest time given to a fact: time follows Seq
	raised  uint64
	evicted uint64
	expired uint64

	retractions []*hook[Retraction] // replaced, not changed
	forwards    []*forward          // likewise
	runaways    []*runaway          // in endless loops
}

// SinkOptions configure a [Sink]. The zero value is the default.
type SinkOptions struct {
	Capacity    int           // signals kept; 0 = 1000, at most [MaxSinkCapacity]
	MaxAge      time.Duration // how long they are kept; 0 = no limit
	Propagation Propagation
}

// Limits of a sink's capacity.
const (
	defaultSinkCapacity = 1000
	MaxSinkCapacity     = 1 << 26
)

// heldFact is a fact that stands outside the window.
type heldFact struct {
	fact  fact
	seq   uint64
	until int64 // 0: until released
	gone  bool

	copies []*heldCopy // on other sinks
}

// A Retraction says that a signal was taken back by its owner.
type Retraction struct {
	Signal  Signal
	Time    time.Time // when it was taken back
	Pattern string    // the pattern it was retracted by; "" if by its name
}

var (
	_ Sensor = (*Sink)(nil)
	_ Raiser = (*Sink)(nil)
)

// NewSink makes a sink. It panics if the capacity is negative or above
// [MaxSinkCapacity], or the age is negative.
func NewSink(opts SinkOptions) *Sink {
	if opts.Capacity == 0 {
		opts.Capacity = defaultSinkCapacity
	}
	checkSinkSize("NewSink", opts.Capacity, opts.MaxAge)
	s := &Sink{
		rules:  opts.Propagation.compile(),
		ring:   newRing(opts.Capacity, 1),
		maxAge: int64(opts.MaxAge),
	}
	s.names.mu, s.names.clock = &s.mu, newClock()
	return s
}

func checkSinkSize(caller string, capacity int, maxAge time.Duration) {
	if capacity < 1 || capacity > MaxSinkCapacity {
		panic(fmt.Sprintf("core: %s: a sink's capacity is between 1 and %d, not %d", caller, MaxSinkCapacity, capacity))
	}
	if maxAge < 0 {
		panic(fmt.Sprintf("core: %s: a sink's maximum age is not negative, as %v is", caller, maxAge))
	}
}

// Raise records a fact, raised directly on the sink, with no key. It reports
// false, and records nothing, only for an empty name or as part of an endless loop
// of handlers; see [Propagation].
func (s *Sink) Raise(name string) bool { return s.raise(note{name: name}) }

// RaiseKey is Raise with a key.
func (s *Sink) RaiseKey(name, key string) bool { return s.raise(note{name: name, key: key}) }

// Because returns a view of the sink that raises signals caused by cause, which may
// be a signal of another sink.
func (s *Sink) Because(cause Signal) Raiser { return because(s, cause) }

// Scoped returns a view of the sink that raises "sink.coordinator.atom.name" for
// a name.
func (s *Sink) Scoped(sink, coordinator, atom string) Raiser {
	return scoped(s, sink, coordinator, atom)
}

func (s *Sink) raise(n note) bool {
	if (n.name == "" || n.cause != nil) && !s.admits(&n, 0) {
		return false
	}
	var after aftermath
	now := s.names.clock.now()
	entry := s.enter(n.name, nil)
	if entry == nil {
		s.block(&n, 0, BlockedDepth)
		return false
	}
	f, seq := s.record(entry, &n, 0, nil, now, &after)
	subs := entry.route.subs
	if len(subs) == 0 {
		s.mu.Unlock()
		after.settle()
		return true
	}
	signal := f.signal(seq, s.names.clock)
	enterFirst(subs)
	s.mu.Unlock()
	after.settle()
	deliver(subs, true, &signal, &s.panics)
	return true
}

// admits reports whether the rules let n be recorded, and tells of it if not.
func (s *Sink) admits(n *note, operation OperationID) bool {
	if n.name == "" {
		return false
	}
	if n.cause == nil {
		return true
	}
	why := s.rules.blocks(n.name, n.cause)
	if why != 0 {
		s.block(n, operation, why)
	}
	return why == 0
}

// block counts a signal that is not recorded. No lock may be held.
func (s *Sink) block(n *note, operation OperationID, why BlockReason) {
	s.blocked.Add(1)
	if s.rules.onBlocked == nil || blocking() {
		return // what OnBlocked itself raises is counted, but not reported to it
	}
	blocked := Signal{Name: n.name, Key: n.key, Operation: operation, payload: n.payload, cause: n.cause}
	s.tellBlocked(blocked, why)
}

func (s *Sink) tellBlocked(blocked Signal, why BlockReason) {
	tell := newHook(pattern{}, func(b Signal) { s.rules.onBlocked(b, why) })
	deliver([]*subscription{tell}, false, &blocked, &s.panics)
}

// enter locks the sink and returns the entry of that name, or nil, unlocked, if
// raising it is part of an endless loop through its handlers or those of own.
func (s *Sink) enter(text string, own []*subscription) *name {
	s.mu.Lock()
	entry := s.names.recall(text)
	if entry == nil {
		entry = s.names.intern(text)
	}
	if !crowded(entry.route.subs) && !crowded(own) {
		return entry
	}
	return s.enterCrowd(entry, own)
}

// record appends a fact to the window. The lock is held.
func (s *Sink) record(entry *name, n *note, operation OperationID, source *string, now int64, after *aftermath) (*fact, uint64) {
	s.names.enter(entry) // first, lest evicting forgets it
	now = s.advance(now, after)
	r := &s.ring
	if r.full() {
		// The place is left as it is: it is about to be written over.
		if f := r.at(r.tail); f.name != nil {
			s.names.leave(f.name, after)
			r.stored--
			s.evicted++
		}
		r.tail++
	}
	seq := r.head
	f := r.push()
	f.name, f.key, f.operation, f.source = entry, n.key, operation, source
	f.at, f.previous, f.more = now, entry.newest, nil
	if n.payload != nil || n.cause != nil {
		f.more = &more{payload: n.payload, cause: n.cause}
	}
	entry.newest = seq
	r.stored++
	s.raised++
	if route := entry.route; len(route.gates)+len(route.monitors) > 0 {
		s.notice(route, f, seq, 0, after)
	}
	return f, seq
}

// notice tells gates and monitors of a new fact.
func (s *Sink) notice(r *route, f *fact, seq uint64, until int64, after *aftermath) {
	if until == 0 && s.maxAge > 0 && (f.more == nil || !f.more.held) {
		until = later(f.at, s.maxAge)
	}
	r.notice(f, seq, until, s.names.clock, after)
}

func (r *route) notice(f *fact, seq uint64, until int64, c clock, after *aftermath) {
	for _, g := range r.gates {
		g.add(standing{signal: f.signal(seq, c), owner: f.operation, at: f.at, until: until}, after)
	}
	for _, m := range r.monitors {
		m.record(seq, f)
	}
}

// advance returns the time for a new fact and lets a few old ones expire, so that
// raising alone keeps the window within its age.
func (s *Sink) advance(now int64, after *aftermath) int64 {
	if now < s.latest {
		now = s.latest // read before the lock, by somebody who came later
	}
	s.latest = now
	if s.maxAge > 0 {
		s.expireSome(now, 4, after)
	}
	return now
}

// put appends a fact to the window that is the sink's own. Its name has been
// entered already. The lock is held.
func (s *Sink) put(f fact, after *aftermath) (*fact, uint64) {
	r := &s.ring
	if r.full() {
		s.evict(after)
	}
	if r.head > r.tail {
		f.at = max(f.at, r.at(r.head-1).at)
	}
	s.latest = max(s.latest, f.at)
	f.previous = f.name.newest
	seq := r.head
	place := r.push()
	*place = f
	f.name.newest = seq
	r.stored++
	return place, seq
}

// evict removes the oldest place of the window, a fact or a gap.
func (s *Sink) evict(after *aftermath) {
	f := s.ring.at(s.ring.tail)
	if f.name != nil {
		s.names.leave(f.name, after)
		s.ring.stored--
		s.evicted++
	}
	*f = fact{}
	s.ring.tail++
}

// remove takes a fact out of the middle of the window and leaves a gap.
func (s *Sink) remove(seq uint64, after *aftermath) {
	f := s.ring.at(seq)
	entry := f.name
	if entry.newest == seq {
		entry.newest = f.previous
	}
	s.names.refresh(entry)
	for _, g := range entry.route.gates {
		g.removeSeq(seq, after)
	}
	*f = fact{at: f.at, previous: f.previous}
	s.ring.stored--
	s.names.leave(entry, after)
}

// expireSome lets up to most places of the window, whose time is over, go, and
// the leases that have ended. It reports whether there may be more of them.
func (s *Sink) expireSome(now int64, most int, after *aftermath) (more bool) {
	if s.lease != 0 && s.lease <= now {
		s.expireLeases(now, after)
	}
	if s.maxAge == 0 {
		return false
	}
	for ; most > 0; most-- {
		if s.ring.tail == s.ring.head {
			return false
		}
		f := s.ring.at(s.ring.tail)
		if f.at > now-s.maxAge {
			return false
		}
		if f.name != nil {
			s.names.leave(f.name, after)
			s.ring.stored--
			s.expired++
		}
		*f = fact{}
		s.ring.tail++
	}
	return true
}

// lockFresh locks the sink with nothing in it whose time is over. Much to expire
// is expired in chunks, so that raisers get their turn in between.
func (s *Sink) lockFresh(after *aftermath) (now int64) {
	s.mu.Mutex.Lock() // costs less; who raises all the time does not look all the time
	if s.maxAge == 0 && s.lease == 0 {
		return 0
	}
	now = s.names.clock.now()
	for s.expireSome(now, chunk, after) {
		s.mu.Unlock()
		s.mu.Lock()
	}
	return now
}

// chunk is how many facts are looked at while a lock is held once.
const chunk = 4096

// Hold records a held fact: a condition, such as "update.in-progress", that
// stands until release is called or, if lease is positive, until the lease ends.
// Unlike other facts it does not age and is not pushed out by newer ones, though
// it pushes out an older one itself, so it is what [Options.DeferOn] and
// [Options.CancelOn] are best gated by. Nothing bounds how many facts are held but
// those who hold them. Handlers and monitors notice a held fact as they notice any
// signal, and its release as a retraction.
//
// Release may be called many times, from anywhere. Where Raise would report false
// nothing is held, and release does nothing.
func (s *Sink) Hold(name, key string, lease time.Duration) (release func()) {
	n := note{name: name, key: key}
	if !s.admits(&n, 0) {
		return func() {}
	}
	var after aftermath
	entry := s.enter(n.name, nil)
	if entry == nil {
		s.block(&n, 0, BlockedDepth)
		return func() {}
	}
	h := s.hold(entry, &n, 0, nil, lease, &after)
	subs, signal := entry.route.subs, h.fact.signal(h.seq, s.names.clock)
	s.mu.Unlock()
	after.settle()
	deliver(subs, false, &signal, &s.panics)
	return func() { s.release(h) }
}

// hold records a held fact. The lock is held.
func (s *Sink) hold(entry *name, n *note, operation OperationID, source *string, lease time.Duration, after *aftermath) *heldFact {
	return s.stand(fact{
		name: entry, key: n.key, operation: operation, source: source,
		more: &more{payload: n.payload, cause: n.cause, held: true},
	}, lease, after)
}

// stand records f as a held fact from now on. The lock is held.
func (s *Sink) stand(f fact, lease time.Duration, after *aftermath) *heldFact {
	s.names.enter(f.name)
	f.at = s.advance(s.names.clock.now(), after)
	if s.ring.full() {
		s.evict(after)
	}
	h := &heldFact{fact: f, seq: s.ring.head}
	*s.ring.push() = fact{at: f.at} // its Seq is a gap in the window
	if lease > 0 {
		h.until = later(f.at, int64(lease))
		if s.lease == 0 || h.until < s.lease {
			s.lease = h.until
		}
		s.fresh.Store(0)
	}
	s.held = append(s.held, h)
	s.raised++
	s.notice(f.name.route, &h.fact, h.seq, h.until, after)
	return h
}

func (s *Sink) release(h *heldFact) {
	var after aftermath
	s.lockFresh(&after)
	signal := h.fact.signal(h.seq, s.names.clock)
	gone := s.releaseLocked(h, &after)
	s.mu.Unlock()
	after.settle()
	if gone {
		s.tellRetracted(signal, "")
	}
}

func (s *Sink) releaseLocked(h *heldFact, after *aftermath) bool {
	if h.gone {
		return false
	}
	h.gone = true
	s.held = without(s.held, h)
	s.names.refresh(h.fact.name)
	for _, g := range h.fact.name.route.gates {
		g.removeSeq(h.seq, after)
	}
	for _, m := range h.fact.name.route.monitors {
		m.remove(h.seq, &h.fact)
	}
	after.copies = append(after.copies, h.copies...)
	h.copies = nil
	s.names.leave(h.fact.name, after)
	return true
}

func (s *Sink) expireLeases(now int64, after *aftermath) {
	s.lease = 0
	for _, h := range s.held { // releaseLocked replaces s.held
		switch {
		case h.until == 0:
		case h.until <= now:
			h.gone, h.copies = true, nil // whose leases end as well
			s.held = without(s.held, h)
			s.expired++
			s.names.leave(h.fact.name, after)
		case s.lease == 0 || h.until < s.lease:
			s.lease = h.until
		}
	}
}

// Subscribe calls fn for every signal recorded from now on whose name matches
// pattern, on the goroutine that raises it, before its Raise returns, in the
// order of subscription. No lock is held: fn may raise, sense, subscribe,
// enqueue and close. While fn blocks, whoever raised the signal waits, which is
// how a slow consumer slows its producer; for work that should not hold the
// raiser up, enqueue it on a coordinator. A panic of fn is counted in
// [SinkStats] and harms nobody else.
//
// A pattern that matches [SignalStarted] or [SignalStopped], as "*" does, makes
// coordinators on the sink raise these for every operation; name what you are
// after if you can.
//
// After cancel has returned no call of fn starts and none is running, unless
// cancel was called from inside a handler, which it does not wait for. A pattern
// that matches nothing, like "", is never called. Subscribe panics if fn is nil.
func (s *Sink) Subscribe(pattern string, fn func(Signal)) (cancel func()) {
	if fn == nil {
		panic("core: Subscribe needs a function")
	}
	sub := newHook(compile(pattern), fn)
	s.mu.Lock()
	s.names.subs = append(s.names.subs[:len(s.names.subs):len(s.names.subs)], sub)
	s.names.changed()
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.names.subs = without(s.names.subs, sub)
		s.names.changed()
		sub.cancel()
		s.mu.Unlock()
		sub.wait()
	}
}

// Resize changes how many signals the window holds and for how long; 0 is no
// limit of age. Signals that no longer fit are evicted, the oldest first. Unlike in
// [SinkOptions] a capacity of 0 is none: Resize panics on values out of range.
func (s *Sink) Resize(capacity int, maxAge time.Duration) {
	checkSinkSize("Resize", capacity, maxAge)
	var after aftermath
	s.lockFresh(&after)
	for _, g := range s.names.gates {
		g.expire(s.names.clock.now(), &after) // what has expired does not come back
	}
	for s.ring.head-s.ring.tail > uint64(capacity) {
		for range chunk {
			if s.ring.head-s.ring.tail <= uint64(capacity) {
				break
			}
			s.evict(&after)
		}
		s.mu.Unlock()
		s.mu.Lock()
	}
	if s.ring.capacity != uint64(capacity) {
		s.ring = s.ring.resized(capacity)
	}
	if s.maxAge != int64(maxAge) {
		s.maxAge = int64(maxAge)
		s.fresh.Store(0)
		for _, g := range s.names.gates {
			for i := range g.standing {
				if st := &g.standing[i]; !st.signal.Held {
					st.until = 0
					if s.maxAge > 0 {
						st.until = later(st.at, s.maxAge)
					}
				}
			}
			g.update(&after, true) // an alarm may have to be set anew
		}
		for _, c := range s.names.counters {
			if c.gone != nil {
				after.wake(c.gone)
			}
		}
	}
	s.mu.Unlock()
	after.settle()
}

// SinkStats is what a sink holds and has seen, read as one cut.
type SinkStats struct {
	Held     int           `json:"held"`   // held facts
	Stored   int           `json:"stored"` // other facts in the window
	Capacity int           `json:"capacity"`
	MaxAge   time.Duration `json:"maxAge"`
	Raised   uint64        `json:"raised"`  // facts ever recorded, held ones included
	Evicted  uint64        `json:"evicted"` // pushed out by newer ones
	Expired  uint64        `json:"expired"` // by age, or at the end of a lease
	Blocked  uint64        `json:"blocked"` // neither recorded nor told: see [Propagation]
	Panics   uint64        `json:"panics"`  // of handlers
}

// Stats returns the sink's counters. It costs a lock.
func (s *Sink) Stats() SinkStats {
	var after aftermath
	s.lockFresh(&after)
	stats := SinkStats{
		Held:     len(s.held),
		Stored:   s.ring.stored,
		Capacity: int(s.ring.capacity),
		MaxAge:   time.Duration(s.maxAge),
		Raised:   s.raised,
		Evicted:  s.evicted,
		Expired:  s.expired,
		Blocked:  s.blocked.Load(),
		Panics:   s.panics.Load(),
	}
	s.mu.Unlock()
	after.settle()
	return stats
}
