package waveorchestrator

import (
	"context"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// execution is one call of Execute. One goroutine conducts it: it starts workers,
// hears of those that have returned, asks about the early exit, and looks at the
// clock. What is here is that goroutine's own, except arrived and what follows returned.
type execution[In, Out any] struct {
	o    *Orchestrator[In, Out]
	in   In
	runs []run[In, Out] // of all workers, in order

	caller   context.Context // of Execute, to know when it ends
	op       *core.Operation
	ctx      context.Context // of op
	began    time.Duration
	deadline time.Duration
	timeout  error // the cause by which the deadline ends contexts

	arrived chan *run[In, Out] // nil: it was cancelled
	running []*run[In, Out]    // in the order of their starts
	ran     bool               // a wave has
	timer   *time.Timer        // nil: not needed yet
	armed   time.Duration      // when it goes off; never: it does not

	outcome  Outcome // "": not decided
	cause    error   // of the end; nil if all waves were gone through
	decisive *run[In, Out]
	returned bool // without a panic

	begun    atomic.Bool            // or will not
	unwanted atomic.Pointer[error]  // why it was cancelled; nil: it was not
	ended    atomic.Pointer[ending] // for the workers
	done     chan struct{}
	result   Result[Out] // and err: there when done is closed
	err      error
}

// ending is when an execution has ended before its time, and why.
type ending struct {
	at    time.Duration
	cause error
}

// run is the body of the operation.
func (ex *execution[In, Out]) run(ctx context.Context) error {
	if !ex.begun.CompareAndSwap(false, true) {
		return context.Cause(ctx) // Execute has returned
	}
	o := ex.o
	ex.op, ex.ctx = core.OperationFrom(ctx), ctx
	ex.began = o.now()
	ex.deadline = after(ex.began, o.opts.TotalTimeout)
	ex.timeout = &deadline{ErrTimeout}
	ex.arrived = make(chan *run[In, Out], o.widest+1) // Cancel has a place of its own
	ex.running = make([]*run[In, Out], 0, o.widest)
	ex.runs = make([]run[In, Out], len(o.members))
	for i := range ex.runs {
		ex.runs[i].ex, ex.runs[i].m = ex, o.members[i]
	}
	o.begun(ex)
	defer ex.finish()
	ex.raise(SignalStarted, "", Event{})
	for i := range o.waves {
		if ex.wave(&o.waves[i]); ex.outcome != "" {
			break
		}
	}
	if ex.outcome == "" {
		ex.outcome = OutcomeCompleted
	}
	if ex.outcome == OutcomeCancelled {
		o.operation.Cancel(ex.op.ID(), ex.cause) // which is how the operation ends, too
	}
	ex.returned = true
	return ex.reason()
}

// reason is the error that Execute returns.
func (ex *execution[In, Out]) reason() error {
	if ex.outcome == OutcomeTimedOut || ex.outcome == OutcomeCancelled {
		return ex.cause
	}
	return nil
}

// wave runs the workers of a wave that may run, and returns when all that it has
// started have ended.
func (ex *execution[In, Out]) wave(w *wave) {
	runs := ex.runs[w.from:w.end]
	workers := ex.admit(runs)
	if workers == 0 {
		return
	}
	if ex.ran {
		ex.pause()
	}
	if !ex.mayStart() {
		return
	}
	ex.ran = true
	started := w.started
	if workers < len(runs) {
		started = waveStarted(w.key, workers)
	}
	ex.raise(started, w.key, Event{Wave: w.number, Workers: workers})
	for next := 0; ; {
		for ; next < len(runs) && len(ex.running) < w.limit; next++ {
			if r := &runs[next]; r.admitted && !ex.start(r) {
				next = len(runs)
				break
			}
		}
		if len(ex.running) == 0 {
			return
		}
		ex.await()
		if ex.outcome != "" {
			next = len(runs)
		}
	}
}

// admit asks the breakers which workers may run, and returns how many.
func (ex *execution[In, Out]) admit(runs []run[In, Out]) (n int) {
	now := ex.o.now()
	for i := range runs {
		r := &runs[i]
		if r.ticket, r.err = r.m.admit(now); r.err == nil {
			r.admitted = true
			n++
		}
	}
	return n
}

// pause lets the interval between two waves pass, if there is one.
func (ex *execution[In, Out]) pause() {
	interval := ex.o.opts.WaveInterval
	if interval == 0 {
		return
	}
	until := after(ex.o.now(), interval)
	ex.arm(until)
	for ex.outcome == "" && ex.o.now() < until {
		ex.await()
		ex.arm(until)
	}
}

// mayStart reports whether the execution goes on, and ends it if it has come to
// its end without having heard of that.
func (ex *execution[In, Out]) mayStart() bool {
	switch {
	case ex.outcome != "":
	case ex.caller.Err() != nil:
		ex.end(OutcomeCancelled, context.Cause(ex.caller))
	case ex.unwanted.Load() != nil:
		ex.end(OutcomeCancelled, *ex.unwanted.Load())
	case ex.o.closed():
		ex.end(OutcomeCancelled, core.ErrClosed)
	case ex.o.now() >= ex.deadline:
		ex.end(OutcomeTimedOut, ErrTimeout)
	}
	return ex.outcome == ""
}

// start starts a worker, and reports whether it could.
func (ex *execution[In, Out]) start(r *run[In, Out]) bool {
	if !ex.mayStart() {
		return false
	}
	r.began = ex.o.now()
	r.deadline = after(r.began, ex.o.opts.WorkerTimeout)
	id, err := ex.o.operation.Enqueue(ex.ctx, r)
	if err != nil {
		ex.end(OutcomeCancelled, err)
		return false
	}
	r.id, r.admitted = id, false // the ticket is the run's now
	ex.running = append(ex.running, r)
	ex.arm(min(r.deadline, ex.deadline))
	return true
}

// await waits for the next thing to happen, and deals with it. A run that has come in
// was in time, so it goes before an end that has come meanwhile.
func (ex *execution[In, Out]) await() {
	select {
	case r := <-ex.arrived:
		ex.receive(r)
		return
	default:
	}
	var (
		alarm        <-chan time.Time
		gone, closed <-chan struct{}
	)
	if ex.timer != nil {
		alarm = ex.timer.C
	}
	if ex.outcome == "" {
		gone, closed = ex.caller.Done(), ex.o.closing
	}
	select {
	case r := <-ex.arrived:
		ex.receive(r)
	case <-gone:
		ex.end(OutcomeCancelled, context.Cause(ex.caller))
	case <-closed:
		ex.end(OutcomeCancelled, core.ErrClosed)
	case <-alarm:
		ex.armed = never
		ex.tick()
	}
}

// cancel ends the execution, unless it has come to its end. The first cause counts.
func (ex *execution[In, Out]) cancel(cause error) {
	if ex.unwanted.CompareAndSwap(nil, &cause) {
		ex.arrived <- nil // there is room
	}
}

// receive deals with a run that has ended by itself, or with Cancel.
func (ex *execution[In, Out]) receive(r *run[In, Out]) {
	if r == nil {
		ex.end(OutcomeCancelled, *ex.unwanted.Load())
		return
	}
	ex.forget(r)
	if ex.outcome != "" {
		return
	}
	switch r.verdict {
	case completed:
		if exit := ex.o.opts.EarlyExit; exit != nil && exit(r.value) {
			ex.decisive = r
			ex.end(OutcomeEarlyExit, ErrEarlyExit)
		}
	case cancelled: // it has heard of the end sooner
		if r.err == ex.timeout {
			ex.end(OutcomeTimedOut, ErrTimeout)
		} else {
			ex.end(OutcomeCancelled, r.err)
		}
	}
}

// forget takes a run from the running ones.
func (ex *execution[In, Out]) forget(r *run[In, Out]) {
	if i := slices.Index(ex.running, r); i >= 0 {
		ex.running = slices.Delete(ex.running, i, i+1)
	}
}

// arm sees to it that the timer goes off at that time, or sooner.
func (ex *execution[In, Out]) arm(at time.Duration) {
	if at >= ex.armed {
		return
	}
	ex.armed = at
	if d := at - ex.o.now(); ex.timer == nil {
		ex.timer = time.NewTimer(d)
	} else {
		ex.timer.Reset(d)
	}
}

// tick looks at the clock.
func (ex *execution[In, Out]) tick() {
	now := ex.o.now()
	if ex.outcome == "" && now >= ex.deadline {
		ex.end(OutcomeTimedOut, ErrTimeout)
	}
	for _, r := range slices.Clone(ex.running) {
		if r.told == nil && now >= r.deadline {
			r.told, r.until = ErrWorkerTimeout, after(r.deadline, ex.o.opts.Grace)
		}
		if r.told != nil && now >= r.until {
			ex.abandon(r)
		}
	}
	if ex.outcome == "" {
		ex.arm(ex.deadline)
	}
	for _, r := range ex.running {
		if r.told == nil {
			ex.arm(r.deadline)
		} else {
			ex.arm(r.until)
		}
	}
}

// abandon gives up a run that does not return.
func (ex *execution[In, Out]) abandon(r *run[In, Out]) {
	if !ex.o.abandon(r) {
		if r.stage.CompareAndSwap(stageWaiting, stageAbandoned) {
			ex.unstart(r, r.told)
		} else {
			r.until = never // it has returned, and handlers hold it up
		}
		return
	}
	ex.forget(r)
	r.left, r.took = true, ex.o.now()-r.began
	r.verdict, r.err = cancelled, r.told
	if r.told == ErrWorkerTimeout {
		r.verdict = timedOut
	}
	r.book(ex.op)
	raise(ex.op, r.m.signals.abandoned, r.m.Name, Event{Execution: ex.op.ID(), Worker: r.m.Name, Wave: r.m.Wave, Duration: r.took, Err: r.err})
}

// unstart deals with a run whose goroutine has not begun, and does not any more.
func (ex *execution[In, Out]) unstart(r *run[In, Out], cause error) {
	ex.o.operation.Cancel(r.id, cause)
	ex.forget(r)
	r.id, r.err = 0, cause
	r.m.giveBack(r.ticket)
}

// end decides how the execution ends: the contexts of what runs end, with that
// cause, and nothing more is started.
func (ex *execution[In, Out]) end(outcome Outcome, cause error) {
	if ex.outcome != "" {
		return
	}
	ex.outcome, ex.cause = outcome, cause
	o, now := ex.o, ex.o.now()
	ex.ended.Store(&ending{now, cause})
	until := after(now, o.opts.Grace)
	for _, r := range slices.Clone(ex.running) {
		if r.told == nil {
			r.told, r.until = cause, until
		}
		if r.stage.CompareAndSwap(stageWaiting, stageAbandoned) {
			ex.unstart(r, cause)
		} else {
			o.operation.Cancel(r.id, cause)
		}
	}
	for i := range ex.runs {
		if r := &ex.runs[i]; r.admitted {
			r.m.giveBack(r.ticket)
		}
	}
	if len(ex.running) > 0 {
		ex.arm(until)
	}
	switch outcome {
	case OutcomeEarlyExit:
		m, key := ex.decisive.m, strconv.Itoa(ex.decisive.m.Wave)
		ex.raise(SignalEarlyExit+":wave="+key, key, Event{Worker: m.Name, Wave: m.Wave, Duration: now - ex.began})
	case OutcomeTimedOut:
		ex.raise(SignalTimeout+":elapsed="+millis(now-ex.began), "", Event{Duration: now - ex.began})
	}
}

// finish makes the result. If EarlyExit has panicked, or a handler has ended the
// goroutine, it waits for what still runs before that goes on.
func (ex *execution[In, Out]) finish() {
	if !ex.returned {
		panicked := recover() // nil: the goroutine is being ended
		if panicked != nil {
			defer panic(panicked)
		}
		ex.end(OutcomeCancelled, &core.PanicError{Value: panicked, Stack: debug.Stack()})
		if len(ex.running) > 0 {
			defer ex.finish() // even if a handler does it once more
			for len(ex.running) > 0 {
				ex.await()
			}
			return
		}
	}
	defer close(ex.done)
	o := ex.o
	ex.err = ex.reason()
	if ex.timer != nil {
		ex.timer.Stop()
	}
	r := &ex.result
	r.Outcome, r.Duration = ex.outcome, o.now()-ex.began
	r.Completed = ex.collect(func(run *run[In, Out]) bool { return run.verdict == completed })
	r.Failed = ex.collect(func(run *run[In, Out]) bool { return run.verdict == failed || run.verdict == timedOut })
	r.Cancelled = ex.collect(func(run *run[In, Out]) bool { return run.verdict == cancelled })
	r.Skipped = ex.collect(func(run *run[In, Out]) bool { return run.verdict == skipped })
	r.Abandoned = ex.collect(func(run *run[In, Out]) bool { return run.left })
	if ex.decisive != nil {
		decisive := ex.decisive.result()
		r.Decisive = &decisive
	}
	o.ended(ex)
	ex.raise(SignalCompleted+":duration="+millis(r.Duration)+":results="+strconv.Itoa(len(r.Completed)), "",
		Event{Outcome: r.Outcome, Workers: len(r.Completed), Duration: r.Duration})
}

// collect lists the runs that are of some kind.
func (ex *execution[In, Out]) collect(of func(*run[In, Out]) bool) []WorkerResult[Out] {
	n := 0
	for i := range ex.runs {
		if of(&ex.runs[i]) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	list := make([]WorkerResult[Out], 0, n)
	for i := range ex.runs {
		if run := &ex.runs[i]; of(run) {
			list = append(list, run.result())
		}
	}
	return list
}

// raise raises a signal of the execution.
func (ex *execution[In, Out]) raise(name, key string, e Event) {
	e.Execution = ex.op.ID()
	raise(ex.op, name, key, e)
}
