package waveorchestrator

import (
	"context"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// execution is one call of Execute. Its goroutine starts workers, receives their results,
// calls EarlyExit, and watches the clock. Only that goroutine uses the fields before
// begun, except arrived.
type execution[In, Out any] struct {
	o    *Orchestrator[In, Out]
	in   In
	runs []run[In, Out] // runs of all workers, in order

	caller   context.Context // context of Execute
	op       *core.Operation
	ctx      context.Context // context of op; Cancel and Close end it
	began    time.Duration
	deadline time.Duration

	arrived chan *run[In, Out]
	running []*run[In, Out] // running runs, in the order of their starts
	ran     bool            // a wave has run
	valued  bool            // a worker has completed
	timer   *time.Timer     // nil: not needed yet
	timerAt time.Duration   // when the timer fires; never: not at all

	outcome  Outcome // "": not decided
	cause    error   // why the execution has ended early or failed; nil if it was completed
	returned bool    // without a panic

	begun  atomic.Bool            // the execution has begun, or will never begin
	ending atomic.Pointer[ending] // for the workers
	result Result[Out]            // result and err are valid when the operation has ended
	err    error
}

// ending is when, and why, an execution has ended early.
type ending struct {
	at    time.Duration
	cause error
}

// run is the body of the operation.
func (ex *execution[In, Out]) run(ctx context.Context) error {
	o := ex.o
	ex.op, ex.ctx = core.OperationFrom(ctx), ctx
	if !ex.begun.CompareAndSwap(false, true) { // Execute has returned
		o.Control.Cancel(ex.op.ID(), nil)
		return core.ErrCancelled
	}
	ex.began, ex.timerAt = o.now(), never
	ex.deadline = after(ex.began, o.opts.TotalTimeout)
	ex.arrived = make(chan *run[In, Out], o.widest)
	ex.running = make([]*run[In, Out], 0, o.widest)
	ex.runs = make([]run[In, Out], len(o.members))
	for i := range ex.runs {
		ex.runs[i].ex, ex.runs[i].m = ex, o.members[i]
	}
	defer ex.finish()
	ex.raise(ex.op, SignalStarted, "", Event{})
	for i := range o.waves {
		if ex.wave(&o.waves[i]); ex.outcome != "" {
			break
		}
	}
	switch {
	case ex.outcome != "":
	case ex.valued:
		ex.outcome = OutcomeCompleted
	default:
		ex.end(OutcomeFailed, ErrFailed)
	}
	if ex.outcome == OutcomeCancelled {
		o.Control.Cancel(ex.op.ID(), ex.cause) // so that the operation is cancelled, too
	}
	ex.returned = true
	return ex.err
}

// wave runs the workers of a wave that may run. It returns when all runs that it has started have
// ended.
func (ex *execution[In, Out]) wave(w *wave) {
	runs := ex.runs[w.from:w.end]
	workers := ex.admit(runs)
	if workers == 0 {
		return
	}
	if ex.ran {
		ex.pause()
	}
	if !ex.goesOn() {
		return
	}
	ex.ran = true
	started := w.started
	if workers < len(runs) {
		started = waveStarted(w.key, workers)
	}
	ex.raise(ex.op, started, w.key, Event{Wave: w.number, Workers: workers})
	for next := 0; ; {
		for ; next < len(runs) && len(ex.running) < w.limit && ex.goesOn(); next++ {
			if r := &runs[next]; r.admitted {
				ex.start(r)
			}
		}
		if len(ex.running) == 0 {
			return
		}
		ex.await()
	}
}

// admit asks the breakers which workers may run, and returns how many.
func (ex *execution[In, Out]) admit(runs []run[In, Out]) (n int) {
	ex.o.mu.Lock()
	defer ex.o.mu.Unlock()
	now := time.Now()
	for i := range runs {
		r := &runs[i]
		if r.permit, r.admitted = r.m.breaker.Allow(now); r.admitted {
			n++
		} else {
			r.err = ErrBreakerOpen
		}
	}
	return n
}

// pause waits for the interval between two waves.
func (ex *execution[In, Out]) pause() {
	until := after(ex.o.now(), ex.o.opts.WaveInterval)
	for ex.outcome == "" && ex.o.now() < until {
		ex.arm(until)
		ex.await()
	}
}

// goesOn reports whether the execution goes on. If it must not go on, goesOn ends it.
func (ex *execution[In, Out]) goesOn() bool {
	switch {
	case ex.outcome != "":
	case ex.caller.Err() != nil:
		ex.end(OutcomeCancelled, context.Cause(ex.caller))
	case ex.ctx.Err() != nil:
		ex.end(OutcomeCancelled, context.Cause(ex.ctx))
	case ex.o.now() >= ex.deadline:
		ex.end(OutcomeTimedOut, ErrTimeout)
	}
	return ex.outcome == ""
}

// start starts a worker, and ends the execution if that is impossible.
func (ex *execution[In, Out]) start(r *run[In, Out]) {
	r.began = ex.o.now()
	r.deadline = min(after(r.began, ex.o.opts.WorkerTimeout), ex.deadline)
	r.next = r.deadline
	id, err := ex.o.runs.Enqueue(ex.ctx, r)
	if err != nil {
		ex.end(OutcomeCancelled, err)
		return
	}
	r.id, r.admitted = id, false // the run gives the permit back when it ends
	ex.running = append(ex.running, r)
	ex.arm(r.next)
}

// await waits for the next event, and handles it. A run that has returned comes first, because it
// may have returned before the execution was to end.
func (ex *execution[In, Out]) await() {
	select {
	case r := <-ex.arrived:
		ex.receive(r)
		return
	default:
	}
	var (
		timer           <-chan time.Time
		gone, cancelled <-chan struct{}
	)
	if ex.timer != nil {
		timer = ex.timer.C
	}
	if ex.outcome == "" {
		gone, cancelled = ex.caller.Done(), ex.ctx.Done()
	}
	select {
	case r := <-ex.arrived:
		ex.receive(r)
	case <-gone:
		ex.goesOn()
	case <-cancelled:
		ex.goesOn()
	case <-timer:
		ex.tick()
	}
}

// receive handles a run that has returned.
func (ex *execution[In, Out]) receive(r *run[In, Out]) {
	ex.remove(r)
	switch {
	case ex.outcome != "":
	case r.status == completed:
		ex.valued = true
		if exit := ex.o.opts.EarlyExit; exit != nil && exit(r.value) {
			decisive := r.result()
			ex.result.Decisive = &decisive
			ex.end(OutcomeEarlyExit, ErrEarlyExit)
		}
	case r.status == cancelled:
		ex.goesOn() // the run has seen the end of the execution first
	}
}

// remove takes a run from the running ones.
func (ex *execution[In, Out]) remove(r *run[In, Out]) {
	ex.running = slices.DeleteFunc(ex.running, func(other *run[In, Out]) bool { return other == r })
}

// arm makes the timer fire at that time, or sooner.
func (ex *execution[In, Out]) arm(at time.Duration) {
	if at >= ex.timerAt {
		return
	}
	ex.timerAt = at
	if d := at - ex.o.now(); ex.timer == nil {
		ex.timer = time.NewTimer(d)
	} else {
		ex.timer.Reset(d)
	}
}

// tick is called when the timer has fired.
func (ex *execution[In, Out]) tick() {
	ex.timerAt = never
	ex.goesOn()
	now := ex.o.now()
	for _, r := range slices.Clone(ex.running) {
		if r.cause == nil && now >= r.next {
			r.cause, r.next = r.expiry(), after(r.deadline, ex.o.opts.Grace)
		}
		if now >= r.next {
			ex.abandon(r)
		}
		ex.arm(r.next)
	}
	if ex.outcome == "" {
		ex.arm(ex.deadline)
	}
}

// abandon goes on without a run that does not return.
func (ex *execution[In, Out]) abandon(r *run[In, Out]) {
	r.abandoned = r.stage.CompareAndSwap(stageRunning, stageAbandoned)
	r.next = never // if the run has returned, handlers of its signals still run
	if r.abandoned {
		ex.remove(r)
		r.took, r.status, r.err = ex.o.now()-r.began, cancelled, r.cause
		if r.cause == ErrWorkerTimeout {
			r.status = timedOut
		}
		r.record(ex.op)
		r.raise(ex.op, SignalWorkerAbandoned)
	} else {
		ex.withdraw(r, r.cause)
	}
}

// withdraw takes back a run whose goroutine has not begun.
func (ex *execution[In, Out]) withdraw(r *run[In, Out], cause error) bool {
	if !r.stage.CompareAndSwap(stageWaiting, stageAbandoned) {
		return false
	}
	ex.o.runs.Cancel(r.id, cause)
	ex.remove(r)
	r.id, r.err, r.next = 0, cause, never
	ex.o.giveBack(r)
	return true
}

// end decides how the execution ends. It ends the contexts of the runs with that cause. Nothing
// more is started.
func (ex *execution[In, Out]) end(outcome Outcome, cause error) {
	if ex.outcome != "" {
		return
	}
	ex.outcome, ex.cause, ex.err = outcome, cause, cause
	now := ex.o.now()
	ex.ending.Store(&ending{now, cause})
	for _, r := range slices.Clone(ex.running) {
		if !ex.withdraw(r, cause) && r.cause == nil { // otherwise the run has failed, because its deadline has passed
			r.cause, r.next = cause, after(now, ex.o.opts.Grace)
			ex.o.runs.Cancel(r.id, cause)
		}
		ex.arm(r.next)
	}
	for i := range ex.runs {
		if r := &ex.runs[i]; r.admitted {
			ex.o.giveBack(r)
		}
	}
	e := Event{Duration: now - ex.began}
	switch outcome {
	case OutcomeEarlyExit:
		ex.err = nil
		e.Worker, e.Wave = ex.result.Decisive.Worker, ex.result.Decisive.Wave
		key := strconv.Itoa(e.Wave)
		ex.raise(ex.op, SignalEarlyExit+":wave="+key, key, e)
	case OutcomeTimedOut:
		ex.raise(ex.op, SignalTimeout+":elapsed="+millis(e.Duration), "", e)
	case OutcomeFailed:
		e.Err = cause
		ex.raise(ex.op, SignalFailed, "", e)
	}
}

// finish makes the result. If EarlyExit has panicked, or a handler has ended the
// goroutine, it waits for the runs first.
func (ex *execution[In, Out]) finish() {
	if !ex.returned {
		panicked := recover() // nil: the goroutine is being ended
		if panicked != nil {
			defer panic(panicked)
		}
		ex.end(OutcomeCancelled, &core.PanicError{Value: panicked, Stack: debug.Stack()})
		if len(ex.running) > 0 {
			defer ex.finish() // even if a handler ends the goroutine again
			for len(ex.running) > 0 {
				ex.await()
			}
			return
		}
	}
	if ex.timer != nil {
		ex.timer.Stop()
	}
	r := &ex.result
	r.Outcome, r.Duration = ex.outcome, ex.o.now()-ex.began
	ex.collect(r)
	ex.raise(ex.op, SignalCompleted+":duration="+millis(r.Duration)+":results="+strconv.Itoa(len(r.Completed)), "",
		Event{Outcome: r.Outcome, Workers: len(r.Completed), Duration: r.Duration})
}

// collect puts the runs into the lists of the result.
func (ex *execution[In, Out]) collect(result *Result[Out]) {
	lists := [...]*[]WorkerResult[Out]{
		skipped: &result.Skipped, completed: &result.Completed, failed: &result.Failed,
		timedOut: &result.Failed, cancelled: &result.Cancelled,
	}
	for i := range ex.runs {
		r := &ex.runs[i]
		w := r.result()
		list := lists[r.status]
		if *list == nil {
			*list = make([]WorkerResult[Out], 0, len(ex.runs)-i)
		}
		*list = append(*list, w)
		if r.abandoned {
			result.Abandoned = append(result.Abandoned, w)
		}
	}
}

// raise raises a signal of the execution or of a run.
func (ex *execution[In, Out]) raise(on signals.Raiser, name, key string, e Event) {
	e.Execution = ex.op.ID()
	signals.NewKind[Event](name).Raise(on, key, e)
}
