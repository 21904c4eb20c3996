// This file decides when a body that waits gives up its slot, and when it gets one back.

package core

import (
	"context"
	"fmt"
	"runtime/trace"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/core/internal/lists"
	"github.com/ephemeralgo/ephemeral/core/internal/sched"
)

// start begins a wait like w, unless the operation has ended.
func (w bodyWait) start() *bodyWait {
	if trace.IsEnabled() {
		w.trace("waits")
	}
	e := w.by.engine
	e.mu.Lock()
	defer e.unlock()
	return e.startWait(w)
}

// end ends the wait, and returns when the body may go on.
func (w *bodyWait) end() {
	e := w.by.engine
	e.mu.Lock()
	e.endWait(w)
	e.unlock()
	if w.ready != nil {
		<-w.ready
	}
	if trace.IsEnabled() {
		w.trace("waited")
	}
}

// trace logs the start or the end of a wait of a body.
func (w *bodyWait) trace(category string) {
	what := w.what
	if category == "waits" && w.on.engine != nil {
		r, holder, _ := w.on.reason()
		if holder != nil {
			r.Holder = holder.owner.ID
		}
		what = r.String()
	}
	trace.Log((*operationContext)(w.by), category, what)
}

// startWait does the work of bodyWait.start with mu held.
func (e *engine) startWait(like bodyWait) *bodyWait {
	o := like.by
	if like.ends && like.done == nil {
		like.done = make(chan struct{})
	}
	if o.status()&StatusAlive == 0 {
		w := new(like)
		e.refuse(w, context.Canceled)
		return w
	}
	d := o.suspending()
	w := &d.first
	if w.by != nil {
		w = new(bodyWait)
	}
	*w = like
	if d.waits == nil {
		d.waits = d.one[:0]
	}
	d.waits = append(d.waits, w)
	if w.number > 0 {
		e.list(w)
	}
	if w.gives {
		e.giveUpSlot(o, d, w)
	}
	if w.ends && d.cause != nil {
		e.refuse(w, d.cause)
	}
	return w
}

// giveUpSlot suspends an operation when a wait begins. mu is held.
func (e *engine) giveUpSlot(o *Operation, d *details, w *bodyWait) {
	if d.giving++; w.number > 0 {
		d.own++
	}
	e.lend(d)
	if d.giving == 1 {
		if e.tape.Load() != nil {
			e.tapeAway(o)
		}
		if o.status() == StatusRunning {
			e.slots.Running.Remove(&o.sched)
			e.scheduler.Suspend(&o.sched, e.shadowTime(o))
			o.setStatus(StatusSuspended)
		} else { // it is resuming: the goroutine that waits for the slot goes on without a slot
			e.unsuspend(o)
		}
		e.suspended.Push(&o.sched)
		e.watch(o, suspended)
		e.grant()
	}
	if e.slots.Full() {
		return // a resuming operation has got the slot, or MaxSuspended is reached
	}
	if e.scheduler.Len() > 0 || w.number > 0 && e.slots.Running.Len()+e.scheduler.Wanting() == 0 {
		e.wakeLocked()
		return
	}
	e.token.CompareAndSwap(tokenNone, tokenParked)
	if e.intake.fresh.Load() { // checked after parking, as in a worker
		e.wakeLocked()
	}
}

// endWait removes a wait, if it is listed. If it was the last wait that gave up the slot,
// the operation gets a slot back, or ready is set. mu is held.
func (e *engine) endWait(w *bodyWait) {
	o := w.by
	d := o.rare.Load()
	if d == nil || d.suspension == nil {
		return
	}
	i := slices.Index(d.waits, w)
	if i < 0 {
		return
	}
	d.waits = slices.Delete(d.waits, i, i+1)
	w.on = awaited{} // the operation may stay in the window for longer than what it has waited for
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
	if e.tape.Load() != nil {
		e.tapeBack(o)
	}
	if e.tries {
		e.limitTrials(e.clock.Now())
	}
	free := e.slots.Free() && e.scheduler.Fits(&o.sched)
	if free && o.sched.Lane <= e.undisputed() {
		e.regain(o, false)
		return
	}
	e.suspended.Remove(&o.sched)
	d.ready = make(chan struct{})
	w.ready = d.ready
	e.watch(o, wants)
	e.scheduler.Want(&o.sched, e.clock.Now())
	if free { // pending operations of higher lanes may not be able to start
		e.wakeLocked()
	}
}

// regain gives an operation its slot back. Aged is what the scheduler has said. mu is held.
func (e *engine) regain(o *Operation, aged bool) {
	e.scheduler.Resume(&o.sched, aged, e.shadowTime(o))
	e.unsuspend(o)
	e.slots.Running.Push(&o.sched)
	o.setStatus(StatusRunning)
	e.watch(o, runs)
}

