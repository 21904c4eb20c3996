package graph

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/internal/runner"
)

// run is one run of a graph. The jobs of its runner are the numbers of nodes. While a node
// runs, its result belongs to the goroutines of its operation.
type run[T any] struct {
	runner   *runner.Runner[int]
	nodes    []node[T]
	work     core.Work[T]
	results  []Result
	schedule *schedule
}

// do runs the nodes and returns the error of the run.
func (r *run[T]) do() error {
	for i := range r.nodes {
		r.results[i].Name = r.nodes[i].name
	}
	r.runner.Run(min(r.runner.Stats().Limit, len(r.nodes)), r.schedule.next, r.ended, r.settle)
	cancelled := false
	for i := range r.results {
		res := &r.results[i]
		if res.Status == 0 { // the run ended before the node's turn
			res.Status, res.Err = StatusCancelled, r.runner.Cause()
		}
		cancelled = cancelled || res.Status == StatusCancelled
	}
	return r.runner.Err(cancelled)
}

// body is the work of the coordinator.
func (r *run[T]) body(ctx context.Context, i int) error {
	n, res := &r.nodes[i], &r.results[i]
	core.OperationFrom(ctx).SetKey(n.name)
	res.Started = time.Now()
	defer func() { res.Finished = time.Now() }()
	r.runner.Sink().RaiseKey(SignalStarted, n.name)
	return r.work(ctx, n.item)
}

// ended records how node i has ended, and raises the signal.
func (r *run[T]) ended(i int, err error) {
	res := &r.results[i]
	switch {
	case err == nil:
		res.Status = StatusSucceeded
		r.runner.Sink().RaiseKey(SignalCompleted, res.Name)
	case !r.runner.IsCancellation(err):
		res.Status, res.Err = StatusFailed, err
		Failures.Raise(r.runner.Sink(), res.Name, err)
	case res.Started.IsZero():
		res.Status, res.Err = StatusCancelled, r.runner.Cause()
	default:
		res.Status, res.Err = StatusCancelled, err
		r.runner.Sink().RaiseKey(SignalCancelled, res.Name)
	}
}

// settle finds out which nodes can run, and which cannot, after the end of node i.
func (r *run[T]) settle(i int) {
	res := &r.results[i]
	switch res.Status {
	case StatusSucceeded:
		r.schedule.succeeded(i)
	case StatusFailed:
		r.runner.Fail(fmt.Errorf("graph: node %q: %w", res.Name, res.Err))
		for _, d := range r.schedule.failed(i) {
			skipped := &r.results[d]
			skipped.Status, skipped.FailedDependency = StatusSkipped, res.Name
			Skips.Raise(r.runner.Sink(), skipped.Name, res.Name)
		}
	}
}
