package progress

import (
	"fmt"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Reports are the signals of all reporters. Their key is the name of the [Reporter].
var Reports = signals.NewKind[Report]("progress")

// A Report is the progress of a piece of work.
type Report struct {
	Current int64 `json:"current"`
	Total   int64 `json:"total"` // 0: not known
	Done    bool  `json:"done"`  // this is the last report, even if Current is less than Total
}

// Fraction is Current as a part of Total, from 0 to 1. If Total is not known it is
// 0, and 1 at the end.
func (r Report) Fraction() float64 {
	switch {
	case r.Total > 0:
		return float64(r.Current) / float64(r.Total)
	case r.Done:
		return 1
	}
	return 0
}

// String is "5/10", or "5" if the total is not known.
func (r Report) String() string {
	if r.Total == 0 {
		return fmt.Sprint(r.Current)
	}
	return fmt.Sprintf("%d/%d", r.Current, r.Total)
}

// All returns the newest report of each reporter that the sink or coordinator still
// shows, by the name of the reporter.
func All(from signals.Sensor) map[string]Report {
	all := make(map[string]Report)
	for signal, report := range Reports.Sense(from, signals.Query{}) {
		all[signal.Key] = report
	}
	return all
}
