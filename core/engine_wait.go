package core

import (
	"context"
	"slices"
	"time"
)

// suspension is what an operation's body waits for. Guarded by engine.mu.
//
// An operation is suspended from the start of the first wait that gives up its slot
// to the end of the last one. Then it is resuming until it has a slot again, which
// it takes before anything that is pending.
type suspension struct {
	waits  []*bodyWait
	giving int           // of these, waits that give up the slot
	own    int           // of these in turn, waits for operations of the same engine
	lends  bool          // counts in engine.lent; for a resuming operation, if it did before
	ready  chan struct{} // of a resuming operation: closed when it has its slot
}

// bodyWait is a wait of an operation's body: for what it says, or for something in
// an engine. Guarded by the mu of the operation's engine.
type bodyWait struct {
	by           *Operation
	what         string
	on           awaited
	since, until time.Time

	gives  bool          // gives up the slot
	number uint64        // of a wait for operations of the same engine, in the order in which they began
	list   *[]*bodyWait  // that such a wait is in until they have ended
	done   chan struct{} // closed when that wait has ended, unless its context has
	err    error         // why it has ended if not by the end of the operation
	ready  chan struct{} // set when it has ended: closed when the body may go on; nil means at once
}

// awaited is what is waited for in an engine, namely
type awaited struct {
	engine *engine
	on     *Operation // the end of this one,
	flush  *flush     // or of these,
	group  *group     // or of these,
	room   *Operation // or room in a queue for this one
}

