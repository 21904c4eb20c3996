package core

import (
	"fmt"
	"runtime"
	"time"
)

// collect moves arrived operations to the scheduler. mu is held.
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

// next takes the operation that is to start now, or nil. Blocked says that pending
// operations wait for an event, and arrivals do not help. mu is held.
func (e *engine) next(now int64) (o *Operation, blocked bool) {
	var barred *bars // by DeferOn
	for {
		if e.stopped() {
			e.grant()
			return nil, true
		}
		if e.scheduler.only == nil { // what has just arrived may go before all others
			e.collect()
		}
		o = e.ask(now, barred)
		if o == nil || o.marks&roomless != 0 { // arrived operations go before an operation without room
			e.collect()
			if o = e.ask(now, barred); o == nil {
				if e.scheduler.backs > 0 {
					e.giveBack(now, maxLanes)
				}
				// A rule for all holds up arrivals as well; one for a lane or a class may not.
				// Keys with rates take their places as they arrive.
				return nil, barred != nil && !e.partRuled && e.scheduler.rated == nil
			}
		}
		if e.scheduler.backs > 0 && e.giveBack(now, o.lane) {
			continue
		}
		var refused error
		overdue := false
		if e.ruled {
			e.sweep(now) // when operations leave the window, their signals leave too
			if e.refuses(o.lane, o.class) {
				refused = e.refusal(o.lane, o.class, now)
			}
			if refused == nil && e.defers(o.lane, o.class) {
				if barred == nil {
					barred = new(bars)
				}
				if o, overdue = e.undeferred(o, barred, now); o == nil {
					continue
				}
			}
		}
		if refused != nil {
			e.endUnstarted(o, StatusRefused, refused, now)
			continue
		}
		if g := groupOf(o); g != nil && g.halted != nil {
			e.endUnstarted(o, StatusCancelled, g.halted, now)
			continue
		}
		if o.marks&roomless != 0 && !e.admit(o) {
			continue // admit has collected arrivals: ask again
		}
		if overdue {
			o.marks |= forced
			e.forced++
		}
		if e.scheduler.start(o, now) {
			e.tellClass(o.class)
		}
		e.leaveQueue(o)
		return o, false
	}
}

// ask returns what is to start next as far as the scheduler knows. mu is held.
func (e *engine) ask(now int64, barred *bars) *Operation {
	if barred == nil && e.scheduler.only != nil {
		return e.scheduler.only.head
	}
	return e.askBoard(now, barred)
}

// askBoard is ask with lanes, keys or classes. It sets the alarm for what waits for tokens:
// nobody else would look again when they come. mu is held.
func (e *engine) askBoard(now int64, barred *bars) *Operation {
	b := &e.scheduler
	if e.tries {
		e.limitTrials(now)
	}
	b.advance(now)
	o := b.next(now, barred)
	if o == nil {
		e.awaitTokens()
		for i := 1; i < len(b.classes); i++ {
			e.noteThrottled(uint8(i), b.asked.dry)
		}
	}
	return o
}

// awaitTokens sets the alarm for operations that lacked tokens when the scheduler was last
// asked. mu is held.
func (e *engine) awaitTokens() {
	at := e.scheduler.asked.soonest
	if keys := e.scheduler.rated; keys != nil {
		at = min(at, keys.nextSweep())
	}
	if at != never {
		e.alarm.set(e.clock, at, e.wake)
	}
}

// noteThrottled records that a class is throttled if it is in dry, and that it no longer is
// if no item of it waits. mu is held.
func (e *engine) noteThrottled(class uint8, dry classSet) {
	c := &e.scheduler.classes[class]
	lacks := dry&setOf(class) != 0
	if c.rates == nil || c.rates.throttled && c.n > 0 || c.rates.throttled == lacks {
		return
	}
	c.rates.throttled = lacks
	e.tellClass(class)
}

// tellClass makes a signal say whether a class is throttled. mu is held.
func (e *engine) tellClass(class uint8) {
	c := &e.scheduler.classes[class]
	told := classTold{Free, ClassChange{Coordinator: e.name, Class: e.classes[class].Name}}
	if c.rates != nil && c.rates.throttled {
		told.kind, told.change.Next = Throttled, e.clock.wall(e.nextTokens(class))
	}
	e.out.classes = append(e.out.classes, told)
}

// nextTokens returns when the next operation of a class has its tokens, or 0 if it does not
// wait for tokens. mu is held.
func (e *engine) nextTokens(class uint8) int64 {
	b := &e.scheduler
	c, now := &b.classes[class], e.clock.now()
	for i := range b.lanes {
		if o := b.lanes[i].lines[class].head; o != nil && c.rates != nil {
			if due := c.rates.due(&c.rates.buckets, o.takes(), o.asOf(now)); due > now {
				return due
			}
			return 0
		}
	}
	return 0
}

// limitTrials sets the limits of classes with TrialOn, and sets the alarm for the end of a trial. mu is
// held.
func (e *engine) limitTrials(now int64) {
	for i := range e.classes {
		c := &e.classes[i]
		if c.trialOn == nil {
			continue
		}
		limit := c.Limit
		if v := c.trialOn.look(now, 0); v.holds {
			if limit == 0 || limit > c.Trials {
				limit = c.Trials
			}
			if v.expires != never {
				e.alarm.set(e.clock, v.expires, e.wake)
			}
		}
		e.scheduler.classes[i].limit = limit
	}
}

// stopped reports whether no pending operation may start. mu is held.
func (e *engine) stopped() bool { return e.full() || e.paused || e.closing }

// full reports whether there is no slot for pending operations. mu is held.
func (e *engine) full() bool { return e.running.n+max(0, e.lent-e.opts.MaxSuspended) >= e.limit }

