package stages

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/internal/runner"
)

// run is one run of a pipeline: a coordinator that gets the items of one stage after
// another. While an item is in a stage, its result belongs to the goroutines of its
// operation.
type run[T any] struct {
	runner  *runner.Runner[job[T]]
	limit   int // limit of stages without their own limit
	results []Result[T]
	cut     bool // an item was cancelled because the run has ended
}

// job is an item in a stage.
type job[T any] struct {
	stage *Stage[T]
	item  int
}

// enter waits for the signal of a stage, takes the remaining items through the stage, and
// returns the items that passed.
func (r *run[T]) enter(stage *Stage[T], left []int) (passed []int) {
	if stage.When != "" {
		_, _ = r.runner.Sink().WaitFor(r.runner.Context, stage.When) // work finds out whether the context has ended
	}
	started := r.runner.Context.Err() == nil
	if started {
		r.runner.Sink().RaiseKey(SignalStart, stage.Name)
	}
	r.work(stage, left)
	for _, i := range left {
		if r.results[i].Err == nil {
			passed = append(passed, i)
		}
	}
	switch {
	case !started:
	case len(passed) == 0 || r.cut:
		r.runner.Sink().RaiseKey(SignalFailed, stage.Name)
	default:
		r.runner.Sink().RaiseKey(SignalComplete, stage.Name)
	}
	return passed
}

// work does the work of a stage.
func (r *run[T]) work(stage *Stage[T], items []int) {
	limit := cmp.Or(stage.MaxConcurrency, r.limit)
	_ = r.runner.SetMaxConcurrency(limit) // New has checked it
	next := func() (j job[T], ok bool) {
		if len(items) == 0 {
			return j, false
		}
		j = job[T]{stage, items[0]}
		items = items[1:]
		return j, true
	}
	ended := func(j job[T], err error) { r.results[j.item].Err = err }
	r.runner.Run(min(limit, len(items)), next, ended, r.settle)
	for _, i := range items { // the context has ended before the turn of these items
		r.results[i].Err = r.runner.Cause()
		r.settle(job[T]{stage, i})
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

// settle records why an item goes no further, if it has an error.
func (r *run[T]) settle(j job[T]) {
	res := &r.results[j.item]
	if res.Err == nil {
		return
	}
	res.Stage = j.stage.Name
	if !r.runner.IsCancellation(res.Err) {
		r.runner.Fail(fmt.Errorf("stages: stage %q: %w", res.Stage, res.Err))
		return
	}
	r.cut = true
	if guard.Is(res.Err, core.ErrClosed) {
		res.Err = r.runner.Cause()
	}
}
