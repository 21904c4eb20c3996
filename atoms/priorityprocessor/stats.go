package priorityprocessor

import (
	"encoding/json"
	"time"
)

// Stats are a Failover's counters, read as one cut:
//
//	Accepted = Running + Succeeded + Failed + Cancelled + Refused
type Stats struct {
	Accepted  uint64 `json:"accepted"` // items
	Running   int    `json:"running"`
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`    // by every processor, by their own fault, or with a panic
	Cancelled uint64 `json:"cancelled"` // their context ended, or a handler ended their goroutine
	Refused   uint64 `json:"refused"`   // with ErrNoneHealthy

	Rejected uint64 `json:"rejected"` // items that came after Close

	Attempts       uint64 `json:"attempts"`       // at any processor
	Failovers      uint64 `json:"failovers"`      // that followed a failed one
	Unhealthy      uint64 `json:"unhealthy"`      // times a processor became so
	Restored       uint64 `json:"restored"`       // times one became healthy again
	Probes         uint64 `json:"probes"`         // calls of Probe functions
	SignalsDropped uint64 `json:"signalsDropped"` // about health, because a handler blocks
}

// Stats returns the counters.
func (f *Failover[T]) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, b := f.stats, &f.board
	s.Attempts, s.Unhealthy, s.Restored, s.Probes = b.attempts, b.trips, b.restores, b.probes
	s.SignalsDropped = f.news.dropped
	return s
}

// A ProcessorStatus is what a processor was like at one instant.
type ProcessorStatus struct {
	Name      string    `json:"name"`
	Priority  int       `json:"priority"`
	Healthy   bool      `json:"healthy"`
	Since     time.Time `json:"since"`              // when that was last changed, or New
	Failures  int       `json:"failures"`           // in a row
	LastErr   error     `json:"-"`                  // of its last failure or failed probe; as text in JSON
	Probing   bool      `json:"probing"`            // it is being probed, by a function or an item
	NextProbe time.Time `json:"nextProbe,omitzero"` // when it is due to be; zero if it is not to be

	// Attempts. One that failed by fault of the item is among the Succeeded.
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

// Processors returns what the processors are like now, in order of priority, as one
// cut.
func (f *Failover[T]) Processors() []ProcessorStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	states := make([]ProcessorStatus, 0, len(f.board.members))
	for i := range f.board.members {
		m := &f.board.members[i]
		s := ProcessorStatus{
			Name: m.name, Priority: m.priority,
			Healthy: m.healthy, Since: f.base.Add(m.since), Failures: m.failures, LastErr: m.err,
			Probing: m.trying,
			Running: m.running, Succeeded: m.succeeded, Failed: m.failed, Cancelled: m.cancelled,
		}
		if !m.healthy && !m.trying && f.board.wait >= 0 && !f.closed {
			s.NextProbe = f.base.Add(m.due)
		}
		states = append(states, s)
	}
	return states
}
