package statuspage

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Limits of what is shown of an operation.
const maxSignals, maxChildren = 100, 50

// operationSource shows one operation. It remembers the children that it has found.
type operationSource struct {
	page        *Page
	coordinator *coordinator
	id          core.OperationID
	seen        map[*coordinator]core.OperationID // the newest operation that was checked
	children    []hit
	missed      bool
}

func (p *Page) operation(q query) (source, error) {
	c, err := choose(p.coordinators, "coordinator", q.of)
	o := &operationSource{page: p, coordinator: c, id: q.id, seen: map[*coordinator]core.OperationID{}}
	return o.frame, err
}

func (o *operationSource) frame(_ context.Context, e effort) (any, error) {
	p := o.page
	s, ok := o.coordinator.is.Lookup(o.id)
	if !ok {
		return nil, absent("there is no operation %d of %q, or no longer", o.id, o.coordinator.id)
	}
	shown := object{"operation": p.operationRow(o.coordinator, &s)}
	raised, values, children := []signalRow{}, []object{}, []operationRow{}
	for _, signal := range s.Signals[max(0, len(s.Signals)-maxSignals):] {
		row := p.signalRow(signal)
		row.OffsetMS = new(signal.Time.Sub(s.Enqueued).Milliseconds())
		raised = append(raised, row)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Values)) {
		values = append(values, object{"name": cut(name), "type": typeOf(s.Values[name])})
	}
	if cause := o.cause(&s); cause != nil {
		shown["cause"] = cause
	}
	if c := find(p.coordinators, p.locate(s.Parent, "")); c != nil {
		if parent, ok := c.is.Lookup(s.Parent); ok {
			shown["parent"] = p.operationRow(c, &parent)
		}
	}
	o.search(s.Enqueued, e.children)
	for _, found := range o.children {
		if s, ok := found.in.is.Lookup(found.ID); ok {
			children = append(children, p.operationRow(found.in, &s))
		}
	}
	why := p.explain(o.coordinator, o.id, true)
	shown["explanation"] = object{"text": why.Text, "reasons": why.Reasons}
	shown["signals"], shown["values"], shown["children"], shown["missed"] = raised, values, children, o.missed
	return shown, nil
}

// cause returns the signal that caused the operation: the cause of its first signal. If
// that signal has left the sink, the row has only its name and its operation.
func (o *operationSource) cause(s *core.Snapshot) *signalRow {
	if len(s.Signals) == 0 || s.Signals[0].Depth() == 0 {
		return nil
	}
	rows, causes := o.page.causes(s.Signals[0]), s.Signals[0].Causes()
	by, cause := rows[len(rows)-1], causes[len(causes)-1]
	row := signalRow{Name: by.Name, Operation: by.Operation, Coordinator: by.Coordinator}
	if on := sinkOf(o.coordinator); on != nil {
		for c := range on.Sense(signals.Query{Pattern: cause.Name}) {
			if c.Name == cause.Name && c.Seq < s.Signals[0].Seq && c.Operation == cause.Operation {
				row = o.page.signalRow(c)
			}
		}
	}
	return &row
}

// search looks for children among the operations that are younger than their parent, and
// newer than the last search. Ids increase in each coordinator, but not across coordinators.
func (o *operationSource) search(since time.Time, effort int) {
	for _, c := range o.page.coordinators {
		left, newest := effort, o.seen[c]
		for s := range c.is.Operations(core.OperationQuery{NewestFirst: true, Limit: effort}) {
			if s.ID <= o.seen[c] || s.Enqueued.Before(since) {
				break
			}
			if left, newest = left-1, max(newest, s.ID); s.Parent == o.id {
				o.children = append(o.children, hit{c, core.Snapshot{ID: s.ID}})
			}
		}
		o.seen[c] = newest
		o.missed = o.missed || left == 0
	}
	o.missed = o.missed || len(o.children) > maxChildren
	o.children = o.children[:min(len(o.children), maxChildren)]
}
