package molecules

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// execution is a run whose operation runs. A step, or a handler of a signal, may end the
// goroutine. So calls that must always happen are deferred.
type execution struct {
	*Run
	runner   *Runner
	ctx      context.Context
	returned bool    // the steps have ended, and the goroutine goes on
	done     []*Step // completed steps that were not compensated yet
	undone   int     // how many Compensate functions were called
	err      error   // why the steps ended early; nil: all are done
	undoErrs []error // of compensations
}

// run is the work of the coordinator.
func (r *Runner) run(ctx context.Context, run *Run) (err error) {
	run.op = core.OperationFrom(ctx)
	run.op.SetKey(run.Trigger.Key)
	run.setState(runState{}, signals.Signal{})
	e := &execution{Run: run, runner: r, ctx: ctx}
	defer func() { err = e.result() }()
	defer e.raiseEnd()
	defer r.runs.remove(run) // a handler of the end may raise signals for the next run
	defer e.compensate()
	e.raise(SignalStarted, "", nil)
	for i := range run.blueprint.Steps {
		if !e.step(i) {
			break
		}
	}
	e.returned = true
	return nil
}

// raise raises a signal about the run, or about a step.
func (e *execution) raise(name, step string, err error) {
	signals.NewKind[Event](name).Raise(e.Raiser(), e.Trigger.Key, Event{Blueprint: e.Blueprint(), Run: e.ID(), Step: step, Err: err})
}

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
			e.fail(SignalStepFailed, s, err)
		}
		return false
	}
	e.setState(runState{Step: s.Name}, awaited)
	e.raise(SignalStepStarted, s.Name, nil)
	defer func() {
		switch {
		case err == nil:
			e.done = append(e.done, s)
			e.raise(SignalStepCompleted, s.Name, nil)
		case e.cancelled():
			e.fail(SignalStepCancelled, s, err)
		default:
			e.fail(SignalStepFailed, s, err)
		}
	}()
	if s.Do != nil {
		e.call(e.ctx, s.Timeout, s.Do, &err)
	}
	return err == nil
}

// fail sets the error that ends the steps.
func (e *execution) fail(name string, s *Step, err error) {
	e.err = &StepError{Blueprint: e.Blueprint(), Step: s.Name, Err: err}
	e.raise(name, s.Name, e.err)
}

// await waits for the signal that a step awaits, if there is one.
func (e *execution) await(i int) (signals.Signal, error) {
	s := &e.blueprint.Steps[i]
	if s.Await == "" {
		return signals.Signal{}, nil
	}
	e.setState(runState{Step: s.Name, Awaiting: s.Await}, signals.Signal{})
	ctx, until := e.ctx, time.Time{}
	if s.AwaitTimeout > 0 {
		until = time.Now().Add(s.AwaitTimeout)
		timed, cancel := context.WithDeadlineCause(ctx, until, fmt.Errorf(
			"no signal matching %q with key %q came within %v: %w", s.Await, e.Trigger.Key, s.AwaitTimeout, core.ErrTimeout))
		defer cancel()
		ctx = timed
	}
	defer e.op.WaitsFor(fmt.Sprintf("signal %q for %q", s.Await, e.Trigger.Key), until)()
	for {
		ended := ctx.Err() != nil // read before the last look for the signal
		if signal, ok := e.runner.runs.newest(e.Run, i); ok {
			return signal, nil
		}
		if ended {
			return signals.Signal{}, context.Cause(ctx)
		}
		select {
		case <-e.wake:
		case <-ctx.Done():
		}
	}
}

// compensate undoes the steps that are done, the last one first, unless all are done.
func (e *execution) compensate() {
	if e.err == nil && !e.returned { // a handler of a signal has ended the goroutine
		e.err = &core.PanicError{Stack: debug.Stack()}
	}
	if e.err == nil {
		return
	}
	if last := len(e.done) - 1; last >= 0 {
		s := e.done[last]
		e.done = e.done[:last]
		defer e.compensate()
		if s.Compensate != nil {
			e.undo(s)
		}
		return
	}
	if e.undone > 0 && len(e.undoErrs) == 0 {
		e.raise(SignalCompensated, "", nil)
	}
}

// undo compensates a step.
func (e *execution) undo(s *Step) {
	e.undone++
	e.setState(runState{Step: s.Name, Compensating: true}, signals.Signal{})
	var err error
	defer func() {
		if err == nil {
			e.raise(SignalStepCompensated, s.Name, nil)
			return
		}
		err = &StepError{Blueprint: e.Blueprint(), Step: s.Name, compensating: true, Err: err}
		e.undoErrs = append(e.undoErrs, err)
		e.raise(SignalCompensationFailed, s.Name, err)
	}()
	e.call(context.WithoutCancel(e.ctx), e.runner.compensateTimeout, s.Compensate, &err)
}

// result is the error of the run.
func (e *execution) result() error {
	if len(e.undoErrs) == 0 {
		return e.err
	}
	return errors.Join(append([]error{e.err}, e.undoErrs...)...)
}

// raiseEnd raises the signal of the run's end.
func (e *execution) raiseEnd() {
	switch err := e.result(); {
	case err == nil:
		e.raise(SignalCompleted, "", nil)
	case e.cancelled():
		e.raise(SignalCancelled, "", err)
	default:
		e.raise(SignalFailed, "", err)
	}
}

// call calls a function of a step and sets err. If limit is positive, it is the time limit.
func (e *execution) call(ctx context.Context, limit time.Duration, fn func(context.Context, *Run) error, err *error) {
	if limit > 0 {
		cause := fmt.Errorf("the step took longer than %v: %w", limit, context.DeadlineExceeded)
		timed, cancel := context.WithTimeoutCause(ctx, limit, cause)
		defer cancel()
		ctx = timed
	}
	recovering(err, e.Raiser(), func() error { return fn(ctx, e.Run) })
	if *err != nil && *err == ctx.Err() {
		*err = context.Cause(ctx) // says more
	}
}

// recovering calls fn and sets err. If fn panics, err is a PanicError, and recovering raises
// core.SignalPanicked as the coordinator would, but with a cause. If fn ends its goroutine, err
// is a PanicError too.
func recovering(err *error, on signals.Raiser, fn func() error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		*err = &core.PanicError{Value: v, Stack: debug.Stack()}
		if v != nil {
			on.Raise(core.SignalPanicked)
		}
	}()
	*err = fn()
	returned = true
}
