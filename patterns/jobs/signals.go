package jobs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

// What a [Runner] raises, with a [Failure] as the payload and the key of the signal that set
// off the run. The first two are raised by the operation of the run. None of them sets off the
// job that it is about.
const (
	SignalRetry    = "job.retry"    // and ":NAME:N": attempt N has failed, and there will be another one
	SignalFailed   = "job.failed"   // and ":NAME:TYPE": the last attempt has failed; TYPE is that of the error, such as fs.PathError, or timeout
	SignalRejected = "job.rejected" // and ":NAME": there was no room for a run; raised on the sink
)

// The same as families, to be subscribed to and to make jobs of.
var (
	Retry    = core.NewFamily[Failure](SignalRetry + ":*")
	Failed   = core.NewFamily[Failure](SignalFailed + ":*")
	Rejected = core.NewFamily[Failure](SignalRejected + ":*")
)

// A Failure is what became of a run.
type Failure struct {
	Run     Run
	Attempt int // that has failed; 0 if there was none
	Err     error
}

// A Run is the item of a Runner: a job that a signal has set off.
type Run struct {
	Job    string      `json:"job"`
	Signal core.Signal `json:"signal"`

	job   *job
	key   string
	lacks []string // what it has awaited in vain
}

// Raise raises the signal of the run again, with its key and payload, as a dead-letter job does
// when the reason of a failure is gone. A view of the failed run would be the cause, and the
// signal blocked as a cycle (see [core.Propagation]); so raise it on a sink. It is false if the
// signal was not recorded, or has a payload and a name that no kind can have.
func (r Run) Raise(on core.Raiser) bool {
	s := r.Signal
	switch {
	case s.Payload() == nil:
		return on.RaiseKey(s.Name, s.Key)
	case !plain(s.Name, "*?,"):
		return false
	}
	return core.NewKind[any](s.Name).Raise(on, s.Key, s.Payload())
}

// typeName is the type of an error as a part of a name: without the wrappings of package fmt,
// and "timeout" for all timeouts.
func typeName(err error) string {
	if errors.Is(err, core.ErrTimeout) {
		return "timeout"
	}
	name := fmt.Sprintf("%T", err)
	if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(name, "*fmt.") {
		return typeName(inner)
	}
	return strings.NewReplacer("*", "", "?", "", ",", "").Replace(name)
}

// plain reports whether a name has none of these characters, and no blanks around it.
func plain(name, without string) bool {
	return name != "" && strings.TrimSpace(name) == name && !strings.ContainsAny(name, without)
}
