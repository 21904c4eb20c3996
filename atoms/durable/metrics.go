package durable

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// An Inspection is what a status page and metrics see of a queue; see [Queue.Inspect].
type Inspection interface {
	inspect.StoredQueue
	inspect.Items
	// Stats asks the store at most every two seconds, for at most one second, and does not count items that have
	// ended. Until there is an answer, and while the store fails, Lanes are those of the last one.
	Stats() Metrics
}

// Metrics are numbers of a queue. Lanes are those of all processes; the others are of this process, since it made the
// queue. Ended <= Claimed.
type Metrics struct {
	Lanes  []LaneStats `json:"lanes"`         // with items that have not ended, by name
	Read   time.Time   `json:"read,omitzero"` // when the lanes were read
	Errors uint64      `json:"errors"`        // how often they could not be read

	Claimed uint64 `json:"claimed"` // items
	Ended   uint64 `json:"ended"`   // claims whose ends were recorded
	Fenced  uint64 `json:"fenced"`  // claims whose ends were refused
	Lost    uint64 `json:"lost"`    // how often this process has lost its lease

	// ClaimLatency is the time from when an item can run until it is claimed, by the clock of the store; EndLatency that from the end
	// of a body until it is recorded. They are means, in which the last ones weigh most.
	ClaimLatency time.Duration `json:"claimLatency"`
	EndLatency   time.Duration `json:"endLatency"`
}

// LogValue groups the numbers by their JSON names.
func (m Metrics) LogValue() slog.Value { return core.StatsValue(m) }

// String is the JSON form.
func (m Metrics) String() string { return core.StatsString(m) }

// LaneStats count the items of a lane that have not ended, in all classes. Summed over the lanes,
//
//	Blocked + Ready + Delayed + Running + Retry + Halted = Items - Done - Dead - Cancelled of [Stats]
type LaneStats struct {
	Name    string `json:"name"`
	Blocked Waits  `json:"blocked"`
	Ready   Waits  `json:"ready"`
	Delayed Waits  `json:"delayed"`
	Running Waits  `json:"running"`
	Retry   Waits  `json:"retry"`
	Halted  Waits  `json:"halted"`
}

// LogValue groups the counters by their JSON names.
func (s LaneStats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s LaneStats) String() string { return core.StatsString(s) }

// Waits are the items of a lane that are in a state.
type Waits struct {
	Items  int           `json:"items"`
	Oldest time.Duration `json:"oldest"` // of the oldest one, since it was enqueued
}

// A Depth says how many items are in a state and in a place; see [Insert.Place].
type Depth struct {
	Place   string
	State   State // Blocked, Ready, Running, Retry or Halted
	Delayed bool  // State is Ready, and RunAt has not come
	Waits
}

// metrics are what a queue counts for [Metrics].
type metrics struct {
	claimed, ended, lost atomic.Uint64
	claims, ends         mean

	mu     sync.Mutex
	asked  time.Time
	lanes  []LaneStats
	read   time.Time
	failed uint64
}

const metricsEvery = 2 * time.Second

// Stats is as in [Inspection].
func (q stored) Stats() Metrics {
	m := &q.queue.metrics
	m.mu.Lock()
	now := time.Now()
	due := m.asked.IsZero() || now.Sub(m.asked) >= metricsEvery
	if due {
		m.asked = now
	}
	m.mu.Unlock()
	if due {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		depths, err := q.queue.store.Depths(ctx, q.queue.opts.Name)
		cancel()
		m.mu.Lock()
		if err == nil {
			m.lanes, m.read = laneStats(depths), now
		} else {
			m.failed++
		}
		m.mu.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return Metrics{slices.Clone(m.lanes), m.read, m.failed, m.claimed.Load(), m.ended.Load(), q.queue.fenced.Load(), m.lost.Load(),
		time.Duration(m.claims.ns.Load()), time.Duration(m.ends.ns.Load())}
}

func laneStats(depths []Depth) (lanes []LaneStats) {
	for _, d := range depths {
		var i Item
		i.SetPlace(d.Place)
		n := slices.IndexFunc(lanes, func(l LaneStats) bool { return l.Name == i.Lane })
		if n < 0 {
			n = len(lanes)
			lanes = append(lanes, LaneStats{Name: i.Lane})
		}
		l := &lanes[n]
		w := map[State]*Waits{Blocked: &l.Blocked, Ready: &l.Ready, Running: &l.Running, Retry: &l.Retry, Halted: &l.Halted}[d.State]
		if d.Delayed {
			w = &l.Delayed
		}
		w.Items, w.Oldest = w.Items+d.Items, max(w.Oldest, d.Oldest)
	}
	slices.SortFunc(lanes, func(a, b LaneStats) int { return cmp.Compare(a.Name, b.Name) })
	return lanes
}
