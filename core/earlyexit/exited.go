package earlyexit

import (
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// SignalExited is raised on the sink of a [Collector] that a signal has ended, with
// the key of that signal and caused by it, after what ran has been cancelled.
const SignalExited = "coordinator.early_exit"

// An ExitedError says which signal ended a [Collector]: to who comes with an item
// later, and, as the cause of the cancellation, to the work that ran. It is a
// [core.ErrClosed].
type ExitedError struct{ Signal core.Signal }

func (e *ExitedError) Error() string {
	return fmt.Sprintf("earlyexit: ended by signal %q", e.Signal.Name)
}

// Unwrap returns [core.ErrClosed].
func (e *ExitedError) Unwrap() error { return core.ErrClosed }
