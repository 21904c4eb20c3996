package molecules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Blueprint is a molecule: what sets it off, and its steps. It is plain data; a
// [Runner] copies it, so later changes affect nobody.
type Blueprint struct {
	// Name tells the blueprints of a runner apart.
	Name string
	// On is the pattern of the signals that set a run off, see [core.Match].
	On string
	// When, if not nil, is asked about each of these signals whether it does. It
	// is called on the goroutine that raises the signal, which waits for it.
	When func(core.Signal) bool
	// Steps are done in order, each after the one before it has returned nil.
	Steps []Step
}

// A Step is a part of a molecule.
type Step struct {
	// Name tells the steps of a blueprint apart.
	Name string
	// Do does the step. An error or a panic ends the run: later steps are not
	// done, and those that were are compensated. Its context ends when the run
	// is cancelled. Do may be nil in a step that only awaits a signal.
	Do func(ctx context.Context, r *Run) error
	// Timeout is when the context of Do ends after it was called; 0 or negative
	// means not before that of the run.
	Timeout time.Duration
	// Compensate undoes what Do has done; nil means there is nothing to undo. It
	// is called only if Do has returned nil and the run fails or is cancelled
	// later, after the Compensate of all steps behind this one. Its context does
	// not end when the run is cancelled; see [Options.CompensateTimeout].
	Compensate func(ctx context.Context, r *Run) error
	// Await is the pattern of signals of which one, with the key of the run's
	// trigger, must have been raised before the step starts; "" means none.
	// Those raised since the trigger count. If the order is not [OrderNone],
	// only those count that were raised after the last run of the same blueprint
	// and key had ended, so that a run does not take another's for its own. Do
	// gets the newest of them from [Run.Awaited].
	Await string
	// AwaitTimeout is how long the step waits for that signal, when its turn has
	// come, before it fails with an [AwaitError]; 0 means 1 minute, negative no
	// limit.
	AwaitTimeout time.Duration
}

const defaultAwaitTimeout = time.Minute

// prepare checks blueprints and copies them.
func prepare(list []Blueprint) ([]*Blueprint, error) {
	if len(list) == 0 {
		return nil, errors.New("molecules: a runner needs at least one blueprint")
	}
	var blueprints []*Blueprint
	taken := make(map[string]bool)
	for i, b := range list {
		if b.Name == "" {
			return nil, fmt.Errorf("molecules: blueprint %d has no Name, but it needs one", i+1)
		}
		if taken[b.Name] {
			return nil, fmt.Errorf("molecules: there are two blueprints %q", b.Name)
		}
		taken[b.Name] = true
		b.Steps = slices.Clone(b.Steps)
		if err := b.check(); err != nil {
			return nil, fmt.Errorf("molecules: blueprint %q: %w", b.Name, err)
		}
		blueprints = append(blueprints, &b)
	}
	return blueprints, nil
}

func (b *Blueprint) check() error {
	switch {
	case matchesNothing(b.On):
		return fmt.Errorf("no signal matches On, which is %q", b.On)
	case len(b.Steps) == 0:
		return errors.New("it needs at least one step")
	}
	taken := make(map[string]bool)
	for i := range b.Steps {
		s := &b.Steps[i]
		if s.Name == "" {
			return fmt.Errorf("step %d has no Name, but it needs one", i+1)
		}
		if taken[s.Name] {
			return fmt.Errorf("there are two steps %q", s.Name)
		}
		taken[s.Name] = true
		if err := s.check(); err != nil {
			return fmt.Errorf("step %q: %w", s.Name, err)
		}
	}
	return nil
}

func (s *Step) check() error {
	switch {
	case s.Do == nil && s.Await == "":
		return errors.New("there must be a function Do, not nil, or a signal to await")
	case s.Do == nil && s.Timeout != 0:
		return fmt.Errorf("a Timeout, of %v, needs a Do that could take longer", s.Timeout)
	case s.Await == "" && s.AwaitTimeout != 0:
		return fmt.Errorf("an AwaitTimeout, of %v, needs a signal to Await", s.AwaitTimeout)
	case s.Await != "" && matchesNothing(s.Await):
		return fmt.Errorf("no signal matches Await, which is %q", s.Await)
	}
	if s.AwaitTimeout == 0 {
		s.AwaitTimeout = defaultAwaitTimeout
	}
	return nil
}

func (b *Blueprint) awaits() bool {
	return slices.ContainsFunc(b.Steps, func(s Step) bool { return s.Await != "" })
}

func matchesNothing(pattern string) bool { return strings.Trim(pattern, ", \t\n") == "" }
