package core

import (
	"context"
	"sync"
	"sync/atomic"
)

// intake is where producers leave operations, behind a small lock of its own, so
// that they do not contend with workers. A worker moves all of it to the scheduler
// at once when it runs out of work.
//
// How much room there is follows from what was accepted and what has left the
// queue since. The latter is counted by the engine; the intake knows it as of its
// last refresh, which errs on the side of "full", and then the engine is asked.
type intake struct {
	limit   int          // pending operations, in the intake and the scheduler
	waiting atomic.Int64 // len(waiters)
	fresh   atomic.Bool  // arrived is not empty; changed with mu held

	_ cacheLine

	mu       sync.Mutex
	arrived  opList
	waiters  []*waiter
	accepted uint64
	left     uint64 // of these, how many are known to be pending no more
	rejected uint64
	epoch    uint32 // see engine.Flush
	closed   bool
	nextID   OperationID // the rest of a block of ids:
	lastID   OperationID
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
	in.accepted++
	if !in.fresh.Load() {
		in.fresh.Store(true)
	}
}

func (in *intake) full() bool { return in.accepted-in.left >= uint64(in.limit) }

// offer takes an operation in if there is certainly room and nobody waits for it.
func (in *intake) offer(o *Operation) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.closed:
		return ErrClosed
	case len(in.waiters) > 0, in.full():
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
	in.waiters = append(in.waiters, w)
	in.waiting.Add(1)
	return w
}

// wait waits until w is accepted. When ctx ends first it returns its cause, unless
// w was accepted at the same time.
func (in *intake) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.settled:
		return w.err
	case <-ctx.Done():
	}
	cause := context.Cause(ctx) // whose Value may be foreign code: not under the lock
	in.mu.Lock()
	defer in.mu.Unlock()
	if w.accepted || w.err != nil {
		return w.err
	}
	in.waiters = without(in.waiters, w)
	in.waiting.Add(-1)
	return cause
}

// admit lets those in who wait, as many as there is room for when so many have
// left the queue. It reports whether it let anybody in.
func (in *intake) admit(left uint64) bool {
	if in.waiting.Load() == 0 {
		return false
	}
	in.mu.Lock()
	in.left = max(in.left, left)
	n := 0
	for n < len(in.waiters) && !in.full() {
		in.waiters[n].accepted = true
		in.accept(in.waiters[n].operation)
		n++
	}
	admitted := in.waiters[:n:n]
	in.waiters = in.waiters[n:]
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
	waiters := in.waiters
	for _, w := range waiters {
		w.err = ErrClosed
	}
	in.waiters = nil
	in.waiting.Add(int64(-len(waiters)))
	in.mu.Unlock()
	for _, w := range waiters {
		close(w.settled)
	}
	return first
}
