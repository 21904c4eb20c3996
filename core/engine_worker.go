package core

// Forced is the kind of [SignalForced].
var Forced = NewKind[ForcedStart](SignalForced)

// A ForcedStart says why an operation started although a signal matched DeferOn.
type ForcedStart struct {
	Reason string `json:"reason"` // a text for people
}

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
	now := e.clock.now()
	if e.alarm.armed && e.alarm.at <= now {
		e.alarm.armed = false
	}
	if e.tries {
		e.limitTrials(now)
		e.grant()
	}
	e.wakeLocked()
	e.unlock()
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

// call runs the body. It is the one place where a panic of a body is recovered.
func (w *worker) call(o *Operation) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r, Stack: stackTrace()}
			w.engine.ledger.raise(o, note{name: SignalPanicked})
		}
	}()
	if w.phase == forcing {
		w.phase = starting
		Forced.Raise(o, "", ForcedStart{"MaxDefer is over, and a signal still matches DeferOn"})
	}
	if w.phase == starting {
		w.phase = started
		if w.engine.announces() {
			w.engine.ledger.raise(o, note{name: SignalStarted})
		}
	}
	w.phase = entered
	return o.body.run((*operationContext)(o))
}

// stopping tells that a body has returned.
func (e *engine) stopping(o *Operation) {
	if e.announces() {
		e.ledger.raise(o, note{name: SignalStopped})
	}
}

// announces reports whether operations raise lifecycle signals. Those that handle
// signals do not: two dispatchers that listen to everything on one sink would have
// each other's operations to handle for ever.
func (e *engine) announces() bool { return !e.quiet && e.sink.names.listening.Load() }
