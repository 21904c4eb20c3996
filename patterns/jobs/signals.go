package jobs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

// Signals of a [Runner]. The payload is a [Failure], the key that of the signal that started
// the run. The operation of the run raises the first two, the sink the third. None of them
// starts the job that it is about.
const (
	SignalRetry    = "job.retry"    // and ":NAME:N": attempt N has failed, and there will be another one
	SignalFailed   = "job.failed"   // and ":NAME:TYPE": the last attempt has failed; TYPE is that of the error, such as fs.PathError, or timeout
	SignalRejected = "job.rejected" // and ":NAME": there was no room for a run; raised on the sink
)

// The families of these signals, to subscribe to and to start jobs.
var (
	Retry    = core.NewFamily[Failure](SignalRetry + ":*")
	Failed   = core.NewFamily[Failure](SignalFailed + ":*")
	Rejected = core.NewFamily[Failure](SignalRejected + ":*")
)

// A Failure describes an attempt that failed, or a run that was rejected.
type Failure struct {
	Run     Run
	Attempt int // that has failed; 0 if there was none
	Err     error
}

// A Run is the item of a Runner: a job that a signal has started.
type Run struct {
	Job    string      `json:"job"`
	Signal core.Signal `json:"signal"`

	job   *job
	key   string
	lacks []string // what it has awaited in vain
}

// Raise raises the signal of the run again, with its key and payload, for example when the
// reason of a failure is gone. Raise it on a sink: on an operation of the failed run,
// [core.Propagation] would block it as a cycle. Raise returns false if the signal was not
// recorded, or if it has a payload and a name that no kind can have.
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
