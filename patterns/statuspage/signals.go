package statuspage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The first frame looks at maxFirst signals, each later one at maxNew.
const maxFirst, maxNew, maxFamilies, maxHeld = 20_000, 500, 50, 100

// signalsSource shows the newest signals of a sink. It remembers its rows, so that each frame
// looks only at new signals.
type signalsSource struct {
	page     *Page
	sink     *entry[*signals.Sink]
	query    query
	last     uint64 // newest Seq looked at
	raised   uint64 // SinkStats.Raised at that time
	skipped  uint64 // signals that came too fast to look at
	tail     []signalRow
	families map[string]int // nil before the first frame; by the name up to the first dot or colon; "": all others
}

type gateRow struct {
	Coordinator string `json:"coordinator"`
	core.GateStatus
	Signal  *signalRow `json:"signal,omitempty"` // that closes it
	pattern string     // before Redact
}

func (p *Page) signals(q query) (source, error) {
	s, err := choose(p.sinks, "sink", q.of)
	v := &signalsSource{page: p, sink: s, query: q, last: uint64(q.After)}
	return v.frame, err
}

func (v *signalsSource) frame(context.Context, effort) (any, error) {
	stats := v.sink.is.Stats()
	var found []signals.Signal
	for s := range v.sink.is.Sense(signals.Query{AfterSeq: v.from(stats.Raised)}) {
		v.last = s.Seq
		v.count(s.Name)
		if (v.query.Pattern == "" || s.Matches(v.query.Pattern)) && (v.query.Key == "" || s.Key == v.query.Key) {
			found = append(found, s)
		}
	}
	v.raised = v.sink.is.Stats().Raised
	for _, s := range found[max(0, len(found)-v.query.Limit):] {
		v.tail = append(v.tail, v.page.signalRow(s))
	}
	v.tail = slices.Delete(v.tail, 0, max(0, len(v.tail)-v.query.Limit))
	families, largest := []object{}, func(a, b string) int { return cmp.Or(v.families[b]-v.families[a], cmp.Compare(a, b)) }
	for _, name := range slices.SortedFunc(maps.Keys(v.families), largest) {
		families = append(families, object{"family": name, "count": v.families[name]})
	}
	return object{
		"sink": v.sink.id, "signals": append([]signalRow{}, v.tail...), "last": v.last, "skipped": v.skipped,
		"families": families, "held": v.held(), "allHeld": stats.Held,
	}, nil
}

// held returns the oldest held signals, with the gates that they close.
func (v *signalsSource) held() []signalRow {
	var gates []gateRow
	for _, c := range v.page.coordinators {
		if sinkOf(c) == v.sink.is {
			gates = append(gates, v.page.gates(c)...)
		}
	}
	rows := []signalRow{}
	for s := range v.sink.is.Sense(signals.Query{Held: true}) {
		if len(rows) == maxHeld {
			break
		}
		row := v.page.signalRow(s)
		row.Gates = append([]gateRow{}, gates...)
		row.Gates = slices.DeleteFunc(row.Gates, func(g gateRow) bool { return !g.Closed || !s.Matches(g.pattern) })
		rows = append(rows, row)
	}
	return rows
}

// from returns the Seq after which the next frame looks. It counts the signals that this
// skips, except in the first frame, which looks only at the newest.
func (v *signalsSource) from(raised uint64) uint64 {
	if v.families == nil {
		if v.families, v.raised = map[string]int{}, raised; v.last > raised { // it is of another sink, before a restart
			v.last = 0
		}
		return max(v.last, raised-min(raised, maxFirst))
	}
	skip := raised - v.raised
	skip -= min(skip, maxNew)
	v.skipped += skip
	return v.last + skip
}

func (v *signalsSource) count(name string) {
	name = v.page.redacted(name)
	if i := strings.IndexAny(name, ".:"); i >= 0 {
		name = name[:i]
	}
	if _, known := v.families[name]; !known && len(v.families) >= maxFamilies {
		name = ""
	}
	v.families[name]++
}

// sinkOf returns the sink of a coordinator, or nil.
func sinkOf(c *coordinator) *signals.Sink {
	if on, ok := c.is.(interface{ Sink() *signals.Sink }); ok {
		return on.Sink()
	}
	return nil
}

// gates returns the gates of a coordinator.
func (p *Page) gates(c *coordinator) []gateRow {
	rows := []gateRow{}
	if gated, ok := c.is.(interface{ Gates() []core.GateStatus }); ok {
		for _, g := range gated.Gates() {
			row := gateRow{Coordinator: c.id, GateStatus: g, pattern: g.Pattern}
			row.Lane, row.Class, row.Pattern = cut(g.Lane), cut(g.Class), p.redacted(g.Pattern)
			if g.Closed {
				row.Signal = new(p.signalRow(g.Signal))
			}
			rows = append(rows, row)
		}
	}
	return rows
}
