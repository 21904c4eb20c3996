package statuspage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// How much of an operation is shown.
const (
	maxSignals  = 100
	maxChildren = 50
)

// operationSource shows one operation.
type operationSource struct {
	page        *Page
	coordinator *coordinator
	id          core.OperationID
	search      []search
	children    []child
}

// A search walks the operations of a coordinator in search of children.
type search struct {
	coordinator *coordinator
	after       core.OperationID
}

type child struct {
	coordinator *coordinator
	id          core.OperationID
}

type operationFrame struct {
	Operation   operationRow   `json:"operation"`
	Explanation explanation    `json:"explanation"`
	Signals     []timedSignal  `json:"signals"` // the newest
	Values      []valueRow     `json:"values"`
	Cause       *signalRow     `json:"cause,omitempty"`
	Parent      *operationRow  `json:"parent,omitempty"`
	Children    []operationRow `json:"children"`
	Searching   bool           `json:"searching"` // for more children
}

type explanation struct {
	Text    string    `json:"text"`
	Reasons []waitRow `json:"reasons"`
}

type timedSignal struct {
	signalRow
	OffsetMS int64 `json:"offsetMs"` // since it was enqueued
}

type valueRow struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

func (o *operationSource) frame(_ context.Context, e effort) (any, error) {
	p := o.page
	s, ok := o.coordinator.Lookup(o.id)
	if !ok {
		return nil, failure{http.StatusNotFound, fmt.Sprintf("there is no operation %d of %q, or no longer", o.id, o.coordinator.id)}
	}
	shown := operationFrame{
		Operation: p.operationRow(o.coordinator, &s),
		Signals:   []timedSignal{}, Values: []valueRow{}, Children: []operationRow{},
		Explanation: explanation{Reasons: []waitRow{}},
	}
	if s.Status&core.StatusAlive != 0 {
		shown.Operation.explained = p.explain(o.coordinator, o.id)
	}
	if x, ok := o.coordinator.Explain(o.id); ok {
		shown.Explanation.Reasons = append(shown.Explanation.Reasons, p.reasons(o.coordinator, x, true)...)
		for i, r := range x.Reasons {
			x.Reasons[i] = p.hidden(r)
		}
		x.Time = time.Time{}
		shown.Explanation.Text = x.String()
	}
	for _, signal := range s.Signals[max(0, len(s.Signals)-maxSignals):] {
		shown.Signals = append(shown.Signals, timedSignal{p.signalRow(signal), signal.Time.Sub(s.Enqueued).Milliseconds()})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Values)) {
		shown.Values = append(shown.Values, valueRow{name, typeOf(s.Values[name])})
	}
	shown.Cause = o.cause(&s)
	if s.Parent != 0 {
		for _, c := range p.coordinators {
			if parent, ok := c.Lookup(s.Parent); ok {
				row := p.operationRow(c, &parent)
				shown.Parent = &row
			}
		}
	}
	shown.Searching = o.find(s.Enqueued, e.children)
	for _, found := range o.children {
		if s, ok := found.coordinator.Lookup(found.id); ok {
			shown.Children = append(shown.Children, p.operationRow(found.coordinator, &s))
		}
	}
	return shown, nil
}

// cause is the signal that caused the first one of the operation, which is what the
// operation runs because of; if its sink does not show it any more, only its name.
func (o *operationSource) cause(s *core.Snapshot) *signalRow {
	if len(s.Signals) == 0 || s.Signals[0].Depth() == 0 {
		return nil
	}
	first := s.Signals[0]
	path := first.Path()
	name := path[len(path)-2]
	row := signalRow{Name: o.page.redacted(name)}
	if on, ok := o.coordinator.Inspector.(interface{ Sink() *core.Sink }); ok {
		for signal := range on.Sink().Sense(core.Query{Pattern: name}) {
			if signal.Seq < first.Seq && signal.Name == name && cmp.Or(s.Parent, signal.Operation) == signal.Operation {
				row = o.page.signalRow(signal)
			}
		}
	}
	return &row
}

// find looks for children among the next operations, some of each coordinator, and
// reports whether there are more to look at.
func (o *operationSource) find(since time.Time, effort int) (more bool) {
	if o.search == nil {
		for _, c := range o.page.coordinators {
			o.search = append(o.search, search{c, before(c, since)})
		}
	}
	for i := range o.search {
		at, left := &o.search[i], effort/len(o.search)
		for s := range at.coordinator.Operations(core.OperationQuery{After: at.after, Limit: left}) {
			if at.after, left = s.ID, left-1; s.Parent == o.id && len(o.children) < maxChildren {
				o.children = append(o.children, child{at.coordinator, s.ID})
			}
		}
		more = more || left == 0
	}
	return more
}

// before returns an id of a coordinator that only operations enqueued since then come after.
// Ids increase in each coordinator, but not from one to the other.
func before(c *coordinator, since time.Time) core.OperationID {
	newest := 0
	for s := range c.Operations(core.OperationQuery{NewestFirst: true, Limit: 1}) {
		newest = int(s.ID)
	}
	return core.OperationID(sort.Search(newest, func(id int) bool {
		for s := range c.Operations(core.OperationQuery{After: core.OperationID(id), Limit: 1}) {
			return !s.Enqueued.Before(since)
		}
		return true
	}))
}
