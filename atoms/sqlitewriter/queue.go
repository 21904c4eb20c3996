package sqlitewriter

import (
	"context"
	"database/sql"
	"slices"
)

// item is one write: statements, or the function of a transaction.
type item struct {
	by     *Writer
	ctx    context.Context         // of the caller; of a Tx, it also ends with Close
	cancel context.CancelCauseFunc // of a Tx
	fn     func(context.Context, *Tx) error
	stmts  []Statement

	state   state // guarded by the lock of the file
	results []sql.Result
	stale   []string // keys to invalidate after the commit
	err     error
	done    chan struct{} // closed when it is settled
}

// state is where an item is.
type state uint8

const (
	stateWaiting state = iota + 1 // for room
	statePending                  // accepted
	stateRunning                  // in a group
	stateSettled
)

// queue decides which items share a transaction. It has no lock, goroutine or clock.
type queue struct {
	maxQueued, maxGroup int

	pending []*item // accepted, in order
	waiting []*item // for room, in order
	running map[*item]struct{}
	stats   Stats
}

// push puts an item at the end.
func (q *queue) push(it *item) {
	it.state = stateWaiting
	q.waiting = append(q.waiting, it)
	q.refill()
}

// refill accepts items for which there is room.
func (q *queue) refill() {
	for len(q.waiting) > 0 && len(q.pending) < q.maxQueued {
		it := q.waiting[0]
		q.waiting = slices.Delete(q.waiting, 0, 1)
		it.state = statePending
		q.pending = append(q.pending, it)
		q.stats.Enqueued++
	}
}

// take removes the next group: a function alone, or the statements before the next one.
func (q *queue) take() []*item {
	n := slices.IndexFunc(q.pending, func(it *item) bool { return it.fn != nil })
	if n < 0 {
		n = len(q.pending)
	}
	n = min(max(n, 1), q.maxGroup, len(q.pending))
	group := slices.Clone(q.pending[:n])
	q.pending = slices.Delete(q.pending, 0, n)
	for _, it := range group {
		it.state = stateRunning
		q.running[it] = struct{}{}
	}
	q.refill()
	return group
}

// withdraw settles an item that is in no group yet, and reports whether it did.
func (q *queue) withdraw(it *item, cause error) bool {
	is := func(other *item) bool { return other == it }
	switch it.state {
	case stateWaiting:
		q.waiting = slices.DeleteFunc(q.waiting, is)
		q.stats.Rejected++
	case statePending:
		q.pending = slices.DeleteFunc(q.pending, is)
		q.stats.Cancelled++
	default:
		return false
	}
	q.finish(it, cause)
	q.refill()
	return true
}

// settle ends an item of a group.
func (q *queue) settle(it *item, err error) {
	delete(q.running, it)
	switch {
	case err == nil:
		q.stats.Succeeded++
	case it.ctx.Err() != nil:
		q.stats.Cancelled++
	default:
		q.stats.Failed++
	}
	q.finish(it, err)
}

func (q *queue) finish(it *item, err error) {
	it.state, it.err = stateSettled, err
	close(it.done)
}

// turnAway ends the wait for room of the items of a handle.
func (q *queue) turnAway(w *Writer, cause error) {
	for _, it := range slices.Clone(q.waiting) {
		if it.by == w {
			q.withdraw(it, cause)
		}
	}
}

// of returns the accepted items of a handle that are not settled.
func (q *queue) of(w *Writer) (items []*item) {
	for it := range q.running {
		if it.by == w {
			items = append(items, it)
		}
	}
	for _, it := range q.pending {
		if it.by == w {
			items = append(items, it)
		}
	}
	return items
}

// A fault is why a transaction stored nothing, or maybe something.
type fault struct {
	err     error
	item    int  // that failed; -1 if it was not an item
	unknown bool // what is stored
}

// split divides a group after a fault: the items that have failed, and the groups to try
// again. An item that fails has spoilt the transaction for the others, which are tried
// without it. If it was the commit that failed, because of one of the items or because
// the disk is full, each half is tried. If it is not known what is stored, nothing is tried:
// it could be stored twice.
func (f fault) split(group []*item) (failed []*item, again [][]*item) {
	switch {
	case len(group) == 1 || f.unknown:
		return group, nil
	case f.item >= 0:
		rest := slices.Delete(slices.Clone(group), f.item, f.item+1)
		return group[f.item : f.item+1], [][]*item{rest}
	}
	half := len(group) / 2
	return nil, [][]*item{group[:half], group[half:]}
}
