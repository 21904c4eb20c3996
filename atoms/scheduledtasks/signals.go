package scheduledtasks

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Signals that a [Scheduler] raises on its sink, with the name of the schedule as key.
const (
	SignalFired   = "schedule.fired"   // a task was handed over
	SignalMissed  = "schedule.missed"  // ticks were noticed too late
	SignalSkipped = "schedule.skipped" // the last task was not finished: see [Options.SkipOverlap]
	SignalFailed  = "schedule.failed"  // a task was not handed over, or its tick not marked
)

// SignalTaskFailed is raised by the operation of a task, in [Run], when the work fails. Its
// key is the name of the schedule.
const SignalTaskFailed = "schedule.task.failed"

// Kinds of the signals.
var (
	Fired      = core.NewKind[Task](SignalFired)
	Missed     = core.NewKind[MissedTicks](SignalMissed)
	Skipped    = core.NewKind[Task](SignalSkipped)
	Failed     = core.NewKind[Failure](SignalFailed)
	TaskFailed = core.NewKind[Failure](SignalTaskFailed)
)

// MissedTicks says which ticks of a schedule were missed.
type MissedTicks struct {
	Name  string    `json:"name"`  // of the schedule
	First time.Time `json:"first"` // the oldest
	Count int       `json:"count"` // how many; 10,000 if there are more
	Run   int       `json:"run"`   // of these, how many are run late: the newest
}

// A Failure is a task, and what went wrong with it.
type Failure struct {
	Task Task  `json:"task"`
	Err  error `json:"-"`
}
