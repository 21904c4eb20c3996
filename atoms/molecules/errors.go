package molecules

import (
	"errors"
	"fmt"
	"time"
)

// A StepError says which step of a run went wrong. The error of a run that failed
// is one, or, if compensations failed as well, several joined, the step's first.
type StepError struct {
	Blueprint, Step string
	Compensating    bool  // it was being undone
	Err             error // of Do or Compensate, a [core.PanicError] if it panicked, or an [AwaitError]
}

func (e *StepError) Error() string {
	what := "step"
	if e.Compensating {
		what = "undoing step"
	}
	return fmt.Sprintf("molecules: %s %q of %q: %v", what, e.Step, e.Blueprint, e.Err)
}

func (e *StepError) Unwrap() error { return e.Err }

// An AwaitError says that the signal which a step awaits did not come in time.
type AwaitError struct {
	Pattern, Key string
	Timeout      time.Duration
}

func (e *AwaitError) Error() string {
	return fmt.Sprintf("no signal matching %q with key %q came within %v", e.Pattern, e.Key, e.Timeout)
}

var errWhenPanicked = errors.New("molecules: When panicked or ended its goroutine")
