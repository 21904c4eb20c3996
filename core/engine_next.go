// This file decides which operation starts next, and what holds up the others.

package core

import (
	"runtime"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/sched"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// collect moves arrived operations to the scheduler. mu is held.
func (e *engine) collect() {
	in := &e.intake
	if !in.fresh.Load() {
		return
	}
	in.mu.Lock()
	arrived := in.arrived
	in.arrived = sched.List{}
	in.fresh.Store(false)
	e.refresh()
	in.mu.Unlock()
	for item := arrived.First(); item != nil; {
		o, next := operationOf(item), item.Next()
		e.index.Put(o.owner.ID, o)
		e.scheduler.Push(item, o.owner.Key)
		item = next
	}
}

// next takes the operation that is to start now, or nil. Blocked says that pending
// operations wait for an event, and arrivals do not help. mu is held.
func (e *engine) next(now int64) (o *Operation, blocked bool) {
	var barred *sched.Bars // by DeferOn
	for {
		if e.slots.Stopped() {
			e.grant()
			return nil, true
		}
		if !e.scheduler.Simple() { // what has just arrived may go before all others
			e.collect()
		}
		o = e.ask(now, barred)
		if o == nil || o.sched.Flags&roomless != 0 { // arrived operations go before an operation without room
			e.collect()
			if o = e.ask(now, barred); o == nil {
				if e.scheduler.Wanting() > 0 {
					e.giveBack(now, sched.MaxLanes)
				}
				// A rule for all holds up arrivals as well; one for a lane or a class may not.
				// Keys with rates take their places as they arrive.
				return nil, barred != nil && !e.partRuled && !e.scheduler.RatesKeys()
			}
		}
		if e.scheduler.Wanting() > 0 && e.giveBack(now, o.sched.Lane) {
			continue
		}
		var refused error
		overdue := false
		if e.ruled {
			e.sweep(now) // when operations leave the window, their signals leave too
			if e.refuses(o.sched.Lane, o.sched.Class) {
				refused = e.refusal(o.sched.Lane, o.sched.Class, now)
			}
			if refused == nil && e.defers(o.sched.Lane, o.sched.Class) {
				if barred == nil {
					barred = new(sched.Bars)
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
		if o.sched.Flags&roomless != 0 && !e.admit(o) {
			continue // admit has collected arrivals: ask again
		}
		if overdue {
			o.sched.Flags |= forced
			e.forced++
		}
		e.tapeStart(o)
		if news := e.scheduler.Start(&o.sched, now); news != 0 {
			e.tellNews(o.sched.Class, news)
		}
		e.leaveQueue(o)
		return o, false
	}
}

// ask returns what is to start next as far as the scheduler knows. mu is held.
func (e *engine) ask(now int64, barred *sched.Bars) *Operation {
	if barred == nil && e.scheduler.Simple() {
		return operationOf(e.scheduler.Next(now, nil))
	}
	return e.askBoard(now, barred)
}

// askBoard is ask with lanes, keys or classes. It sets the alarm for what waits for tokens:
// nobody else would look again when they come. mu is held.
func (e *engine) askBoard(now int64, barred *sched.Bars) *Operation {
	if e.tries {
		e.limitTrials(now)
	}
	item := e.scheduler.Next(now, barred)
	if item == nil {
		if at := e.scheduler.Soonest(); at != clock.Never {
			e.alarm.Set(e.clock, at, e.wake)
		}
		for class := 1; class < len(e.classes); class++ {
			if e.scheduler.Throttle(uint8(class)) {
				e.tellClass(uint8(class))
			}
		}
	}
	return operationOf(item)
}

// tellNews makes signals say what the start of an item of that class has changed. mu is held.
func (e *engine) tellNews(class uint8, news sched.News) {
	if news&sched.Freed != 0 {
		e.tellClass(class)
	}
	if news&sched.WouldWait != 0 {
		e.tellShadows()
	}
}

// tellClass makes a signal say whether a class is throttled. mu is held.
func (e *engine) tellClass(class uint8) {
	told := classTold{Free, ClassChange{Coordinator: e.name, Class: e.classes[class].Name}}
	if e.scheduler.Throttled(class) {
		told.kind, told.change.Next = Throttled, e.clock.Wall(e.scheduler.NextTokens(class, e.clock.Now()))
	}
	e.out.classes = append(e.out.classes, told)
}

// limitTrials sets the limits of classes with TrialOn, and sets the alarm for the end of a trial. mu is
// held.
func (e *engine) limitTrials(now int64) {
	for i := range e.classes {
		c := &e.classes[i]
		if c.trialOn == nil {
			continue
		}
		v := look(c.trialOn, now, 0)
		if v.holds && v.expires != clock.Never {
			e.alarm.Set(e.clock, v.expires, e.wake)
		}
		e.scheduler.Try(uint8(i), c.Limit, v.holds, c.Trials)
	}
}

// leaveQueue counts that o is no longer pending. mu is held.
func (e *engine) leaveQueue(o *Operation) {
	r := e.intake.room(o)
	r.Left++
	if o.sched.Flags&roomless != 0 {
		e.endRoomWait(o)
	}
	if r.Waiting > 0 {
		e.letIn(r)
	}
	if e.pendingMarks.Len() > 0 {
		e.seePending()
	}
}

func (e *engine) newRule(cancelOn, deferOn string, maxDefer time.Duration) rule {
	return rule{
		cancelOn: e.gate(cancelOn, false),
		deferOn:  e.gate(deferOn, false),
		maxDefer: int64(maxDefer),
	}
}

// gate makes a gate that wakes the engine, or returns nil.
func (e *engine) gate(pattern string, eager bool) *signals.Gate {
	return e.scope.Engine().Gate(pattern, engineWaker{e}, eager)
}

// rulesOf are the rules for items of a class in a lane.
func (e *engine) rulesOf(lane, class uint8) [3]*rule {
	return [...]*rule{&e.rules, &e.lanes[lane].rule, &e.classes[class].rule}
}

// refuses reports whether a signal may refuse items of a class in a lane; refusal says for
// certain.
func (e *engine) refuses(lane, class uint8) bool {
	return e.rules.cancelOn.Shut() || e.lanes[lane].cancelOn.Shut() || e.classes[class].cancelOn.Shut()
}

// refusing reports whether a signal may refuse items of some lane or class.
func (e *engine) refusing() bool {
	some := e.rules.cancelOn.Shut()
	for i := range e.lanes {
		some = some || e.lanes[i].cancelOn.Shut()
	}
	for i := range e.classes {
		some = some || e.classes[i].cancelOn.Shut()
	}
	return some
}

// refusal returns the error if a signal refuses items of a class in a lane, or nil.
func (e *engine) refusal(lane, class uint8, now int64) error {
	for _, r := range e.rulesOf(lane, class) {
		if v := look(r.cancelOn, now, 0); v.holds {
			return &RefusedError{v.signal}
		}
	}
	return nil
}

// defers reports whether a signal may hold up items of a class in a lane; undeferred says
// for certain.
func (e *engine) defers(lane, class uint8) bool {
	return e.rules.deferOn.Shut() || e.lanes[lane].deferOn.Shut() || e.classes[class].deferOn.Shut()
}

// undeferred returns the operation that is to start when o is next and DeferOn may hold, or nil if its lane
// or class is barred now: see [sched.Board.Undeferred]. Then it sets the alarm. mu is held.
func (e *engine) undeferred(o *Operation, barred *sched.Bars, now int64) (_ *Operation, overdue bool) {
	e.deferring.now, e.deferring.resumed = now, look(e.resumeOn, now, 0).signal.Seq
	item, overdue, again := e.scheduler.Undeferred(&o.sched, &e.deferring, barred, now)
	if again != clock.Never {
		e.alarm.Set(e.clock, again, e.wake)
	}
	return operationOf(item), overdue
}

// deferring tells the scheduler what DeferOn says at one moment. Guarded by engine.mu.
type deferring struct {
	*engine
	now     int64
	resumed uint64 // the Seq of the newest signal that matches ResumeOn; 0: never
}

func (d *deferring) Deferral(item *sched.Item, of sched.Place) sched.Deferral {
	return d.rulesOf(item.Lane, item.Class)[of].deferral(d.now, d.resumed)
}

// begin marks o as running. mu is held.
func (e *engine) begin(o *Operation, now int64) {
	o.setStatus(StatusRunning)
	o.started = now
	e.slots.Running.Push(&o.sched)
	e.watch(o, runs)
	e.grant() // o may have been the last pending operation that can start
}

// next returns the operation to run next, marked as running; mu is held then. If
// there is none, next yields the processor a few times, in case one comes. Then
// it releases mu and returns nil.
func (w *worker) next(now int64) *Operation {
	e := w.engine
	for turns := 0; ; now = e.clock.Now() {
		o, blocked := e.next(now)
		if o != nil {
			e.begin(o, now)
			switch {
			case w.searches:
				w.searches = false
				e.passToken(now)
			case !e.scheduler.Simple() && e.token.Load() != tokenTaken && !e.slots.Full() && e.startable(now):
				e.wakeLocked() // the end of one operation may let two others start: of its key, and of its lane
			}
			return o
		}
		if e.suspended.Len() > 0 {
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
	if e.slots.Full() {
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
	if e.scheduler.Wanting() == 0 {
		return false
	}
	item, _ := e.scheduler.Back(now, sched.MaxLanes)
	return item != nil
}

// startAll starts all operations that can start now, each on a new worker. mu is held.
func (e *engine) startAll(now int64) {
	for o, _ := e.next(now); o != nil; o, _ = e.next(now) {
		e.begin(o, now)
		worker{engine: e, current: o, forced: o.sched.Flags&forced != 0}.start()
	}
}

// grant gives free slots back to resuming operations, if no operation is pending in a
// higher lane. It is called wherever a slot becomes free. About the other resuming
// operations, next decides. So while mu is free, none of them waits for a slot that it
// could have, unless a worker is about to call next. mu is held.
func (e *engine) grant() {
	if e.scheduler.Wanting() > 0 {
		e.grantSome()
	}
}
