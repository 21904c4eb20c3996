package scheduledtasks

import (
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core"
)

// Stats are the counters of a scheduler. Those of core.Stats are about the operations that
// hand tasks over, one for each tick that is run, and for each RunNow. They are read at one
// moment, at which
//
//	Enqueued = Pending + Running + Suspended + Succeeded + Failed + Cancelled
//
// Succeeded tasks were handed over, and their ticks are marked. Each tick that has come is
// in Enqueued, Rejected or Missed, unless its schedule was paused.
type Stats struct {
	core.Stats
	Schedules int    `json:"schedules"`
	Skipped   uint64 `json:"skipped"` // of Failed: the last task of the schedule was not finished
	Missed    uint64 `json:"missed"`  // ticks that were noticed too late and are not run; of more than 10,000 at once, 10,000 are counted
	Scans     uint64 `json:"scans"`   // how often the scheduler has looked for ticks
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }
