package stages

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
)

// Signals of a run. They are raised on [core.Options.Sink], with the name of the
// stage as key. Each SignalStart is followed by one of the others.
const (
	// SignalStart is raised when a stage starts, with at least one item.
	SignalStart = "stage.start"
	// SignalComplete is raised when a stage is over and has let at least one
	// item pass.
	SignalComplete = "stage.complete"
	// SignalFailed is raised when a stage is over and has let no item pass, or
	// was cut short because the run was cancelled or stopped at an error.
	SignalFailed = "stage.failed"
)

// A Stage is one step of a [Pipeline].
type Stage[T any] struct {
	// Name tells stages apart; "" means "stage-N", the first being 1.
	Name string
	// When is a pattern, see [core.Match]: the stage waits until a matching
	// signal is on the sink. "" means it does not wait.
	When string
	// Work is done for each item. What it returns goes on to the next stage;
	// with an error the item stays as it was and goes no further.
	Work core.ResultWork[T, T]
	// MaxConcurrency is how many items are worked on at once in this stage; 0
	// means what the options of the pipeline say.
	MaxConcurrency int
}

// A Pipeline takes batches through its stages. Make one with [New]. It is safe for
// concurrent use, may be run many times, also at once, and needs no closing.
type Pipeline[T any] struct {
	stages []Stage[T]
	opts   core.Options
}

// New makes a pipeline of stages that are gone through in the order given, or says
// what is wrong. A run is a coordinator with these options, Name "" meaning
// "stages". Stages that wait for a signal need [core.Options.Sink].
func New[T any](stages []Stage[T], opts core.Options) (*Pipeline[T], error) {
	if len(stages) == 0 {
		return nil, errors.New("stages: a pipeline needs at least one stage")
	}
	if opts.Name == "" {
		opts.Name = "stages"
	}
	p := &Pipeline[T]{slices.Clone(stages), opts}
	taken := make(map[string]bool)
	for i := range p.stages {
		s := &p.stages[i]
		if s.Name == "" {
			s.Name = fmt.Sprintf("stage-%d", i+1)
		}
		switch {
		case taken[s.Name]:
			return nil, fmt.Errorf("stages: there are two stages %q", s.Name)
		case s.Work == nil:
			return nil, fmt.Errorf("stages: stage %q: Work is nil, but there must be work to do", s.Name)
		case s.MaxConcurrency < 0:
			return nil, fmt.Errorf("stages: stage %q: MaxConcurrency is %d, but must not be negative", s.Name, s.MaxConcurrency)
		case s.When != "" && opts.Sink == nil:
			return nil, fmt.Errorf("stages: stage %q waits for %q, but there is no Options.Sink where it could be raised", s.Name, s.When)
		}
		taken[s.Name] = true
	}
	// The options are valid if a coordinator takes them. This one heeds nothing
	// but a sink of its own and is garbage at once.
	opts.Sink, opts.StopOnError = nil, false
	if _, err := core.NewCoordinator(func(context.Context, int) error { return nil }, opts); err != nil {
		return nil, fmt.Errorf("stages: %w", err)
	}
	return p, nil
}

// A Result is what became of an item.
type Result[T any] struct {
	// Item is what the last stage that it passed has made of it.
	Item T
	// Stage is where it failed, or which stage it was in or waited for when
	// the run ended; "" if it has passed all.
	Stage string
	// Err is why it did not pass; nil if it did. A panic of the work is a
	// [core.PanicError].
	Err error
}

// Run takes items through the stages and returns when all that was started has
// ended. There is a result for each item, in the same order. The error joins the
// errors of the items that failed, in the order in which they occurred; of more
// than a hundred the first hundred and a count. The items given are not changed.
//
// When ctx ends before all is done, Run starts nothing more, cancels what runs
// with the cause of ctx, and returns that cause joined with what else went wrong;
// a stage that still waits for its signal does not start. With
// [core.Options.StopOnError] the first error ends the run likewise, and is what
// Run returns.
func (p *Pipeline[T]) Run(ctx context.Context, items []T) ([]Result[T], error) {
	r := newRun(ctx, p, items)
	defer r.close()
	left := make([]int, len(items))
	for i := range left {
		left[i] = i
	}
	for i := range p.stages {
		if len(left) > 0 {
			left = r.enter(&p.stages[i], left)
		}
	}
	return r.results, r.err()
}
