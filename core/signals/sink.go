package signals

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
	"github.com/ephemeralgo/ephemeral/core/internal/spin"
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
// gate of a coordinator, such as CancelOn in core.Options. Newer signals do not open a gate: the
// sink keeps, beyond Capacity, the newest 256 signals that match it. They are present like
// other signals, until they are retracted or too old, or leave with their operation.
//
// Make a sink with [NewSink]; the zero Sink has default options. It must not be copied.
// It owns no goroutine and needs no closing. It takes about 5 kB, and 64 bytes for each
// signal plus what the signal contains. A text that is built for each raise, such as a
// name with an id, takes memory for each signal; a constant, or a text from a table of
// your program, is shared. Questions for exact names, such as Has("stop") or a Query of
// one name, take 16 bytes more for each signal, and about 100 for each name, until these
// signals have left. All methods are safe for concurrent use, also from handlers.
type Sink struct {
	rules   rules
	blocked atomic.Uint64
	panics  atomic.Uint64
	fresh   atomic.Int64 // no fact expires before this time; 0: not known; see isFresh
	ready   atomic.Bool  // false for a zero Sink that was not used yet

	_  spin.CacheLine // a goroutine that waits for mu spins on its line, not on the lines of the guarded fields
	mu spin.Mutex
	_  spin.CacheLine

	names    names
	ring     ring
	index    nameIndex
	standing nameCounts           // how many held facts a name has
	held     map[uint64]*heldFact // by Seq
	kept     []keptFact           // likewise
	leases   leases               // likewise
	lease    int64                // when the first of leases ends, or never
	maxAge   int64                // or never
	latest   int64                // newest time given to a fact: times ascend with Seq
	after    hook.Effects         // effects of changes since the lock was taken
	raised   uint64
	evicted  uint64
	expired  uint64

	retractions watchers
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

var _ Raiser = (*Sink)(nil)

// NewSink makes a sink. It panics if the capacity is negative or above
// [MaxSinkCapacity].
func NewSink(opts SinkOptions) *Sink {
	s := new(Sink)
	s.prepare(opts)
	return s
}

// prepare does the work of NewSink. The first use of a zero Sink prepares it, before it
// takes the lock or the time.
func (s *Sink) prepare(opts SinkOptions) {
	opts = opts.resolved()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready.Load() {
		return
	}
	s.rules, s.ring = opts.Propagation.compile(), newRing(opts.Capacity, 1)
	s.maxAge, s.lease = ageLimit(opts.MaxAge), clock.Never
	s.names.base = base{&s.mu, s.unlock, clock.New(), &s.after, &s.ring, &s.panics}
	s.names.facts = s
	s.names.send = s.forwarder
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
	o.MaxAge = max(0, cmp.Or(o.MaxAge, defaultSinkAge))
	checkSinkSize("NewSink", o.Capacity, o.MaxAge)
	return o
}

// ageLimit returns Sink.maxAge for an age; 0 means no limit.
func ageLimit(maxAge time.Duration) int64 {
	if maxAge == 0 {
		return clock.Never
	}
	return min(int64(maxAge), clock.Never-1)
}

func checkSinkSize(caller string, capacity int, maxAge time.Duration) {
	switch {
	case capacity < 1 || capacity > MaxSinkCapacity:
		panic(fmt.Sprintf("signals: %s: a sink's capacity is between 1 and %d, not %d", caller, MaxSinkCapacity, capacity))
	case maxAge < 0:
		panic(fmt.Sprintf("signals: %s: a sink's maximum age is not negative, as %v is", caller, maxAge))
	}
}

// Raise raises a signal without a key directly on the sink. It returns false, and records
// nothing, only for an empty name or in an endless loop of handlers; see [Propagation].
//
//ephemeral:raises {name}
func (s *Sink) Raise(name string) bool { return s.raise(Note{Name: name}) }

// RaiseKey is Raise with a key.
//
//ephemeral:raises {name}
func (s *Sink) RaiseKey(name, key string) bool { return s.raise(Note{Name: name, Key: key}) }

// RaiseNote is Raise with all that a raiser says.
//
//ephemeral:none
func (s *Sink) RaiseNote(n Note) bool { return s.raise(n) }

// Sink returns s, as a [Sensor] does.
func (s *Sink) Sink() *Sink { return s }

// Because returns a view of the sink. The signals that are raised on the view have the
// given cause, which may be a signal of another sink.
//
//ephemeral:is
func (s *Sink) Because(cause Signal) Raiser { return Because(s, cause) }

// Scoped returns a view of the sink. The view puts "sink.coordinator.atom." before every
// name that it raises.
//
//ephemeral:is {sink}.{coordinator}.{atom}.
func (s *Sink) Scoped(sink, coordinator, atom string) Raiser {
	return Scoped(s, sink, coordinator, atom)
}

// Resize changes how many signals the sink keeps and for how long. Signals that no
// longer fit are evicted, the oldest first. Here 0 is no default: a maxAge of 0 means no
// limit. Resize panics if capacity is 0, or if a value is negative.
func (s *Sink) Resize(capacity int, maxAge time.Duration) {
	checkSinkSize("Resize", capacity, maxAge)
	s.lockFresh()
	for s.ring.head-s.ring.tail > uint64(capacity) {
		s.evict()
		if s.ring.tail%chunk == 0 { // others get their turn, but the window grows no more
			s.ring.capacity = s.ring.head - s.ring.tail
			s.unlock()
			s.mu.Lock()
		}
	}
	s.ring, s.index, s.maxAge = s.ring.resized(capacity), nameIndex{}, ageLimit(maxAge)
	s.fresh.Store(0)
	for _, w := range s.names.gates.Snapshot() {
		s.after.Wake(w.it.(*gatePart).waker) // the waker may have to set its alarm again
	}
	for _, w := range s.names.counters.Snapshot() {
		s.after.Wake(w.it.(*counter).gone)
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
	Raised   uint64        `json:"raised"`   // signals ever recorded, held ones included
	Evicted  uint64        `json:"evicted"`  // pushed out by newer ones
	Expired  uint64        `json:"expired"`  // ended by age, or at the end of a lease
	Blocked  uint64        `json:"blocked"`  // not recorded: see [Propagation]
	Panics   uint64        `json:"panics"`   // of handlers
	Handlers int           `json:"handlers"` // of signals and of retractions
	Monitors int           `json:"monitors"`
}

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
		Handlers: s.names.subs.Len() + s.retractions.Len(),
		Monitors: s.names.monitors.Len(),
	}
	if s.maxAge != clock.Never {
		stats.MaxAge = time.Duration(s.maxAge)
	}
	s.unlock()
	return stats
}

// enterCrowd is enter when many calls of the handlers run.
func (s *Sink) enterCrowd(name string, own []*subscription) *route {
	s.mu.Unlock()
	if hook.TooDeep() {
		return nil
	}
	s.mu.Lock()
	r := s.names.of(name)
	hook.Calm(r.subs)
	hook.Calm(own)
	return r
}
