// This file decides how an operation ends: with which status, and when it leaves the window.

package core

import (
	"cmp"
	"context"
	"maps"
	"runtime/trace"
	"slices"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// cancelAll cancels the operations with a status: the operations of g, or all if g is nil.
func (e *engine) cancelAll(status Status, g *group, cause error) {
	e.mu.Lock()
	e.cancelLocked(status, g, cause)
	e.unlock()
}

// cancelLocked is cancelAll with mu held.
func (e *engine) cancelLocked(status Status, g *group, cause error) {
	e.collect()
	alive := append(operationsOf(e.scheduler.All()), e.started()...)
	slices.SortFunc(alive, byID) // first come those that wait for room
	for _, o := range alive {
		switch {
		case g != nil && groupOf(o) != g:
		case o.status()&status != 0:
			e.cancel(o, cause)
		case g != nil && o.sched.Flags&roomless != 0:
			e.endUnstarted(o, StatusCancelled, cause, e.clock.Now())
		}
	}
}

// cancel cancels an operation that has not ended. If it has started, its context ends; else it does
// not start. mu is held.
func (e *engine) cancel(o *Operation, cause error) {
	if o.status() == StatusPending {
		e.withdraw(o, StatusCancelled, cause, e.clock.Now())
		return
	}
	if d := o.details(); d.cause == nil { // the first cause counts
		d.cause = cause
		if e.stuck.bodies != nil {
			e.watchUntil(e.stuck.cancelled(o.owner.ID, cause, e.clock.Now()))
		}
		e.refuseAll(o, cause)
	}
	e.out.cancels = append(e.out.cancels, cancelled{o, cause})
}

// snapshot copies the visible state of the operation. engine.mu is held. It does not set the
// parent, because finding it runs foreign code.
func (e *engine) snapshot(o *Operation) Snapshot {
	c := e.clock
	s := Snapshot{
		ID:       o.owner.ID,
		Lane:     e.lanes[o.sched.Lane].Name,
		Class:    e.classes[o.sched.Class].Name,
		Status:   o.status(),
		Enqueued: c.Wall(o.sched.Enqueued),
		Started:  c.Wall(o.started),
		Err:      o.err,
	}
	if o.status()&StatusFinished != 0 {
		s.Finished = c.Wall(o.sched.Value)
	}
	if o.status() != StatusSucceeded {
		s.Item = o.body.item()
	}
	if d := o.rare.Load(); d != nil && d.suspension != nil {
		for _, w := range d.waits {
			if w.what != "" {
				s.WaitsFor = append(s.WaitsFor, w.what)
			}
		}
	}
	s.Pins = e.window.Pins(&o.sched)
	if d := o.rare.Load(); d != nil {
		s.Values = maps.Clone(d.values)
	}
	s.Key, s.Signals = e.scope.Engine().Look(&o.owner)
	return s
}

// retire records the end of an operation and puts it into the window. mu is held.
func (e *engine) retire(o *Operation, status Status, err error, now int64) {
	if t := e.tape.Load(); t != nil {
		e.tapeEnd(t, o, tapeKind(status), now)
	}
	o.setStatus(status)
	o.err, o.sched.Value = err, now
	if trace.IsEnabled() {
		o.traceEnd(status.String())
	}
	e.outcomes[status.bit()]++
	if e.onDone == nil {
		if o.done != nil || len(e.flushes) > 0 || o.sched.Flags&(awaitedOwn|grouped) != 0 {
			e.answer(o)
		}
	} else {
		e.telling++
		o.sched.Flags |= untold
		s := e.snapshot(o)
		s.Item = o.body.item()
		e.out.done = append(e.out.done, told{o, s, e.onDone})
	}
	if status == StatusSucceeded {
		o.body.discard()
	}
	e.window.Add(&o.sched)
	e.sweep(now)
}

// sweep evicts operations that are too old for the window, or too many. mu is held.
func (e *engine) sweep(now int64) {
	for item := e.window.Evict(now); item != nil; item = e.window.Evict(now) {
		e.forget(operationOf(item), now)
	}
	maxAge := int64(e.opts.MaxAge)
	if maxAge == 0 || e.sweeper.Armed {
		return
	}
	if oldest, ok := e.window.Oldest(); ok {
		// Reading sweeps as well. So if nobody waits for a signal to go, a busy window is swept a
		// few dozen times per MaxAge, not once per operation.
		at := clock.Later(oldest, maxAge)
		if !e.ruled {
			at = max(at, clock.Later(e.sweeper.Last, maxAge/64))
		}
		e.sweeper.Set(e.clock, at, e.tidy)
	}
}

// tidy is called by the sweeper's alarm.
func (e *engine) tidy() {
	e.mu.Lock()
	now := e.clock.Now()
	e.sweeper.Armed, e.sweeper.Last = false, now
	e.sweep(now)
	e.unlock()
}

// forget drops an operation that has left the window. mu is held.
func (e *engine) forget(o *Operation, now int64) {
	e.index.Remove(o.owner.ID)
	if o.status() != StatusSucceeded {
		o.body.discard() // the item was visible until now
	}
	if o.sched.Flags&watched == 0 {
		o.body.forget()
	}
	if e.final.Len() > 0 {
		e.finalizing++
		e.out.final = append(e.out.final, told{o, e.snapshot(o), e.final.Snapshot()})
	}
	if d := o.rare.Load(); d != nil && (d.values != nil || d.suspension != nil) {
		d.values, d.suspension = nil, nil // others may keep o
	}
	last := new(echo) // stays on the stack
	if e.echoes.limit > 0 {
		last = e.echoes.add(now)
	}
	last.status, last.err, last.at = o.status(), o.err, now
	if scope := e.scope.Engine(); scope.Leave(&o.owner) {
		last.Past = signals.Past{ID: o.owner.ID, Key: o.owner.Key}
	} else {
		scope.Evict(&o.owner, e.ofRun && e.finalized, &last.Past, &e.out.after)
	}
}

// withdraw ends a pending operation that will not run. mu is held.
func (e *engine) withdraw(o *Operation, status Status, err error, now int64) {
	e.tapeKey(o)
	e.scheduler.Remove(&o.sched, now)
	e.leaveQueue(o)
	e.retire(o, status, err, now)
	// The next item of its key may be able to start now. And the next item behind a deferred one
	// may be refused by its class.
	if o.sched.Class > 0 || e.scheduler.RatesKeys() || e.partRuled {
		e.wakeLocked()
	}
}

// finalize empties the window of a closed engine. mu is held.
func (e *engine) finalize(now int64) {
	e.alarm.Stop()
	e.stuckAlarm.Stop()
	e.shadowAlarm.Stop()
	e.sweeper.Stop()
	e.finalized = true
	for item := e.window.Any(); item != nil; item = e.window.Any() {
		e.forget(operationOf(item), now)
		e.window.Remove(item)
	}
	e.endClose()
}

// end records the end of an operation whose body has returned, and returns the time. It returns
// with mu held.
func (e *engine) end(o *Operation, err error) (now int64) {
	now = e.clock.Now()
	e.mu.Lock()
	if !e.scheduler.Simple() { // what has come before the end of o comes before what that lets start
		e.collect()
	}
	if o.rare.Load() != nil {
		e.refuseAll(o, context.Canceled) // goroutines of the body may still wait
	}
	suspended := o.status() == StatusSuspended
	if suspended {
		e.abandonWaits(o)
	} else {
		e.slots.Running.Remove(&o.sched)
	}
	e.tapeKey(o)
	e.scheduler.Finish(&o.sched, suspended, now)
	if e.times != nil {
		e.countTimes(o, now)
	}
	e.grant()
	if e.stuck.bodies != nil {
		e.stuck.returned(o.owner.ID)
	}
	status := StatusFailed
	switch cause := o.cause(); {
	case err == nil:
		status = StatusSucceeded
	case cause != nil:
		status = StatusCancelled
		if err == context.Canceled {
			err = cause // says more
		}
	}
	if o.sched.Flags&holding != 0 {
		e.scope.Engine().Release(&o.owner, &e.out.after)
	}
	e.retire(o, status, err, now)
	if d := o.rare.Load(); d == askedOnly {
		o.rare.Store(endedOnly)
	} else if d != nil {
		switch d.context.Load() {
		case nil:
		case asked:
			d.context.Store(ended)
		default: // a context that outlives its body has no timer and keeps nothing alive
			e.out.cancels = append(e.out.cancels, cancelled{o, context.Canceled})
		}
	}
	if e.slots.Closing && e.alive() == 0 {
		e.finalize(now)
	}
	return now
}

// shut is Close without waiting. It reports whether it was the first call.
func (e *engine) shut(cause error) bool {
	e.made().mu.Lock()
	if e.slots.Closing {
		e.mu.Unlock()
		return false
	}
	e.slots.Closing = true
	e.closeIntake()
	e.cancelLocked(StatusAlive, nil, cause)
	if e.alive() == 0 {
		e.finalize(e.clock.Now())
	}
	e.unlock()
	e.detachIfDone()
	return true
}

func (e *engine) complete() {
	e.mu.Lock()
	if e.closeIntake() {
		e.startFlush() // so that the last operation detaches the engine
	}
	e.unlock()
	e.detachIfDone()
}

func (e *engine) cancelByID(id OperationID, cause error) bool {
	e.mu.Lock()
	defer e.unlock()
	e.collect()
	o := e.index.Get(id)
	if o == nil || o.status()&StatusAlive == 0 {
		return false
	}
	e.cancel(o, cmp.Or(cause, ErrCancelled))
	return true
}

// countTimes counts how long an operation that ends now has waited and run. mu is held.
func (e *engine) countTimes(o *Operation, now int64) {
	e.times.Add(2*int(o.sched.Lane), o.started-o.sched.Enqueued, now-o.started, now)
	if o.sched.Class > 0 {
		e.times.Add(2*(len(e.lanes)+int(o.sched.Class)-1), o.started-o.sched.Enqueued, now-o.started, now)
	}
}
