package jobs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// run is the body of the operations.
func (r *Runner) run(ctx context.Context, run Run) error {
	j, n, started := run.job, 0, false
	if j.Pin { // pin now: an acknowledgement may come before the end
		r.keeper.Keep(core.OperationFrom(ctx).ID(), responsibility.Promise{MaxPin: j.ExpireAfter, Description: "job " + j.Name})
	}
	panicked := true
	defer func() {
		if panicked { // the operation's own error says more
			r.end(ctx, run, n, &core.PanicError{Value: "the handler panicked"}, "a handler that panics is not tried again")
		}
	}()
	for {
		n++
		err := run.lacking(r.Sink(), n)
		if err == nil {
			if !started {
				started = true
				run.emit(ctx, j.EmitOnStart)
			}
			err = j.attempt(ctx, run.Signal)
		}
		why := j.final(ctx, n, err)
		if err != nil && why == "" {
			run.fail(ctx, Retry, retried, strconv.Itoa(n), Failure{run, n, err, ""})
			if core.OperationFrom(ctx).Suspend(ctx, fmt.Sprintf("retry %d of job %q", n, j.Name), j.pause(n)) == nil {
				continue
			}
			why = j.final(ctx, n, err)
		}
		panicked = false
		cancelled := err != nil && ctx.Err() != nil
		if !cancelled || guard.Is(context.Cause(ctx), core.ErrTimeout) {
			r.end(ctx, run, n, err, why)
		}
		return err
	}
}

// A permanent error says that further attempts cannot help.
type permanent interface {
	error
	Permanent() bool
}

// final says why there is no other attempt after attempt n, which has failed; "" if there is one.
func (j *job) final(ctx context.Context, n int, err error) string {
	useless, _ := guard.Ask(err, permanent.Permanent)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return "the run took longer than the Runner allows" // a cancelled run raises no signal
	case useless:
		return "the error is permanent"
	case n > j.MaxRetries:
		return fmt.Sprintf("no retries are left: MaxRetries is %d", j.MaxRetries)
	case j.RetryIf != nil && !j.RetryIf(err):
		return "RetryIf does not retry the error"
	}
	return ""
}

// lacking returns an error if awaited signals did not come in time. From the second attempt on it
// looks for these signals again.
func (run *Run) lacking(sink *signals.Sink, n int) error {
	if n > 1 {
		run.lacks = slices.DeleteFunc(run.lacks, func(p string) bool { return run.present(sink, p) })
	}
	if len(run.lacks) == 0 {
		return nil
	}
	return fmt.Errorf("jobs: job %q has awaited %q for %v: %w", run.Job, run.lacks, run.job.AwaitTimeout, core.ErrTimeout)
}

// attempt calls the handler.
func (j *job) attempt(ctx context.Context, s signals.Signal) error {
	if j.Timeout == 0 {
		return j.do(ctx, s)
	}
	late := fmt.Errorf("jobs: an attempt of job %q took longer than %v: %w", j.Name, j.Timeout, core.ErrTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, j.Timeout, late)
	defer cancel()
	err := j.do(ctx, s)
	switch {
	case context.Cause(ctx) != late:
		return err
	case err == nil:
		return late
	}
	return fmt.Errorf("%w: %w", late, err)
}

func (run *Run) emit(ctx context.Context, names string) {
	for _, name := range list(names) {
		core.OperationFrom(ctx).RaiseKey(name, run.Signal.Key)
	}
}

func (run *Run) fail(ctx context.Context, family signals.Family[Failure], signal, last string, f Failure) {
	family.Named(signal+":"+run.Job+":"+last).Raise(core.OperationFrom(ctx), run.Signal.Key, f)
}

// end keeps the operation visible, and raises the signals of the end, as the options say.
func (r *Runner) end(ctx context.Context, run Run, n int, err error, why string) {
	j, id := run.job, core.OperationFrom(ctx).ID()
	if j.ExpireAfter > 0 && !j.Pin {
		if unpin, ok := r.Pin(id); ok {
			time.AfterFunc(j.ExpireAfter, func() {
				unpin()
				if s, ok := r.Lookup(id); ok && s.Pins == 0 {
					r.Evict(id)
				}
			})
		}
	}
	if err == nil {
		run.emit(ctx, j.EmitOnComplete)
		return
	}
	run.emit(ctx, j.EmitOnFailure)
	run.fail(ctx, Failed, failed, typeName(err), Failure{run, n, err, why})
}

// pause returns a function that waits between attempt n, which has failed, and the next one.
func (j *job) pause(n int) func(context.Context) error {
	d := j.RetryDelay
	for ; n > 1 && d < j.MaxRetryDelay; n-- {
		d += min(d, j.MaxRetryDelay-d)
	}
	d -= rand.N(d/2 + 1)
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
