package stages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/internal/runner"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals of a run. They are raised on the sink of the pipeline, with the name of the
// stage as key. Each SignalStart is followed by one of the others.
const (
	// SignalStart is raised when a stage starts, with at least one item.
	SignalStart = "stage.start"
	// SignalComplete is raised at the end of a stage that at least one item has passed.
	SignalComplete = "stage.complete"
	// SignalFailed is raised at the end of a stage that no item has passed, or whose
	// items were cancelled because the run was cancelled or stopped at an error.
	SignalFailed = "stage.run.failed"
)

// A Stage is one step of a [Pipeline].
type Stage[T any] struct {
	// Name tells stages apart; "" means "stage-N", the first being 1.
	Name string
	// When is a pattern, see [signals.Match]: the stage waits until a matching signal is on
	// the sink. "" means that it does not wait.
	//
	//ephemeral:pattern
	When string
	// Work is done for each item. Its result goes on to the next stage. If Work returns an
	// error, the item stays as it was and goes no further.
	Work core.ResultWork[T, T]
	// MaxConcurrency is how many items are worked on at once in this stage, suspended ones
	// included; 0 means the MaxConcurrency of the pipeline's options.
	MaxConcurrency int
}

// A Pipeline takes batches of items through its stages. Make one with [New]. It is safe for
// concurrent use, may be run many times, even at the same time, and needs no closing.
type Pipeline[T any] struct {
	stages []Stage[T]
	opts   core.Options
}

// New makes a pipeline of stages, in the order given, or says what is wrong with them. A
// run is a coordinator with these options. The default of Name is "stages". A nil Sink
// means a new sink, which all runs share.
func New[T any](stages []Stage[T], opts core.Options) (*Pipeline[T], error) {
	if len(stages) == 0 {
		return nil, errors.New("stages: a pipeline needs at least one stage")
	}
	p := &Pipeline[T]{slices.Clone(stages), opts}
	p.opts.Name = cmp.Or(opts.Name, "stages")
	if opts.Sink == nil {
		p.opts.Sink = signals.NewSink(signals.SinkOptions{})
	}
	taken := make(map[string]bool)
	for i := range p.stages {
		s := &p.stages[i]
		s.Name = cmp.Or(s.Name, fmt.Sprintf("stage-%d", i+1))
		switch {
		case taken[s.Name]:
			return nil, fmt.Errorf("stages: there are two stages %q", s.Name)
		case s.Work == nil:
			return nil, fmt.Errorf("stages: stage %q: Work is nil, but there must be work to do", s.Name)
		case s.MaxConcurrency < 0:
			return nil, fmt.Errorf("stages: stage %q: MaxConcurrency is %d, but must not be negative", s.Name, s.MaxConcurrency)
		}
		taken[s.Name] = true
	}
	// The options are valid if a coordinator accepts them. This coordinator listens only to
	// its own sink, and needs no closing.
	opts.Sink, opts.StopOnError = nil, false
	if _, err := core.NewCoordinator(func(context.Context, int) error { return nil }, opts); err != nil {
		return nil, fmt.Errorf("stages: %w", err)
	}
	return p, nil
}

// A Result says how far an item came.
type Result[T any] struct {
	// Item is the result of the last stage that it passed.
	Item T
	// Stage is the stage in which the item failed. If the run ended first, it is the stage
	// that the item was in or waited for. "" means that the item has passed all stages.
	Stage string
	// Err is why the item did not pass all stages; nil if it did. A panic of the work is a
	// [core.PanicError].
	Err error
}

// Sink is where the signals of runs are raised, and where stages wait for theirs.
func (p *Pipeline[T]) Sink() *signals.Sink { return p.opts.Sink }

// Run takes items through the stages and returns when all work has ended. There is a
// result for each item, in the same order. The error joins the errors of the items that
// failed, in the order in which they ended; if there are more than a hundred, it has
// the first hundred and the number of the others. The slice of items is not changed.
//
// When ctx ends before all work is done, Run starts nothing more, cancels running work
// with the cause of ctx, and returns that cause joined with the other errors. A stage that
// still waits for its signal does not start. With [core.Options.StopOnError] the first
// error ends the run in the same way: it is the cause for running work, and the error of
// Run.
func (p *Pipeline[T]) Run(ctx context.Context, items []T) ([]Result[T], error) {
	r := &run[T]{results: make([]Result[T], len(items))}
	r.runner = core.Must(runner.New(ctx, "stages", r.body, p.opts)) // New has checked the options
	defer r.runner.Close()
	r.limit = r.runner.Stats().Limit
	left := make([]int, len(items))
	for i, item := range items {
		r.results[i].Item = item
		left[i] = i
	}
	for i := range p.stages {
		if len(left) > 0 {
			left = r.enter(&p.stages[i], left)
		}
	}
	return r.results, r.runner.Err(r.cut)
}
