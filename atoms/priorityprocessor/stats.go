package priorityprocessor

import (
	"encoding/json"
	"log/slog"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Stats are a Failover's counters, all read at the same moment, at which
//
//	Accepted = Running + Succeeded + Failed + Cancelled + Refused
type Stats struct {
	Accepted  uint64 `json:"accepted"` // items
	Running   int    `json:"running"`
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`    // by every processor, by the item's own fault, or with a panic
	Cancelled uint64 `json:"cancelled"` // their context ended, or a handler ended their goroutine
	Refused   uint64 `json:"refused"`   // with ErrNoneHealthy

	Rejected uint64 `json:"rejected"` // items that came after Close

	Attempts       uint64 `json:"attempts"`       // at any processor
	Failovers      uint64 `json:"failovers"`      // attempts that followed a failed one
	Unhealthy      uint64 `json:"unhealthy"`      // how often a processor became unhealthy
	Restored       uint64 `json:"restored"`       // how often a processor became healthy again
	Probes         uint64 `json:"probes"`         // calls of Probe functions
	SignalsDropped uint64 `json:"signalsDropped"` // about health, because a handler blocks
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }

// Stats returns the counters.
func (f *engine[In, Out]) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.board.stats
	s.SignalsDropped = f.out.Dropped()
	return s
}

// A ProcessorStatus describes a processor at one moment.
type ProcessorStatus struct {
	Name      string    `json:"name"`
	Priority  int       `json:"priority"`
	Healthy   bool      `json:"healthy"`
	Since     time.Time `json:"since"`              // when Healthy changed last, or when New was called
	Failures  int       `json:"failures"`           // in a row
	LastErr   error     `json:"-"`                  // of its last failure or failed probe; as text in JSON
	Probing   bool      `json:"probing"`            // a function or an item probes it now
	NextProbe time.Time `json:"nextProbe,omitzero"` // when the next probe is due; zero if there is none

	// Attempts. An attempt that failed by the item's own fault is Succeeded.
	Running   int    `json:"running"`
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`
	Cancelled uint64 `json:"cancelled"`
}

// MarshalJSON adds "error", the text of LastErr, if there is one.
func (s ProcessorStatus) MarshalJSON() ([]byte, error) {
	type plain ProcessorStatus
	text := ""
	if s.LastErr != nil {
		text = s.LastErr.Error()
	}
	return json.Marshal(struct {
		plain
		Err string `json:"error,omitempty"`
	}{plain(s), text})
}

// Processors describes the processors, in order of priority, all at the same moment.
func (f *engine[In, Out]) Processors() []ProcessorStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []ProcessorStatus
	for _, m := range f.board.members {
		s := m.ProcessorStatus
		s.Since = f.base.Add(m.since)
		if !m.Healthy && !m.Probing && f.board.wait >= 0 && !f.closed {
			s.NextProbe = f.base.Add(m.due)
		}
		all = append(all, s)
	}
	return all
}
