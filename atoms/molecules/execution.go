package molecules

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// execution is a run while its operation runs. Everything that must happen is
// deferred, so that it does when a step ends its goroutine, too.
type execution struct {
	*Run
	runner *Runner
	ctx    context.Context
	over   bool    // the steps have come to an end by themselves
	done   []int   // the steps that are done
	err    error   // why the steps came to an end; nil: all are done
	undo   []error // of compensations
}

// run is the work of the coordinator.
func (r *Runner) run(ctx context.Context, run *Run) (err error) {
	run.op = core.OperationFrom(ctx)
	if !r.roll.begin(run, run.op.ID()) {
		<-ctx.Done() // whoever has cancelled it, is about to
		return context.Cause(ctx)
	}
	run.op.SetKey(run.Trigger.Key)
	run.enter(State{}, core.Signal{})
	e := &execution{Run: run, runner: r, ctx: ctx}
	defer func() { err = e.outcome() }()
	defer e.end()
	defer r.leave(run) // what a handler of the end raises is for the next one
	defer e.compensate()
	e.raise(kindStarted, "", nil)
	for i := range run.blueprint.Steps {
		if !e.step(i) {
			break
		}
	}
	e.over = true
	return nil
}

// raise says what has become of the run, or of a step.
func (e *execution) raise(k core.Kind[Event], step string, err error) {
	k.Raise(e.Raiser(), e.Trigger.Key, Event{Blueprint: e.Blueprint(), Run: e.ID(), Step: step, Err: err})
}

// cancelled reports whether the run counts as cancelled, having come to an end
// before its steps.
func (e *execution) cancelled() bool { return e.ctx.Err() != nil }

// step does a step and reports whether to go on.
func (e *execution) step(i int) bool {
	s := &e.blueprint.Steps[i]
	if e.err = context.Cause(e.ctx); e.err != nil {
		return false
	}
	awaited, err := e.await(i)
	if err != nil {
		if e.err = err; !e.cancelled() {
			e.fail(kindStepFailed, s, err)
		}
		return false
	}
	e.enter(State{Step: s.Name}, awaited)
	e.raise(kindStepStarted, s.Name, nil)
	defer func() {
		switch {
		case err == nil:
			e.done = append(e.done, i)
			e.raise(kindStepCompleted, s.Name, nil)
		case e.cancelled():
			e.fail(kindStepCancelled, s, err)
		default:
			e.fail(kindStepFailed, s, err)
		}
	}()
	if s.Do != nil {
		e.call(e.ctx, s.Timeout, s.Do, &err)
	}
	return err == nil
}

// fail notes why the steps come to an end.
func (e *execution) fail(k core.Kind[Event], s *Step, err error) {
	e.err = &StepError{Blueprint: e.Blueprint(), Step: s.Name, Err: err}
	e.raise(k, s.Name, e.err)
}

// await waits for the signal that a step awaits, if it does.
func (e *execution) await(i int) (core.Signal, error) {
	s := &e.blueprint.Steps[i]
	if s.Await == "" {
		return core.Signal{}, nil
	}
	e.enter(State{Step: s.Name, Awaiting: s.Await}, core.Signal{})
	var (
		late  <-chan time.Time
		until time.Time
	)
	if s.AwaitTimeout > 0 {
		timer := time.NewTimer(s.AwaitTimeout)
		defer timer.Stop()
		late, until = timer.C, time.Now().Add(s.AwaitTimeout)
	}
	defer e.op.WaitsFor(fmt.Sprintf("signal %q for %q", s.Await, e.Trigger.Key), until)()
	for isLate := false; ; {
		if signal, ok := e.runner.roll.arrival(e.Run, i); ok {
			return signal, nil
		}
		if isLate {
			return core.Signal{}, &AwaitError{Pattern: s.Await, Key: e.Trigger.Key, Timeout: s.AwaitTimeout}
		}
		select {
		case <-e.news:
		case <-late:
			isLate = true
		case <-e.ctx.Done():
			return core.Signal{}, context.Cause(e.ctx)
		}
	}
}

// compensate undoes the steps that are done, the last first, if that is not all.
func (e *execution) compensate() {
	if e.err == nil && !e.over { // a handler has ended the goroutine
		e.err = &core.PanicError{Stack: debug.Stack()}
	}
	if e.err == nil {
		return
	}
	undone := 0
	defer func() {
		if undone > 0 && len(e.undo) == 0 {
			e.raise(kindCompensated, "", nil)
		}
	}()
	for _, i := range e.done { // each defers the one before it: the last goes first
		s := &e.blueprint.Steps[i]
		if s.Compensate != nil {
			defer func() {
				undone++
				e.uncompensate(s)
			}()
		}
	}
}

// uncompensate undoes a step.
func (e *execution) uncompensate(s *Step) {
	e.enter(State{Step: s.Name, Compensating: true}, core.Signal{})
	var err error
	defer func() {
		if err == nil {
			e.raise(kindStepCompensated, s.Name, nil)
			return
		}
		err = &StepError{Blueprint: e.Blueprint(), Step: s.Name, Compensating: true, Err: err}
		e.undo = append(e.undo, err)
		e.raise(kindCompensationFailed, s.Name, err)
	}()
	e.call(context.WithoutCancel(e.ctx), e.runner.compensateTimeout, s.Compensate, &err)
}

// outcome is the error of the run.
func (e *execution) outcome() error {
	if len(e.undo) == 0 {
		return e.err
	}
	return errors.Join(append([]error{e.err}, e.undo...)...)
}

// end says how the run has ended.
func (e *execution) end() {
	switch err := e.outcome(); {
	case err == nil:
		e.raise(kindCompleted, "", nil)
	case e.cancelled():
		e.raise(kindCancelled, "", err)
	default:
		e.raise(kindFailed, "", err)
	}
}

// call calls a function of a step, for so long, and notes its error. A panic is one
// too, as more is to be done than core could know of; it is signalled as core would.
func (e *execution) call(ctx context.Context, limit time.Duration, fn func(context.Context, *Run) error, err *error) {
	var cancel context.CancelFunc
	if limit > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("the step took longer than %v: %w", limit, context.DeadlineExceeded))
		defer cancel()
	}
	guard(err, func() { e.Raise(core.SignalPanic) }, func() error { return fn(ctx, e.Run) })
	if *err != nil && *err == ctx.Err() {
		*err = context.Cause(ctx) // says more
	}
}

// guard calls fn and notes its error. If it panics, or ends its goroutine, which
// cannot be held up, the error is a PanicError.
func guard(err *error, panicked func(), fn func() error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		*err = &core.PanicError{Value: v, Stack: debug.Stack()}
		if v != nil {
			panicked()
		}
	}()
	*err = fn()
	returned = true
}
