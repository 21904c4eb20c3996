package waveorchestrator

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// run is one worker in one execution. The execution's goroutine starts it, the
// worker's own does the work; stage says whose turn it is, and whoever takes it to
// its end says what came of it.
type run[In, Out any] struct {
	ex    *execution[In, Out]
	m     *member[In, Out]
	stage atomic.Uint32

	// The execution's own.
	id       core.OperationID
	admitted bool // has the ticket, and has not started
	ticket   uint64
	began    time.Duration
	deadline time.Duration
	told     error         // why its context has ended; nil: it has not, as far as the execution knows
	until    time.Duration // then: when it is abandoned
	left     bool          // it was

	// What came of it. Of whoever has taken stage to its end, until the
	// execution knows.
	verdict verdict
	value   Out
	err     error
	took    time.Duration
}

const (
	stageWaiting   uint32 = iota // for its goroutine
	stageRunning                 //
	stageReturned                // an end: on its way to the execution
	stageAbandoned               // an end: what it returns counts no more
)

type verdict uint8

const (
	skipped verdict = iota
	completed
	failed
	timedOut // failed, too
	cancelled
)

// run is the body of the operation.
func (r *run[In, Out]) run(ctx context.Context) (err error) {
	if !r.stage.CompareAndSwap(stageWaiting, stageRunning) {
		return context.Cause(ctx) // the execution has ended meanwhile, and has cancelled it
	}
	op := core.OperationFrom(ctx)
	op.SetKey(r.m.Name)
	c := r.context(ctx)
	var out Out
	returned := false
	defer func() {
		var panicked any
		if !returned { // core recovers it; but what it was is part of the result
			panicked = recover()
			err = &core.PanicError{Value: panicked, Stack: debug.Stack()}
		}
		cause := r.cause(c)
		c.end()
		err = r.settle(op, out, err, cause, &c.own)
		if panicked != nil {
			panic(panicked)
		}
	}()
	raise(op, r.m.signals.started, r.m.Name, Event{Execution: r.ex.op.ID(), Worker: r.m.Name, Wave: r.m.Wave})
	if r.cause(c) == nil {
		out, err = r.m.Do(c, r.ex.in)
	} else {
		err = context.DeadlineExceeded // handlers have taken all the time
	}
	returned = true
	return err
}

// context is that of the worker.
func (r *run[In, Out]) context(ctx context.Context) *workerContext {
	c := &workerContext{Context: ctx, own: deadline{ErrWorkerTimeout}}
	at := r.deadline
	c.why = &c.own
	if r.ex.deadline <= at {
		at, c.why = r.ex.deadline, r.ex.timeout
	}
	if at != never {
		c.deadline = r.ex.o.base.Add(at)
	}
	return c
}

// cause is why the worker's context has ended, or nil: what came first. The clock
// counts as well: who has passed the deadline on, to a connection for example, may
// return a little before the context ends.
func (r *run[In, Out]) cause(c *workerContext) error {
	deadline := min(r.deadline, r.ex.deadline)
	if real := c.asked(); real != nil {
		if cause := context.Cause(real); cause != nil {
			return cause
		}
	} else if end := r.ex.ended.Load(); end != nil && end.at < deadline {
		return end.cause
	}
	switch {
	case r.ex.o.now() >= deadline:
		return c.why
	case r.ex.o.closed():
		return core.ErrClosed
	}
	return nil
}

// settle says what came of a run that has returned, and returns the error of the
// operation. Cause is why its context had ended; own is that if it is its own time.
func (r *run[In, Out]) settle(op *core.Operation, out Out, err, cause, own error) error {
	o := r.ex.o
	if cause != nil && err == nil {
		o.late()
	}
	if !r.stage.CompareAndSwap(stageRunning, stageReturned) {
		o.outlived(r.m)
		if err == nil {
			err = cause
		}
		return err
	}
	defer func() { r.ex.arrived <- r }() // there is room for all
	r.took = o.now() - r.began
	switch {
	case cause == nil && err == nil:
		r.verdict, r.value = completed, out
	case cause == nil:
		r.verdict, r.err = failed, err
	case cause == own && (err == nil || err == context.DeadlineExceeded):
		r.verdict, r.err = timedOut, ErrWorkerTimeout
	case cause == own:
		r.verdict, r.err = timedOut, fmt.Errorf("%w: %w", ErrWorkerTimeout, err)
	default:
		r.verdict, r.err = cancelled, cause
		o.operation.Cancel(op.ID(), r.reason()) // which is how the operation ends, too
	}
	r.book(op)
	return r.reason()
}

// reason is the error as others see it.
func (r *run[In, Out]) reason() error {
	if r.err == r.ex.timeout {
		return ErrTimeout
	}
	return r.err
}

// book tells the breaker and everybody what came of a run that has ended.
func (r *run[In, Out]) book(on core.Raiser) {
	m, o := r.m, r.ex.o
	if r.verdict == cancelled {
		m.giveBack(r.ticket)
		return
	}
	e := Event{Execution: r.ex.op.ID(), Worker: m.Name, Wave: m.Wave, Duration: r.took, Err: r.err}
	if r.verdict == completed {
		closed := m.success(r.ticket)
		raise(on, m.signals.completed+millis(r.took), m.Name, e)
		if closed {
			raise(on, m.signals.closed, m.Name, e)
		}
		return
	}
	failures, until, opened := m.failure(r.ticket, o.now())
	if opened {
		defer o.holdOpened(m, failures, until) // also when a handler ends the goroutine
	}
	if r.verdict == timedOut {
		raise(on, m.signals.timedOut+millis(r.took), m.Name, e)
	} else {
		raise(on, m.signals.failed+message(r.err), m.Name, e)
	}
}

// result is what is told of the run, at the end of the execution.
func (r *run[In, Out]) result() WorkerResult[Out] {
	w := WorkerResult[Out]{
		Worker:    r.m.Name,
		Wave:      r.m.Wave,
		Operation: r.id,
		Duration:  r.took,
		Value:     r.value,
		Err:       r.reason(),
	}
	if r.verdict == skipped && w.Err == nil {
		w.Err = r.ex.cause
	}
	return w
}
