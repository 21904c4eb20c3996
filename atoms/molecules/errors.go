package molecules

import (
	"errors"
	"fmt"
)

// A StepError says which step of a run failed. It is the error of a failed run. If
// compensations failed too, the error of the run joins several StepErrors: the first is the error
// of the step, the others are the errors of compensations.
type StepError struct {
	Blueprint, Step string
	compensating    bool  // Compensate failed, not Do
	Err             error // the error of Do or Compensate, a [core.PanicError], or an error that matches [core.ErrTimeout]
}

func (e *StepError) Error() string {
	what := "step"
	if e.compensating {
		what = "compensation of step"
	}
	return fmt.Sprintf("molecules: %s %q of %q: %v", what, e.Step, e.Blueprint, e.Err)
}

func (e *StepError) Unwrap() error { return e.Err }

var errWhenPanicked = errors.New("molecules: When panicked or ended its goroutine")