// wait waits until done is closed. When ctx ends first it returns its cause. If ctx
// is an operation's, Explain shows the wait.
func (a awaited) wait(ctx context.Context, done <-chan struct{}) error {
	if by := OperationFrom(ctx); by != nil {
		w := &bodyWait{by: by, on: a}
		w.start()
		defer w.end()
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

// start begins a wait, unless the operation has ended.
func (w *bodyWait) start() {
	e := w.by.engine
	e.mu.Lock()
	e.startWait(w)
	e.unlock()
}

// end undoes start, and returns when the body may go on.
func (w *bodyWait) end() {
	e := w.by.engine
	e.mu.Lock()
	e.endWait(w)
	e.unlock()
	if w.ready != nil {
		<-w.ready
	}
}

// WaitsFor says that the body waits for something that its coordinator does not know of,
// such as a timer, a lock or an answer. Until done is called, Explain shows the wait as a
// [ReasonBody]. The parameter what completes the sentence "it waits for", for example "a
// token of limiter api". The parameter until is the latest end of the wait; zero means
// that no end is known. The operation keeps its slot; [Operation.Suspend] gives it up.
// Several waits may be under way at once; done may be called many times. Wait, Do, Drain
// and Flush need no WaitsFor.
//
// It costs a lock and two allocations. Call it only when there is something to wait for.
func (o *Operation) WaitsFor(what string, until time.Time) (done func()) {
	if o == nil {
		return func() {}
	}
	w := &bodyWait{by: o, what: what, since: time.Now(), until: until}
	w.start()
	return w.end
}

// Suspend calls wait with ctx and returns its error. Meanwhile the operation gives up its
// slot, and that of its lane, so that others can run. It keeps its key: the next item of
// the key does not start. Explain and [Snapshot.WaitsFor] show the parameter what. It
// completes the sentence "it waits for", for example "approval of order 7".
//
// Suspend returns when the operation has a slot again. If all slots are taken after wait has
// returned, Suspend waits until a running operation ends; pending operations do not start
// before it. A cancellation or Close does not shorten this. If wait panics or calls
// runtime.Goexit, the operation first gets a slot again; then the panic or the exit
// continues.
//
// If several goroutines of a body wait, the operation is suspended from the start of the
// first wait to the end of the last one. Goroutines whose waits end earlier go on without
// a slot. Inside another Suspend, after the end of the operation, and on a nil Operation,
// Suspend only calls wait. [Options.MaxSuspended] bounds how many slots are given up at
// once.
//
// During Suspend, do not hold a mutex that other bodies lock. While they wait for the
// mutex, they keep the slot that its holder needs.
func (o *Operation) Suspend(ctx context.Context, what string, wait func(context.Context) error) error {
	need(wait != nil, "Suspend needs a function")
	if o == nil {
		return wait(ctx)
	}
	w := &bodyWait{by: o, what: what, since: time.Now(), gives: true}
	w.start()
	defer w.end()
	return wait(ctx)
}

// suspending returns the details of an operation that has not ended, with suspension.
// engine.mu is held.
func (o *Operation) suspending() *details {
	d := o.details()
	if d.suspension == nil {
		d.suspension = new(suspension)
	}
	return d
}

// startWait is bodyWait.start with mu held.
func (e *engine) startWait(w *bodyWait) {
	o := w.by
	if o.status&StatusAlive == 0 {
		return
	}
	d := o.suspending()
	d.waits = append(d.waits, w)
	if !w.gives {
		return
	}
	if d.giving++; w.number > 0 {
		d.own++
	}
	e.lend(d)
	if d.giving == 1 {
		if o.status == StatusRunning {
			e.running.remove(o)
			e.scheduler.suspend(o)
			o.status = StatusSuspended
		} else { // resuming; the goroutine that waits for the slot goes on without one
			e.unsuspend(o)
		}
		e.suspended.push(o)
		e.grant()
	}
	if e.full() {
		return // the slot has gone to a resuming operation, or is not lent
	}
	if e.scheduler.n > 0 || w.number > 0 && e.running.n+e.resuming.n == 0 {
		e.wakeLocked()
		return
	}
	e.token.CompareAndSwap(tokenNone, tokenParked)
	if e.intake.fresh.Load() { // looked at after parking, as a worker does
		e.wakeLocked()
	}
}

// endWait takes a wait out, if it is in, and with the last one that gave up the slot
// gets that back, or sets ready. mu is held.
func (e *engine) endWait(w *bodyWait) {
	o := w.by
	d := o.rest.Load()
	if d == nil || d.suspension == nil {
		return
	}
	i := slices.Index(d.waits, w)
	if i < 0 {
		return
	}
	d.waits = slices.Delete(d.waits, i, i+1)
	if w.gives {
		d.giving--
	}
	if w.number > 0 {
		d.own--
	}
	if d.giving > 0 || !w.gives {
		e.lend(d)
		return
	}
	if !e.regain(o) {
		e.suspended.remove(o)
		e.resuming.push(o)
		d.ready = make(chan struct{})
		w.ready = d.ready
	}
}

// regain gives an operation its slot back if one is free. mu is held.
func (e *engine) regain(o *Operation) bool {
	if e.running.n >= e.limit || !e.scheduler.resume(o) {
		return false
	}
	e.unsuspend(o)
	e.running.push(o)
	o.status = StatusRunning
	return true
}

// unsuspend takes an operation that gives up its slot no longer out of its list. mu is held.
func (e *engine) unsuspend(o *Operation) {
	d := o.rest.Load()
	if d.ready == nil {
		e.suspended.remove(o)
	} else {
		e.resuming.remove(o)
		e.out.close(d.ready)
		d.ready = nil
	}
	e.lend(d)
}

// grant gives free slots back to resuming operations, first come first served. It is
// called wherever a slot becomes free, so that while mu is free none of them waits for
// a slot that it could have. mu is held.
func (e *engine) grant() {
	for o := e.resuming.head; o != nil && e.running.n < e.limit; {
		next := o.next
		e.regain(o)
		o = next
	}
}

// lend counts an operation that has given up its slot against MaxSuspended, until it has it
// back, unless it waits for the end of another one of its engine, which could not start
// otherwise. mu is held.
func (e *engine) lend(d *details) {
	lends := d.giving > 0 && d.own == 0
	if lends == d.lends {
		return
	}
	if d.lends = lends; lends {
		e.lent++
	} else {
		e.lent--
	}
}

// abandonWaits forgets the waits of an operation whose body has returned while other
// goroutines of its wait. mu is held.
func (e *engine) abandonWaits(o *Operation) {
	d := o.rest.Load()
	d.waits, d.giving, d.own = nil, 0, 0
	e.unsuspend(o)
}

// caller returns the operation of this engine that ctx belongs to, or nil. Foreign says
// that the goroutine is one of its operations', but ctx is not.
func (e *engine) caller(ctx context.Context) (by *Operation, foreign bool) {
	by = OperationFrom(ctx)
	e.made().mu.Lock()
	none := e.alive()+e.telling == 0
	own := by != nil && by.engine == e && by.status&(StatusRunning|StatusSuspended) != 0
	e.mu.Unlock()
	if own {
		return by, false
	}
	return nil, !none && runsOn(e.number)
}

// isOwn reports whether the caller is an operation of this engine: by its context or
// by its goroutine.
func (e *engine) isOwn(ctx context.Context) bool {
	by, foreign := e.caller(ctx)
	return by != nil || foreign
}

// await waits for an operation to end and returns its error. When ctx ends first it
// returns its cause, after cancelling the operation if cancels is set. By is the
// operation of this engine that waits, or nil.
func (e *engine) await(ctx context.Context, o, by *Operation, cancels bool) error {
	e.mu.Lock()
	if o.answered() {
		defer e.mu.Unlock()
		return o.err
	}
	if by != nil && by.status&StatusAlive != 0 {
		e.collect()
		if o == by || o.status == StatusPending && o.turn != nil && e.keeps(by, o.turn.key.text) {
			e.mu.Unlock()
			return ErrWouldDeadlock
		}
		if err := e.awaitOwn(ctx, by, awaited{engine: e, on: o}, e.awaitedBy(o), cancels); err != nil {
			return err
		}
		return o.err
	}
	done := o.whenDone()
	e.mu.Unlock()
	if err := (awaited{engine: e, on: o}).wait(ctx, done); err != nil {
		if cancels {
			Control{e}.Cancel(o.id, err)
		}
		return err
	}
	return o.err
}

// awaitedBy is the list of the waits of other operations of the engine for the end of o.
// It is not with the details, because these go when o leaves the window, and that may be
// before its waits end. mu is held.
func (e *engine) awaitedBy(o *Operation) *[]*bodyWait {
	list := e.awaited[o]
	if list == nil {
		list = new([]*bodyWait)
		put(&e.awaited, o, list)
		o.marks |= awaitedOwn
	}
	return list
}

// whenDone is the channel that is closed when the operation is answered. engine.mu is
// held.
func (o *Operation) whenDone() chan struct{} {
	if o.done == nil {
		o.done = make(chan struct{})
		if o.answered() {
			close(o.done)
		}
	}
	return o.done
}

// awaitOwn waits for an operation or a group, of which list has the waits. By is the
// operation of this engine that waits, which is suspended meanwhile. If cancels is set
// and ctx ends first, what it waited for is cancelled. mu is held, and released.
func (e *engine) awaitOwn(ctx context.Context, by *Operation, on awaited, list *[]*bodyWait, cancels bool) error {
	e.waits++
	w := &bodyWait{by: by, on: on, gives: true, number: e.waits, done: make(chan struct{}), list: list}
	*list = append(*list, w)
	e.startWait(w)
	e.unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
		cause := context.Cause(ctx)
		e.mu.Lock()
		e.refuse(w, cause)
		e.unlock()
	}
	if cancels && w.err != nil {
		Control{e}.Cancel(on.on.id, w.err) // it may have the slot that is wanted back
	}
	if w.ready != nil {
		<-w.ready
	}
	return w.err
}

// keeps reports whether items of that key cannot start before the end of by. mu is
// held.
func (e *engine) keeps(by *Operation, key string) bool {
	return e.opts.MaxPerKey == 1 && by.turn != nil && by.turn.key.text == key
}

// refuse ends a wait for operations that have not ended. mu is held.
func (e *engine) refuse(w *bodyWait, err error) {
	i := slices.Index(*w.list, w)
	if i < 0 {
		return // it has
	}
	*w.list = slices.Delete(*w.list, i, i+1)
	w.err = err
	e.endWait(w)
	e.out.close(w.done)
}

// endWaits ends waits for operations that have ended, so that those that wait get their
// slots back. mu is held.
func (e *engine) endWaits(list *[]*bodyWait) {
	for _, w := range *list {
		e.endWait(w)
		e.out.close(w.done)
	}
	*list = nil
}

// breakCircle refuses the newest wait for an operation of this engine if none of these
// waits can end otherwise: nothing runs, nothing can start, and all that is suspended
// waits for operations of this engine. That happens with keys. mu is held.
func (e *engine) breakCircle(now int64) {
	for e.suspended.n > 0 && e.running.n+e.resuming.n+e.telling == 0 && !e.intake.fresh.Load() && e.scheduler.next(now, 0) == nil {
		var newest *bodyWait
		for o := e.suspended.head; o != nil; o = o.next {
			d := o.rest.Load()
			if d.own == 0 {
				return
			}
			for _, w := range d.waits {
				if newest == nil || w.number > newest.number {
					newest = w
				}
			}
		}
		e.refuse(newest, ErrWouldDeadlock)
	}
}
