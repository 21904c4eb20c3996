package stages

import (
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// errStopped is the cause of a cancellation by StopOnError.
var errStopped = errors.New("stages: stopped at the first error")

// maxErrors is how many errors Run joins; the others are counted.
const maxErrors = 100

// run is one run of a pipeline: a coordinator that gets the items of one stage
// after those of the other. The goroutine that called Run decides what is next.
// Each item in work has one that waits for its operation; these send the number of
// the item to ended and then do not touch its result any more.
type run[T any] struct {
	coordinator *core.Coordinator[job[T]]
	limit       int // of stages that do not have their own
	stopOnError bool

	ctx     context.Context // ends with the caller's, or by StopOnError
	cancel  context.CancelCauseFunc
	values  context.Context // ctx without its end
	results []Result[T]

	failures []error
	more     int  // failures beyond maxErrors
	cut      bool // an item was kept from passing by the end of ctx
}

// job is an item in a stage.
type job[T any] struct {
	stage *Stage[T]
	item  int
}

func newRun[T any](ctx context.Context, p *Pipeline[T], items []T) *run[T] {
	r := &run[T]{
		stopOnError: p.opts.StopOnError,
		values:      context.WithoutCancel(ctx),
		results:     make([]Result[T], len(items)),
	}
	for i, item := range items {
		r.results[i].Item = item
	}
	opts := p.opts
	opts.StopOnError = false
	r.coordinator = core.Must(core.NewCoordinator(r.body, opts)) // New has checked them
	r.limit = r.coordinator.Stats().Limit
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r
}

// enter takes the items that are left through a stage, when it is time for it, and
// returns those that passed.
func (r *run[T]) enter(stage *Stage[T], left []int) (passed []int) {
	sink := r.coordinator.Sink()
	if stage.When != "" {
		_, _ = sink.WaitFor(r.ctx, stage.When) // what counts is whether ctx has ended
	}
	if r.ctx.Err() != nil {
		for _, i := range left {
			r.fail(stage, i, context.Cause(r.ctx))
		}
		return nil
	}
	sink.RaiseKey(SignalStart, stage.Name)
	r.work(stage, left)
	for _, i := range left {
		if r.results[i].Err == nil {
			passed = append(passed, i)
		}
	}
	if len(passed) == 0 || r.cut {
		sink.RaiseKey(SignalFailed, stage.Name)
	} else {
		sink.RaiseKey(SignalComplete, stage.Name)
	}
	return passed
}

// work does the work of a stage. It hands out no more items than may be worked on
// at once, so that what waits for its turn costs no goroutine.
func (r *run[T]) work(stage *Stage[T], items []int) {
	limit := stage.MaxConcurrency
	if limit == 0 {
		limit = r.limit
	}
	_ = r.coordinator.SetMaxConcurrency(limit) // New has checked it too
	limit = min(limit, len(items))
	type end struct {
		item int
		err  error
	}
	ended := make(chan end, limit)
	running, stop := 0, r.ctx.Done()
	for {
		for running < limit && len(items) > 0 && r.ctx.Err() == nil {
			i := items[0]
			items = items[1:]
			running++
			go func() {
				ended <- end{i, r.coordinator.Do(r.values, job[T]{stage, i})}
			}()
		}
		if running == 0 {
			break
		}
		select {
		case e := <-ended:
			running--
			if e.err != nil {
				r.fail(stage, e.item, e.err)
			}
		case <-stop:
			stop = nil
			r.halt()
		}
	}
	for _, i := range items { // ctx has ended before their turn
		r.fail(stage, i, context.Cause(r.ctx))
	}
}

// body is the work of the coordinator.
func (r *run[T]) body(ctx context.Context, j job[T]) error {
	res := &r.results[j.item]
	item, err := j.stage.Work(ctx, res.Item)
	if err == nil {
		res.Item = item
	}
	return err
}

// fail records why an item goes no further.
func (r *run[T]) fail(stage *Stage[T], i int, err error) {
	res := &r.results[i]
	res.Stage, res.Err = stage.Name, err
	switch {
	case r.isCancellation(err):
		r.cut = true
		if err == core.ErrClosed {
			res.Err = context.Cause(r.ctx)
		}
		return
	case len(r.failures) < maxErrors:
		r.failures = append(r.failures, fmt.Errorf("stages: stage %q: %w", stage.Name, err))
	default:
		r.more++
	}
	if r.stopOnError {
		r.cancel(errStopped)
	}
}

// isCancellation reports whether an error says no more than that the run has been
// cancelled. ErrClosed is the answer to operations that come after halt.
func (r *run[T]) isCancellation(err error) bool {
	return r.ctx.Err() != nil &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(r.ctx)) || err == core.ErrClosed)
}

// halt starts no more operations and cancels those there are.
func (r *run[T]) halt() {
	r.coordinator.Complete()
	for op := range r.coordinator.Operations(core.OperationQuery{Status: core.StatusPending | core.StatusRunning}) {
		r.coordinator.Cancel(op.ID, context.Cause(r.ctx))
	}
}

// close lets go of the sink.
func (r *run[T]) close() {
	r.cancel(nil)
	r.coordinator.Complete()
}

// err is what Run returns.
func (r *run[T]) err() error {
	errs := r.failures
	if r.more > 0 {
		errs = append(errs, fmt.Errorf("stages: and %d more errors", r.more))
	}
	if cause := context.Cause(r.ctx); r.cut && cause != errStopped {
		errs = append([]error{cause}, errs...)
	}
	return errors.Join(errs...)
}
