package core

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// An Operation is one item and one run of the body for it. The body gets it from its
// context with [OperationFrom]. Through it, the body raises and retracts signals, and
// stores values for others to read. Other code sees a [Snapshot].
//
// All methods are safe for concurrent use. On a nil Operation they do nothing (only Suspend
// calls its function). Outside of
// an operation, OperationFrom returns nil, so code that reports to its operation can be
// called from anywhere. The methods also do nothing after the operation has left the
// window.
type Operation struct {
	id     OperationID
	engine *engine
	body   body
	base   context.Context // of the Enqueue: values only

	// Guarded by engine.mu.
	next, prev                  *Operation // of the list it is in
	enqueued, started, finished int64
	err                         error
	done                        chan struct{} // closed at its end, if somebody waits for that
	turnNumber                  uint32        // with lanes, keys or classes: when it is its turn in its lane
	status                      Status
	marks                       marks
	lane                        uint8
	class                       uint8 // 0: none
	turn                        *turn // with a key, while pending, running or suspended: see board

	key     string                       // guarded by engine.ledger.mu
	first   *ownFact                     // likewise; older than those in rest, nil: none
	rest    atomic.Pointer[details]      // what few operations have; evicted once it has left the window
	context atomic.Pointer[cancellation] // the real context, once needed; made with engine.mu held
}

// body is the item and what to do with it; implemented by task.
type body interface {
	run(ctx context.Context) error
	item() any
	discard() // the item is not needed any more
	forget()  // the result is not needed any more
}

// marks are what else the engine notes about an operation.
type marks uint8

const (
	watched    marks = 1 << iota // somebody waits for its end, or will ask for its result
	forced                       // started in spite of a deferral
	aside                        // moved aside by the window because it is pinned
	holding                      // has held facts, or had
	awaitedOwn                   // an operation of the same engine waits for its end, or did
	untold                       // has ended, and OnDone is being called
	grouped                      // belongs to a Group
	roomless                     // has not been accepted: its Enqueue waits for room
)

// details are what an operation has once it has raised a second signal, held or stored
// something, or been waited for. Guarded by engine.ledger.mu, except pins and what
// follows, by engine.mu.
type details struct {
	facts   []ownFact // raised after first, oldest first; what is before from has been dropped
	from    int
	dropped bool
	holds   map[uint64]*heldFact // by Seq
	values  map[string]any

	pins  int
	cause error // of its cancellation, once cancelled while running
	*suspension
}

// maxFacts is how many of the signals it raised an operation shows; of more, the
// newest. What it holds it shows besides.
const maxFacts = 1000

// Values of Operation.rest that are compared, not changed.
var (
	firstOnly = new(details) // has raised one signal, and nothing else
	evicted   = new(details)
)

// nobody is what a nil Operation says it is.
var nobody = &Operation{engine: new(engine), base: context.Background()}

type operationKey struct{}

const nilContext = "core: the context is nil: use context.Background() if there is no other"

// OperationFrom returns the operation whose body got ctx, or a context from which ctx is
// made. It returns nil if there is none.
func OperationFrom(ctx context.Context) *Operation {
	if ctx == nil {
		panic(nilContext)
	}
	if c, ok := ctx.(*operationContext); ok {
		return (*Operation)(c)
	}
	o, _ := ctx.Value(operationKey{}).(*Operation)
	return o
}

// ID is the operation's id, or 0 for a nil Operation.
func (o *Operation) ID() OperationID { return cmp.Or(o, nobody).id }

// Source is the name of its coordinator, or "".
func (o *Operation) Source() string { return cmp.Or(o, nobody).engine.name }

// Parent is the id of the operation in whose context the item was enqueued; 0 if there is
// none. With [CausedBy], it is the id of the operation that raised the signal.
func (o *Operation) Parent() OperationID {
	o = cmp.Or(o, nobody)
	if from, ok := o.base.(*origin); ok && from.parent != 0 {
		return from.parent
	}
	id, _ := o.base.Value(parentKey{}).(OperationID)
	return id
}

// Sink is the sink that the operation raises its signals on, or nil.
func (o *Operation) Sink() *Sink { return cmp.Or(o, nobody).engine.sink }

// Key says what the operation is about.
func (o *Operation) Key() string {
	if o == nil {
		return ""
	}
	o.engine.ledger.mu.Lock()
	defer o.engine.ledger.mu.Unlock()
	return o.key
}

// SetKey changes what the operation is about, for its snapshots and for the signals it
// raises from now on. A keyed coordinator still orders the operation by its first key.
func (o *Operation) SetKey(key string) {
	if o == nil {
		return
	}
	o.engine.ledger.mu.Lock()
	defer o.engine.ledger.mu.Unlock()
	if o.details() != evicted {
		o.key = key
	}
}

