// This file decides whether an item is accepted, waits for room, or is refused.

package core

import (
	"cmp"
	"context"
	"runtime/trace"
	"slices"
	"time"
)

// enqueue gives an operation to the engine. It waits for room only if wait is set.
func (e *engine) enqueue(ctx context.Context, o *Operation, d door, wait bool) error {
	e.made()
	if ctx == nil {
		panic(nilContext)
	}
	if wait && ctx.Err() != nil {
		return e.reject(context.Cause(ctx))
	}
	if d.err != nil {
		return e.reject(d.err)
	}
	o.engine, o.sched.Lane, o.sched.Class, o.sched.Value = e, d.lane, d.class, d.cost
	if o.base == nil {
		o.base = baseOf(ctx, time.Time{})
	}
	if trace.IsEnabled() {
		o.base = e.traceOf(ctx, o.base)
	}
	if !wait {
		o.sched.Flags |= brief
	}
	o.sched.Enqueued = e.clock.Now()
	if e.ruled && e.refuses(o.sched.Lane, o.sched.Class) {
		e.lockFresh() // when operations leave the window, their signals leave too
		e.mu.Unlock()
		if err := e.refusal(o.sched.Lane, o.sched.Class, o.sched.Enqueued); err != nil {
			return e.rejectItem(o, err)
		}
	}
	err := e.intake.offer(o)
	if err == ErrFull {
		err = e.enqueueFull(ctx, o, wait && !e.opts.DropOldest)
	}
	if err != nil {
		return e.rejectItem(o, err)
	}
	e.wakeForArrival()
	if e.ruled && e.refuses(o.sched.Lane, o.sched.Class) { // the signal came after the check above: its turnAway may have missed o
		e.wake()
	}
	if trace.IsEnabled() {
		e.tracePending(o)
	}
	if e.watchesPending.Load() {
		e.mu.Lock()
		e.seePending()
		e.unlock()
	}
	return nil
}

// tracePending logs why an operation that was accepted does not start.
func (e *engine) tracePending(o *Operation) {
	t := o.traced()
	if t == nil {
		return
	}
	e.lockFresh()
	var why string
	switch {
	case o.status() != StatusPending:
	case e.slots.Paused:
		why = "the coordinator is paused"
	case e.slots.Full():
		why = "all slots are taken"
	case e.ruled && e.defers(o.sched.Lane, o.sched.Class):
		why = "a signal defers it"
	case !e.scheduler.KeyFits(&o.sched):
		why = "its key is busy"
	case e.scheduler.NextTokens(o.sched.Class, e.clock.Now()) > 0:
		why = "its class has no tokens"
	case !e.scheduler.Fits(&o.sched):
		why = "its lane or its class is full"
	case e.scheduler.Len() > 1:
		why = "other operations go first"
	}
	if why != "" {
		t.waits = true
		trace.Log(t.holder, "waits", why)
	}
	e.mu.Unlock()
}

// rejectItem is reject for an item that has come.
func (e *engine) rejectItem(o *Operation, err error) error {
	o.traceEnd("rejected")
	e.tapeReject(o, err)
	return e.reject(err)
}

// reject counts an item that was not accepted because of err, and returns the error for
// the caller.
func (e *engine) reject(err error) error {
	in := &e.intake
	in.mu.Lock()
	defer in.mu.Unlock()
	in.rejected++
	switch {
	case in.closed: // is checked before anything else
		return e.errClosed
	case err == ErrFull:
		return e.errFull
	}
	return err
}

// enqueueFull continues enqueue when the queue seems to be full.
func (e *engine) enqueueFull(ctx context.Context, o *Operation, wait bool) error {
	beyond := wait && !e.ofRun && e.isOwn(ctx)
	if wait && !beyond {
		e.yieldForRoom(o)
	}
	var settled chan struct{}
	e.mu.Lock()
	e.intake.mu.Lock()
	e.refresh()
	e.intake.mu.Unlock()
	err := e.intake.offer(o)
	switch {
	case err != ErrFull:
	case beyond:
		e.acceptBeyond(o)
		e.overflow++
		err = nil
	case wait:
		if err = e.unwelcome(o); err != nil { // since the checks of the caller
			break
		}
		settled = make(chan struct{})
		o.done = settled
		e.waitForRoom(o)
		e.wakeLocked() // the operation may be able to start
	default:
		err = e.squeeze(o)
	}
	e.unlock()
	if settled == nil {
		return err
	}
	if trace.IsEnabled() {
		defer trace.StartRegion(ctx, e.name+": room").End()
	}
	if err := (awaited{engine: e, room: o}).wait(ctx, settled); err != nil {
		e.mu.Lock()
		defer e.unlock()
		if e.giveUpRoom(o) {
			e.wakeLocked() // the next operation of its key may be able to start
			return err
		}
	}
	return o.roomError()
}

