package core

import (
	"sync"
	"sync/atomic"
)

// intake is where producers leave operations, behind a small lock of its own, so
// that they do not contend with workers. A worker moves all of it to the scheduler
// at once when it runs out of work.
//
// How much room a lane has follows from what was accepted and what has left its
// queue since. The latter is counted by the engine; the intake knows it as of its
// last refresh, which errs on the side of "full", and then the engine is asked.
// Waiters come and go with the engine's lock held as well.
type intake struct {
	waiting atomic.Int64 // Enqueues that wait for room
	fresh   atomic.Bool  // arrived is not empty; changed with mu held

	_ cacheLine

	mu       sync.Mutex
	arrived  opList
	id       OperationID // of the newest operation
	lastID   OperationID // of the block of ids that it is of
	closed   bool
	queues   []laneQueue
	only     [1]laneQueue // of a coordinator with one lane or none
	rejected uint64
}

// laneQueue is what the intake knows of the pending operations of a lane, here
// and in the scheduler.
type laneQueue struct {
	limit    uint64
	accepted uint64
	left     uint64 // of these, how many are known to be pending no more
	waiters  opList // Enqueues that wait for room; those with done are told
}

func (q *laneQueue) full() bool { return q.accepted-q.left >= q.limit }

func (in *intake) init(lanes []Lane) {
	if in.queues = in.only[:]; len(lanes) > 1 {
		in.queues = make([]laneQueue, len(lanes))
	}
	for i := range lanes {
		in.queues[i].limit = uint64(max(0, lanes[i].Depth))
	}
}

// accepted is the number of operations ever accepted. mu is held.
func (in *intake) accepted() (n uint64) {
	for i := range in.queues {
		n += in.queues[i].accepted
	}
	return n
}

// Ids are handed out to coordinators in blocks, so that these do not contend.
const idBlock = 64

var operationIDs atomic.Uint64

// accept takes an operation in. mu is held.
func (in *intake) accept(o *Operation) {
	if in.id == in.lastID {
		in.lastID = OperationID(operationIDs.Add(idBlock))
		in.id = in.lastID - idBlock
	}
	in.id++
	o.id = in.id
	o.status = StatusPending
	in.arrived.push(o)
	in.queues[o.lane].accepted++
	if !in.fresh.Load() {
		in.fresh.Store(true)
	}
}

// offer takes an operation in if there is certainly room and no waiter for it.
func (in *intake) offer(o *Operation) (err error) {
	in.mu.Lock()
	q := &in.queues[o.lane]
	switch {
	case in.closed:
		err = ErrClosed
	case q.waiters.n > 0, q.full():
		err = ErrFull
	default:
		in.accept(o)
	}
	in.mu.Unlock()
	return err
}

// queue lets an operation wait for room. Its done, if any, is closed when it waits no
// more: it was accepted, or the intake has ended. The engine's lock is held.
func (in *intake) queue(o *Operation) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.queues[o.lane].waiters.push(o)
	in.waiting.Add(1)
}

// dequeue undoes queue. The engine's lock and mu are held.
func (in *intake) dequeue(o *Operation, out *engineEffects) {
	in.queues[o.lane].waiters.remove(o)
	in.waiting.Add(-1)
	if o.done != nil {
		out.close(o.done)
		o.done = nil
	}
}

// unqueue ends a wait without room. It reports false if that has ended by now. The
// engine's lock is held.
func (in *intake) unqueue(o *Operation, out *engineEffects) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	waits := o.id == 0 && !in.closed
	if waits {
		in.dequeue(o, out)
	}
	return waits
}

// admit accepts the first waiters of a lane, as many as there is room for, or the
// first one without room. The engine's lock and mu are held.
func (in *intake) admit(lane uint8, beyond bool, out *engineEffects) {
	q := &in.queues[lane]
	for q.waiters.n > 0 && (beyond || !q.full()) {
		o := q.waiters.head
		in.dequeue(o, out)
		in.accept(o)
		beyond = false
	}
}

// close ends the intake, and the waits for room with [ErrClosed]. It reports whether
// it was open. The engine's lock is held.
func (in *intake) close(out *engineEffects) (first bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	first = !in.closed
	in.closed = true
	for i := range in.queues {
		for waiters := &in.queues[i].waiters; waiters.n > 0; {
			in.dequeue(waiters.head, out)
		}
	}
	return first
}
