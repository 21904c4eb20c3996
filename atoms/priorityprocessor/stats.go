package priorityprocessor

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Stats are the counters of a Failover, read together. At every instant
//
//	Accepted = Running + Succeeded + Failed + Cancelled + Refused
type Stats struct {
	Accepted  uint64 `json:"accepted"` // items: calls of Do before Close
	Running   int    `json:"running"`
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`    // items that all processors failed, that were at fault, or that panicked
	Cancelled uint64 `json:"cancelled"` // items whose context ended, or whose goroutine a handler ended
	Refused   uint64 `json:"refused"`   // with ErrNoneHealthy

	Rejected uint64 `json:"rejected"` // calls of Do after Close

	Failovers      uint64 `json:"failovers"`      // attempts that followed a failed attempt
	SignalsDropped uint64 `json:"signalsDropped"` // signals about health that were dropped, because a handler blocks
}

// Stats returns the counters.
func (f *engine[In, Out]) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.board.stats
	s.SignalsDropped = f.out.Dropped()
	return s
}

// A ProcessorStatus is the state of a processor.
type ProcessorStatus struct {
	Name      string    `json:"name"`
	Priority  int       `json:"priority"`
	Healthy   bool      `json:"healthy"`
	Since     time.Time `json:"since"`              // the last change of Healthy, or the call of New
	Failures  int       `json:"failures"`           // in a row
	LastErr   string    `json:"error,omitempty"`    // error of the last failed attempt or probe
	NextProbe time.Time `json:"nextProbe,omitzero"` // when the next probe is due; zero if there is none, or one runs

	// Attempts. If the item was at fault, its attempt is in Succeeded.
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`
}

// Processors returns the state of the processors, in order of priority, read together.
func (f *engine[In, Out]) Processors() []ProcessorStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []ProcessorStatus
	for _, m := range f.board.members {
		s := m.ProcessorStatus
		s.Since, s.LastErr = f.base.Add(m.since), guard.Text(m.lastErr)
		if !m.Healthy && !m.probing && f.board.wait >= 0 && !f.closed {
			s.NextProbe = f.base.Add(m.due)
		}
		all = append(all, s)
	}
	return all
}