// Set stores a value under a name. Others read it from a snapshot of the operation, with
// [Value]. The value is shared, not copied: do not change it after Set.
func (o *Operation) Set(name string, v any) {
	if o == nil {
		return
	}
	o.engine.ledger.mu.Lock()
	defer o.engine.ledger.mu.Unlock()
	if d := o.details(); d != evicted {
		put(&d.values, name, v)
	}
}

// details returns what the operation has besides itself, making it if need be;
// evicted once it has left the window.
func (o *Operation) details() *details {
	for {
		d := o.rest.Load()
		if d != nil && d != firstOnly {
			return d
		}
		if made := new(details); o.rest.CompareAndSwap(d, made) {
			return made
		}
	}
}

// Raise raises a signal of this operation, with its key; see [Raiser]. The operation and
// its coordinator show it until the operation leaves the window. They show at most the
// newest 1,000 raised signals of an operation, and all its held ones. Older ones leave the
// sink as well, unless they match a gate. A signal may leave the sink earlier: see [Sink].
// Raise returns false where [Sink.Raise] does, and after the operation has left the
// window.
func (o *Operation) Raise(name string) bool { return o.raise(note{name: name}) }

// RaiseKey is Raise with another key than that of the operation.
func (o *Operation) RaiseKey(name, key string) bool { return o.raise(note{name: name, key: key}) }

// Because returns a view of the operation. The signals that are raised on the view have
// the given cause.
func (o *Operation) Because(cause Signal) Raiser { return because(o, cause) }

// Scoped returns a view of the operation. The view puts "sink.coordinator.atom." before
// every name that it raises.
func (o *Operation) Scoped(sink, coordinator, atom string) Raiser {
	return scoped(o, sink, coordinator, atom)
}

func (o *Operation) raise(n note) bool {
	if o == nil {
		return false
	}
	return o.engine.ledger.raise(o, n)
}

// Hold raises a held signal. It stays until release is called, the operation finishes,
// or, if lease is positive, the lease ends; see [Sink.Hold].
func (o *Operation) Hold(name string, lease time.Duration) (release func()) {
	if o == nil {
		return func() {}
	}
	return o.engine.ledger.hold(o, name, lease)
}

// Retract takes back the newest signal with exactly that name that the operation raised.
// It reports whether there was one. It also finds signals that the operation no
// longer shows, if the sink still keeps them for a gate: see [Sink].
func (o *Operation) Retract(name string) bool {
	if o == nil {
		return false
	}
	newest := true
	return o.engine.ledger.retract(o, "", func(text string) bool {
		match := newest && text == name
		newest = newest && !match
		return match
	}) > 0
}

// RetractMatching takes back all signals that match pattern and that the operation
// raised. It returns how many there were.
func (o *Operation) RetractMatching(pattern string) int {
	if o == nil {
		return 0
	}
	p := compile(pattern)
	return o.engine.ledger.retract(o, byPattern(p), p.matches)
}

// Has reports whether the operation has raised a signal that matches pattern, and has not
// retracted it.
func (o *Operation) Has(pattern string) bool {
	p := compile(pattern)
	return slices.ContainsFunc(o.Signals(), func(s Signal) bool { return p.matches(s.Name) })
}

// Signals lists the signals the operation has raised and not taken back, oldest
// first.
func (o *Operation) Signals() []Signal {
	if o == nil {
		return nil
	}
	l := &o.engine.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.signals(o.ownFacts())
}

// answered reports whether the operation has ended and its waiters may be answered.
// engine.mu is held.
func (o *Operation) answered() bool { return o.status&StatusFinished != 0 && o.marks&untold == 0 }

// snapshot copies what can be seen of the operation. engine.mu is held. The parent
// is not filled in, because finding it runs foreign code.
func (o *Operation) snapshot() Snapshot {
	c := o.engine.clock
	s := Snapshot{
		ID:       o.id,
		Lane:     o.engine.lanes[o.lane].Name,
		Class:    o.engine.classes[o.class].Name,
		Status:   o.status,
		Enqueued: c.wall(o.enqueued),
		Started:  c.wall(o.started),
		Finished: c.wall(o.finished),
		Err:      o.err,
	}
	if o.status != StatusSucceeded {
		s.Item = o.body.item()
	}
	if d := o.rest.Load(); d != nil && d.suspension != nil {
		for _, w := range d.waits {
			if w.what != "" {
				s.WaitsFor = append(s.WaitsFor, w.what)
			}
		}
	}
	l := &o.engine.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Key = o.key
	if d := o.rest.Load(); d != nil && d != evicted {
		s.Pins = d.pins
		s.Signals = l.signals(o.ownFacts())
		s.Values = maps.Clone(d.values)
	}
	return s
}

func (o *Operation) cause() error {
	if d := o.rest.Load(); d != nil {
		return d.cause
	}
	return nil
}
