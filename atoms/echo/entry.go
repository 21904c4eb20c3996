package echo

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// An Entry is the last words of an operation.
type Entry[P any] struct {
	Operation core.OperationID `json:"operation"`
	Key       string           `json:"key,omitempty"`
	Status    core.Status      `json:"status"`
	Err       string           `json:"error,omitempty"` // of the body, or why it did not run
	Pinned    bool             `json:"pinned,omitempty"`
	Finished  time.Time        `json:"finished,omitzero"`
	Finalized time.Time        `json:"finalized"` // when it left the window
	Captures  []Capture[P]     `json:"captures"`  // oldest first; at least one
	// Missed is how many older ones are missing because of
	// [Options.MaxPerOperation].
	Missed int `json:"missed,omitempty"`
}

// A Capture is one signal of an operation and its payload.
type Capture[P any] struct {
	Signal  core.Signal `json:"signal"`
	Payload P           `json:"payload"`
}

// A Failure is an entry that was not delivered, and why: the error of the function, a
// [*core.PanicError] if it panicked, [core.ErrDropped] when there was no room for it,
// or [core.ErrClosed].
type Failure[P any] struct {
	Entry Entry[P]
	Err   error
}

// SignalFailed is raised, with the operation's id as key and a [Failure] as payload,
// for every entry that is not delivered; see [Recorder.Failed].
const SignalFailed = "echo.failed"
