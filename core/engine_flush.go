// This file decides when a wait for many operations is over.

package core

import (
	"context"
	"slices"

	"github.com/ephemeralgo/ephemeral/core/internal/lists"
)

// flush waits for some operations, or until there are none.
type flush struct {
	includes func(*Operation) bool // selects operations that have not ended; nil: all, until none is left
	left     int                   // 0: done
	done     chan struct{}
}

// ended records that o has ended, and reports whether the wait is over. o.engine.mu is held.
func (f *flush) ended(o *Operation) (over bool) {
	switch {
	case f.includes == nil:
		f.left = o.engine.unfinished()
	case f.includes(o):
		f.left--
	}
	return f.left == 0
}

// startFlush begins to wait for all operations accepted so far; nil if they have finished. mu is
// held.
func (e *engine) startFlush() *flush {
	left := e.unfinished() // collects
	newest := e.index.Newest()
	return e.expect(left, func(o *Operation) bool { return o.owner.ID <= newest })
}

// expect begins to wait for n operations; nil if n is 0. mu is held.
func (e *engine) expect(left int, includes func(*Operation) bool) *flush {
	if left == 0 {
		return nil
	}
	f := &flush{includes, left, make(chan struct{})}
	e.flushes = append(e.flushes, f)
	return f
}

// waitForAll calls start with mu held, and then waits for the flush that start returns.
func (e *engine) waitForAll(ctx context.Context, start func() *flush) error {
	if e.isOwn(ctx) {
		return ErrWouldDeadlock
	}
	e.mu.Lock()
	f := start()
	e.mu.Unlock()
	if f == nil {
		return nil
	}
	err := (awaited{engine: e, flush: f}).wait(ctx, f.done)
	if err == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.left == 0 {
		return nil
	}
	e.flushes = lists.Without(e.flushes, f)
	return err
}

// awaited is what a wait in an engine is for. One field is set.
type awaited struct {
	engine *engine
	on     *Operation // the end of this operation
	flush  *flush     // the end of these operations
	group  *group     // the end of these operations
	room   *Operation // room in a queue for this operation
}

// wait waits until done is closed. If ctx ends first, it returns the cause of ctx. If ctx belongs
// to an operation, Explain shows the wait.
func (a awaited) wait(ctx context.Context, done <-chan struct{}) error {
	if by := OperationFrom(ctx); by != nil {
		w := bodyWait{by: by, on: a, ends: endsByCancel(ctx)}.start()
		defer w.end()
		if w.ends {
			select {
			case <-done:
				return nil
			case <-w.done:
				return w.err
			}
		}
	} else if ctx.Done() == nil { // a select would cost more
		<-done
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a awaited) reason() (r Reason, holder *Operation, waits bool) {
	e := a.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	r = Reason{Kind: ReasonNested, Of: e.name}
	waited := func(*Operation) bool { return false } // one of several
	switch {
	case a.on != nil:
		holder, waits = a.on, !a.on.answered()
	case a.flush != nil:
		if r.Ahead, waits = a.flush.left, a.flush.left > 0; a.flush.includes == nil {
			r.Ahead = e.unfinished()
		}
		waited = func(o *Operation) bool { return a.flush.includes == nil || a.flush.includes(o) }
	case a.group != nil:
		r.Ahead = int(a.group.left.Load() &^ overBit)
		waits = r.Ahead > 0
		waited = func(o *Operation) bool { return groupOf(o) == a.group }
	default:
		waits = a.room.sched.Flags&roomless != 0
		r.Lane, r.Class = e.lanes[a.room.sched.Lane].Name, e.classes[a.room.sched.Class].Name
	}
	if started := e.started(); holder == nil {
		if i := slices.IndexFunc(started, waited); i >= 0 {
			holder = started[i]
		}
	}
	return r, holder, waits
}
