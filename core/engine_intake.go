package core

import (
	"cmp"
	"sync"
	"sync/atomic"
)

// intake is where producers leave operations, behind a small lock of its own, so
// that they do not contend with workers. A worker moves all of it to the scheduler
// at once when it runs out of work.
//
// Each class has a room in each lane. How much of it is free follows from what was
// accepted and what has left since. The latter is counted by the engine; the intake
// knows it as of its last refresh, which errs on the side of "full", and then the
// engine is asked. That lets Enqueues wait; while one waits, its room is full.
type intake struct {
	fresh atomic.Bool // arrived is not empty; changed with mu held

	_ cacheLine

	mu       sync.Mutex
	arrived  opList
	id       OperationID // of the newest operation
	lastID   OperationID // of the block of ids that it is of
	closed   bool
	rooms    []room  // by lane and class
	only     [1]room // these, of a coordinator with one
	classes  int
	rejected uint64
}

// room is what the intake knows of the pending operations of a class in a lane, here and
// in the scheduler.
type room struct {
	limit    uint64
	accepted uint64
	left     uint64 // of these, how many are known to be pending no more
}

func (r *room) full() bool { return r.accepted-r.left >= r.limit }

func (in *intake) init(lanes []Lane, classes []Class) {
	in.classes = len(classes)
	in.rooms = append(in.only[:0], make([]room, len(lanes)*len(classes))...)
	for i := range in.rooms {
		in.rooms[i].limit = uint64(max(0, cmp.Or(classes[i%len(classes)].Depth, lanes[i/len(classes)].Depth)))
	}
}

// place is where the room of a lane and class is.
func (in *intake) place(lane, class uint8) int { return int(lane)*in.classes + int(class) }

// accepted is the number of operations ever accepted. mu is held.
func (in *intake) accepted() (n uint64) {
	for i := range in.rooms {
		n += in.rooms[i].accepted
	}
	return n
}

var operationIDs atomic.Uint64

// accept takes an operation in. mu is held.
func (in *intake) accept(o *Operation) {
	in.number(o)
	in.arrived.push(o)
	if !in.fresh.Load() {
		in.fresh.Store(true)
	}
}

// number makes an operation an accepted one. mu is held.
func (in *intake) number(o *Operation) {
	if in.id == in.lastID {
		in.lastID = OperationID(operationIDs.Add(idBlock))
		in.id = in.lastID - idBlock
	}
	in.id++
	o.id = in.id
	o.status = StatusPending
	in.rooms[in.place(o.lane, o.class)].accepted++
}

// offer takes an operation in if there is certainly room for it.
func (in *intake) offer(o *Operation) (err error) {
	in.mu.Lock()
	switch {
	case in.closed:
		err = ErrClosed
	case in.rooms[in.place(o.lane, o.class)].full():
		err = ErrFull
	default:
		in.accept(o)
	}
	in.mu.Unlock()
	return err
}
