package priorityprocessor

import (
	"errors"
	"strconv"
	"strings"
)

// ErrNoneHealthy is returned under [Options.HealthyOnly] for an item that nobody may
// try.
var ErrNoneHealthy = errors.New("priorityprocessor: no processor is healthy")

// What is known of a panic, or of the end of a goroutine, that passes through.
var (
	errPanicked      = errors.New("priorityprocessor: the processor panicked")
	errProbePanicked = errors.New("priorityprocessor: the probe panicked")
)

// An Attempt is what became of an item at a processor.
type Attempt struct {
	Processor string
	Priority  int
	Err       error
}

// An Error says why every processor that was tried failed an item. errors.Is and
// errors.As look into all of it.
type Error struct {
	Attempts []Attempt // in the order in which they were made
	// Cause is why there were no further attempts: the cause of the item's
	// context. It is nil when nobody was left to try.
	Cause error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("priorityprocessor: ")
	for i, a := range e.Attempts {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(a.Processor + " (priority " + strconv.Itoa(a.Priority) + "): " + a.Err.Error())
	}
	if e.Cause != nil {
		b.WriteString("; then stopped: " + e.Cause.Error())
	}
	return b.String()
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
