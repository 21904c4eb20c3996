// Package tape carries what an engine of core tells package whatif, and what package whatif asks it.
package tape

import (
	"hash/maphash"

	"github.com/ephemeralgo/ephemeral/core/internal/sched"
)

// Kind says what an event is, or how an operation has ended.
type Kind uint8

const (
	Succeeded Kind = iota
	Failed
	Cancelled
	Refused   // by a signal
	Dropped   // for a newer one
	Rejected  // had no room
	Alive     // when the recording ended
	GateMoved // a gate has shut or opened
	Kinds     // how many there are
)

// An Event is the end of an operation, or a change of a gate. Times are in nanoseconds of the engine's clock.
type Event struct {
	Kind        Kind
	Lane, Class uint8
	Brief       bool // did not want to wait for room
	Started     bool
	Shut, Held  bool   // of a gate
	Gate        uint16 // its number
	ID          uint64 // of the operation, or the newest one at that time
	Key         uint64 // a hash, different in each recording; 0: none
	At          int64  // when the operation arrived, or the gate moved
	Wait        int64  // from then to the start or, without a start, to the end
	Run         int64  // from the start to the end
	Away        int64  // how much of that without a slot
	Cost        int64
	Calls, More int64 // what was charged besides
	Since       int64 // of a gate: since when it is shut, and
	Expires     int64 // when that may change by itself
	Order       int   // among the events of a trace
}

// A Tape has the newest events. It is guarded by the engine's lock.
type Tape struct {
	Seed    maphash.Seed
	Key     uint64 // of the operation that is about to end
	Dropped uint64 // events for which there was no place

	events []Event
	half   chan struct{} // closed when the tape is half full; nil: it was
	gates  []Event       // the newest of each
}

// Capacity bounds the memory of a tape to 2 MB.
const Capacity = 1 << 14

func New() *Tape { return &Tape{Seed: maphash.MakeSeed(), events: make([]Event, 0, Capacity)} }

// Next is the place of one more event, or nil. If half is not nil, the caller closes it after its unlock.
func (t *Tape) Next() (event *Event, half chan struct{}) {
	n := len(t.events)
	if n == cap(t.events) {
		t.Dropped++
		return nil, nil
	}
	t.events = t.events[:n+1]
	if n >= cap(t.events)/2 {
		half, t.half = t.half, nil
	}
	t.events[n] = Event{}
	return &t.events[n], half
}

// Hash is the Key of an event for a key.
func (t *Tape) Hash(key string) uint64 {
	if key == "" {
		return 0
	}
	return maphash.String(t.Seed, key) | 1
}

// Moved adds the state of a gate, unless it is known.
func (t *Tape) Moved(gate Event) (half chan struct{}) {
	for len(t.gates) <= int(gate.Gate) {
		t.gates = append(t.gates, Event{})
	}
	known := &t.gates[gate.Gate]
	if known.Shut == gate.Shut && known.Held == gate.Held && known.Since == gate.Since && known.Expires == gate.Expires {
		return nil
	}
	e, half := t.Next()
	if e != nil { // else the next look tells it
		*known, *e = gate, gate
		e.Kind = GateMoved
	}
	return half
}

// Take returns the events. Empty is where the next ones go, and half is closed when there are many.
func (t *Tape) Take(empty []Event, half chan struct{}) []Event {
	events := t.events
	t.events, t.half = empty[:0], half
	return events
}

// An Engine is what package whatif sees of a coordinator.
type Engine struct {
	Options any // core.Options, as they are now
	Keyed   bool
	Now     int64
	Take    func(empty []Event, half chan struct{}) (events []Event, dropped uint64) // of the tape
	Stop    func() (alive []Event, now int64)                                        // ends the recording; idempotent
}

// Record gives a tape to a coordinator. It returns false if that has one, or is not a coordinator. Core sets it.
var Record func(coordinator any, t *Tape) (Engine, bool)

// Resolve returns core.Options with defaults, and what board they make. Core sets it.
var Resolve func(options any, keyed bool) (resolved any, board sched.Config, err error)
