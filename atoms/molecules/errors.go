package molecules

import (
	"errors"
	"fmt"
	"time"
)

// A StepError says which step of a run failed. It is the error of a failed run. If
// compensations failed too, the error of the run joins several StepErrors: the first is the error
// of the step, the others are the errors of compensations.
type StepError struct {
	Blueprint, Step string
	Compensating    bool  // Compensate failed, not Do
	Err             error // the error of Do or Compensate, a [core.PanicError], or an [AwaitError]
}

func (e *StepError) Error() string {
	what := "step"
	if e.Compensating {
		what = "compensation of step"
	}
	return fmt.Sprintf("molecules: %s %q of %q: %v", what, e.Step, e.Blueprint, e.Err)
}

func (e *StepError) Unwrap() error { return e.Err }

// An AwaitError says that the signal that a step awaited did not come in time.
type AwaitError struct {
	Pattern, Key string
	Timeout      time.Duration
}

func (e *AwaitError) Error() string {
	return fmt.Sprintf("no signal matching %q with key %q came within %v", e.Pattern, e.Key, e.Timeout)
}

var errWhenPanicked = errors.New("molecules: When panicked or ended its goroutine")
