// Package runner does jobs on a coordinator that lives as long as one call, for packages
// that decide, job by job, what runs next.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// maxErrors is how many errors Err joins; further ones are counted.
const maxErrors = 100

// A Runner does the jobs of one call. The goroutine of the call makes it, closes it and
// calls its methods.
type Runner[J any] struct {
	core.Control
	Context context.Context // ends with the caller's context and, with StopOnError, at the first error

	coordinator *core.Coordinator[J]
	name        string
	stopOnError bool
	caller      context.Context
	cancel      context.CancelCauseFunc
	failures    []error
	more        int // failures beyond maxErrors
}

// New makes a runner for a package of that name, which is also the default of
// [core.Options.Name]. With [core.Options.StopOnError], the package calls Fail.
func New[J any](ctx context.Context, name string, work core.Work[J], opts core.Options) (*Runner[J], error) {
	r := &Runner[J]{name: name, stopOnError: opts.StopOnError, caller: ctx}
	opts.Name = cmp.Or(opts.Name, name)
	opts.StopOnError = false
	c, err := core.NewCoordinator(work, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.Control, r.coordinator = c.Control, c
	r.Context, r.cancel = context.WithCancelCause(ctx)
	return r, nil
}

// Run does the jobs that next returns, at most limit at once, until next has no more and
// none runs. So jobs that wait for their turn need no goroutine. When the context ends,
// Run starts no more jobs and cancels the running ones.
//
// On the goroutine of a job it calls ended with the error of the job. Then it calls settle
// on the goroutine of the caller, even if ended has ended its goroutine.
func (r *Runner[J]) Run(limit int, next func() (J, bool), ended func(J, error), settle func(J)) {
	values, stop := context.WithoutCancel(r.Context), r.Context.Done()
	done := make(chan J, limit)
	running := 0
	for {
		for running < limit && r.Context.Err() == nil {
			job, ok := next()
			if !ok {
				break
			}
			running++
			go func() {
				defer func() { done <- job }()
				ended(job, r.coordinator.Do(values, job))
			}()
		}
		if running == 0 {
			return
		}
		select {
		case job := <-done:
			running--
			settle(job)
		case <-stop:
			stop = nil
			r.halt()
		}
	}
}

// Fail adds an error to the errors of Err. With StopOnError it ends the context.
func (r *Runner[J]) Fail(err error) {
	if len(r.failures) < maxErrors {
		r.failures = append(r.failures, err)
	} else {
		r.more++
	}
	if r.stopOnError {
		r.cancel(err)
	}
}

// IsCancellation reports whether an error only says that the context has ended. Jobs that
// start after that get ErrClosed.
func (r *Runner[J]) IsCancellation(err error) bool {
	return r.Context.Err() != nil &&
		(guard.Is(err, context.Canceled) || guard.Is(err, r.Cause()) || guard.Is(err, core.ErrClosed))
}

// Cause returns why the context has ended.
func (r *Runner[J]) Cause() error { return context.Cause(r.Context) }

// Err joins the errors. If jobs were cancelled because the caller's context has ended, its
// cause is the first.
func (r *Runner[J]) Err(cancelled bool) error {
	errs := r.failures
	if r.more > 0 {
		errs = append(errs, fmt.Errorf("%s: and %d more errors", r.name, r.more))
	}
	if cancelled && r.caller.Err() != nil {
		errs = append([]error{context.Cause(r.caller)}, errs...)
	}
	return errors.Join(errs...)
}

// Close cancels what still runs, and removes the runner from its sink.
func (r *Runner[J]) Close() {
	r.cancel(nil)
	r.halt()
}

// halt starts no more jobs and cancels running ones.
func (r *Runner[J]) halt() {
	r.Complete()
	r.Abort(r.Cause())
}
