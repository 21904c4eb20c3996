package core

import (
	"cmp"
	"fmt"
	"runtime"
	"time"
)

// collect moves what has arrived to the scheduler. mu is held.
func (e *engine) collect() {
	in := &e.intake
	if !in.fresh.Load() {
		return
	}
	in.mu.Lock()
	arrived := in.arrived
	in.arrived = opList{}
	in.fresh.Store(false)
	e.refresh()
	in.mu.Unlock()
	for o := arrived.head; o != nil; {
		next := o.next
		e.index.put(o)
		e.scheduler.push(o)
		o = next
	}
}

// next takes the operation that is to start now, or nil; blocked says that there
// may be one but something other than arrivals has to happen first. mu is held.
func (e *engine) next(now int64) (o *Operation, blocked bool) {
	var barred laneSet // by DeferOn
	for {
		if e.full() || e.paused || e.closing {
			return nil, true
		}
		if !e.scheduler.plain { // what has just arrived may go before all others
			e.collect()
		}
		o = e.scheduler.next(now, barred)
		if o == nil || o.marks&roomless != 0 { // what has arrived goes before that
			e.collect()
			if o = e.scheduler.next(now, barred); o == nil {
				// A rule for all holds up arrivals as well; one for a lane may not.
				return nil, barred != 0 && !e.laneRuled
			}
		}
		var refused error
		overdue := false
		if e.ruled {
			e.sweep(now) // with operations that have to leave their signals go
			if e.refuses(o.lane) {
				refused = e.refusal(o.lane, now)
			}
			if refused == nil && e.defers(o.lane) {
				lane := o.lane
				if o, overdue = e.undeferred(o, e.scheduler.earliest(lane), now); o == nil {
					barred = barred.with(lane)
					continue
				}
			}
		}
		if o.marks&roomless != 0 && !e.admit(o) {
			continue // with what has arrived
		}
		if refused != nil {
			e.withdraw(o, StatusRefused, refused, now)
			continue
		}
		if g := groupOf(o); g != nil && g.halted != nil {
			e.withdraw(o, StatusCancelled, g.halted, now)
			continue
		}
		if overdue {
			o.marks |= forced
			e.forced++
		}
		e.scheduler.start(o)
		e.leaveQueue(o)
		return o, false
	}
}

// full reports whether nothing that is pending may start. mu is held.
func (e *engine) full() bool { return e.running.n+max(0, e.lent-e.opts.MaxSuspended) >= e.limit }

// started lists the operations that have started and not ended. mu is held.
func (e *engine) started() []*Operation {
	return e.resuming.appendTo(e.suspended.appendTo(e.running.appendTo(nil)))
}

// alive is the number of operations that have started and not ended. mu is held.
func (e *engine) alive() int { return e.running.n + e.suspended.n + e.resuming.n }

// unfinished is the number of operations whose waiters have not been answered. mu is held.
func (e *engine) unfinished() int {
	e.collect()
	return e.alive() + e.telling + e.scheduler.pending()
}

// leaveQueue counts that o is not pending any more. mu is held.
func (e *engine) leaveQueue(o *Operation) {
	place := e.intake.place(o.lane, o.class)
	q := &e.queues[place]
	q.left++
	if o.marks&roomless != 0 {
		e.endRoomWait(o)
	}
	if q.n > 0 {
		e.letIn(place)
	}
	if len(e.pendingMarks) > 0 {
		e.seePending()
	}
}

// find returns an operation that is pending, running or in the window.
func (e *engine) find(id OperationID) *Operation {
	e.lockFresh()
	defer e.mu.Unlock()
	return e.index.get(id)
}

// lockFresh locks the engine with everything accepted at hand and nothing in the
// window whose time is over.
func (e *engine) lockFresh() {
	e.made().mu.Lock()
	e.collect()
	oldest, ok := e.window.oldest()
	if !ok || e.window.maxAge == 0 {
		return
	}
	now := e.clock.now()
	if oldest > now-e.window.maxAge {
		return
	}
	e.sweep(now)
	e.unlock()
	e.mu.Lock()
}

// seePending compares the number of pending operations with the watermarks. mu is held.
func (e *engine) seePending() {
	e.collect()
	for _, w := range e.pendingMarks {
		if w.see(e.scheduler.pending()) {
			e.out.after.wake(w)
		}
	}
}

func byID(a, b *Operation) int { return cmp.Compare(a.id, b.id) }

func (e *engine) newRule(cancelOn, deferOn string, maxDefer time.Duration) rule {
	return rule{
		cancelOn: e.ledger.condition(cancelOn, e, false),
		deferOn:  e.ledger.condition(deferOn, e, false),
		maxDefer: int64(maxDefer),
	}
}

// refuses reports whether a signal may keep items of a lane from being accepted
// and started; refusal says for certain.
func (e *engine) refuses(lane uint8) bool {
	return e.rules.cancelOn.holds() || e.lanes[lane].cancelOn.holds()
}

