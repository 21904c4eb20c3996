package priorityprocessor

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoneHealthy is returned under [Options.HealthyOnly] for an item when no processor may
// try it.
var ErrNoneHealthy = errors.New("priorityprocessor: no processor is healthy")

// What is recorded when a panic, or the end of a goroutine, passes through.
var (
	errPanicked      = errors.New("priorityprocessor: the processor panicked")
	errProbePanicked = errors.New("priorityprocessor: the probe panicked")
)

// An Attempt is a processor's failure to do an item.
type Attempt struct {
	Processor string
	Priority  int
	Err       error
}

// An Error says why every processor that was tried failed an item. errors.Is and errors.As
// look into all attempts and the cause.
type Error struct {
	Attempts []Attempt // in the order in which they were made
	// Cause is why there were no more attempts: the cause of the item's context. It is
	// nil if all processors were tried, or if the last error was the item's own fault.
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

// Unwrap returns the errors of all attempts and the cause.
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
