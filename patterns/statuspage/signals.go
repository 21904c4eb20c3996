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

// signalsSource shows the newest signals of a sink. It remembers them, so that each frame
// only looks at those that are new.
type signalsSource struct {
	page     *Page
	sink     *sink
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
	Family string `json:"family"` // the name up to the first dot or colon
	Count  int    `json:"count"`
}

type heldRow struct {
	signalRow
	Gates []gateRow `json:"gates"` // that it closes
}

type gateRow struct {
	Coordinator string          `json:"coordinator,omitempty"`
	Kind        core.ReasonKind `json:"kind"`
	Lane        string          `json:"lane,omitempty"`
	Pattern     string          `json:"pattern"`
	Closed      bool            `json:"closed"`
	Signal      *signalRow      `json:"signal,omitempty"` // that closes it
}

func (v *signalsSource) frame(context.Context, effort) (any, error) {
	stats := v.sink.Stats()
	after := v.from(stats.Raised)
	from := after
	if stats.Held > 0 {
		from = 0 // a held fact may be of any age
	}
	shown := signalsFrame{Sink: v.sink.id, Held: []heldRow{}, Families: []familyRow{}, AllHeld: stats.Held}
	gates := v.gates()
	var found []core.Signal
	for s := range v.sink.Sense(core.Query{AfterSeq: from}) {
		if s.Held && len(shown.Held) < maxHeld {
			shown.Held = append(shown.Held, v.held(s, gates))
		}
		if s.Seq > after {
			v.last = s.Seq
			v.count(s.Name)
			if (v.query.name == "" || s.Matches(v.query.name)) && (v.query.key == "" || s.Key == v.query.key) {
				found = append(found, s)
			}
		}
	}
	v.raised = v.sink.Stats().Raised
	for _, s := range found[max(0, len(found)-v.query.limit):] {
		v.tail = append(v.tail, v.page.signalRow(s))
	}
	v.tail = slices.Delete(v.tail, 0, max(0, len(v.tail)-v.query.limit))
	shown.Signals, shown.Last, shown.Skipped = append([]signalRow{}, v.tail...), v.last, v.skipped
	for _, name := range slices.Sorted(maps.Keys(v.families)) {
		shown.Families = append(shown.Families, familyRow{name, v.families[name]})
	}
	slices.SortStableFunc(shown.Families, func(a, b familyRow) int { return cmp.Compare(b.Count, a.Count) })
	return shown, nil
}

// from is the Seq after which the next frame looks, and counts what that skips.
func (v *signalsSource) from(raised uint64) uint64 {
	n, most := raised-v.raised, uint64(maxNew)
	if !v.started {
		n, most, v.started = raised-min(raised, v.last), maxFirst, true
	}
	if n <= most {
		return v.last
	}
	v.skipped += n - most
	return v.last + n - most
}

func (v *signalsSource) count(name string) {
	family := name
	if i := strings.IndexAny(name, ".:"); i >= 0 {
		family = name[:i]
	}
	family = v.page.redacted(family)
	if v.families == nil {
		v.families = map[string]int{}
	}
	if _, known := v.families[family]; !known && len(v.families) >= maxFamilies {
		family = "" // all others
	}
	v.families[family]++
}

// gates are those that signals of the sink close.
func (v *signalsSource) gates() (gates []gateRow) {
	for _, c := range v.page.coordinators {
		on, ok := c.Inspector.(interface{ Sink() *core.Sink })
		if !ok || on.Sink() != v.sink.Sink {
			continue
		}
		for _, g := range gatesOf(c) {
			if g.Closed {
				gates = append(gates, gateRow{Coordinator: c.id, Kind: g.Kind, Lane: g.Lane, Pattern: g.Pattern, Closed: true})
			}
		}
	}
	return gates
}

func (v *signalsSource) held(s core.Signal, gates []gateRow) heldRow {
	row := heldRow{v.page.signalRow(s), []gateRow{}}
	for _, g := range gates {
		if s.Matches(g.Pattern) {
			row.Gates = append(row.Gates, g)
		}
	}
	return row
}

func gatesOf(c *coordinator) []core.GateStatus {
	if gated, ok := c.Inspector.(interface{ Gates() []core.GateStatus }); ok {
		return gated.Gates()
	}
	return nil
}