// unsuspend removes an operation that no longer gives up its slot from its list. mu is held.
func (e *engine) unsuspend(o *Operation) {
	d := o.rare.Load()
	if d.ready == nil {
		e.suspended.Remove(&o.sched)
	} else {
		e.scheduler.Unwant(&o.sched)
		e.out.close(d.ready)
		d.ready = nil
	}
	e.lend(d)
}

func (e *engine) grantSome() { e.giveBack(0, e.undisputed()) }

// giveBack gives free slots back to resuming operations, as long as such a one goes before
// what is pending in that lane. It reports whether there was one. mu is held.
func (e *engine) giveBack(now int64, before uint8) (given bool) {
	if e.scheduler.Wanting() > 0 && e.tries {
		e.limitTrials(e.clock.Now())
	}
	for e.scheduler.Wanting() > 0 && e.slots.Free() {
		item, aged := e.scheduler.Back(now, before)
		if item == nil {
			break
		}
		given = true
		e.regain(operationOf(item), aged)
	}
	return given
}

// undisputed is the lowest lane whose operations get their slots back whatever is pending.
// mu is held.
func (e *engine) undisputed() uint8 {
	last := uint8(len(e.lanes) - 1)
	if last == 0 || e.slots.Stopped() {
		return last
	}
	e.collect()
	return e.scheduler.Highest()
}

// lend counts an operation without its slot against MaxSuspended, until it has a slot
// again. It does not count an operation that waits for another one of its engine, because
// that one could not start otherwise. mu is held.
func (e *engine) lend(d *details) {
	lends := d.giving > 0 && d.own == 0
	if lends == d.lends {
		return
	}
	if d.lends = lends; lends {
		e.slots.Lent++
	} else {
		e.slots.Lent--
	}
}

// abandonWaits forgets the waits of an operation whose body has returned while goroutines
// of the body still wait. mu is held.
func (e *engine) abandonWaits(o *Operation) {
	d := o.rare.Load()
	d.waits, d.giving, d.own = nil, 0, 0
	e.unsuspend(o)
}

