package core

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"
)

// A Sink keeps recent signals: a bounded number of them, for a limited time. All code can
// raise signals on it and sense them (look at them). So parts of a program share what they
// know. Raising a signal calls the subscribers, and starts nothing else.
//
// A sink keeps the newest Capacity signals that are not older than MaxAge, by default 1000
// signals and 5 minutes. Retracted signals leave it, and the signals of an operation leave
// it with the operation. So a raised signal leaves by itself. Hold a condition that must
// last longer, or that newer signals must not push out: see [Sink.Hold]. The number of held
// signals is not bounded.
//
// To decide by the number of signals, use a [Monitor]. To decide by their presence, use a
// gate of a coordinator, such as [Options.CancelOn]. Newer signals do not open a gate: the
// sink keeps, beyond Capacity, the newest 256 signals that match it. They are present like
// other signals, until they are retracted or too old, or leave with their operation.
//
// Make a sink with [NewSink]; the zero Sink has default options. It must not be copied.
// It owns no goroutine and needs no closing. It takes about 5 kB, and 64 bytes for each
// signal plus what the signal contains. All methods are safe for concurrent
// use, also from handlers.
type Sink struct {
	rules   rules
	blocked atomic.Uint64
	panics  atomic.Uint64
	fresh   atomic.Int64 // until when no fact ends by time, 0: not known; see isFresh
	ready   atomic.Bool  // not yet for the zero Sink

	_  cacheLine // a goroutine that waits for mu spins on its line, not on what it guards
	mu spinMutex
	_  cacheLine

	names   names
	ring    ring
	held    map[uint64]*heldFact // by Seq
	kept    []keptFact           // likewise
	lease   int64                // when the first lease of held ends, or never
	maxAge  int64                // or never
	latest  int64                // newest time given to a fact: time follows Seq
	after   effects              // of what has been changed since the lock was taken
	raised  uint64
	evicted uint64
	expired uint64

	retractions []*hook[Retraction] // replaced, not changed
	forwards    []*forward          // likewise
	runaways    runaways            // in endless loops
}

// SinkOptions configure a [Sink]. The zero value is the default.
type SinkOptions struct {
	Capacity    int           // signals kept; 0 = 1000, at most [MaxSinkCapacity]
	MaxAge      time.Duration // how long they are kept; 0 = 5 minutes, negative: no limit
	Propagation Propagation
}

// MaxSinkCapacity is the largest capacity of a sink.
const (
	defaultSinkCapacity = 1000
	defaultSinkAge      = 5 * time.Minute
	MaxSinkCapacity     = 1 << 26
)

// heldFact is a fact that stands outside the window.
type heldFact struct {
	seqFact
	until int64  // or never: until released
	owner holder // nil: none

	copies []ending // on other sinks
	by     *forward // of a copy: what has made it
	on     *Sink    // likewise: where it is
}

// keptFact is a fact that the window had no room for and gates keep.
type keptFact struct {
	seqFact
	gates int // that keep it; it goes with the last
}

// holder is the operation that holds a fact.
type holder interface {
	unhold(h *heldFact, released bool) // the sink has ended h; its lock is held
	tellReleased(signal Signal)
}

// A Retraction says that a signal was taken back: by [Sink.Retract], by the operation that
// raised it, or by its release.
type Retraction struct {
	Signal  Signal
	Time    time.Time // when it was taken back
	Pattern string    // the pattern it was retracted by; "" if by its name or by its release
}

var _ Raiser = (*Sink)(nil)

// NewSink makes a sink. It panics if the capacity is negative or above
// [MaxSinkCapacity].
func NewSink(opts SinkOptions) *Sink {
	s := new(Sink)
	s.prepare(opts)
	return s
}

// prepare does what NewSink does. The zero Sink is prepared by whatever has to do
// with facts first, before it takes the lock or the time.
func (s *Sink) prepare(opts SinkOptions) {
	opts = opts.resolved()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready.Load() {
		return
	}
	s.rules, s.ring = opts.Propagation.compile(), newRing(opts.Capacity, 1)
	s.maxAge, s.lease = ageLimit(opts.MaxAge), never
	s.names.base = base{&s.mu, s.unlock, newClock(), &s.after, &s.ring, &s.panics}
	s.ready.Store(true)
}

