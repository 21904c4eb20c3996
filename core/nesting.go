package core

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// nestedWait is a wait inside a body, which keeps its slot meanwhile. Waits that
// can end only when each other have ended would hang for ever; the one that closes
// such a circle is refused instead. An operation is known by its context: a body
// that waits with another one is not seen.
type nestedWait struct {
	awaited
	by      *Operation
	number  uint64        // in the order in which they began
	refused chan struct{} // closed if it turns out to be hopeless later on
}

// awaited is what is waited for: something in an engine, namely
type awaited struct {
	engine *engine
	on     *Operation // the end of this one,
	flush  *flush     // or of these,
	room   *waiter    // or room in a queue
}

// nested are the nested waits of the process. The lock is taken before those of
// engines. That it is global costs little, as those who take it are about to park.
var nested struct {
	mu      sync.Mutex
	waiting waiting
	number  uint64 // of the newest
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

// wait waits until done is closed. When ctx ends first it returns its cause, and if
// done could never be closed, ErrWouldDeadlock.
func (a awaited) wait(ctx context.Context, done <-chan struct{}) error {
	var refused <-chan struct{}
	if by := operationIn(ctx); by != nil {
		w := &nestedWait{awaited: a, by: by, refused: make(chan struct{})}
		if err := w.begin(); err != nil {
			return err
		}
		defer w.end()
		refused = w.refused
	} else if ctx.Done() == nil { // a select would cost more
		<-done
		return nil
	}
	select {
	case <-done:
		return nil
	case <-refused:
		return ErrWouldDeadlock
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin enters the wait, or returns ErrWouldDeadlock if it could never end.
func (w *nestedWait) begin() error {
	nested.mu.Lock()
	defer nested.mu.Unlock()
	if nested.waiting == nil {
		nested.waiting = make(waiting)
	}
	if len(nested.waiting[w.by]) == 0 {
		w.by.engine.nested++
	}
	nested.waiting[w.by] = append(nested.waiting[w.by], w)
	nested.number++
	w.number = nested.number
	// Most waits end even if nothing else that waits ever does.
	if !nested.waiting.letEnd(w) && nested.waiting.behind(w.by).stuck()[w.by] != nil {
		w.remove()
		return ErrWouldDeadlock
	}
	return nil
}

func (w *nestedWait) end() {
	nested.mu.Lock()
	defer nested.mu.Unlock()
	w.remove()
}

// remove takes the wait out, if it is in.
func (w *nestedWait) remove() {
	waits := nested.waiting[w.by]
	rest := without(waits, w)
	switch {
	case len(rest) == len(waits):
	case len(rest) > 0:
		nested.waiting[w.by] = rest
	default:
		delete(nested.waiting, w.by)
		w.by.engine.nested--
		if len(nested.waiting) == 0 {
			nested.waiting = nil // a Go map never shrinks
		}
	}
}

// refuseStuck refuses waits for e that have become hopeless because its limit was
// lowered, the newest first, until none is.
func refuseStuck(e *engine) {
	nested.mu.Lock()
	defer nested.mu.Unlock()
	for {
		stuck := nested.waiting.stuck()
		var last *nestedWait
		for _, waits := range stuck {
			for _, w := range waits {
				if w.engine == e && (last == nil || w.number > last.number) && !stuck.letEnd(w) {
					last = w
				}
			}
		}
		if last == nil {
			return
		}
		last.remove()
		close(last.refused)
	}
}

// behind returns by and those on whose ends its own may depend.
func (all waiting) behind(by *Operation) waiting {
	found := waiting{by: all[by]}
	for queue := []*Operation{by}; len(queue) > 0; queue = queue[1:] {
		for _, w := range all[queue[0]] {
			for _, o := range w.holders() {
				if all[o] != nil && found[o] == nil {
					found[o] = all[o]
					queue = append(queue, o)
				}
			}
		}
	}
	return found
}

// holders returns the running operations on whose ends w may depend.
func (w *nestedWait) holders() []*Operation {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	if w.on != nil && w.on.status != StatusPending {
		return []*Operation{w.on}
	}
	return w.engine.running.appendTo(nil)
}

// stuck returns those that can never end. All are taken to be until one after the
// other turns out not to.
func (all waiting) stuck() waiting {
	stuck := maps.Clone(all)
	for found := true; found; {
		found = false
		for by, waits := range stuck {
			if !slices.ContainsFunc(waits, func(w *nestedWait) bool { return !stuck.letEnd(w) }) {
				delete(stuck, by)
				found = true
			}
		}
	}
	return stuck
}

// letEnd reports whether w would end if the operations in stuck never did.
func (stuck waiting) letEnd(w *nestedWait) bool {
	e := w.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	e.collect() // or they have no turn yet
	switch {
	case w.on != nil:
		return w.on.status == StatusRunning && stuck[w.on] == nil ||
			w.on.status == StatusPending && stuck.letStart(w.on) ||
			w.on.status&StatusFinished != 0
	case w.flush != nil:
		return stuck.leave(e, 1, w.flush.includes) &&
			(e.nested == 0 || !slices.ContainsFunc(e.scheduler.all(), func(o *Operation) bool { return w.flush.includes(o) && !stuck.letStart(o) }))
	}
	return stuck.letIn(w.room)
}

// letStart reports whether o, which is not running yet, could start then. Its
// engine is locked.
func (stuck waiting) letStart(o *Operation) bool {
	e := o.engine
	return stuck.leave(e, e.limit, func(*Operation) bool { return true }) &&
		stuck.leave(e, e.lanes[o.lane].Limit, func(by *Operation) bool { return by.lane == o.lane }) &&
		stuck.leave(e, e.perKey, func(by *Operation) bool { return by.turn != nil && by.turn.key.text == o.key })
}

// letIn reports whether there would be room for w then: whether fewer of those
// before it than there are places never start. Its engine is locked.
func (stuck waiting) letIn(w *waiter) bool {
	e := w.operation.engine
	if e.nested == 0 {
		return true
	}
	in := &e.intake
	in.mu.Lock()
	defer in.mu.Unlock()
	q := &in.queues[w.operation.lane]
	n := slices.Index(q.waiters, w)
	if n < 0 {
		return true // it has been let in, or turned away
	}
	before := in.arrived.appendTo(e.scheduler.all()) // some may have been let in since they were collected
	before = slices.DeleteFunc(before, func(o *Operation) bool { return o.lane != w.operation.lane })
	for _, w := range q.waiters[:n] {
		before = append(before, w.operation)
	}
	return uint64(len(slices.DeleteFunc(before, stuck.letStart))) < q.limit
}

// leave reports whether those in stuck that use them leave some of so many slots of
// e, 0 meaning any number, to others. e is locked.
func (stuck waiting) leave(e *engine, slots int, use func(*Operation) bool) bool {
	if slots == 0 || e.nested < slots {
		return true
	}
	for o := e.running.head; o != nil; o = o.next {
		if stuck[o] != nil && use(o) {
			if slots--; slots == 0 {
				return false
			}
		}
	}
	return true
}
