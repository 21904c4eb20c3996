package statuspage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

// The first frame looks at maxFirst signals, each later one at maxNew.
const maxFirst, maxNew, maxFamilies, maxHeld = 20_000, 500, 50, 100

// signalsSource shows the newest signals of a sink. It remembers its rows, so that each frame
// looks only at new signals.
type signalsSource struct {
	page     *Page
	sink     *entry[*core.Sink]
	query    query
	last     uint64 // newest Seq looked at
	raised   uint64 // SinkStats.Raised at that time
	started  bool
	skipped  uint64
	held     []core.Signal // the oldest held signals
	upTo     uint64        // up to this Seq, held has all held signals
	exact    bool          // in the last frame, held had all held signals
	tail     []signalRow
	families map[string]int
}

type signalsFrame struct {
	Sink     string      `json:"sink"`
	Signals  []signalRow `json:"signals"` // oldest first
	Last     uint64      `json:"last"`    // the next request passes it as the parameter after
	Skipped  uint64      `json:"skipped"` // signals that came too fast to look at
	Families []familyRow `json:"families"`
	Held     []heldRow   `json:"held"` // oldest first
	AllHeld  int         `json:"allHeld"`
}

type familyRow struct {
	Family string `json:"family"` // the name up to the first dot or colon; "": all others
	Count  int    `json:"count"`
}

type heldRow struct {
	signalRow
	Gates []gateRow `json:"gates"` // gates that the signal closes
}

type gateRow struct {
	Coordinator string          `json:"coordinator"`
	Kind        core.ReasonKind `json:"kind"`
	Lane        string          `json:"lane,omitempty"`
	Class       string          `json:"class,omitempty"`
	Pattern     string          `json:"pattern"`
	Closed      bool            `json:"closed"`
	Matches     uint64          `json:"matches"`          // 0: the pattern may be misspelt
	Signal      *signalRow      `json:"signal,omitempty"` // that closes it
	pattern     string          // before Redact
}

func (v *signalsSource) frame(context.Context, effort) (any, error) {
	stats := v.sink.is.Stats()
	before, after := v.last, v.from(stats.Raised)
	var found, fresh []core.Signal
	for s := range v.sink.is.Sense(core.Query{AfterSeq: after}) {
		if v.last = s.Seq; s.Held {
			fresh = append(fresh, s)
		}
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
	v.findHeld(stats, fresh, before != after)
	gates := v.gates()
	held := []heldRow{}
	for _, s := range v.held {
		closes := slices.DeleteFunc(slices.Clone(gates), func(g gateRow) bool { return !s.Matches(g.pattern) })
		held = append(held, heldRow{v.page.signalRow(s), append([]gateRow{}, closes...)})
	}
	families := []familyRow{}
	for _, name := range slices.Sorted(maps.Keys(v.families)) {
		families = append(families, familyRow{name, v.families[name]})
	}
	slices.SortStableFunc(families, func(a, b familyRow) int { return cmp.Compare(b.Count, a.Count) })
	return signalsFrame{v.sink.id, append([]signalRow{}, v.tail...), v.last, v.skipped, families, held, stats.Held}, nil
}

// findHeld renews held. If no signal was skipped, and the sink has as many held signals as
// are known or fresh, these are all. Otherwise findHeld checks which known signals are still
// held, and searches the signals that it has not seen yet.
func (v *signalsSource) findHeld(stats core.SinkStats, fresh []core.Signal, skipped bool) {
	if all := slices.Concat(v.held, fresh); v.exact && !skipped && len(all) == stats.Held && len(all) <= maxHeld {
		v.held, v.upTo = all, max(v.upTo, v.last)
		return
	}
	if stats.Held > maxHeld || stats.Stored < 1000*len(v.held) { // looking at all is cheaper
		v.held, v.upTo = nil, 0
	}
	v.held = slices.DeleteFunc(v.held, func(known core.Signal) bool {
		for s := range v.sink.is.Sense(core.Query{AfterSeq: known.Seq - 1}) {
			return s.Seq != known.Seq
		}
		return true
	})
	for s := range v.sink.is.Sense(core.Query{AfterSeq: v.upTo}) {
		if len(v.held) >= min(stats.Held, maxHeld) {
			break
		}
		if v.upTo = s.Seq; s.Held {
			v.held = append(v.held, s)
		}
	}
	if v.exact = len(v.held) == stats.Held; v.exact {
		v.upTo = max(v.upTo, v.last)
	}
}

// from returns the Seq after which the next frame looks. It counts the signals that this
// skips, except in the first frame, which looks only at the newest.
func (v *signalsSource) from(raised uint64) uint64 {
	if !v.started {
		v.started, v.raised = true, raised
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

// gates returns the closed gates of the coordinators that use the sink.
func (v *signalsSource) gates() (gates []gateRow) {
	for _, c := range v.page.coordinators {
		if sinkOf(c) == v.sink.is {
			gates = append(gates, v.page.gates(c)...)
		}
	}
	return slices.DeleteFunc(gates, func(g gateRow) bool { return !g.Closed })
}

// sinkOf returns the sink of a coordinator, or nil.
func sinkOf(c *coordinator) *core.Sink {
	if on, ok := c.is.(interface{ Sink() *core.Sink }); ok {
		return on.Sink()
	}
	return nil
}

// gates returns the gates of a coordinator.
func (p *Page) gates(c *coordinator) []gateRow {
	rows := []gateRow{}
	if gated, ok := c.is.(interface{ Gates() []core.GateStatus }); ok {
		for _, g := range gated.Gates() {
			row := gateRow{Coordinator: c.id, Kind: g.Kind, Lane: cut(g.Lane), Class: cut(g.Class), Pattern: p.redacted(g.Pattern), Closed: g.Closed, Matches: g.Matches, pattern: g.Pattern}
			if g.Closed {
				row.Signal = new(p.signalRow(g.Signal))
			}
			rows = append(rows, row)
		}
	}
	return rows
}
