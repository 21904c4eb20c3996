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
type intake struct {
	waiting atomic.Int64 // Enqueues that wait for room
	fresh   atomic.Bool  // arrived is not empty; changed with mu held

	_ cacheLine

	mu       sync.Mutex
	arrived  opList
	nextID   OperationID // the rest of a block of ids:
	lastID   OperationID
	epoch    uint32 // see engine.Flush
	closed   bool
	queues   []laneQueue
	only     [1]laneQueue // of a coordinator without lanes
	rejected uint64
}

// laneQueue is what the intake knows of the pending operations of a lane, here
// and in the scheduler.
type laneQueue struct {
	limit    uint64
	accepted uint64
	left     uint64 // of these, how many are known to be pending no more
	waiters  []*waiter
}

func (q *laneQueue) full() bool { return q.accepted-q.left >= q.limit }

func (in *intake) init(opts *Options) {
	in.queues = in.only[:]
	if len(opts.Lanes) > 0 {
		in.queues = make([]laneQueue, len(opts.Lanes))
	}
	in.only[0].limit = uint64(opts.MaxQueued)
	for i := range opts.Lanes {
		in.queues[i].limit = uint64(opts.Lanes[i].Depth)
	}
}

// accepted is the number of operations ever accepted. mu is held.
func (in *intake) accepted() (n uint64) {
	for i := range in.queues {
		n += in.queues[i].accepted
	}
	return n
}

// waiter is an Enqueue that waits for room.
type waiter struct {
	operation *Operation
	settled   chan struct{} // closed when accepted or err is known
	accepted  bool
	err       error
}

// Ids are handed out to coordinators in blocks, so that these do not contend.
const idBlock = 64

var operationIDs atomic.Uint64

// accept takes an operation in. mu is held and there is room.
func (in *intake) accept(o *Operation) {
	if in.nextID == in.lastID {
		in.lastID = OperationID(operationIDs.Add(idBlock))
		in.nextID = in.lastID - idBlock
	}
	in.nextID++
	o.id = in.nextID
	o.epoch = in.epoch
	o.status = StatusPending
	in.arrived.push(o)
	in.queues[o.lane].accepted++
	if !in.fresh.Load() {
		in.fresh.Store(true)
	}
}

// offer takes an operation in if there is certainly room and nobody waits for it.
func (in *intake) offer(o *Operation) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	q := &in.queues[o.lane]
	switch {
	case in.closed:
		return ErrClosed
	case len(q.waiters) > 0, q.full():
		return ErrFull
	}
	in.accept(o)
	return nil
}

// reject counts an item that was not accepted because of err, and returns the
// error to tell: that the intake is closed goes before anything else.
func (in *intake) reject(err error) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.rejected++
	if in.closed {
		return ErrClosed
	}
	return err
}

// queue lets an operation wait for room. mu is held.
func (in *intake) queue(o *Operation) *waiter {
	w := &waiter{operation: o, settled: make(chan struct{})}
	q := &in.queues[o.lane]
	q.waiters = append(q.waiters, w)
	in.waiting.Add(1)
	return w
}

// unqueue ends the wait of w because of err, unless it is settled by now.
func (in *intake) unqueue(w *waiter, err error) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if w.accepted || w.err != nil {
		return w.err
	}
	q := &in.queues[w.operation.lane]
	q.waiters = without(q.waiters, w)
	in.waiting.Add(-1)
	return err
}

// admit lets those in who wait for a lane, as many as there is room for when so
// many have left its queue. It reports whether it let anybody in.
func (in *intake) admit(lane uint8, left uint64) bool {
	if in.waiting.Load() == 0 {
		return false
	}
	in.mu.Lock()
	q := &in.queues[lane]
	q.left = max(q.left, left)
	n := 0
	for n < len(q.waiters) && !q.full() {
		q.waiters[n].accepted = true
		in.accept(q.waiters[n].operation)
		n++
	}
	admitted := q.waiters[:n:n]
	if q.waiters = q.waiters[n:]; len(q.waiters) == 0 {
		q.waiters = nil // or it would keep those who were in it
	}
	in.waiting.Add(int64(-n))
	in.mu.Unlock()
	for _, w := range admitted {
		close(w.settled)
	}
	return n > 0
}

// close ends the intake; who waits for room is told so. It reports whether it was
// open.
func (in *intake) close() (first bool) {
	in.mu.Lock()
	first = !in.closed
	in.closed = true
	var waiters []*waiter
	for i := range in.queues {
		waiters = append(waiters, in.queues[i].waiters...)
		in.queues[i].waiters = nil
	}
	for _, w := range waiters {
		w.err = ErrClosed
	}
	in.waiting.Add(int64(-len(waiters)))
	in.mu.Unlock()
	for _, w := range waiters {
		close(w.settled)
	}
	return first
}
