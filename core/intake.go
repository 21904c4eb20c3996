package core

import (
	"context"
	"sync"
	"sync/atomic"
)

// intake is where producers leave operations, behind a small lock of its own, so
// that they do not contend with workers. A worker moves all of it to the scheduler
// at once when it runs out of work.
type intake struct {
	limit   int          // pending operations, in the intake and the scheduler
	backlog atomic.Int64 // how many there are; grows only with mu held
	waiting atomic.Int64 // how many Enqueues wait for room

	mu       sync.Mutex
	arrived  opList
	waiters  []*waiter
	accepted uint64
	rejected uint64
	epoch    uint32 // see engine.Flush
	closed   bool
}

// waiter is an Enqueue that waits for room.
type waiter struct {
	operation *Operation
	settled   chan struct{} // closed when accepted or err is known
	accepted  bool
	err       error
}

var operationIDs atomic.Uint64

// accept takes an operation in. mu is held and there is room.
func (in *intake) accept(o *Operation) {
	o.id = OperationID(operationIDs.Add(1))
	o.epoch = in.epoch
	o.status = StatusPending
	in.arrived.push(o)
	in.accepted++
	in.backlog.Add(1)
}

func (in *intake) full() bool { return in.backlog.Load() >= int64(in.limit) }

// offer takes an operation in if there is room and nobody waits for it already.
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

// reject counts an item that was not accepted.
func (in *intake) reject() {
	in.mu.Lock()
	in.rejected++
	in.mu.Unlock()
}

// wait takes an operation in when there is room for it, after those that waited
// before. When ctx ends first it returns its cause, unless the operation was
// taken in at the same time.
func (in *intake) wait(ctx context.Context, o *Operation) error {
	w := &waiter{operation: o, settled: make(chan struct{})}
	in.mu.Lock()
	if in.closed {
		in.mu.Unlock()
		return ErrClosed
	}
	in.waiters = append(in.waiters, w)
	in.waiting.Add(1)
	granted := in.grant() // room may have come before waiting was known
	in.mu.Unlock()
	settle(granted)
	select {
	case <-w.settled:
		return w.err
	case <-ctx.Done():
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if w.accepted || w.err != nil {
		return w.err
	}
	in.waiters = without(in.waiters, w)
	in.waiting.Add(-1)
	return context.Cause(ctx)
}

// grant accepts as many waiters as there is room for and returns them, to be
// settled when mu is released.
func (in *intake) grant() (granted []*waiter) {
	n := 0
	for n < len(in.waiters) && !in.full() {
		w := in.waiters[n]
		w.accepted = true
		in.accept(w.operation)
		n++
	}
	if n == 0 {
		return nil
	}
	granted = in.waiters[:n:n]
	in.waiters = in.waiters[n:]
	in.waiting.Add(int64(-n))
	return granted
}

// admit lets waiters in if there are any and there is room. It reports whether it
// did.
func (in *intake) admit() bool {
	if in.waiting.Load() == 0 {
		return false
	}
	in.mu.Lock()
	granted := in.grant()
	in.mu.Unlock()
	settle(granted)
	return len(granted) > 0
}

func settle(waiters []*waiter) {
	for _, w := range waiters {
		close(w.settled)
	}
}

// close ends the intake; who waits for room is told so.
func (in *intake) close() {
	in.mu.Lock()
	in.closed = true
	waiters := in.waiters
	for _, w := range waiters {
		w.err = ErrClosed
	}
	in.waiters = nil
	in.waiting.Add(int64(-len(waiters)))
	in.mu.Unlock()
	settle(waiters)
}