func (s *Sink) prepareZero() {
	if !s.ready.Load() {
		s.prepare(SinkOptions{})
	}
}

// resolved returns the options with defaults, and panics if they are wrong.
func (o SinkOptions) resolved() SinkOptions {
	o.Capacity = cmp.Or(o.Capacity, defaultSinkCapacity)
	orNone(&o.MaxAge, defaultSinkAge)
	checkSinkSize("NewSink", o.Capacity, o.MaxAge)
	return o
}

// ageLimit is Sink.maxAge for an age of which 0 means none.
func ageLimit(maxAge time.Duration) int64 {
	if maxAge == 0 {
		return never
	}
	return min(int64(maxAge), never-1)
}

func checkSinkSize(caller string, capacity int, maxAge time.Duration) {
	switch {
	case capacity < 1 || capacity > MaxSinkCapacity:
		panic(fmt.Sprintf("core: %s: a sink's capacity is between 1 and %d, not %d", caller, MaxSinkCapacity, capacity))
	case maxAge < 0:
		panic(fmt.Sprintf("core: %s: a sink's maximum age is not negative, as %v is", caller, maxAge))
	}
}

// Raise raises a signal without a key directly on the sink. It returns false, and records
// nothing, only for an empty name or in an endless loop of handlers; see [Propagation].
func (s *Sink) Raise(name string) bool { return s.raise(note{name: name}) }

// RaiseKey is Raise with a key.
func (s *Sink) RaiseKey(name, key string) bool { return s.raise(note{name: name, key: key}) }

// Sink returns s, as a [Sensor] does.
func (s *Sink) Sink() *Sink { return s }

// Because returns a view of the sink. The signals that are raised on the view have the
// given cause, which may be a signal of another sink.
func (s *Sink) Because(cause Signal) Raiser { return because(s, cause) }

// Scoped returns a view of the sink. The view puts "sink.coordinator.atom." before every
// name that it raises.
func (s *Sink) Scoped(sink, coordinator, atom string) Raiser {
	return scoped(s, sink, coordinator, atom)
}

func (s *Sink) raise(n note) bool {
	s.prepareZero()
	if (n.name == "" || n.cause != nil) && !s.admits(&n, 0) {
		return false
	}
	now := s.names.clock.now()
	entry := s.enter(n.name, nil)
	if entry == nil {
		s.block(&n, 0, BlockedDepth)
		return false
	}
	f, seq := s.record(entry, &n, 0, nil, now)
	subs := entry.route.subs
	if len(subs) == 0 {
		s.unlock()
		return true
	}
	signal := f.signal(seq, s.names.clock)
	enterFirst(subs)
	s.unlock()
	deliver(subs, true, &signal, &s.panics)
	return true
}

