// This file decides which id an accepted item gets, and whether a worker has to start for it.

package core

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core/internal/sched"
	"github.com/ephemeralgo/ephemeral/core/internal/spin"
	"github.com/ephemeralgo/ephemeral/core/internal/window"
)

// Producers append to the intake behind a small lock, and workers move all of it to the scheduler when they run out
// of work. With one lock for both, an operation took almost twice as long; with shared cache lines, twice as long
// again. At most one worker searches: it has the token. When it finds nothing it parks the token and looks once more.
// A producer that finds the token parked takes it and starts a worker. So no wake-up is lost: the last look or its
// producer sees each arrival. While the limit is reached there is no token, and nobody looks.
//
// Rejected: a condition variable, because a wait must end with its context. A fixed set of workers: an idle
// coordinator would have goroutines. A channel as a semaphore: it cannot shrink while it is in use.

// intake is where producers put operations. It has a small lock, so that producers
// do not contend with workers. A worker without work moves all operations to the
// scheduler at once.
//
// Each class has a room in each lane.
type intake struct {
	fresh atomic.Bool // arrived is not empty; changed with mu held

	_ spin.CacheLine

	mu       sync.Mutex
	arrived  sched.List
	id       OperationID // id of the newest operation
	lastID   OperationID // last id of its block of ids
	closed   bool
	classes  int
	rejected uint64
	rooms    []room  // by lane, then by class
	only     [1]room // the array behind rooms if there is one room
}

func (in *intake) init(lanes []Lane, classes []Class) {
	in.classes = len(classes)
	in.rooms = append(in.only[:0], make([]room, len(lanes)*len(classes))...)
	for i := range in.rooms {
		in.rooms[i].Limit = uint64(max(0, cmp.Or(classes[i%len(classes)].Depth, lanes[i/len(classes)].Depth)))
	}
}

// at is the room of a class in a lane.
func (in *intake) at(lane, class uint8) *room { return &in.rooms[int(lane)*in.classes+int(class)] }

// accepted is the number of operations ever accepted. mu is held.
func (in *intake) accepted() (n uint64) {
	for i := range in.rooms {
		n += in.rooms[i].Accepted
	}
	return n
}

var operationIDs atomic.Uint64

// room is the room for an operation.
func (in *intake) room(o *Operation) *room { return in.at(o.sched.Lane, o.sched.Class) }

// accept takes an operation in, into that room. mu is held.
func (in *intake) accept(o *Operation, r *room) {
	in.number(o, r)
	in.arrived.Push(&o.sched)
	if !in.fresh.Load() {
		in.fresh.Store(true)
	}
}

// number gives an accepted operation its id and counts it. mu is held.
func (in *intake) number(o *Operation, r *room) {
	if in.id == in.lastID {
		in.lastID = OperationID(operationIDs.Add(window.Block))
		in.id = in.lastID - window.Block
	}
	in.id++
	o.owner.ID = in.id
	o.setStatus(StatusPending)
	r.Accepted++
}

// offer takes an operation in if there is certainly room for it.
func (in *intake) offer(o *Operation) (err error) {
	r := in.room(o)
	in.mu.Lock()
	switch {
	case in.closed:
		err = ErrClosed
	case r.Full():
		err = ErrFull
	default:
		in.accept(o, r)
	}
	in.mu.Unlock()
	return err
}

// wakeForArrival starts a worker if no goroutine looks for arrivals.
func (e *engine) wakeForArrival() {
	if e.token.Load() == tokenParked && e.token.CompareAndSwap(tokenParked, tokenTaken) {
		go e.loop()
	}
}
