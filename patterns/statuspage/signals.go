package statuspage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

const (
	maxFirst    = 20_000 // signals that the first frame looks at
	maxNew      = 500    // and each later one
	maxFamilies = 50
	maxHeld     = 100
)

// signalsSource shows the newest signals of a sink. It remembers its rows, so that each frame
// only looks at those that are new.
type signalsSource struct {
	page     *Page
	sink     *entry[*core.Sink]
	query    query
	last     uint64 // newest Seq looked at
	raised   uint64 // as the sink said then
	started  bool
	skipped  uint64
	tail     []signalRow
	families map[string]int
}

type signalsFrame struct {
	Sink     string      `json:"sink"`
	Signals  []signalRow `json:"signals"` // oldest first
	Last     uint64      `json:"last"`    // to pass as after
	Skipped  uint64      `json:"skipped"` // that were too many to look at
	Families []familyRow `json:"families"`
	Held     []heldRow   `json:"held"` // oldest first
	AllHeld  int         `json:"allHeld"`
}

type familyRow struct {
	Family string `json:"family"` // the name up to the first dot or colon; "" all others
	Count  int    `json:"count"`
}

type heldRow struct {
	signalRow
	Gates []gateRow `json:"gates"` // gates that it closes
}

type gateRow struct {
	Coordinator string          `json:"coordinator"`
	Kind        core.ReasonKind `json:"kind"`
	Lane        string          `json:"lane,omitempty"`
	Pattern     string          `json:"pattern"`
	Closed      bool            `json:"closed"`
	Signal      *signalRow      `json:"signal,omitempty"` // that closes it
}

func (v *signalsSource) frame(context.Context, effort) (any, error) {
	stats := v.sink.is.Stats()
	after := v.from(stats.Raised)
	from := after
	if stats.Held > 0 {
		from = 0 // a held fact may be of any age
	}
	gates := v.gates()
	held := []heldRow{}
	var found []core.Signal
	for s := range v.sink.is.Sense(core.Query{AfterSeq: from}) {
		if s.Held && len(held) < maxHeld {
			closes := slices.DeleteFunc(slices.Clone(gates), func(g gateRow) bool { return !s.Matches(g.Pattern) })
			held = append(held, heldRow{v.page.signalRow(s), append([]gateRow{}, closes...)})
		}
		if s.Seq <= after {
			continue
		}
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
	families := []familyRow{}
	for _, name := range slices.Sorted(maps.Keys(v.families)) {
		families = append(families, familyRow{name, v.families[name]})
	}
	slices.SortStableFunc(families, func(a, b familyRow) int { return cmp.Compare(b.Count, a.Count) })
	return signalsFrame{v.sink.id, append([]signalRow{}, v.tail...), v.last, v.skipped, families, held, stats.Held}, nil
}

// from is the Seq after which the next frame looks. It counts what that skips.
func (v *signalsSource) from(raised uint64) uint64 {
	n, most := raised-v.raised, uint64(maxNew)
	if !v.started {
		n, most, v.started = raised-min(raised, v.last), maxFirst, true
	}
	skip := n - min(n, most)
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

// gates are the closed ones of the coordinators that use the sink.
func (v *signalsSource) gates() (gates []gateRow) {
	for _, c := range v.page.coordinators {
		if sinkOf(c) == v.sink.is {
			gates = append(gates, v.page.gates(c)...)
		}
	}
	return slices.DeleteFunc(gates, func(g gateRow) bool { return !g.Closed })
}

// sinkOf is the sink of a coordinator, or nil.
func sinkOf(c *coordinator) *core.Sink {
	if on, ok := c.is.(interface{ Sink() *core.Sink }); ok {
		return on.Sink()
	}
	return nil
}

// gates are those of a coordinator.
func (p *Page) gates(c *coordinator) []gateRow {
	rows := []gateRow{}
	if gated, ok := c.is.(interface{ Gates() []core.GateStatus }); ok {
		for _, g := range gated.Gates() {
			row := gateRow{Coordinator: c.id, Kind: g.Kind, Lane: g.Lane, Pattern: g.Pattern, Closed: g.Closed}
			if g.Closed {
				signal := p.signalRow(g.Signal)
				row.Signal = &signal
			}
			rows = append(rows, row)
		}
	}
	return rows
}
