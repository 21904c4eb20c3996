package molecules

import "github.com/ephemeralgo/ephemeral/core"

// Signals of a [Runner]. All bear the key of the run's trigger, name it as their
// cause, and have an [Event] as payload. Those of a run are raised by its
// operation. They set off no blueprint; a [Trigger] can react to them.
const (
	SignalStarted = "molecule.started"

	// Each run ends with exactly one of these three.
	SignalCompleted = "molecule.completed" // all steps are done
	SignalFailed    = "molecule.failed"    // a step has failed; what could be undone was
	SignalCancelled = "molecule.cancelled" // the same, because of Cancel or Close; also of a run that had not started

	// SignalCompensated is raised before SignalFailed or SignalCancelled if
	// there was something to undo and all of it was undone.
	SignalCompensated = "molecule.compensated"
	// SignalDropped is raised on the sink for a trigger that set nothing off,
	// because the queue was full or When panicked: see Event.Err.
	SignalDropped = "molecule.dropped"

	SignalStepStarted     = "molecule.step.started"
	SignalStepCompleted   = "molecule.step.completed"
	SignalStepFailed      = "molecule.step.failed" // without SignalStepStarted if what it awaited did not come
	SignalStepCancelled   = "molecule.step.cancelled"
	SignalStepCompensated = "molecule.step.compensated"
	// SignalCompensationFailed is raised when Compensate of a step returned an
	// error or panicked.
	SignalCompensationFailed = "molecule.compensation.failed"
)

// Signals of a [Trigger]. They bear the key of the signal that it reacted to, name
// it as their cause, and have a [TriggerEvent] as payload. They never set off the
// trigger they are about.
const (
	// SignalTriggerFailed is raised when the callback has failed.
	SignalTriggerFailed = "trigger.failed"
	// SignalTriggerDropped is raised when a signal came while the queue was
	// full.
	SignalTriggerDropped = "trigger.dropped"
)

// An Event is the payload of the signals of a [Runner]:
//
//	e, ok := signal.Payload().(molecules.Event)
type Event struct {
	Blueprint string
	Run       core.OperationID // 0 in SignalDropped
	Step      string           // "" in signals that are not about a step
	Err       error            // why it failed, was cancelled or dropped; else nil
}

// A TriggerEvent is the payload of the signals of a [Trigger].
type TriggerEvent struct {
	Trigger string // its name
	Err     error  // the callback's, or [core.ErrFull]

	by *Trigger
}

var (
	kindStarted            = core.NewKind[Event](SignalStarted)
	kindCompleted          = core.NewKind[Event](SignalCompleted)
	kindFailed             = core.NewKind[Event](SignalFailed)
	kindCancelled          = core.NewKind[Event](SignalCancelled)
	kindCompensated        = core.NewKind[Event](SignalCompensated)
	kindDropped            = core.NewKind[Event](SignalDropped)
	kindStepStarted        = core.NewKind[Event](SignalStepStarted)
	kindStepCompleted      = core.NewKind[Event](SignalStepCompleted)
	kindStepFailed         = core.NewKind[Event](SignalStepFailed)
	kindStepCancelled      = core.NewKind[Event](SignalStepCancelled)
	kindStepCompensated    = core.NewKind[Event](SignalStepCompensated)
	kindCompensationFailed = core.NewKind[Event](SignalCompensationFailed)
	kindTriggerFailed      = core.NewKind[TriggerEvent](SignalTriggerFailed)
	kindTriggerDropped     = core.NewKind[TriggerEvent](SignalTriggerDropped)
)