// caller returns the operation of this engine that ctx belongs to, or nil. Foreign says
// that the goroutine belongs to an operation of this engine, but ctx does not.
func (e *engine) caller(ctx context.Context) (by *Operation, foreign bool) {
	by = OperationFrom(ctx)
	e.made().mu.Lock()
	none := e.alive()+e.telling == 0
	own := by != nil && by.engine == e && by.status()&(StatusRunning|StatusSuspended) != 0
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

// await waits for an operation to end and returns its error. If ctx ends first, it
// returns the cause of ctx; if cancels is set, it cancels the operation before. By
// is the operation of this engine that waits, or nil.
func (e *engine) await(ctx context.Context, o, by *Operation, cancels bool) error {
	e.mu.Lock()
	if o.answered() {
		defer e.mu.Unlock()
		return o.err
	}
	if by != nil && by.status()&StatusAlive != 0 {
		e.collect()
		if o == by || o.status() == StatusPending && e.keeps(by, o.sched.Key()) {
			e.mu.Unlock()
			return ErrWouldDeadlock
		}
		if err := e.awaitOwn(ctx, by, awaited{engine: e, on: o}, cancels); err != nil {
			return err
		}
		return o.err
	}
	done := o.whenDone()
	e.mu.Unlock()
	if err := (awaited{engine: e, on: o}).wait(ctx, done); err != nil {
		if cancels {
			e.cancelByID(o.owner.ID, err)
		}
		return err
	}
	return o.err
}

// list adds a wait to the waits of operations of this engine for the same operation or group. The list
// is not part of that operation's details, because it may leave the window, and lose its details,
// before these waits end. mu is held.
func (e *engine) list(w *bodyWait) {
	o := w.on.on
	if o == nil {
		w.on.group.awaited = append(w.on.group.awaited, w)
		return
	}
	list := e.awaited[o]
	if list == nil {
		list = w.alone[:0]
		o.sched.Flags |= awaitedOwn
	}
	lists.Put(&e.awaited, o, append(list, w))
}

// awaitOwn waits for an operation or a group. By is the operation of this engine that
// waits; it is suspended meanwhile. If cancels is set and ctx ends first, the operation is
// cancelled. mu is held, and released.
func (e *engine) awaitOwn(ctx context.Context, by *Operation, on awaited, cancels bool) error {
	e.waits++
	w := e.startWait(bodyWait{by: by, on: on, gives: true, ends: endsByCancel(ctx), number: e.waits, done: make(chan struct{})})
	e.unlock()
	if trace.IsEnabled() {
		(&bodyWait{by: by, on: on}).trace("waits") // w may have ended
		defer w.trace("waited")
	}
	if w.ends {
		<-w.done
	} else {
		select {
		case <-w.done:
		case <-ctx.Done():
			cause := context.Cause(ctx)
			e.mu.Lock()
			e.refuse(w, cause)
			e.unlock()
		}
	}
	if cancels && w.err != nil {
		e.cancelByID(on.on.owner.ID, w.err) // the cancelled operation may have the slot that by needs
	}
	if w.ready != nil {
		<-w.ready
	}
	return w.err
}

// keeps reports whether items of that key cannot start before the end of by. mu is
// held.
func (e *engine) keeps(by *Operation, key string) bool {
	return e.opts.MaxPerKey == 1 && key != "" && by.sched.Key() == key
}

// refuse ends a wait, unless what it is for has ended. mu is held.
func (e *engine) refuse(w *bodyWait, err error) {
	if w.over || w.done == nil {
		return
	}
	w.err = err
	switch on := w.on; {
	case w.number == 0:
	case on.group != nil:
		on.group.awaited = lists.Without(on.group.awaited, w)
	default:
		lists.Put(&e.awaited, on.on, lists.Without(e.awaited[on.on], w))
	}
	e.endWaits([]*bodyWait{w})
}

// refuseAll ends the waits that end with the operation's own context. mu is held.
func (e *engine) refuseAll(o *Operation, cause error) {
	d := o.rare.Load()
	if d == nil || d.suspension == nil {
		return
	}
	for i := len(d.waits) - 1; i >= 0; i-- {
		if w := d.waits[i]; w.ends {
			e.refuse(w, cause) // which takes it out of d.waits
		}
	}
}

// endsByCancel reports whether ctx is the context of an operation that ends only when the operation
// ends or is cancelled: then a wait with ctx ends without a real context.
func endsByCancel(ctx context.Context) bool {
	c, ok := ctx.(*operationContext)
	return ok && c.engine.opts.Timeout == 0
}

// endWaits ends waits for operations that have ended, so that the waiting operations get
// their slots back. mu is held.
func (e *engine) endWaits(list []*bodyWait) {
	for _, w := range list {
		w.over = true
		e.endWait(w)
		e.out.close(w.done)
	}
}

// breakCircle refuses the newest wait for an operation of this engine if none of these waits can end otherwise:
// nothing runs, nothing can start even with tokens, and all suspended operations wait for operations of this
// engine. That happens with keys. mu is held.
func (e *engine) breakCircle(now int64) {
	for e.suspended.Len() > 0 && e.slots.Running.Len()+e.scheduler.Wanting()+e.telling == 0 && !e.intake.fresh.Load() && e.scheduler.Stuck(now) {
		var newest *bodyWait
		for item := e.suspended.First(); item != nil; item = item.Next() {
			d := operationOf(item).rare.Load()
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
		e.giveBack(now, sched.MaxLanes) // nothing else can start
	}
}

// unknown is the error for an id that is not in the window, where newest is the highest id
// so far. A lower id may belong to another coordinator.
func (e *engine) unknown(id, newest OperationID) error {
	text := fmt.Sprintf("core: operation %d was never given out by %q", id, e.name)
	if 0 < id && id <= newest {
		bounds := inWords.Replace(fmt.Sprintf("MaxTracked %d, MaxAge %v", e.opts.MaxTracked, e.opts.MaxAge))
		text = fmt.Sprintf("core: operation %d is not in the window of %q (%s): keep a Future or use a Group", id, e.name, bounds)
	}
	return &namedError{ErrUnknown, text}
}

var inWords = strings.NewReplacer("Tracked 0", "Tracked none", "Age 0s", "Age no limit", "h0m0s", "h", "m0s", "m")

// wait waits for an operation by id. The operation then keeps its result.
func (e *engine) wait(ctx context.Context, id OperationID) (*Operation, error) {
	e.lockFresh()
	o := e.index.Get(id)
	if o != nil {
		o.sched.Flags |= watched
	}
	newest := e.index.Newest()
	e.mu.Unlock()
	if o == nil {
		return nil, e.unknown(id, newest)
	}
	return o, e.waitFor(ctx, o)
}

// waitFor waits for an operation, unless the caller is that operation.
func (e *engine) waitFor(ctx context.Context, o *Operation) error {
	by, foreign := e.caller(ctx)
	if foreign && !e.ended(o) {
		return ErrWouldDeadlock
	}
	return e.await(ctx, o, by, false)
}

// do enqueues an operation and waits for its end; see Coordinator.Do.
func (e *engine) do(ctx context.Context, o *Operation, d door) error {
	by, foreign := e.caller(ctx)
	if by != nil {
		e.mu.Lock()
		foreign = e.keeps(by, o.owner.Key)
		e.mu.Unlock()
	}
	if foreign {
		return ErrWouldDeadlock
	}
	if deadline, ok := ctx.Deadline(); ok {
		o.base = baseOf(ctx, deadline)
	}
	if err := e.enqueue(ctx, o, d, true); err != nil {
		return err
	}
	return e.await(ctx, o, by, true)
}

// ended reports whether an operation has ended. After its end, neither its result nor its
// error changes.
func (e *engine) ended(o *Operation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return o.answered()
}
