package statuspage

import (
	"context"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// overviewSource shows everything in short.
type overviewSource struct{ page *Page }

type overviewFrame struct {
	Title        string           `json:"title"`
	ReadOnly     bool             `json:"readOnly"`
	Sinks        []sinkRow        `json:"sinks"`
	Coordinators []coordinatorRow `json:"coordinators"`
	Queues       []queueRow       `json:"queues"`
	Schedules    []scheduleRow    `json:"schedules"`
}

type sinkRow struct {
	Name     string   `json:"name"`
	Held     int      `json:"held"`
	Stored   int      `json:"stored"`
	Kept     int      `json:"kept"`
	Capacity int      `json:"capacity"`
	MaxAgeMS int64    `json:"maxAgeMs"`
	Raised   uint64   `json:"raised"`
	Evicted  uint64   `json:"evicted"`
	Expired  uint64   `json:"expired"`
	Blocked  uint64   `json:"blocked"`
	Panics   uint64   `json:"panics"`
	Can      []string `json:"can"`
}

type coordinatorRow struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	core.Stats
	Oldest     string    `json:"oldest,omitempty"` // when the item was enqueued that waits longest
	Gates      []gateRow `json:"gates"`
	Throughput []int     `json:"throughput"` // operations that ended in each second, oldest first
	Can        []string  `json:"can"`
}

type queueRow struct {
	Name     string            `json:"name"`
	Counts   []core.StateCount `json:"counts"`
	OldestMS int64             `json:"oldestMs"`
	Nodes    int               `json:"nodes"`
	Paused   bool              `json:"paused"`
	Error    string            `json:"error,omitempty"`
	Can      []string          `json:"can"`
}

type scheduleRow struct {
	Group  string   `json:"group"`
	Name   string   `json:"name"`
	When   string   `json:"when"`
	Last   string   `json:"last,omitempty"`
	Next   string   `json:"next,omitempty"`
	Paused bool     `json:"paused"`
	Can    []string `json:"can"`
}

func (v overviewSource) frame(ctx context.Context, e effort) (any, error) {
	p := v.page
	shown := overviewFrame{
		Title: p.opts.Title, ReadOnly: p.opts.Allow == nil,
		Sinks: []sinkRow{}, Coordinators: []coordinatorRow{}, Queues: []queueRow{}, Schedules: []scheduleRow{},
	}
	for _, s := range p.sinks {
		st := s.Stats()
		shown.Sinks = append(shown.Sinks, sinkRow{
			s.id, st.Held, st.Stored, st.Kept, st.Capacity, st.MaxAge.Milliseconds(), st.Raised, st.Evicted, st.Expired, st.Blocked, st.Panics, p.can("retract"),
		})
	}
	for _, c := range p.coordinators {
		row := coordinatorRow{ID: c.id, Name: c.Name(), Stats: c.Stats(), Gates: []gateRow{}, Can: []string{}}
		row.Throughput, row.Oldest = p.sampler.shown(c)
		if row.Pending == 0 {
			row.Oldest = ""
		}
		for _, g := range gatesOf(c) {
			gate := gateRow{Kind: g.Kind, Lane: g.Lane, Pattern: g.Pattern, Closed: g.Closed}
			if g.Closed {
				signal := p.signalRow(g.Signal)
				gate.Signal = &signal
			}
			row.Gates = append(row.Gates, gate)
		}
		if _, ok := c.Inspector.(core.Controller); ok {
			row.Can = p.can("cancel", "evict", "pause", "resume", "limit")
		}
		shown.Coordinators = append(shown.Coordinators, row)
	}
	deadline := time.Now().Add(e.wait)
	for _, q := range p.queues {
		q.refresh(p.ctx)
	}
	for _, q := range p.queues {
		row := queueRow{Name: q.id, Counts: []core.StateCount{}, Can: p.can("again", "discard", "pauseQueue", "resumeQueue")}
		status, err := q.status(ctx, time.Until(deadline))
		row.Counts = append(row.Counts, status.Counts...)
		row.OldestMS, row.Nodes, row.Paused = status.Oldest.Milliseconds(), status.Nodes, status.Paused
		if err != nil {
			row.Error = p.redacted(err.Error())
		}
		shown.Queues = append(shown.Queues, row)
	}
	for _, g := range p.schedules {
		for _, s := range g.Status() {
			shown.Schedules = append(shown.Schedules, scheduleRow{
				g.id, s.Name, s.When, stamp(s.Last), stamp(s.Next), s.Paused, p.can("pauseSchedule", "resumeSchedule", "runNow"),
			})
		}
	}
	return shown, nil
}

// can are the actions that Allow may permit.
func (p *Page) can(actions ...string) []string {
	if p.opts.Allow == nil {
		return []string{}
	}
	return actions
}