// unwelcome returns why an operation must not wait for room, or nil. mu is held.
func (e *engine) unwelcome(o *Operation) error {
	if g := groupOf(o); g != nil && (g.halted != nil || g.ctx.Err() != nil) {
		return cmp.Or(g.halted, context.Cause(g.ctx))
	}
	if e.ruled && e.refuses(o.sched.Lane, o.sched.Class) {
		return e.refusal(o.sched.Lane, o.sched.Class, e.clock.Now())
	}
	return nil
}

// turnAway refuses what waits while a signal matches CancelOn: operations that wait for room, and pending ones
// unless the coordinator is paused. It reports whether there were any. mu is held.
func (e *engine) turnAway(now int64) (some bool) {
	if !e.refusing() {
		return false
	}
	e.collect()
	e.sweep(now) // when operations leave the window, their signals leave too
	waiting := operationsOf(e.scheduler.All())
	slices.SortFunc(waiting, byID) // first come those that wait for room, so that none is accepted when the others go
	for _, o := range waiting {
		if e.slots.Paused && o.sched.Flags&roomless == 0 || !e.refuses(o.sched.Lane, o.sched.Class) {
			continue
		}
		if err := e.refusal(o.sched.Lane, o.sched.Class, now); err != nil {
			e.endUnstarted(o, StatusRefused, err, now)
			some = true
		}
	}
	return some
}

// endUnstarted ends a pending operation, or a wait for room with that error. mu is held.
func (e *engine) endUnstarted(o *Operation, status Status, err error, now int64) {
	if o.sched.Flags&roomless == 0 {
		e.withdraw(o, status, err, now)
		return
	}
	o.err = err
	e.giveUpRoom(o)
	e.wakeLocked() // the next operation of its key may be able to start
}

// squeeze starts all that can start. Then it accepts an operation if there is room, if the
// operation can start, or in place of the oldest. mu is held.
func (e *engine) squeeze(o *Operation) error {
	now := e.clock.Now()
	e.waitForRoom(o)
	e.startAll(now)
	if !e.giveUpRoom(o) {
		return o.roomError()
	}
	if !e.opts.DropOldest {
		return ErrFull
	}
	oldest := e.oldest(o.sched.Lane, o.sched.Class)
	if oldest == nil {
		return ErrFull
	}
	e.acceptBeyond(o)
	e.collect() // before withdraw: if both have the same key, the key keeps its turn
	e.withdraw(oldest, StatusDropped, ErrDropped, now)
	return nil
}

// door is where items enter: a lane, perhaps a class, and what the items cost. If there is no such lane or class,
// it holds the error.
type door struct {
	lane, class uint8 // 0: no class
	cost        int64
	err         error
}

// inLane returns the door to the lane of that name, for items of the same class.
func (d door) inLane(e *engine, name string) door {
	i, err := find(e.made().opts.Lanes, name, ErrUnknownLane, e.name)
	return door{uint8(i), d.class, d.cost, cmp.Or(d.err, err)}
}

// inClass returns the door for items of the class of that name, to the same lane.
func (d door) inClass(e *engine, name string) door {
	i, err := find(e.made().opts.Classes, name, ErrUnknownClass, e.name)
	return door{d.lane, uint8(1 + i), d.cost, cmp.Or(d.err, err)}
}

// costing returns the door for items that cost n.
func (d door) costing(e *engine, n int) door {
	e.made()
	d.cost, d.err = int64(n), cmp.Or(d.err, checkCost(int64(n)))
	return d
}

// front is the door for items that name no lane.
func (e *engine) front() door {
	if d := (door{}).inLane(e, "normal"); d.err == nil {
		return d
	}
	return door{lane: uint8(len(e.lanes) - 1)}
}

// closeIntake ends the intake, and ends the waits for room with [ErrClosed]. It reports whether the
// intake was open. mu is held.
func (e *engine) closeIntake() (first bool) {
	e.intake.mu.Lock()
	first = !e.intake.closed
	e.intake.closed = true
	e.intake.mu.Unlock()
	for _, o := range operationsOf(e.scheduler.All()) {
		if e.giveUpRoom(o) {
			e.wakeLocked() // the next operation of its key may be able to start
		}
	}
	return first
}

// roomError returns nil if an operation that has waited for room was accepted, or why it was not.
func (o *Operation) roomError() error {
	if o.owner.ID != 0 {
		return nil
	}
	return cmp.Or(o.err, ErrClosed)
}

// acceptBeyond accepts an operation without room. mu is held, and the intake is open.
func (e *engine) acceptBeyond(o *Operation) {
	e.intake.mu.Lock()
	e.intake.accept(o, e.intake.room(o))
	e.intake.mu.Unlock()
}
