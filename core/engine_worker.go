// This file decides which goroutines run bodies.

package core

import (
	"runtime/trace"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/frames"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// While fewer operations run than the limit allows, some goroutine must look for arrivals.
// The token says which: a worker that searches has taken it; with no work left it parks
// the token, and the producer that finds it parked starts a worker with it. While the
// limit is reached, or all items wait for a signal, no goroutine has to look, and there is
// no token. The change that ends this state brings the token back.
//
// A worker parks the token before it looks for the last time, so that either the worker or
// the producer sees an arrival.
const (
	tokenNone uint32 = iota
	tokenParked
	tokenTaken
)

// idleYields is how often a worker without work lets others run before it leaves. That many
// turns cost about as much as the start of another worker: so a worker waits too long by no
// more than the cost of leaving too early.
const idleYields = 6

// wakeLocked starts a worker because something may be able to start. It is not for
// arrivals. mu is held.
func (e *engine) wakeLocked() {
	if token := e.token.Load(); token != tokenTaken && !e.slots.Full() && e.token.CompareAndSwap(token, tokenTaken) {
		go e.loop()
	}
}

// engineWaker wakes the engine. The method is not the engine's, because [Control] would have it as well.
type engineWaker struct{ engine *engine }

func (w engineWaker) Wake() { w.engine.wake() }

// wake is called when a signal that the engine watches has come or gone, and by the
// alarm.
func (e *engine) wake() {
	e.mu.Lock()
	now := e.clock.Now()
	if e.alarm.Armed && e.alarm.At <= now {
		e.alarm.Armed = false
	}
	if e.tries {
		e.limitTrials(now)
		e.grant()
	}
	if t := e.tape.Load(); t != nil {
		e.tapeGates(t, now)
	}
	e.wakeLocked()
	if !e.ruled || !e.turnAway(now) {
		e.unlock()
		return
	}
	out := new(engineEffects)
	e.out, *out = *out, e.out
	e.mu.Unlock()
	go e.settle(out) // calls OnDone. The raiser of the signal must not wait for it, and may hold locks
}

// work is a worker, started with the token. It runs operations one after the
// other and leaves when there are no more.
func (e *engine) work() {
	w := worker{engine: e, searches: true}
	e.mu.Lock()
	w.goOn(e.clock.Now())
}

// start starts a worker with a current operation, on a new goroutine.
func (w worker) start() {
	w.on = 0
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
			w.current, w.forced = o, o.sched.Flags&forced != 0
			e.unlockTo(&w.spare)
		}
		err := w.call(w.current)
		if e.opts.Timeout > 0 {
			err = w.current.timedOut(err)
		}
		e.stopping(w.current)
		now = e.end(w.current, err) // has locked
		w.current = nil
	}
}

// worker is the state of a worker.
type worker struct {
	engine   *engine
	searches bool          // has the token
	done     bool          // the worker leaves in the normal way
	current  *Operation    // being run
	forced   bool          // it has started in spite of a deferral
	on       uint64        // the number of its goroutine; 0: not known yet
	spare    engineEffects // empty, but with capacity: see unlockTo
}

// replace is for a worker whose goroutine was ended by a body. It records the end of the operation,
// and another worker takes over.
func (w *worker) replace() {
	endProcess(recover())
	e := w.engine
	switch {
	case w.done:
		return
	case w.current == nil: // a handler, which must not do so
		e.mu.Lock()
	default:
		e.stopping(w.current)
		e.end(w.current, &PanicError{Stack: stackTrace()}) // has locked
	}
	if w.searches {
		e.token.Store(tokenNone)
	}
	e.wakeLocked()
	e.unlockTo(&w.spare)
}

// call runs the body. It is the one place where a panic of a body is recovered.
func (w *worker) call(o *Operation) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r, Stack: stackTrace()}
			o.Raise(SignalPanicked)
		}
	}()
	if w.forced {
		o.Raise(SignalForced)
	}
	if w.engine.announces() {
		o.Raise(signals.SignalStarted)
	}
	if w.engine.stuck.bodies != nil {
		w.watchWorker(o)
	}
	if trace.IsEnabled() {
		return o.traceBody()
	}
	return o.body.run((*operationContext)(o))
}

// stopping raises the signals for a body that has returned.
func (e *engine) stopping(o *Operation) {
	if e.announces() {
		o.Raise(signals.SignalStopped)
	}
}

// announces reports whether operations raise lifecycle signals. Operations of
// dispatchers do not: two dispatchers that handle all signals of one sink would
// handle each other's operations for ever.
func (e *engine) announces() bool { return !e.quiet && e.scope.Engine().Announces() }

// watchWorker records on which goroutine the body of o is about to run.
func (w *worker) watchWorker(o *Operation) {
	if w.on == 0 {
		w.on = frames.Goroutine()
	}
	w.engine.mu.Lock()
	w.engine.stuck.on(o.owner.ID, w.on)
	w.engine.mu.Unlock()
}

// watch records what the body of o does from now on. mu is held.
func (e *engine) watch(o *Operation, does doing) {
	if e.stuck.bodies != nil {
		e.note(o, does)
	}
}

func (e *engine) note(o *Operation, does doing) {
	e.watchUntil(e.stuck.note(o.owner.ID, does, e.clock.Now()))
}

// watchUntil looks for bodies that are stuck at that time. mu is held.
func (e *engine) watchUntil(at int64) {
	if at != clock.Never {
		e.stuckAlarm.Set(e.clock, at, e.findStuck)
	}
}

// findStuck raises the signals of bodies that are stuck now.
func (e *engine) findStuck() {
	e.mu.Lock()
	e.stuckAlarm.Armed = false
	ids, next := e.stuck.find(e.clock.Now())
	e.watchUntil(next)
	var stacks map[uint64]string
	if len(ids) > 0 {
		stacks = goroutineStacks() // with mu held, so that the bodies do not end before
	}
	raises := make([]func(), len(ids))
	for i, id := range ids {
		o, b := e.index.Get(id), e.stuck.bodies[id]
		raises[i] = func() {
			Stuck.Raise(o, "", StuckOperation{b.why(), e.clock.Wall(b.stuckSince), stacks[b.goroutine]})
		}
	}
	e.mu.Unlock()
	for _, raise := range raises {
		raise()
	}
}