// refusal is the error of an item of a lane that a signal keeps from being
// accepted or started, or nil.
func (e *engine) refusal(lane uint8, now int64) error {
	for _, c := range [...]*condition{e.rules.cancelOn, e.lanes[lane].cancelOn} {
		if v := c.look(now, 0); v.holds {
			return &RefusedError{v.signal}
		}
	}
	return nil
}

// defers reports whether a signal may hold up items of a lane; undeferred says
// for certain.
func (e *engine) defers(lane uint8) bool {
	return e.rules.deferOn.holds() || e.lanes[lane].deferOn.holds()
}

// undeferred returns the operation of the lane of o that is to start although
// DeferOn may hold: o itself if it does not, or first, the earliest of the lane, if
// raised facts alone have deferred that for MaxDefer, which overdue says. If there is none it sets
// the alarm and returns nil. mu is held.
func (e *engine) undeferred(o, first *Operation, now int64) (_ *Operation, overdue bool) {
	resumed := e.resumeOn.look(now, 0).signal.Seq // 0: never
	for _, r := range [...]*rule{&e.rules, &e.lanes[o.lane].rule} {
		v, due := r.deferral(first, now, resumed)
		switch wakeAt := min(v.expires, due); {
		case !v.holds:
			continue
		case due <= now:
			overdue = true
			continue
		case wakeAt != never:
			e.alarm.set(e.clock, wakeAt, e.wake)
		}
		return nil, false
	}
	if overdue {
		return first, true
	}
	return o, false
}

// A RefusedError has the signal because of which an item was not accepted, or did not
// start. The signal matches [Options.CancelOn].
type RefusedError struct{ Signal Signal }

func (e *RefusedError) Error() string {
	if e.Signal.Key != "" {
		return fmt.Sprintf("core: refused because of signal %q for %q", e.Signal.Name, e.Signal.Key)
	}
	return fmt.Sprintf("core: refused because of signal %q", e.Signal.Name)
}

// begin marks o as running. mu is held.
func (e *engine) begin(o *Operation, now int64) {
	o.status, o.started = StatusRunning, now
	e.running.push(o)
}

// refresh tells the intake how much room there is. Both locks are held.
func (e *engine) refresh() {
	for i := range e.queues {
		e.intake.rooms[i].left = e.queues[i].left
	}
}

func (e *engine) setPaused(paused bool, signal string) {
	e.made().mu.Lock()
	changed := e.paused != paused
	e.paused = paused
	e.wakeLocked()
	e.mu.Unlock()
	if changed {
		e.sink.RaiseKey(signal, e.name)
	}
}

// next returns the operation to run next, marked as running. If there is none, it
// lets others run a few times, in case one comes, and then returns nil with mu
// released. mu is held otherwise.
func (w *worker) next(now int64) *Operation {
	e := w.engine
	for turns := 0; ; now = e.clock.now() {
		o, blocked := e.next(now)
		if o != nil {
			e.begin(o, now)
			switch {
			case w.searches:
				w.searches = false
				e.passToken(now)
			case !e.scheduler.plain && e.token.Load() != tokenTaken && !e.full() && e.startable(now):
				e.wakeLocked() // the end of one operation may let two others start: of its key, and of its lane
			}
			return o
		}
		if e.suspended.n > 0 {
			e.breakCircle(now)
		}
		if blocked {
			if w.searches {
				e.token.Store(tokenNone)
			}
			e.unlockTo(&w.spare)
			return nil
		}
		if !w.searches { // while it does, producers need not start another one
			if token := e.token.Load(); token != tokenTaken {
				w.searches = e.token.CompareAndSwap(token, tokenTaken)
			}
		}
		foreign := e.out.foreign()
		if w.searches && (turns == idleYields || foreign) { // handlers take what time they like
			w.searches = false
			e.token.Store(tokenParked)
			if e.intake.fresh.Load() && e.token.CompareAndSwap(tokenParked, tokenTaken) {
				w.searches = true
				continue
			}
		}
		e.unlockTo(&w.spare)
		switch {
		case foreign: // look again, and search if nobody else does
			e.mu.Lock()
			continue
		case turns == idleYields:
			return nil
		}
		for ; turns < idleYields && !e.intake.fresh.Load(); turns++ {
			runtime.Gosched()
		}
		e.mu.Lock()
	}
}

// passToken is called by a worker that had the token and has found work: if there
// is more, another worker goes on searching. mu is held.
func (e *engine) passToken(now int64) {
	if e.full() {
		e.token.Store(tokenNone)
		return
	}
	if !e.startable(now) && !e.intake.fresh.Load() {
		e.token.Store(tokenParked)
		if !e.intake.fresh.Load() || !e.token.CompareAndSwap(tokenParked, tokenTaken) {
			return
		}
	}
	go engineFrame(e.number, e.loop)
}

// startable reports whether something that has been collected, or that waits for
// room, may be able to start. mu is held.
func (e *engine) startable(now int64) bool { return e.scheduler.next(now, 0) != nil }

// startAll starts all that can start now, each with a worker of its own. mu is held.
func (e *engine) startAll(now int64) {
	for o, _ := e.next(now); o != nil; o, _ = e.next(now) {
		e.begin(o, now)
		w := worker{engine: e}
		w.take(o)
		w.start()
	}
}
