package statuspage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

type sinkRow struct {
	Name string `json:"name"`
	signals.SinkStats
	MaxAgeMS int64    `json:"maxAgeMs"`
	Can      []string `json:"can"` // actions
}

type coordinatorRow struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Error string `json:"error,omitempty"` // error of a panic; then the other fields are missing
	Sink  string `json:"sink,omitempty"`  // the sink of its signals, if the page shows this sink
	core.Stats
	Oldest     string    `json:"oldest,omitempty"` // when the item that waits longest was enqueued
	Gates      []gateRow `json:"gates"`
	Throughput []int     `json:"throughput"` // operations that ended in each second, oldest first
	Can        []string  `json:"can"`
}

type queueRow struct {
	Name string `json:"name"`
	inspect.QueueStatus
	OldestMS int64    `json:"oldestMs"`
	Details  bool     `json:"details"` // it has the views item and count
	Error    string   `json:"error,omitempty"`
	Can      []string `json:"can"`
}

type scheduleRow struct {
	Group string `json:"group"`
	inspect.ScheduleStatus
	Error   string      `json:"error,omitempty"` // error of a panic of the group; then the other fields are missing
	Can     []string    `json:"can"`
	Firings []firingRow `json:"firings,omitzero"` // of the view of a schedule: the newest first
}

// more returns the fields of a view that make no frame when only they change: in the overview, what the Go runtime says
// about the program.
func more(view string) []byte {
	if view != "overview" {
		return nil
	}
	s := []metrics.Sample{
		{Name: "/sched/goroutines:goroutines"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"},
	}
	metrics.Read(s)
	percent := 100 * s[3].Value.Float64() / max(s[4].Value.Float64(), 1e-9) // since the start, as of the last cycle
	body, _ := json.Marshal(object{
		"goroutines": s[0].Value.Uint64(), "heapBytes": s[1].Value.Uint64(), "gcs": s[2].Value.Uint64(), "gcPercent": percent,
	})
	return append(append([]byte(`"program":`), body...), ',')
}

// overview shows everything in short.
func (p *Page) overview(ctx context.Context, e effort) (any, error) {
	sinks, coordinators, queues, schedules := []sinkRow{}, []coordinatorRow{}, []queueRow{}, []scheduleRow{}
	for _, s := range p.sinks {
		stats := s.is.Stats()
		sinks = append(sinks, sinkRow{s.id, stats, stats.MaxAge.Milliseconds(), p.can("retract")})
	}
	for _, c := range p.coordinators {
		row := coordinatorRow{ID: c.id, Name: c.id, Gates: []gateRow{}, Throughput: []int{}, Can: []string{}}
		row.Error = p.guarded(func() { p.fill(&row, c) })
		coordinators = append(coordinators, row)
	}
	for _, q := range p.queues {
		q.is.refresh()
	}
	deadline := time.Now().Add(e.wait)
	for _, q := range p.queues {
		status, text := q.is.answer(ctx, time.Until(deadline))
		status.Note = p.redacted(status.Note) // it may have keys
		row := queueRow{Name: q.id, QueueStatus: status, OldestMS: status.Oldest.Milliseconds(), Error: text, Can: p.can("again", "discard", "pauseQueue", "resumeQueue")}
		if _, row.Details = q.is.StoredQueue.(inspect.Items); row.Details && len(row.Can) > 0 {
			row.Can = append(row.Can, "againAll", "discardAll", "cancelAll")
		}
		row.Counts = append([]inspect.StateCount{}, row.Counts...)
		for i := range row.Counts {
			row.Counts[i].State = cut(row.Counts[i].State)
		}
		queues = append(queues, row)
	}
	for _, g := range p.schedules {
		var list []inspect.ScheduleStatus
		if err := p.guarded(func() { list = g.is.Status() }); err != "" {
			schedules = append(schedules, scheduleRow{Group: g.id, Error: err, Can: []string{}})
		}
		for _, s := range list {
			schedules = append(schedules, p.scheduleRow(g, s))
		}
	}
	return object{
		"title": p.opts.Title, "readOnly": p.opts.Allow == nil,
		"sinks": sinks, "coordinators": coordinators, "queues": queues, "schedules": schedules,
	}, nil
}

// fill writes the state of a coordinator into its row.
func (p *Page) fill(row *coordinatorRow, c *coordinator) {
	row.Name, row.Stats, row.Gates = cut(c.is.Name()), c.is.Stats(), p.gates(c)
	row.Lanes, row.Classes = slices.Clone(row.Lanes), slices.Clone(row.Classes)
	for i := range row.Lanes {
		row.Lanes[i].Name = cut(row.Lanes[i].Name)
	}
	for i := range row.Classes {
		row.Classes[i].Name = cut(row.Classes[i].Name)
	}
	row.Throughput, row.Oldest = p.sampler.shown(c)
	if i := slices.IndexFunc(p.sinks, func(s *entry[*signals.Sink]) bool { return s.is == sinkOf(c) }); i >= 0 {
		row.Sink = p.sinks[i].id
	}
	if _, ok := c.is.(inspect.Actions); ok {
		row.Can = p.can("cancel", "evict", "pause", "resume", "limit")
	}
}

// guarded calls code of the program, and returns the text of a panic, or "". The row of that part shows it, and the other
// rows stay.
func (p *Page) guarded(ask func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = p.redacted(fmt.Sprintf("statuspage: the program panicked: %v", v))
		}
	}()
	ask()
	return ""
}

// tried calls code of the program, and returns its error, or one with the text of a panic.
func (p *Page) tried(do func() error) (err error) {
	if panicked := p.guarded(func() { err = do() }); panicked != "" {
		return failure{code: http.StatusInternalServerError, text: panicked}
	}
	return err
}

// can returns the actions, or none if the page is read-only.
func (p *Page) can(actions ...string) []string {
	if p.opts.Allow == nil {
		return []string{}
	}
	return actions
}
