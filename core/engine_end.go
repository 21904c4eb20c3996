package core

import (
	"cmp"
	"context"
	"maps"
	"runtime/trace"
	"slices"
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
	alive := append(e.scheduler.all(), e.started()...)
	slices.SortFunc(alive, byID) // first come those that wait for room
	for _, o := range alive {
		switch {
		case g != nil && groupOf(o) != g:
		case o.status&status != 0:
			e.cancel(o, cause)
		case g != nil && o.marks&roomless != 0:
			e.endUnstarted(o, StatusCancelled, cause, e.clock.now())
		}
	}
}

// cancel cancels an operation that has not ended. If it has started, its context ends; else it does
// not start. mu is held.
func (e *engine) cancel(o *Operation, cause error) {
	if o.status == StatusPending {
		e.withdraw(o, StatusCancelled, cause, e.clock.now())
		return
	}
	if d := o.details(); d.cause == nil { // the first cause counts
		d.cause = cause
		if e.stuck.bodies != nil {
			e.watchUntil(e.stuck.cancelled(o.id, cause, e.clock.now()))
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
		ID:       o.id,
		Lane:     e.lanes[o.lane].Name,
		Class:    e.classes[o.class].Name,
		Status:   o.status,
		Enqueued: c.wall(o.enqueued),
		Started:  c.wall(o.started),
		Err:      o.err,
	}
	if o.status&StatusFinished != 0 {
		s.Finished = c.wall(o.finished)
	}
	if o.status != StatusSucceeded {
		s.Item = o.body.item()
	}
	if d := o.rest.Load(); d != nil && d.suspension != nil {
		for _, w := range d.waits {
			if w.what != "" {
				s.WaitsFor = append(s.WaitsFor, w.what)
			}
		}
	}
	l := &e.ledger
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	s.Key = o.key
	if d := o.rest.Load(); d != nil && d != evicted {
		s.Pins = d.pins
		s.Signals = l.signals(o.ownFacts())
		s.Values = maps.Clone(d.values)
	}
	return s
}

// retire records the end of an operation and puts it into the window. mu is held.
func (e *engine) retire(o *Operation, status Status, err error, now int64) {
	o.status, o.err, o.finished = status, err, now
	if trace.IsEnabled() {
		o.traceEnd(status.String())
	}
	e.outcomes[status.bit()]++
	if e.onDone == nil {
		if o.done != nil || len(e.flushes) > 0 || o.marks&(awaitedOwn|grouped) != 0 {
			e.answer(o)
		}
	} else {
		e.telling++
		o.marks |= untold
		s := e.snapshot(o)
		s.Item = o.body.item()
		e.out.done = append(e.out.done, told{o, s, e.onDone})
	}
	if status == StatusSucceeded {
		o.body.discard()
	}
	e.window.add(o)
	e.sweep(now)
}

// answer ends the waits for an operation that has ended. mu is held.
func (e *engine) answer(o *Operation) {
	if o.done != nil {
		e.out.close(o.done)
	}
	if g := groupOf(o); g != nil {
		g.ended(o)
	}
	if o.marks&awaitedOwn != 0 {
		e.endWaits(e.awaited[o])
		delete(e.awaited, o)
	}
	e.flushes = slices.DeleteFunc(e.flushes, func(f *flush) bool {
		over := f.ended(o)
		if over {
			e.out.ends = append(e.out.ends, f.done)
		}
		return over
	})
}

// sweep evicts operations that are too old for the window, or too many. mu is held.
func (e *engine) sweep(now int64) {
	for o := e.window.evict(now); o != nil; o = e.window.evict(now) {
		e.forget(o, now)
	}
	if e.window.maxAge == 0 || e.sweeper.armed {
		return
	}
	if oldest, ok := e.window.oldest(); ok {
		// Reading sweeps as well. So if nobody waits for a signal to go, a busy window is swept a
		// few dozen times per MaxAge, not once per operation.
		at := later(oldest, e.window.maxAge)
		if !e.ruled {
			at = max(at, later(e.sweeper.last, e.window.maxAge/64))
		}
		e.sweeper.set(e.clock, at, e.tidy)
	}
}

// tidy is called by the sweeper's alarm.
func (e *engine) tidy() {
	e.mu.Lock()
	now := e.clock.now()
	e.sweeper.armed, e.sweeper.last = false, now
	e.sweep(now)
	e.unlock()
}

// forget drops an operation that has left the window. mu is held.
func (e *engine) forget(o *Operation, now int64) {
	e.index.remove(o)
	if o.status != StatusSucceeded {
		o.body.discard() // the item was visible until now
	}
	if o.marks&watched == 0 {
		o.body.forget()
	}
	if e.final.len() > 0 {
		e.finalizing++
		e.out.final = append(e.out.final, told{o, e.snapshot(o), e.final.snapshot()})
	}
	spent := e.echoes.makeRoom(now)
	facts := ownFacts{id: o.id}
	if !o.rest.CompareAndSwap(nil, evicted) { // it has raised signals, or has other details
		facts = e.ledger.evictSignals(o, e.ofRun && e.finalized, spent, &e.out.after)
	}
	e.echoes.add(o, facts, now)
}

// withdraw ends a pending operation that will not run. mu is held.
func (e *engine) withdraw(o *Operation, status Status, err error, now int64) {
	e.scheduler.remove(o, now)
	e.leaveQueue(o)
	e.retire(o, status, err, now)
	// The next item of its key may be able to start now. And the next item behind a deferred one
	// may be refused by its class.
	if o.class > 0 || e.scheduler.rated != nil || e.partRuled {
		e.wakeLocked()
	}
}

// finalize empties the window of a closed engine. mu is held.
func (e *engine) finalize(now int64) {
	e.alarm.stop()
	e.stuckAlarm.stop()
	e.sweeper.stop()
	e.finalized = true
	for o := e.window.any(); o != nil; o = e.window.any() {
		e.window.remove(o)
		e.forget(o, now)
	}
	e.endClose()
}

// end records the end of an operation whose body has returned, and returns the time. It returns
// with mu held.
func (e *engine) end(o *Operation, err error) (now int64) {
	now = e.clock.now()
	e.mu.Lock()
	if e.scheduler.only == nil { // what has come before the end of o comes before what that lets start
		e.collect()
	}
	e.refuseAll(o, context.Canceled) // goroutines of the body may still wait
	if o.status == StatusSuspended {
		e.abandonWaits(o)
	} else {
		e.running.remove(o)
	}
	e.scheduler.finish(o, now)
	if e.times != nil {
		e.countTimes(o, now)
	}
	e.grant()
	if e.stuck.bodies != nil {
		e.stuck.returned(o.id)
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
	if o.marks&holding != 0 {
		e.ledger.releaseAll(o, &e.out.after)
	}
	e.retire(o, status, err, now)
	switch o.context.Load() {
	case nil:
	case asked:
		o.context.Store(ended)
	default: // a context that outlives its body has no timer and keeps nothing alive
		e.out.cancels = append(e.out.cancels, cancelled{o, context.Canceled})
	}
	if e.closing && e.alive() == 0 {
		e.finalize(now)
	}
	return now
}

// shut is Close without waiting. It reports whether it was the first call.
func (e *engine) shut(cause error) bool {
	e.made().mu.Lock()
	if e.closing {
		e.mu.Unlock()
		return false
	}
	e.closing = true
	e.closeIntake()
	e.cancelLocked(StatusAlive, nil, cause)
	if e.alive() == 0 {
		e.finalize(e.clock.now())
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
	o := e.index.get(id)
	if o == nil || o.status&StatusAlive == 0 {
		return false
	}
	e.cancel(o, cmp.Or(cause, ErrCancelled))
	return true
}

// countTimes counts how long an operation that ends now has waited and run. mu is held.
func (e *engine) countTimes(o *Operation, now int64) {
	e.times.Add(2*int(o.lane), o.started-o.enqueued, now-o.started, now)
	if o.class > 0 {
		e.times.Add(2*(len(e.lanes)+int(o.class)-1), o.started-o.enqueued, now-o.started, now)
	}
}
