package earlyexit

import (
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// SignalExited is raised on the sink of a [Collector] when a signal has ended it, after
// running work has been cancelled. It has the key of that signal, and is caused by it.
const SignalExited = "coordinator.exited"

// An ExitedError says which signal ended a [Collector]. It is the error of later items,
// and the cause of the cancellation of running work. It is a [core.ErrClosed].
type ExitedError struct{ Signal core.Signal }

func (e *ExitedError) Error() string {
	return fmt.Sprintf("earlyexit: ended by signal %q", e.Signal.Name)
}

// Unwrap returns [core.ErrClosed].
func (e *ExitedError) Unwrap() error { return core.ErrClosed }
