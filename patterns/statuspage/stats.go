package statuspage

import (
	"log/slog"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Stats count requests for actions by what became of them. They always add up:
//
//	Requests = Acted + Denied + ReadOnly + CrossSite + Unreadable
//
// Requests that View refuses, or the rule for hosts, are not among them.
type Stats struct {
	Requests   uint64 `json:"requests"`
	Acted      uint64 `json:"acted"`      // allowed: the action was done, or failed
	Denied     uint64 `json:"denied"`     // by Allow
	ReadOnly   uint64 `json:"readOnly"`   // the page has no Allow
	CrossSite  uint64 `json:"crossSite"`  // a browser sent it for another site
	Unreadable uint64 `json:"unreadable"` // its content type or its body was not that of an action, or did not come in time
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }

// Stats returns the counters, all read at the same moment.
func (p *Page) Stats() Stats {
	p.tally.mu.Lock()
	defer p.tally.mu.Unlock()
	return p.tally.stats
}

// tally counts requests for actions.
type tally struct {
	mu    sync.Mutex
	stats Stats
	told  time.Time // when SignalRefused was raised last
}

// count counts a request in one of the fields of stats. It reports whether that is the first
// refusal for a second.
func (t *tally) count(field *uint64) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Requests++
	*field++
	if first = field == &t.stats.Denied && time.Since(t.told) >= time.Second; first {
		t.told = time.Now()
	}
	return first
}
