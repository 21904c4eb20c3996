// This file decides what an operation is made of.

package core

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ephemeralgo/ephemeral/core/internal/sched"
	"github.com/ephemeralgo/ephemeral/core/signals"
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
	sched sched.Item // guarded by engine.mu; the first field: see operationOf

	owner  signals.Owner // its signals; the key is guarded by Sink.mu
	engine *engine
	body   body
	base   context.Context // context of the Enqueue: values only

	// Guarded by engine.mu.
	started int64
	err     error
	done    chan struct{} // closed at its end, if somebody waits for the end

	rare atomic.Pointer[details] // what few operations need; changed with engine.mu held
}

// operationOf returns the operation that an item is the first field of, or nil.
func operationOf(item *sched.Item) *Operation { return (*Operation)(unsafe.Pointer(item)) }

// operationsOf returns the operations of items.
func operationsOf(items []*sched.Item) []*Operation {
	operations := make([]*Operation, len(items))
	for i, item := range items {
		operations[i] = operationOf(item)
	}
	return operations
}

func (o *Operation) status() Status { return Status(o.sched.State) }

func (o *Operation) setStatus(s Status) { o.sched.State = uint8(s) }

// body is the item and the function to run; implemented by task.
type body interface {
	run(ctx context.Context) error
	item() any
	discard() // the item is no longer needed
	forget()  // the result is no longer needed
}

// marks are flags of the engine about an operation.
type marks = sched.Flags

const roomless = sched.Roomless // has not been accepted: its Enqueue waits for room

const (
	watched    marks = 2 << iota // some code waits for its end, or will ask for its result
	forced                       // started in spite of a deferral
	holding                      // may have held facts
	awaitedOwn                   // an operation of the same engine waits for its end, or has waited
	untold                       // has ended, and OnDone is being called
	grouped                      // belongs to a Group
	brief                        // its Enqueue did not want to wait for room
)

// details are made for an operation that has a real context, has stored something, or has waited.
// Guarded by engine.mu, but for the context.
type details struct {
	context atomic.Pointer[cancellation] // the real context; nil: none; see asked and ended
	real    cancellation                 // the memory of a real context
	values  map[string]any
	cause   error // cause of its cancellation, if it was cancelled while running
	*suspension
	taped *taped // while a tape runs
}

const nilContext = "core: the context is nil: use context.Background() if there is no other"

// details returns the operation's details, and makes them if there are none. engine.mu is held.
func (o *Operation) details() *details {
	d := o.rare.Load()
	if d != nil && d != askedOnly && d != endedOnly {
		return d
	}
	made := new(details)
	o.replaceDetails(d, made)
	return made
}

func (o *Operation) replaceDetails(old, made *details) {
	if old != nil {
		made.context.Store(old.context.Load())
	}
	o.rare.Store(made)
}

// answered reports whether the operation has ended and its waiters may be answered.
// engine.mu is held.
func (o *Operation) answered() bool {
	return o.status()&StatusFinished != 0 && o.sched.Flags&untold == 0
}

func (o *Operation) cause() error {
	if d := o.rare.Load(); d != nil {
		return d.cause
	}
	return nil
}

// cancellation is the real context behind an operationContext.
type cancellation struct {
	context.Context
	cancel context.CancelCauseFunc
}

// suspension has the waits of an operation's body. Guarded by engine.mu.
//
// An operation is suspended from the start of the first wait that gives up its slot
// to the end of the last one. Then it is resuming until it has a slot again, which
// it takes before anything that is pending in its lane and in lower ones.
type suspension struct {
	waits  []*bodyWait
	first  bodyWait      // the memory of the first wait; its by is set when it is used
	one    [1]*bodyWait  // the memory of waits, while there is at most one
	giving int           // how many of the waits give up the slot
	own    int           // how many of the giving waits are for operations of the same engine
	lends  bool          // counts in engine.lent; does not change while the operation is resuming
	ready  chan struct{} // while resuming: closed when it has its slot
}

// bodyWait is a wait of an operation's body: for something that the body names, or for
// something in an engine. Guarded by mu of the operation's engine.
type bodyWait struct {
	by           *Operation
	what         string
	on           awaited // its engine is nil: the wait is for what the text says
	since, until time.Time

	gives  bool          // gives up the slot
	ends   bool          // ends with the operation's own context, which need not be real for that
	over   bool          // the channel done is closed, or is about to be
	number uint64        // numbers the waits for operations of the same engine, in the order in which they began
	alone  [1]*bodyWait  // the memory of the list of waits for the same operation, if it is the first
	done   chan struct{} // closed when what it is for has ended, if that is of the same engine; and when err is set
	err    error         // why the wait has ended, if not by the end of what it is for
	ready  chan struct{} // set at the end of the wait: closed when the body may go on; nil: at once
}

// suspending returns the details of an operation that has not ended; suspension is set.
// engine.mu is held.
func (o *Operation) suspending() *details {
	if d := o.rare.Load(); d == nil || d == askedOnly {
		made := new(struct {
			details    details
			suspension suspension
		})
		made.details.suspension = &made.suspension
		o.replaceDetails(d, &made.details)
	}
	d := o.details()
	if d.suspension == nil {
		d.suspension = new(suspension)
	}
	return d
}

// whenDone returns the channel that is closed when the operation is answered. engine.mu is
// held.
func (o *Operation) whenDone() chan struct{} {
	if o.done == nil {
		o.done = make(chan struct{})
		if o.answered() {
			close(o.done)
		}
	}
	return o.done
}

// nobody is what a nil Operation prints.
var nobody = &Operation{engine: new(engine), base: context.Background()}
