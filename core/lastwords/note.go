package lastwords

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Note is what is remembered of an operation that has left its coordinator's
// window. It holds text only, so that it can be stored anywhere.
type Note struct {
	Operation core.OperationID  `json:"operation"`
	Key       string            `json:"key,omitempty"`
	Signal    string            `json:"signal,omitempty"` // name of the last signal it raised and did not take back
	Status    core.Status       `json:"status"`
	Err       string            `json:"error,omitempty"` // of the body, or why it did not run
	Time      time.Time         `json:"time"`            // when it left
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// NoteOf returns the note of an operation that leaves now, without metadata.
func NoteOf(s core.Snapshot) Note {
	n := Note{Operation: s.ID, Key: s.Key, Status: s.Status, Time: time.Now()}
	if len(s.Signals) > 0 {
		n.Signal = s.Signals[len(s.Signals)-1].Name
	}
	if s.Err != nil {
		n.Err = s.Err.Error()
	}
	return n
}

// SignalFailed is the name of [Failed].
const SignalFailed = "lastwords.failed"

// Failed is raised, with the note's key, when a note could not be persisted.
var Failed = core.NewKind[Failure](SignalFailed)

// A Failure is a note that could not be persisted, and why.
type Failure struct {
	Note Note
	Err  error // of the function that persists; a [core.PanicError] if it panicked
}
