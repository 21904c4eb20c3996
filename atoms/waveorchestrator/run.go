package waveorchestrator

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// run is one worker in one execution. The execution's goroutine starts it, and the worker's own
// goroutine does the work. The goroutine that takes stage to its end records the outcome.
type run[In, Out any] struct {
	ex    *execution[In, Out]
	m     *member[In, Out]
	stage atomic.Uint32

	// Only the execution's goroutine uses these. Both goroutines read began and deadline.
	id        core.OperationID
	admitted  bool // the run has the breaker's permit, and has not started
	permit    breaker.Permit
	began     time.Duration
	deadline  time.Duration
	cause     error         // why its context has ended; nil: the execution has not seen its end
	next      time.Duration // when the execution looks again: at the deadline, or to abandon the run
	abandoned bool

	// The outcome. It belongs to the goroutine that takes stage to its end, until the
	// execution receives the run.
	status status
	value  Out
	err    error
	took   time.Duration
}

const (
	stageWaiting   uint32 = iota // for its goroutine
	stageRunning                 //
	stageReturned                // an end: the execution will receive the run
	stageAbandoned               // an end: the value does not count
)

type status uint8

const (
	skipped status = iota
	completed
	failed
	timedOut // failed, too
	cancelled
)

// run is the body of the operation.
func (r *run[In, Out]) run(ctx context.Context) (err error) {
	if !r.stage.CompareAndSwap(stageWaiting, stageRunning) {
		return context.Cause(ctx) // the execution has withdrawn it
	}
	op := core.OperationFrom(ctx)
	op.SetKey(r.m.Name)
	c := &workerContext{ctx: ctx, cause: r.expiry()}
	if r.deadline != never {
		c.deadline = r.ex.o.base.Add(r.deadline)
	}
	var out Out
	returned := false
	defer func() {
		panicked := recover()
		if !returned { // core also recovers panics, but the result needs the panic's value
			err = &core.PanicError{Value: panicked, Stack: debug.Stack()}
		}
		err = r.settle(op, out, err)
		if panicked != nil {
			panic(panicked)
		}
	}()
	r.ex.raise(op, r.m.started, r.m.Name, Event{Worker: r.m.Name, Wave: r.m.Wave})
	if _, cause := r.interrupted(); cause == nil {
		out, err = r.m.Do(c, r.ex.in)
	} else {
		err = context.DeadlineExceeded // handlers have used up the time
	}
	returned = true
	return err
}

// expiry is the cause with which the worker's context ends at the deadline.
func (r *run[In, Out]) expiry() error {
	if r.deadline < r.ex.deadline {
		return ErrWorkerTimeout
	}
	return ErrTimeout
}

// interrupted returns how and why the worker's context has ended. If it has not ended, interrupted
// returns completed and nil. It looks at the clock, because a worker may return a little before
// its context ends: for example, a connection may have the same deadline.
func (r *run[In, Out]) interrupted() (status, error) {
	ex := r.ex
	end := ex.ending.Load()
	switch late := ex.o.now() >= r.deadline; {
	case end != nil && end.at < r.deadline:
		return cancelled, end.cause
	case late && r.deadline < ex.deadline:
		return timedOut, ErrWorkerTimeout
	case late:
		return cancelled, ErrTimeout
	case ex.ctx.Err() != nil:
		return cancelled, context.Cause(ex.ctx)
	}
	return completed, nil
}

// settle records the outcome of a run that has returned, and returns the error of the
// operation.
func (r *run[In, Out]) settle(op *core.Operation, out Out, err error) error {
	o := r.ex.o
	status, cause := r.interrupted()
	if !r.stage.CompareAndSwap(stageRunning, stageReturned) {
		return cmp.Or(err, cause)
	}
	defer func() { r.ex.arrived <- r }() // the channel has room for all runs
	r.took = o.now() - r.began
	r.status, r.err = status, cause
	switch {
	case status == completed && err == nil:
		r.value = out
	case status == completed:
		r.status, r.err = failed, err
	case status == timedOut && err != nil && err != context.DeadlineExceeded:
		r.err = fmt.Errorf("%w: %w", cause, err)
	case status == cancelled:
		o.runs.Cancel(op.ID(), cause) // so that the operation is cancelled, too
	}
	r.record(op)
	return r.err
}

// record gives the permit back with the outcome, and raises the signals of the outcome.
func (r *run[In, Out]) record(on signals.Raiser) {
	m, o := r.m, r.ex.o
	results := [...]breaker.Result{
		completed: breaker.Success, failed: breaker.Failure, timedOut: breaker.Failure, cancelled: breaker.Neutral,
	}
	o.mu.Lock()
	now := time.Now()
	changed := m.breaker.Done(r.permit, now, results[r.status])
	failures := m.breaker.Failures(now)
	until := now.Add(m.breaker.ClosesIn(now))
	o.mu.Unlock()
	if changed && r.status != completed {
		defer o.holdOpened(m, failures, until) // even if a handler ends the goroutine
	}
	switch r.status {
	case completed:
		r.raise(on, SignalWorkerCompleted+":"+m.Name+":duration="+millis(r.took))
		if changed {
			r.raise(on, SignalBreakerClosed)
		}
	case failed:
		r.raise(on, SignalWorkerFailed+":"+m.Name+":error="+message(r.err))
	case timedOut:
		r.raise(on, SignalWorkerTimeout+":"+m.Name+":duration="+millis(r.took))
	}
}

// holdOpened holds SignalBreakerOpened while a breaker is open.
func (o *Orchestrator[In, Out]) holdOpened(m *member[In, Out], failures int, until time.Time) {
	name := SignalBreakerOpened + ":" + m.Name + ":failures=" + strconv.Itoa(failures)
	release := o.Sink().Hold(name, m.Name, max(time.Until(until), 1))
	o.mu.Lock()
	m.release = release
	o.mu.Unlock()
	if o.closing.Err() != nil { // otherwise Close will release it
		release()
	}
}

// raise raises a signal about a run that has ended.
func (r *run[In, Out]) raise(on signals.Raiser, name string) {
	r.ex.raise(on, name, r.m.Name, Event{Worker: r.m.Name, Wave: r.m.Wave, Duration: r.took, Err: r.err})
}

// result is the run as Execute returns it.
func (r *run[In, Out]) result() WorkerResult[Out] {
	w := WorkerResult[Out]{Worker: r.m.Name, Wave: r.m.Wave, Operation: r.id, Duration: r.took, Value: r.value, Err: r.err}
	if r.status == skipped && w.Err == nil {
		w.Err = r.ex.cause
	}
	return w
}
