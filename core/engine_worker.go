package core

import (
	"context"
	"runtime"
)

// Lifecycle signals of coordinators and their operations.
const (
	// An operation raises SignalStarted before its body and SignalStopped after it ("atom"
	// in these names means operation). It does so only while a handler, a forward or a
	// monitor of the sink has a pattern that begins with "atom." and matches the signal,
	// such as "atom.*". The pattern "*" is not enough, so a handler of all signals makes
	// no operation more expensive. Gates ignore these signals. Operations of a
	// [Dispatcher] or a [Processor] do not raise them.
	SignalStarted = "atom.started"
	SignalStopped = "atom.stopped"
	// SignalPanicked is raised by an operation whose body panicked.
	SignalPanicked = "atom.panicked"
	// SignalForced is raised by an operation that starts because MaxDefer is over,
	// although a signal still matches DeferOn.
	SignalForced = "coordinator.forced"
	// SignalPaused, SignalResumed and SignalClosed are raised on the sink, with
	// the coordinator's name as key.
	SignalPaused  = "coordinator.paused"
	SignalResumed = "coordinator.resumed"
	SignalClosed  = "coordinator.closed"
)

// While fewer operations run than the limit allows, some goroutine must look for arrivals.
// The token says which:
// a worker that searches has taken it; with no work left it parks the token, and
// the producer that finds it parked starts a worker with it. While the limit is
// reached, or all items wait for a signal, no goroutine need look and there is no token;
// whatever changes that, brings it back.
//
// A worker parks the token before it looks for the last time, so that an arrival
// is seen either by that look or by its producer.
const (
	tokenNone uint32 = iota
	tokenParked
	tokenTaken
)

// idleYields is how often a worker without work lets others run before it leaves.
const idleYields = 6

// wakeForArrival starts a worker if no goroutine looks for arrivals.
func (e *engine) wakeForArrival() {
	if e.token.Load() == tokenParked && e.token.CompareAndSwap(tokenParked, tokenTaken) {
		go engineFrame(e.number, e.loop)
	}
}

// wakeLocked starts a worker where something other than an arrival may have made work.
// mu is held.
func (e *engine) wakeLocked() {
	if token := e.token.Load(); token != tokenTaken && !e.full() && e.token.CompareAndSwap(token, tokenTaken) {
		go engineFrame(e.number, e.loop)
	}
}

// wake is called when a signal that the engine watches has come or gone, and by the
// alarm.
func (e *engine) wake() {
	e.mu.Lock()
	if e.alarm.armed && e.alarm.at <= e.clock.now() {
		e.alarm.armed = false
	}
	e.wakeLocked()
	e.mu.Unlock()
}

// work is a worker, started with the token. It runs operations one after the
// other and leaves when there are no more.
func (e *engine) work() {
	w := worker{engine: e, searches: true}
	e.mu.Lock()
	w.goOn(e.clock.now())
}

// start lets a worker with a current operation begin, on a goroutine of its own.
func (w worker) start() {
	go engineFrame(w.engine.number, func() { w.goOn(0) })
}

// goOn is the loop of a worker. mu is held unless it has a current operation.
func (w *worker) goOn(now int64) {
	defer w.replace()
	e := w.engine
	for {
		if w.current == nil {
			o := w.next(now)
			if o == nil {
				w.done = true // next has unlocked
				return
			}
			w.take(o)
			e.unlockTo(&w.spare)
		}
		w.err = w.call(w.current)
		if e.opts.Timeout > 0 {
			w.err = w.current.timedOut(w.err)
		}
		w.phase = returned
		e.stopping(w.current)
		now = e.end(w.current, w.err) // has locked
		w.current = nil
	}
}

// take makes o the current operation.
func (w *worker) take(o *Operation) {
	w.current, w.phase = o, starting
	if o.marks&forced != 0 {
		w.phase = forcing
	}
}

// worker is what a worker knows while it works.
type worker struct {
	engine   *engine
	searches bool          // has the token
	done     bool          // leaves as it should
	current  *Operation    // being run
	phase    phase         // of the current one
	err      error         // of its body, which has returned
	spare    engineEffects // empty, with room: see unlockTo
}

// phase is how far a worker has got with an operation.
type phase uint8

const (
	forcing  phase = iota // it is to raise that it is forced,
	starting              // and that it starts
	started               // which it has raised
	entered               // its body runs, or has ended the goroutine
	returned
)

// replace ends a worker whose body, or a handler it called, has ended the
// goroutine: the operation is accounted for and another worker takes over. A body
// that has not begun is not to blame, and runs there.
func (w *worker) replace() {
	endProcess(recover())
	e := w.engine
	switch {
	case w.done:
		return
	case w.current == nil:
		e.mu.Lock()
	case w.phase < entered:
		w.start()
		return
	case w.phase < returned:
		w.phase, w.err = returned, &PanicError{Stack: stackTrace()}
		defer w.replace() // even if a handler does it once more
		e.stopping(w.current)
		return
	default:
		e.end(w.current, w.err)
	}
	if w.searches {
		e.token.Store(tokenNone)
	}
	e.wakeLocked()
	e.unlockTo(&w.spare)
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

// begin marks o as running. mu is held.
func (e *engine) begin(o *Operation, now int64) {
	o.status, o.started = StatusRunning, now
	e.running.push(o)
}

// call runs the body. It is the one place where a panic of a body is recovered.
func (w *worker) call(o *Operation) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r, Stack: stackTrace()}
			o.Raise(SignalPanicked)
		}
	}()
	if w.phase == forcing {
		w.phase = starting
		o.Raise(SignalForced)
	}
	if w.phase == starting {
		w.phase = started
		if w.engine.announces() {
			o.Raise(SignalStarted)
		}
	}
	w.phase = entered
	return o.body.run((*operationContext)(o))
}

// stopping tells that a body has returned.
func (e *engine) stopping(o *Operation) {
	if e.announces() {
		o.Raise(SignalStopped)
	}
}

// end accounts for an operation whose body has returned, and returns the time,
// with mu held.
func (e *engine) end(o *Operation, err error) (now int64) {
	now = e.clock.now()
	e.mu.Lock()
	if !e.scheduler.plain { // what has come before the end of o comes before what that lets start
		e.collect()
	}
	if o.status == StatusSuspended {
		e.abandonWaits(o)
	} else {
		e.running.remove(o)
	}
	e.scheduler.finish(o)
	if e.resuming.head != nil {
		e.grant()
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
	if o.context.Load() != nil { // one that outlives its body neither runs on nor keeps anything alive
		e.out.cancels = append(e.out.cancels, cancelled{o, context.Canceled})
	}
	if e.closing && e.alive() == 0 {
		e.finalize(now)
	}
	return now
}
