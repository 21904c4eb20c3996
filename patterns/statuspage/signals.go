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
	held     []core.Signal // the oldest ones that are held
	allHeld  int           // how many there were
	upTo     uint64        // Seq up to which held has all
	tail     []signalRow
	families map[string]int
}

type signalsFrame struct {
	Sink     string      `json:"sink"`
	Signals  []signalRow `json:"signals"` // oldest first
	Last     uint64      `json:"last"`    // to pass as after
	Skipped  uint64      `json:"skipped"` // that came too fast to look at
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

// findHeld renews held. If no signal was skipped, and the numbers of the last frame and of
// the new ones add up, none was released. Otherwise it looks whether the known ones are there,
// and for others where it has not looked.
func (v *signalsSource) findHeld(stats core.SinkStats, fresh []core.Signal, skipped bool) {
	isEnough := func() bool { return len(v.held) >= min(v.allHeld, maxHeld) }
	exact := !skipped && isEnough() && stats.Held == v.allHeld+len(fresh)
	if v.allHeld = stats.Held; exact {
		v.held = append(v.held, fresh...)
		v.held = v.held[:min(len(v.held), maxHeld)]
	} else if stats.Stored < 1000*len(v.held) { // to look at all is cheaper
		v.held, v.upTo = nil, 0
	} else {
		v.held = slices.DeleteFunc(v.held, func(known core.Signal) bool {
			for s := range v.sink.is.Sense(core.Query{AfterSeq: known.Seq - 1}) {
				return s.Seq != known.Seq
			}
			return true
		})
	}
	if !isEnough() {
		for s := range v.sink.is.Sense(core.Query{AfterSeq: v.upTo}) {
			if v.upTo = s.Seq; s.Held {
				v.held = append(v.held, s)
			}
			if isEnough() {
				break
			}
		}
	}
	if n := len(v.held); n == stats.Held { // these are all
		v.upTo = max(v.upTo, stats.Raised)
	} else if n > 0 {
		v.upTo = max(v.upTo, v.held[n-1].Seq)
	}
}

// from is the Seq after which the next frame looks. It counts what that skips, except in the
// first frame: that looks at the newest.
func (v *signalsSource) from(raised uint64) uint64 {
	if !v.started {
		v.started = true
		n := raised - min(raised, v.last)
		return v.last + n - min(n, maxFirst)
	}
	n := raised - v.raised
	skip := n - min(n, maxNew)
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
			row := gateRow{Coordinator: c.id, Kind: g.Kind, Lane: cut(g.Lane), Pattern: p.redacted(g.Pattern), Closed: g.Closed, pattern: g.Pattern}
			if g.Closed {
				signal := p.signalRow(g.Signal)
				row.Signal = &signal
			}
			rows = append(rows, row)
		}
	}
	return rows
}
