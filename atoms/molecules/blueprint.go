package molecules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Blueprint describes a workflow: the signals that start it, and its steps. It is plain
// data. A [Runner] copies it, so later changes have no effect.
type Blueprint struct {
	// Name identifies the blueprint in its runner. It must not be blank.
	Name string
	// On is the pattern of the signals that start a run, see [signals.Match].
	//
	//ephemeral:pattern
	On string
	// When decides for each of these signals whether it starts a run; nil means that each
	// does. It is called on the goroutine that raises the signal. If it panics, no run starts.
	When func(signals.Signal) bool
	// Steps are done in order. A step starts after the step before it has returned nil.
	Steps []Step
}

// A Step is a part of a [Blueprint].
type Step struct {
	// Name identifies the step in its blueprint. It must not be blank.
	Name string
	// Do is the function of the step. If it returns an error or panics, later steps are not
	// done, and the completed steps are compensated. Its context ends when the run is
	// cancelled. Do may be nil in a step that only awaits a signal.
	Do func(ctx context.Context, r *Run) error
	// Timeout is how long Do may take before its context ends; 0 and negative mean no
	// limit.
	Timeout time.Duration
	// Compensate undoes the effects of Do; nil means that there is nothing to undo. If Do has
	// returned nil, and later the run fails or is cancelled, Compensate is called. The Compensate
	// functions of later steps are called before it. Its context does not end when the run is
	// cancelled; see [Options.CompensateTimeout].
	Compensate func(ctx context.Context, r *Run) error
	// Await is a pattern of signals, see [signals.Match]; "" means none. The step waits for a signal
	// that matches Await, has the key of the run's trigger, and was raised after the trigger. Do
	// gets the newest such signal from [Run.Awaited].
	//
	// With [OrderPerKey] and [OrderSerial], the signal must also come after the end of the previous
	// run of the same blueprint and key. So a run does not take the signal of another run. There is
	// one exception: a trigger may be raised during the previous run, and reach the runner only
	// after the end of that run, because another handler delays it. Then all signals after the
	// trigger count. With OrderPerKey, runs without a key overlap, and all of them receive the same
	// signals.
	//
	//ephemeral:pattern
	Await string
	// AwaitTimeout is how long the step waits for the awaited signal; 0 means 1 minute, negative
	// no limit. When the time is over, the step fails with an error that matches
	// [core.ErrTimeout].
	AwaitTimeout time.Duration
}

// prepare checks blueprints and copies them.
func prepare(list []Blueprint) ([]*Blueprint, error) {
	if len(list) == 0 {
		return nil, errors.New("molecules: a runner needs at least one blueprint")
	}
	var blueprints []*Blueprint
	taken := make(map[string]bool)
	for i, b := range list {
		if err := checkName("blueprint", i, b.Name, taken); err != nil {
			return nil, fmt.Errorf("molecules: %w", err)
		}
		b.Steps = slices.Clone(b.Steps)
		if err := b.prepare(); err != nil {
			return nil, fmt.Errorf("molecules: blueprint %q: %w", b.Name, err)
		}
		blueprints = append(blueprints, &b)
	}
	return blueprints, nil
}

func (b *Blueprint) prepare() error {
	switch {
	case matchesNothing(b.On):
		return fmt.Errorf("its On is %q, which no signal matches", b.On)
	case len(b.Steps) == 0:
		return errors.New("it needs at least one step")
	}
	taken := make(map[string]bool)
	for i := range b.Steps {
		s := &b.Steps[i]
		if err := checkName("step", i, s.Name, taken); err != nil {
			return err
		}
		if err := s.prepare(); err != nil {
			return fmt.Errorf("step %q: %w", s.Name, err)
		}
	}
	return nil
}

// prepare checks a step and sets its defaults.
func (s *Step) prepare() error {
	switch {
	case s.Do == nil && s.Await == "":
		return errors.New("it needs a function Do or a signal to Await")
	case s.Do == nil && s.Timeout != 0:
		return fmt.Errorf("its Timeout is %v, which needs a function Do", s.Timeout)
	case s.Await == "" && s.AwaitTimeout != 0:
		return fmt.Errorf("its AwaitTimeout is %v, which needs a signal to Await", s.AwaitTimeout)
	case s.Await != "" && matchesNothing(s.Await):
		return fmt.Errorf("its Await is %q, which no signal matches", s.Await)
	}
	s.AwaitTimeout = cmp.Or(s.AwaitTimeout, time.Minute)
	return nil
}

// checkName checks the name of the blueprint or step at an index, and adds it to taken.
func checkName(what string, index int, name string, taken map[string]bool) error {
	switch {
	case isBlank(name):
		return fmt.Errorf("the name of %s %d is %q, it must not be blank", what, index+1, name)
	case taken[name]:
		return fmt.Errorf("two of the %ss have the name %q", what, name)
	}
	taken[name] = true
	return nil
}

func (b *Blueprint) awaits() bool {
	return slices.ContainsFunc(b.Steps, func(s Step) bool { return s.Await != "" })
}

func isBlank(name string) bool { return strings.TrimSpace(name) == "" }

func matchesNothing(pattern string) bool { return isBlank(strings.ReplaceAll(pattern, ",", "")) }