// leaveQueue counts that o is no longer pending. mu is held.
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
	if e.pendingMarks.len() > 0 {
		e.seePending()
	}
}

func (e *engine) newRule(cancelOn, deferOn string, maxDefer time.Duration) rule {
	return rule{
		cancelOn: e.ledger.condition(cancelOn, e, false),
		deferOn:  e.ledger.condition(deferOn, e, false),
		maxDefer: int64(maxDefer),
	}
}

// rulesOf are the rules for items of a class in a lane.
func (e *engine) rulesOf(lane, class uint8) [3]*rule {
	return [...]*rule{&e.rules, &e.lanes[lane].rule, &e.classes[class].rule}
}

// refuses reports whether a signal may refuse items of a class in a lane; refusal says for
// certain.
func (e *engine) refuses(lane, class uint8) bool {
	return e.rules.cancelOn.holds() || e.lanes[lane].cancelOn.holds() || e.classes[class].cancelOn.holds()
}

// refusing reports whether a signal may refuse items of some lane or class.
func (e *engine) refusing() bool {
	some := e.rules.cancelOn.holds()
	for i := range e.lanes {
		some = some || e.lanes[i].cancelOn.holds()
	}
	for i := range e.classes {
		some = some || e.classes[i].cancelOn.holds()
	}
	return some
}

// refusal returns the error if a signal refuses items of a class in a lane, or nil.
func (e *engine) refusal(lane, class uint8, now int64) error {
	for _, r := range e.rulesOf(lane, class) {
		if v := r.cancelOn.look(now, 0); v.holds {
			return &RefusedError{v.signal}
		}
	}
	return nil
}

// defers reports whether a signal may hold up items of a class in a lane; undeferred says
// for certain.
func (e *engine) defers(lane, class uint8) bool {
	return e.rules.deferOn.holds() || e.lanes[lane].deferOn.holds() || e.classes[class].deferOn.holds()
}

// undeferred returns the operation that is to start when o is next and DeferOn may hold. If no
// rule defers o, it returns o. If raised facts have deferred the lane for MaxDefer, it returns
// the earliest operation of the lane, and overdue is true. If only the class was deferred for so
// long, it returns the earliest of the class in the lane. Otherwise it sets the alarm, bars the
// lane, or the class in the lane, and returns nil. mu is held.
func (e *engine) undeferred(o *Operation, barred *bars, now int64) (_ *Operation, overdue bool) {
	resumed := e.resumeOn.look(now, 0).signal.Seq // 0: never
	lane := o.lane
	first := e.scheduler.earliest(o, false)
	for _, r := range [...]*rule{&e.rules, &e.lanes[lane].rule} {
		switch e.deferred(r, first, now, resumed) {
		case deferred:
			barred.lanes = barred.lanes.with(lane)
			return nil, false
		case deferredTooLong:
			overdue = true
		}
	}
	if !overdue {
		first = e.scheduler.earliest(o, true)
	}
	switch e.deferred(&e.classes[first.class].rule, first, now, resumed) {
	case deferred:
		barred.bar(lane, first.class, len(e.lanes))
		return nil, false
	case deferredTooLong:
		return first, true
	}
	if overdue {
		return first, true
	}
	return o, false
}

type deferral uint8

const (
	notDeferred deferral = iota
	deferred
	deferredTooLong
)

// deferred returns whether a rule defers an operation. If it does, the alarm is set for the
// end of the deferral and for the next tokens. mu is held.
func (e *engine) deferred(r *rule, o *Operation, now int64, resumed uint64) deferral {
	v, due := r.deferral(o, now, resumed)
	switch {
	case !v.holds:
		return notDeferred
	case due <= now:
		return deferredTooLong
	}
	if wakeAt := min(v.expires, due, e.scheduler.asked.soonest); wakeAt != never {
		e.alarm.set(e.clock, wakeAt, e.wake)
	}
	return deferred
}

// A RefusedError has the signal that kept an item from being accepted or started. The
// signal matches [Options.CancelOn].
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
	e.watch(o, runs)
	e.grant() // o may have been the last pending operation that can start
}

// next returns the operation to run next, marked as running; mu is held then. If
// there is none, next yields the processor a few times, in case one comes. Then
// it releases mu and returns nil.
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
			case e.scheduler.only == nil && e.token.Load() != tokenTaken && !e.full() && e.startable(now):
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
		if !w.searches { // while it searches, producers start no other worker
			if token := e.token.Load(); token != tokenTaken {
				w.searches = e.token.CompareAndSwap(token, tokenTaken)
			}
		}
		foreign := e.out.foreign()
		if w.searches && (turns == idleYields || foreign) { // handlers may take long
			w.searches = false
			e.token.Store(tokenParked)
			if e.intake.fresh.Load() && e.token.CompareAndSwap(tokenParked, tokenTaken) {
				w.searches = true
				continue
			}
		}
		e.unlockTo(&w.spare)
		switch {
		case foreign: // look again, and search if no other worker does
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

// passToken is called by a worker that had the token and has found work. If there may be
// more work, it starts another worker, which searches. mu is held.
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
	go e.loop()
}

// startable reports whether an operation may be able to start, or a resuming operation can
// get its slot. It looks at collected operations and at operations that wait for room. mu
// is held.
func (e *engine) startable(now int64) bool {
	if e.ask(now, nil) != nil {
		return true
	}
	if e.scheduler.backs == 0 {
		return false
	}
	o, _ := e.scheduler.back(now, maxLanes)
	return o != nil
}

// startAll starts all operations that can start now, each on a new worker. mu is held.
func (e *engine) startAll(now int64) {
	for o, _ := e.next(now); o != nil; o, _ = e.next(now) {
		e.begin(o, now)
		w := worker{engine: e}
		w.take(o)
		w.start()
	}
}
