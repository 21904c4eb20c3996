package priorityprocessor

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoneHealthy is returned with [Options.HealthyOnly] if no processor is healthy and no probe
// is due.
var ErrNoneHealthy = errors.New("priorityprocessor: no processor is healthy")

// Errors that are recorded if a function panics or ends its goroutine.
var (
	errPanicked      = errors.New("priorityprocessor: the processor panicked")
	errProbePanicked = errors.New("priorityprocessor: the probe panicked")
)

// An Attempt is a failed attempt of a processor.
type Attempt struct {
	Processor string
	Priority  int
	Err       error
}

// An Error has the failed attempts of an item. [errors.Is] and [errors.As] look into the errors
// of all attempts, and into Cause.
type Error struct {
	Attempts []Attempt // in the order in which they were made
	// Cause is the cause of the context of the item, if the end of this context was the
	// reason to stop. It is nil if there was no further processor to try, or if the last
	// error was the fault of the item.
	Cause error
}

func (e *Error) Error() string {
	var parts []string
	for _, a := range e.Attempts {
		parts = append(parts, fmt.Sprintf("%s (priority %d): %v", a.Processor, a.Priority, a.Err))
	}
	if e.Cause != nil {
		parts = append(parts, fmt.Sprint("then stopped: ", e.Cause))
	}
	return "priorityprocessor: " + strings.Join(parts, "; ")
}

// Unwrap returns the errors of all attempts and Cause.
func (e *Error) Unwrap() []error {
	var all []error
	for _, a := range e.Attempts {
		all = append(all, a.Err)
	}
	if e.Cause != nil {
		all = append(all, e.Cause)
	}
	return all
}
