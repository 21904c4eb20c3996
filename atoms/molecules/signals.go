package molecules

import (
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals of a [Runner], raised by the operation of the run. Their key is the key of the run's
// trigger, their cause is the trigger, and their payload is an [Event]. They start no run of
// any Runner, but a [Trigger] can react to them.
const (
	SignalStarted = "molecule.started" // the run begins

	// Each run ends with exactly one of these three. If a run is cancelled before it began,
	// SignalCancelled is raised on the sink, by the caller of Cancel, Abort, Stop or Close. A
	// handler of that signal cannot wait for the runner: it gets [core.ErrWouldDeadlock].
	SignalCompleted = "molecule.completed" // all steps are done
	SignalFailed    = "molecule.failed"    // a step has failed; the completed steps were compensated
	SignalCancelled = "molecule.cancelled" // the run was cancelled; the completed steps were compensated

	// SignalCompensated is raised before SignalFailed or SignalCancelled, if at least one
	// step was compensated and no compensation failed.
	SignalCompensated = "molecule.compensated"
	// SignalDropped is raised on the sink if a signal starts no run because the queue is
	// full or When panicked: see Event.Err.
	SignalDropped = "molecule.dropped"

	SignalStepStarted     = "molecule.step.started" // raised after the awaited signal has come
	SignalStepCompleted   = "molecule.step.completed"
	SignalStepFailed      = "molecule.step.failed"    // raised also if the awaited signal did not come; then there is no SignalStepStarted
	SignalStepCancelled   = "molecule.step.cancelled" // the run was cancelled while the step ran
	SignalStepCompensated = "molecule.step.compensated"
	// SignalCompensationFailed: Compensate of a step has returned an error or panicked.
	SignalCompensationFailed = "molecule.compensation.failed"
)

// Signals of a [Trigger]. Their key is the key of the signal that started the call, and their
// cause is that signal. A trigger does not react to its own signals.
var (
	TriggerFailed  = signals.NewKind[TriggerEvent]("trigger.failed")  // the function has failed
	TriggerDropped = signals.NewKind[TriggerEvent]("trigger.dropped") // the queue was full
)

// Events are the signals of a [Runner], with their payload. [signals.Family.Named] selects one:
//
//	molecules.Events.Named(molecules.SignalFailed).Subscribe(sink, func(s signals.Signal, e molecules.Event) { ... })
var Events = signals.NewFamily[Event]("molecule.*")

// An Event is the payload of the signals of a [Runner].
type Event struct {
	Blueprint string
	Run       core.OperationID // 0 in SignalDropped
	//ephemeral:none
	Step string // "" in signals that are not about a step
	Err  error  // why the run or step failed or was cancelled, or why the signal was dropped; else nil
}

// A TriggerEvent is the payload of the signals of a [Trigger].
type TriggerEvent struct {
	Trigger string // its name
	Err     error  // the error of the function, or [core.ErrFull]

	by *Trigger
}
