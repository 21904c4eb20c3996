package flightrecorder

import (
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

// maxListed is how many operations of a coordinator, and how many signals, a report lists.
const maxListed = 1000

// A Report is the JSON beside a trace. Stats and Busy are by the name of the coordinator; give all of them different names.
type Report struct {
	Cause   core.Signal           `json:"cause"`
	Stats   map[string]core.Stats `json:"stats"`
	Busy    map[string][]string   `json:"busy"`    // the oldest 1,000 operations that have not ended: the key, and what Explain says
	Signals []core.Signal         `json:"signals"` // the newest 1,000 of the window, without payloads, oldest first
}

func (r *Recorder) report(cause core.Signal) Report {
	report := Report{cause, map[string]core.Stats{}, map[string][]string{}, nil}
	for _, c := range r.opts.Coordinators {
		busy := []string{}
		for o := range c.Operations(core.OperationQuery{Status: core.StatusAlive, Limit: maxListed}) {
			if x, ok := c.Explain(o.ID); ok {
				busy = append(busy, strings.TrimPrefix(o.Key+": "+x.String(), ": "))
			}
		}
		report.Stats[c.Name()], report.Busy[c.Name()] = c.Stats(), busy
	}
	for s := range r.sink.Sense(core.Query{}) {
		report.Signals = append(report.Signals, s)
		report.Signals = report.Signals[max(0, len(report.Signals)-maxListed):]
	}
	return report
}
