// This file decides which signals coordinators and operations raise by themselves, with their kinds and payloads.

package core

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// OperationID is [signals.OperationID].
type OperationID = signals.OperationID

// Lifecycle signals of coordinators and their operations. Operations also raise [signals.SignalStarted] and
// [signals.SignalStopped], on demand.
const (
	// SignalPanicked is raised by an operation whose body panicked.
	SignalPanicked = "operation.panicked"
	// SignalForced is raised by an operation that starts because MaxDefer is over,
	// although a signal still matches DeferOn.
	SignalForced = "coordinator.forced"
	// SignalStuck is raised once by an operation whose body does not return: see
	// [Options.StuckAfter] and [Options.StuckAfterCancel]. The payload is a [StuckOperation].
	SignalStuck = "operation.stuck"
	// SignalPaused, SignalResumed and SignalClosed are raised on the sink, with
	// the coordinator's name as key.
	SignalPaused  = "coordinator.paused"
	SignalResumed = "coordinator.resumed"
	SignalClosed  = "coordinator.closed" // Close was called
	// SignalThrottled and SignalFree are raised on the sink, with the name of the class as
	// key: SignalThrottled when an item of the class begins to wait for tokens, and SignalFree
	// when none does any more. Each is raised at changes only, not for each item. The payload
	// is a [ClassChange].
	SignalThrottled = "class.throttled"
	SignalFree      = "class.free"
	// SignalWouldThrottle is raised on the sink, with the name of the class as key, when items begin to wait in a
	// shadow, and when none does any more: see [Limits]. It is raised at changes only, and at most once a second for
	// each shadow. The payload is a [ClassChange].
	SignalWouldThrottle = "class.would_throttle"
)

// Stuck is the kind of [SignalStuck].
var Stuck = signals.NewKind[StuckOperation](SignalStuck)

// A StuckOperation says why an operation is stuck, and where its body is.
type StuckOperation struct {
	Reason string    `json:"reason"` // a text for people
	Since  time.Time `json:"since"`  // when its body began, or went on after a Suspend, or when its context ended
	Stack  string    `json:"stack"`  // the stack of the goroutine that runs the body, at most 64 kB
}

// A ClassChange says when and why a class is throttled, or free again, or would be. It is the payload of
// [Throttled], [Free] and [WouldThrottle].
type ClassChange struct {
	Coordinator string    `json:"coordinator"`
	Class       string    `json:"class"`         // "": WouldThrottle is for Options.Shadow
	Next        time.Time `json:"next,omitzero"` // for Throttled: when the next tokens are there

	Waiting int `json:"waiting,omitzero"` // for WouldThrottle: how many items would wait now; 0: none any more
}

// Throttled is the kind of [SignalThrottled], Free is the kind of [SignalFree], and WouldThrottle is the kind of
// [SignalWouldThrottle].
var (
	Throttled = signals.NewKind[ClassChange](SignalThrottled)
	Free      = signals.NewKind[ClassChange](SignalFree)

	WouldThrottle = signals.NewKind[ClassChange](SignalWouldThrottle)
)
