package jobs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals of a [Runner]. NAME is the name of the job. The payload is a [Failure]. The key is the
// key of the trigger, and the trigger is the cause. None of these signals starts the job that it is
// about.
var (
	// Retry is raised as job.retry:NAME:N by the operation of the run: attempt N has failed, and
	// there will be another one.
	//
	//ephemeral:raises job.retry:*
	Retry = signals.NewFamily[Failure]("job.retry:*")
	// Failed is raised as job.failed:NAME:TYPE by the operation of the run: the last attempt has
	// failed; Failure.Reason says why there is no other attempt. TYPE is the type of the error, such
	// as fs.PathError, or timeout.
	//
	//ephemeral:raises job.failed:*
	Failed = signals.NewFamily[Failure]("job.failed:*")
	// Rejected is raised as job.rejected:NAME on the sink: a run was not accepted, for example
	// because the queue is full. See Failure.Err.
	//
	//ephemeral:raises job.rejected:*
	Rejected = signals.NewFamily[Failure]("job.rejected:*")
)

// What the names of these families begin with.
const (
	retried  = "job.retry"
	failed   = "job.failed"
	rejected = "job.rejected"
)

// A Failure describes an attempt that failed, or a run that was rejected.
type Failure struct {
	Run     Run
	Attempt int   // the number of the attempt, from 1; 0 if there was none
	Err     error // the error of the attempt, or why the run was rejected
	// Reason says in words why there is no other attempt, or that the run was rejected. In
	// [Retry] it is "".
	Reason string
}

// A Run is the item of a Runner: a job that a signal has started.
type Run struct {
	Job    string         `json:"job"`
	Signal signals.Signal `json:"signal"`

	job   *job
	key   string
	lacks []string // patterns of Await for which no signal has come
}

// Raise raises the signal of the run again, with its key and payload, for example when the
// reason of a failure is gone. Pass the sink as on. If on is an operation that the run has caused,
// [signals.Propagation] blocks the signal as a cycle. Raise returns false if the signal was not
// recorded. It also returns false for a signal with a payload whose name has "*", "?", commas or
// blanks around it: no kind can have such a name.
func (r Run) Raise(on signals.Raiser) bool {
	s := r.Signal
	switch {
	case s.Payload() == nil:
		return on.RaiseKey(s.Name, s.Key)
	case !plain(s.Name, "*?,"):
		return false
	}
	return signals.NewKind[any](s.Name).Raise(on, s.Key, s.Payload())
}

// typeName is the type of an error as a part of a name. It is "timeout" for errors that match
// core.ErrTimeout. For an error of fmt.Errorf, it is the type of the wrapped error.
func typeName(err error) string {
	if guard.Is(err, core.ErrTimeout) {
		return "timeout"
	}
	name := fmt.Sprintf("%T", err)
	if inner, _ := guard.Value("Unwrap", func() error { return errors.Unwrap(err) }); inner != nil && strings.HasPrefix(name, "*fmt.") {
		return typeName(inner)
	}
	return strings.NewReplacer("*", "", "?", "", ",", "").Replace(name)
}

// plain reports whether a name is not empty, has none of the characters in without, and no blanks
// around it.
func plain(name, without string) bool {
	return name != "" && strings.TrimSpace(name) == name && !strings.ContainsAny(name, without)
}
