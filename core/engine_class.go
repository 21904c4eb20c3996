package core

import "log/slog"

// A Class is a kind of items of one coordinator. Its limit counts items in all lanes
// together. See [Options.Classes].
type Class struct {
	// Name is how [Coordinator.Class] finds it; case matters.
	Name string
	// Limit is how many operations of the class run at once; they also count for
	// [Options.MaxConcurrency]. 0 means no limit of its own.
	Limit int
	// Depth is how many of its items may be pending in each lane before Enqueue waits and
	// TryEnqueue refuses; 0 means [Lane].Depth or, without lanes, [Options.MaxQueued];
	// negative means no queue. Each class has a queue of its own in each lane.
	Depth int
}

// ClassStats are counters of one class; see [Stats]. Items without a class are not
// counted here. So, summed over the classes, Pending <= Stats.Pending and Running <=
// Stats.Running.
type ClassStats struct {
	Name    string `json:"name"`
	Pending int    `json:"pending"`
	Running int    `json:"running"`
	Limit   int    `json:"limit"` // how many may run at once; 0: no limit of its own
}

// LogValue groups the counters by their JSON names.
func (s ClassStats) LogValue() slog.Value { return StatsValue(s) }

// String is the JSON form.
func (s ClassStats) String() string { return StatsString(s) }

// classStats returns the counters of the classes, if there are any. mu and the
// intake's are held.
func (e *engine) classStats() (stats []ClassStats) {
	for i, c := range e.opts.Classes {
		pending := 0
		for lane := range e.lanes {
			pending += e.pendingIn(lane, 1+i)
		}
		stats = append(stats, ClassStats{c.Name, pending, e.scheduler.classes[1+i].running, c.Limit})
	}
	return stats
}
