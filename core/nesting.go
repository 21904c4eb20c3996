package core

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// nestedWait is a wait inside a body, which keeps its slot meanwhile: for another
// operation, for all operations of an engine, or for room in a queue. Waits that
// can end only when each other have ended would hang for ever; the one that
// closes such a circle is refused instead. An operation is known by its context: a
// body that waits with another one is not seen.
type nestedWait struct {
	by     *Operation
	engine *engine    // in which something is waited for:
	on     *Operation // this one,
	flush  *flush     // or these, or else for room
}

// nested are the nested waits of the process. The lock is taken before those of
// engines. That it is global costs little, as those who take it are about to park.
var nested struct {
	mu      sync.Mutex
	waiting waiting
}

// waiting are operations that wait, and for what. One that waits for several
// things at once does so on several goroutines, and ends when all of them do.
type waiting map[*Operation][]*nestedWait

// operationIn returns the operation whose body waits if somebody waits with ctx, or
// nil.
func operationIn(ctx context.Context) *Operation {
	o := OperationFrom(ctx)
	if o == nil {
		return nil
	}
	o.engine.mu.Lock()
	defer o.engine.mu.Unlock()
	if o.status != StatusRunning {
		return nil
	}
	return o
}

// begin enters the wait, or returns ErrWouldDeadlock if it could never end.
func (w *nestedWait) begin() error {
	if w.by == nil {
		return nil
	}
	nested.mu.Lock()
	defer nested.mu.Unlock()
	if nested.waiting == nil {
		nested.waiting = make(waiting)
	}
	if len(nested.waiting[w.by]) == 0 {
		w.by.engine.nested++
	}
	nested.waiting[w.by] = append(nested.waiting[w.by], w)
	if w.hangs() {
		w.remove()
		return ErrWouldDeadlock
	}
	return nil
}

func (w *nestedWait) end() {
	if w.by == nil {
		return
	}
	nested.mu.Lock()
	defer nested.mu.Unlock()
	w.remove()
}

func (w *nestedWait) remove() {
	if rest := without(nested.waiting[w.by], w); len(rest) > 0 {
		nested.waiting[w.by] = rest
		return
	}
	delete(nested.waiting, w.by)
	w.by.engine.nested--
	if len(nested.waiting) == 0 {
		nested.waiting = nil // a Go map never shrinks
	}
}

// hangs reports whether w can never end. nested.mu is held.
func (w *nestedWait) hangs() bool {
	if nested.waiting.ends(w) {
		return false // most do, even if nothing else that waits ever ended
	}
	// All are taken to hang until one after the other turns out not to.
	hanging := maps.Clone(nested.waiting)
	for found := true; found; {
		found = false
		for by, waits := range hanging {
			if !slices.ContainsFunc(waits, func(w *nestedWait) bool { return !hanging.ends(w) }) {
				delete(hanging, by)
				found = true
			}
		}
	}
	return hanging[w.by] != nil
}

// ends reports whether w would end if the operations in hanging never did.
func (hanging waiting) ends(w *nestedWait) bool {
	e := w.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case w.on == nil && w.flush == nil:
		return hanging.leave(e, e.limit, nil)
	case w.on != nil && w.on.status == StatusPending:
		o := w.on
		return hanging.leave(e, e.limit, nil) &&
			hanging.leave(e, e.lanes[o.lane].Limit, func(by *Operation) bool { return by.lane == o.lane }) &&
			(o.turn == nil || hanging.leave(e, e.perKey, func(by *Operation) bool { return by.turn != nil && by.turn.key == o.turn.key }))
	case w.on != nil:
		return w.on.status != StatusRunning || hanging[w.on] == nil
	case w.flush.left == 0:
		return true
	case e.scheduler.pending()+e.intake.arrivals() > 0 && !hanging.leave(e, e.limit, nil):
		return false
	}
	return hanging.leave(e, 1, func(by *Operation) bool { return int32(by.epoch-w.flush.epoch) <= 0 })
}

// leave reports whether those in hanging leave some of so many slots of e, 0
// meaning any number, to others. Of hanging only those count for which uses, unless
// it is nil, reports true. e.mu is held.
func (hanging waiting) leave(e *engine, slots int, uses func(*Operation) bool) bool {
	if slots == 0 || e.nested == 0 || uses == nil && e.nested < slots {
		return true
	}
	for by := range hanging {
		if by.engine == e && by.status == StatusRunning && (uses == nil || uses(by)) {
			if slots--; slots == 0 {
				return false
			}
		}
	}
	return true
}