// admits reports whether the rules let n be recorded, and reports it if not.
func (s *Sink) admits(n *note, operation OperationID) bool {
	if n.name == "" {
		return false
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
func (s *Sink) record(entry *name, n *note, operation OperationID, source *string, now int64) (*fact, uint64) {
	s.names.enter(entry) // first, so that evicting does not forget it
	now = s.advance(entry, now)
	f, seq := s.place(entry)
	f.key, f.operation, f.source, f.at, f.more = n.key, operation, source, now, nil
	if n.payload != nil || n.cause != nil || n.copied != nil {
		f.more = n.more()
	}
	s.raised++
	if route := entry.route; len(route.gates)+len(route.monitors) > 0 {
		route.notice(f, seq, &s.after)
	}
	return f, seq
}

// place makes room for a fact of that name at the end of the window; what it says is
// left to the caller. The lock is held.
func (s *Sink) place(entry *name) (*fact, uint64) {
	r := &s.ring
	if r.full() {
		s.evict()
	}
	seq := r.head
	f := r.push()
	f.name, f.previous, entry.newest = entry, entry.newest, seq
	r.stored++
	return f, seq
}

// notice adds a new fact to gates and monitors.
func (r *route) notice(f *fact, seq uint64, after *effects) {
	for _, g := range r.gates {
		g.enter(seq, f, after)
	}
	for _, m := range r.monitors {
		m.record(seq, f)
		m.check()
	}
}

// advance returns the time for a new fact and lets a few old ones expire, so that
// raising alone keeps the window within its age.
func (s *Sink) advance(entry *name, now int64) int64 {
	if now < s.latest {
		now = s.latest // read before the lock, by a raiser that got the lock later
	}
	s.latest = now
	switch {
	case len(entry.route.gates) > 0: // a gate must know whether it stood open until now
		for s.expireSome(now, chunk) {
		}
	case s.maxAge != never:
		s.expireSome(now, 4)
	}
	return now
}

// evict removes the oldest place of the window, a fact or a gap, and leaves it as it is,
// because it is about to be written over.
func (s *Sink) evict() {
	r := &s.ring
	f := r.at(r.tail)
	r.tail++
	if f.name == nil {
		return
	}
	r.stored--
	if s.names.leaveUnwatched(f.name) {
		s.evicted++
	} else {
		s.keep(f, r.tail-1)
	}
}

// pushOut evicts a fact from the middle of the window, if it is there.
func (s *Sink) pushOut(seq uint64) {
	if s.ring.contains(seq) {
		f := s.cut(seq)
		s.keep(&f, seq)
	}
}

// keep evicts a fact that the window does not show any more, unless it matters to
// gates: each keeps the newest maxKept of these.
func (s *Sink) keep(f *fact, seq uint64) {
	s.names.refresh(f.name)
	gates := f.name.route.gates
	if len(gates) == 0 || !f.notices() {
		s.evicted++
		s.names.leaveWatched(f, seq)
		return
	}
	i, _ := s.keptAt(seq)
	s.kept = slices.Insert(s.kept, i, keptFact{seqFact{seq, *f}, len(gates)})
	for _, g := range gates {
		i, _ := slices.BinarySearch(g.kept, seq)
		g.kept = slices.Insert(g.kept, i, seq)
		if len(g.kept) > maxKept {
			s.unkeep(g)
		}
	}
}

// unkeep lets a gate keep its oldest fact no longer.
func (s *Sink) unkeep(g *gate) {
	seq := g.kept[0]
	g.kept = slices.Delete(g.kept, 0, 1)
	i, _ := s.keptAt(seq)
	if s.kept[i].gates--; s.kept[i].gates == 0 {
		s.evicted++
		s.remove(seq, false)
	}
}

// keptAt returns where in kept the fact of that Seq is, or would be.
func (s *Sink) keptAt(seq uint64) (i int, found bool) {
	return slices.BinarySearchFunc(s.kept, seq, func(k keptFact, seq uint64) int { return cmp.Compare(k.seq, seq) })
}

// find returns the fact of that Seq, in the window, held or kept, or nil.
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

// remove takes a fact away, unless it has gone already.
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

// cut takes a fact out of those that are kept, or out of the window, where it leaves a
// gap.
func (s *Sink) cut(seq uint64) (f fact) {
	if !s.ring.contains(seq) {
		i, _ := s.keptAt(seq)
		f = s.kept[i].fact
		s.kept = slices.Delete(s.kept, i, i+1)
		return f
	}
	place := s.ring.at(seq)
	f = *place
	if f.name.newest == seq {
		f.name.newest = f.previous
	}
	*place = fact{at: f.at, previous: f.previous}
	s.ring.stored--
	return f
}

// expireSome lets up to most places of the window, whose time is over, go, and
// the leases that have ended. It reports whether there may be more of them.
func (s *Sink) expireSome(now int64, most int) (more bool) {
	if s.lease <= now {
		s.expireLeases(now)
	}
	if s.maxAge == never {
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
		if f.name != nil {
			s.names.leave(f, s.ring.tail)
			s.ring.stored--
			s.expired++
		}
		*f = fact{}
		s.ring.tail++
	}
	return true
}

// lockAt locks the sink with nothing in it whose time is over by now. It wakes nothing:
// see gate.leave.
func (s *Sink) lockAt(now int64) {
	s.mu.Lock()
	for s.expireSome(now, chunk) {
		s.after.clear()
		s.mu.Unlock()
		s.mu.Lock()
	}
	s.after.clear()
}

// lockFresh locks the sink with nothing in it whose time is over. Much to expire
// is expired in chunks, so that raisers get their turn in between.
func (s *Sink) lockFresh() (now int64) {
	s.prepareZero()
	s.mu.Mutex.Lock() // costs less; code that raises in a loop does not look in a loop
	if s.maxAge == never && s.lease == never {
		return 0
	}
	now = s.names.clock.now()
	for s.expireSome(now, chunk) {
		s.unlock()
		s.mu.Lock()
	}
	return now
}

// unlock unlocks the sink and does what follows for others from what has been changed.
func (s *Sink) unlock() {
	if s.after.empty() {
		s.mu.Unlock()
		return
	}
	after := s.after
	s.after = effects{}
	s.mu.Unlock()
	after.settle()
}

// chunk is how many facts are looked at while a lock is held once.
const chunk = 4096

// Hold raises a held signal. It stands for a condition, such as "update.in-progress", and
// stays until release is called or, if lease is positive, until the lease ends. It does
// not age, newer signals do not push it out, and [Options.MaxDefer] does not limit how
// long it defers items. So it is the best signal for [Options.DeferOn] and
// [Options.CancelOn]. When it comes, it may push out one older raised signal. The number
// of held signals is not bounded. Handlers and monitors get a held signal like any
// signal, and its release as a retraction.
//
// Release may be called many times, from anywhere. In the cases in which [Sink.Raise]
// returns false, nothing is held, and release does nothing.
func (s *Sink) Hold(name, key string, lease time.Duration) (release func()) {
	h := s.receive(passage{signal: Signal{Name: name, Key: key, Held: true}}, lease, nil)
	if h == nil {
		return func() {}
	}
	return func() { s.release(h) }
}

// hold records f as a held fact from now on. The lock is held.
func (s *Sink) hold(f fact, lease time.Duration) *heldFact {
	s.names.enter(f.name)
	f.at = s.advance(f.name, s.names.clock.now())
	if s.ring.full() {
		s.evict()
	}
	h := &heldFact{seqFact: seqFact{s.ring.head, f}, until: never}
	*s.ring.push() = fact{at: f.at} // its Seq is a gap in the window
	if lease > 0 {
		h.until = later(f.at, int64(lease))
		s.lease = min(s.lease, h.until)
		s.fresh.Store(0)
	}
	put(&s.held, h.seq, h)
	s.raised++
	f.name.route.notice(&h.fact, h.seq, &s.after)
	return h
}

func (h *heldFact) end() { h.on.release(h) }

func (s *Sink) release(h *heldFact) {
	s.lockFresh()
	signal := h.fact.signal(h.seq, s.names.clock)
	standing := s.releaseLocked(h)
	s.unlock()
	switch {
	case !standing:
	case h.owner != nil:
		h.owner.tellReleased(signal)
	default:
		s.tellRetracted(signal, "")
	}
}

// releaseLocked releases h, and reports whether it was still held.
func (s *Sink) releaseLocked(h *heldFact) (standing bool) {
	if standing = s.held[h.seq] != nil; standing {
		s.after.copies = append(s.after.copies, h.copies...)
		s.unhold(h, true)
	}
	return standing
}

func (s *Sink) unhold(h *heldFact, released bool) {
	h.copies = nil
	if delete(s.held, h.seq); len(s.held) == 0 {
		s.held = nil // a Go map never shrinks
	}
	if h.owner != nil {
		h.owner.unhold(h, released)
	}
	if released {
		s.names.retracted(&h.fact, h.seq)
	}
	s.names.leave(&h.fact, h.seq)
}

func (s *Sink) expireLeases(now int64) {
	if now < s.lease {
		return
	}
	s.lease = never
	for _, h := range s.held {
		if h.until > now {
			s.lease = min(s.lease, h.until)
			continue
		}
		s.unhold(h, false) // the leases of its copies end as well
		s.expired++
	}
}

// Subscribe calls fn for every signal that is recorded from now on and whose name matches
// pattern. It calls fn on the raiser's goroutine, before Raise returns. Handlers are
// called in the order of subscription. No lock is held: fn may raise, sense, subscribe,
// enqueue and close. While fn blocks, the raiser waits. So a slow consumer slows its
// producer. If the raiser should not wait, let fn enqueue the work on a coordinator. A
// panic of fn is counted in [SinkStats] and has no other effect.
//
// A pattern such as "atom.*" makes coordinators on the sink raise [SignalStarted] and
// [SignalStopped] for every operation. The pattern "*" does not. A handler of "*" gets
// these signals only while another pattern makes the coordinators raise them.
//
// Cancel waits for running calls of fn. Inside a handler it does not wait. After cancel,
// no call of fn starts. A handler whose pattern matches nothing, like "", is never
// called. Subscribe panics if fn is nil.
func (s *Sink) Subscribe(pattern string, fn func(Signal)) (cancel func()) {
	need(fn != nil, "Subscribe needs a function")
	return newHook(compile(pattern), fn).attach(&s.mu, &s.names.subs, s.names.changed)
}

// Resize changes how many signals the sink keeps and for how long. Signals that no
// longer fit are evicted, the oldest first. Here 0 is no default: a maxAge of 0 means no
// limit. Resize panics if capacity is 0, or if a value is negative.
func (s *Sink) Resize(capacity int, maxAge time.Duration) {
	checkSinkSize("Resize", capacity, maxAge)
	s.lockFresh()
	for s.ring.head-s.ring.tail > uint64(capacity) {
		s.evict()
		if s.ring.tail%chunk == 0 { // others get their turn
			s.unlock()
			s.mu.Lock()
		}
	}
	s.ring, s.maxAge = s.ring.resized(capacity), ageLimit(maxAge)
	s.fresh.Store(0)
	for _, g := range s.names.gates {
		s.after.wake(g.waker) // an alarm may have to be set again
	}
	for _, c := range s.names.counters {
		s.after.wake(c.gone)
	}
	s.unlock()
}

// SinkStats are the counters of a sink, all read at the same moment, at which
//
//	Stored + Kept + Held = Raised + restored - Evicted - Expired - gone
//
// Restored are signals that [Sink.Restore] has put back. Gone are signals that were
// retracted, released or forgotten, or that left the sink together with their operation.
// These two have no counter.
type SinkStats struct {
	Held     int           `json:"held"`   // held signals
	Stored   int           `json:"stored"` // other signals, at most Capacity
	Kept     int           `json:"kept"`   // signals beyond Capacity that the sink keeps for gates
	Capacity int           `json:"capacity"`
	MaxAge   time.Duration `json:"maxAge"`   // 0: no limit
	Raised   uint64        `json:"raised"`   // signals ever recorded, also held ones
	Evicted  uint64        `json:"evicted"`  // pushed out by newer ones
	Expired  uint64        `json:"expired"`  // by age, or at the end of a lease
	Blocked  uint64        `json:"blocked"`  // not recorded: see [Propagation]
	Panics   uint64        `json:"panics"`   // of handlers
	Handlers int           `json:"handlers"` // of signals and of retractions
	Monitors int           `json:"monitors"`
}

// LogValue groups the counters by their JSON names.
func (s SinkStats) LogValue() slog.Value { return StatsValue(s) }

// String is the JSON form.
func (s SinkStats) String() string { return StatsString(s) }

// Stats returns the sink's counters. It costs a lock.
func (s *Sink) Stats() SinkStats {
	s.lockFresh()
	stats := SinkStats{
		Held:     len(s.held),
		Stored:   s.ring.stored,
		Kept:     len(s.kept),
		Capacity: int(s.ring.capacity),
		Raised:   s.raised,
		Evicted:  s.evicted,
		Expired:  s.expired,
		Blocked:  s.blocked.Load(),
		Panics:   s.panics.Load(),
		Handlers: len(s.names.subs) + len(s.retractions),
		Monitors: len(s.names.monitors),
	}
	if s.maxAge != never {
		stats.MaxAge = time.Duration(s.maxAge)
	}
	s.unlock()
	return stats
}
