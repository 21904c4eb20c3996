package sqlitewriter

import (
	"context"
	"database/sql"
	"slices"

	lib "modernc.org/sqlite/lib"

	"github.com/ephemeralgo/ephemeral/core"
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

// take removes the next group: a transaction with a function, or the statements up to the next one.
func (q *queue) take() []*item {
	n := 0
	for n < min(len(q.pending), q.maxGroup) && (q.pending[n].fn == nil || n == 0) {
		if n++; q.pending[n-1].fn != nil {
			break
		}
	}
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

// mode is how a group is tried.
type mode uint8

const (
	modePlain   mode = iota // one transaction, in which no item fails
	modeGuarded             // one transaction with a savepoint for each item
	modeAlone               // a transaction for each item
	modeOver                // not at all: what is not settled has failed
)

// A fault is why an attempt stored nothing.
type fault struct {
	err     error
	started bool // the transaction had begun
	commit  bool // and was to be committed
}

// after returns how a group of n items is tried again after a fault. Without savepoints an
// item that fails spoils the group. With savepoints the group is spoilt by errors after
// which SQLite rolls back everything. A commit that fails because the disk is full has
// stored nothing, and a smaller one may succeed. After other failures of a commit nobody
// knows what is stored: to try again could store it twice.
func (m mode) after(n int, f fault) mode {
	switch {
	case n == 1 || !f.started || f.commit && code(f.err) != lib.SQLITE_FULL:
		return modeOver
	case m == modePlain && !f.commit:
		return modeGuarded
	}
	return modeAlone
}

// closedError is the error of a late write.
func (f *file) closedError() error { return f.named("", core.ErrClosed) }
