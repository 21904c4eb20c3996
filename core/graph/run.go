package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

var (
	raiseFailed  = core.NewKind[error](SignalFailed).Raise
	raiseSkipped = core.NewKind[string](SignalSkipped).Raise
)

// errStopped is the cause of a cancellation by StopOnError.
var errStopped = errors.New("graph: stopped at the first error")

// maxErrors is how many errors Run joins; the others are counted.
const maxErrors = 100

// run is one run of a graph. The goroutine that called Run decides what is next,
// in loop. Each node has one that waits for its operation; these send the number
// of the node to ended and then do not touch its result any more.
type run[T any] struct {
	nodes       []node[T]
	work        core.Work[T]
	stopOnError bool
	coordinator *core.Coordinator[int]

	ctx     context.Context // ends with the caller's, or by StopOnError
	cancel  context.CancelCauseFunc
	values  context.Context // ctx without its end
	results []Result
	ended   chan int

	// What follows is the loop's own.
	schedule *schedule
	failures []error
	more     int // failures beyond maxErrors
}

func newRun[T any](ctx context.Context, nodes []node[T], p plan, work core.Work[T], opts core.Options) (*run[T], error) {
	r := &run[T]{
		nodes:       nodes,
		work:        work,
		stopOnError: opts.StopOnError,
		values:      context.WithoutCancel(ctx),
		results:     make([]Result, len(nodes)),
		schedule:    newSchedule(p),
	}
	if opts.Name == "" {
		opts.Name = "graph"
	}
	opts.StopOnError = false
	c, err := core.NewCoordinator(r.body, opts)
	if err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	r.coordinator = c
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.ended = make(chan int, min(c.Stats().Limit, len(nodes)))
	for i := range nodes {
		r.results[i].Name = nodes[i].name
	}
	return r, nil
}

// loop runs the nodes. It hands out no more than may run at once, so that what
// waits for its turn costs no goroutine.
func (r *run[T]) loop() {
	running, stop := 0, r.ctx.Done()
	for {
		for running < cap(r.ended) && r.ctx.Err() == nil {
			i, ok := r.schedule.next()
			if !ok {
				break
			}
			running++
			go r.perform(i)
		}
		if running == 0 {
			break
		}
		select {
		case i := <-r.ended:
			running--
			r.settle(i)
		case <-stop:
			stop = nil
			r.halt()
		}
	}
	for i := range r.results {
		if res := &r.results[i]; res.Status == 0 { // the run ended before its turn
			res.Status, res.Err = StatusCancelled, context.Cause(r.ctx)
		}
	}
}

// perform runs node i and says what became of it.
func (r *run[T]) perform(i int) {
	defer func() { r.ended <- i }() // also when a handler ends the goroutine
	err := r.coordinator.Do(r.values, i)
	res, sink := &r.results[i], r.coordinator.Sink()
	switch {
	case err == nil:
		res.Status = StatusSucceeded
		sink.RaiseKey(SignalDone, res.Name)
	case !r.isCancellation(err):
		res.Status, res.Err = StatusFailed, err
		if r.stopOnError {
			r.cancel(errStopped)
		}
		raiseFailed(sink, res.Name, err)
	case res.Started.IsZero():
		res.Status, res.Err = StatusCancelled, context.Cause(r.ctx)
	default:
		res.Status, res.Err = StatusCancelled, err
		sink.RaiseKey(SignalCancelled, res.Name)
	}
}

// isCancellation reports whether an error says no more than that the run has been
// cancelled. ErrClosed is the answer to operations that come after halt.
func (r *run[T]) isCancellation(err error) bool {
	return r.ctx.Err() != nil &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(r.ctx)) || err == core.ErrClosed)
}

// body is the work of the coordinator.
func (r *run[T]) body(ctx context.Context, i int) error {
	n, res := &r.nodes[i], &r.results[i]
	core.OperationFrom(ctx).SetKey(n.name)
	res.Started = time.Now()
	defer func() { res.Finished = time.Now() }()
	r.coordinator.Sink().RaiseKey(SignalStart, n.name)
	return r.work(ctx, n.item)
}

// settle draws the conclusions from the end of node i.
func (r *run[T]) settle(i int) {
	res := &r.results[i]
	switch res.Status {
	case StatusSucceeded:
		r.schedule.succeeded(i)
	case StatusFailed:
		if len(r.failures) < maxErrors {
			r.failures = append(r.failures, fmt.Errorf("graph: node %q: %w", res.Name, res.Err))
		} else {
			r.more++
		}
		for _, d := range r.schedule.failed(i) {
			skipped := &r.results[d]
			skipped.Status, skipped.FailedDependency = StatusSkipped, res.Name
			raiseSkipped(r.coordinator.Sink(), skipped.Name, res.Name)
		}
	}
}

// halt starts no more operations and cancels those there are.
func (r *run[T]) halt() {
	r.coordinator.Complete()
	for op := range r.coordinator.Operations(core.OperationQuery{Status: core.StatusPending | core.StatusRunning}) {
		r.coordinator.Cancel(op.ID, context.Cause(r.ctx))
	}
}

// close lets go of the sink. If a handler has ended the goroutine of Run, it cancels
// what still runs.
func (r *run[T]) close() {
	r.cancel(nil)
	r.halt()
}

// err is what Run returns.
func (r *run[T]) err() error {
	errs := r.failures
	if r.more > 0 {
		errs = append(errs, fmt.Errorf("graph: and %d more errors", r.more))
	}
	cancelled := slices.ContainsFunc(r.results, func(res Result) bool { return res.Status == StatusCancelled })
	if cause := context.Cause(r.ctx); cancelled && cause != errStopped {
		errs = append([]error{cause}, errs...)
	}
	return errors.Join(errs...)
}
