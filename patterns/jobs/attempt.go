package jobs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
)

// run is the body of the operations.
func (r *Runner) run(ctx context.Context, run Run) error {
	j, op, n := run.job, core.OperationFrom(ctx), 0
	emit := func(names string) {
		for _, name := range list(names) {
			op.RaiseKey(name, run.Signal.Key)
		}
	}
	end := func(err error) {
		r.keep(op, j)
		if err == nil {
			emit(j.EmitOnComplete)
			return
		}
		emit(j.EmitOnFailure)
		Failed.Named(SignalFailed+":"+j.Name+":"+typeName(err)).Raise(op, run.Signal.Key, Failure{run, n, err})
	}
	panicked := true
	defer func() {
		if panicked {
			end(&core.PanicError{Value: "see the error of the operation"})
		}
	}()
	started := false
	for {
		n++
		err := run.err
		if err == nil || n > 1 && j.gotAll(r.Sink(), err, run.Signal.Key) {
			if run.err = nil; !started {
				started = true
				emit(j.EmitOnStart)
			}
			err = j.attempt(ctx, run.Signal)
		}
		if err != nil && n <= j.MaxRetries && ctx.Err() == nil && (j.RetryIf == nil || j.RetryIf(err)) {
			Retry.Named(SignalRetry+":"+j.Name+":"+strconv.Itoa(n)).Raise(op, run.Signal.Key, Failure{run, n, err})
			if op.Suspend(ctx, fmt.Sprintf("retry %d of job %q", n, j.Name), pause(j.delay(n))) == nil {
				continue
			}
		}
		panicked = false
		if err == nil || ctx.Err() == nil || errors.Is(context.Cause(ctx), core.ErrTimeout) { // not cancelled
			end(err)
		}
		if err != nil && j.SwallowErrors && ctx.Err() == nil {
			return nil
		}
		return err
	}
}

// gotAll reports whether what a run has awaited in vain is there now.
func (j *job) gotAll(sink *core.Sink, err error, key string) bool {
	var timeout *TimeoutError
	return errors.As(err, &timeout) && !slices.ContainsFunc(j.awaits, func(a *awaited) bool {
		return slices.Contains(timeout.Missing, a.pattern) && !a.present(sink, key)
	})
}

// attempt calls the handler.
func (j *job) attempt(ctx context.Context, s core.Signal) error {
	if j.Timeout == 0 {
		return j.do(ctx, s)
	}
	timeout := &TimeoutError{Job: j.Name, After: j.Timeout}
	ctx, cancel := context.WithTimeoutCause(ctx, j.Timeout, timeout)
	defer cancel()
	err := j.do(ctx, s)
	if context.Cause(ctx) != timeout {
		return err
	}
	return &TimeoutError{Job: j.Name, After: j.Timeout, Err: err}
}

// delay is the pause after attempt n has failed.
func (j *job) delay(n int) time.Duration {
	d := j.RetryDelay
	for ; n > 1 && d < j.MaxRetryDelay-d; n-- {
		d *= 2
	}
	if n > 1 {
		d = j.MaxRetryDelay
	}
	return d - rand.N(d/2+1)
}

func pause(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// keep keeps the operation of a run that ends visible, as the options of its job say.
func (r *Runner) keep(op *core.Operation, j *job) {
	if j.Pin {
		r.keeper.Keep(op.ID(), responsibility.Promise{MaxPin: j.ExpireAfter, Description: "job " + j.Name})
		return
	}
	if j.ExpireAfter == 0 {
		return
	}
	if unpin, ok := r.Control.Pin(op.ID()); ok {
		time.AfterFunc(j.ExpireAfter, func() {
			unpin()
			if s, ok := r.Lookup(op.ID()); ok && s.Pins == 0 {
				r.Evict(op.ID())
			}
		})
	}
}
