package statuspage

import (
	"context"
	"slices"

	"github.com/ephemeralgo/ephemeral/core/inspect"
)

const (
	maxFirings = 20  // of a schedule
	maxSteps   = 100 // of the flow of an item
)

// countOf counts items of a queue.
func (p *Page) countOf(q query) (source, error) {
	id, known, err := known(choose(p.queues, "queue", q.of))
	return func(ctx context.Context, _ effort) (any, error) {
		n, err := known.Count(ctx, q.items)
		return object{"queue": id, "count": n}, err
	}, err
}

// itemOf shows one item of a queue.
func (p *Page) itemOf(q query) (source, error) {
	id, known, err := known(choose(p.queues, "queue", q.of))
	return func(ctx context.Context, _ effort) (any, error) {
		item, ok, err := known.Item(ctx, int64(q.id))
		if err == nil && !ok {
			err = absent("there is no item %d of %q, or no longer", q.id, id)
		}
		p.clean(&item.StoredItem)
		item.Why, item.History = p.redacted(item.Why), append([]inspect.ItemAttempt{}, item.History...)
		for i := range item.History {
			a := &item.History[i]
			a.State, a.Node, a.Err = cut(a.State), cut(a.Node), p.redacted(a.Err)
		}
		missing := max(0, len(item.Steps)-maxSteps)
		item.Steps = slices.Clone(item.Steps[missing:])
		for i := range item.Steps {
			s := &item.Steps[i]
			s.Name, s.State, s.Signal = p.redacted(s.Name), cut(s.State), p.redacted(s.Signal)
		}
		return object{"queue": id, "item": item, "missing": missing}, err
	}, err
}

// clean makes an item fit to be shown.
func (p *Page) clean(item *inspect.StoredItem) {
	item.Key, item.Err, item.Note = p.redacted(item.Key), p.redacted(item.Err), p.redacted(item.Note)
	item.Text = p.redacted(item.Text)
	if item.Metadata != nil {
		about := map[string]string{}
		for name, value := range item.Metadata {
			about[cut(name)] = p.redacted(value)
		}
		item.Metadata = about
	}
	item.Lane, item.Class, item.State, item.Node = cut(item.Lane), cut(item.Class), cut(item.State), cut(item.Node)
}

// known returns the id of a queue, and what it tells about its items.
func known(q *entry[*cache], err error) (string, inspect.Items, error) {
	if err != nil {
		return "", nil, err
	}
	known, ok := q.is.StoredQueue.(inspect.Items)
	if !ok {
		err = invalid("queue %q has no details of items, and no changes of many", q.id)
	}
	return q.id, known, err
}

type firingRow struct {
	inspect.Firing
	Coordinator string `json:"coordinator,omitempty"` // of the operation, if the page shows it
}

// schedule shows one schedule.
func (p *Page) schedule(q query) (source, error) {
	g, err := choose(p.schedules, "group of schedules", q.of)
	return func(context.Context, effort) (any, error) {
		s, err := scheduleOf(g, q.text)
		shown := p.scheduleRow(g, s)
		shown.Firings = []firingRow{}
		if known, ok := g.is.(inspect.Firings); ok {
			firings := known.Firings(s.Name)
			for _, f := range firings[:min(len(firings), maxFirings)] {
				f.State, f.Err = cut(f.State), p.redacted(f.Err)
				shown.Firings = append(shown.Firings, firingRow{f, p.locate(f.Operation, "")})
			}
		}
		return shown, err
	}, err
}

// scheduleOf finds a schedule by the name that the page shows.
func scheduleOf(g *entry[inspect.Schedules], name string) (inspect.ScheduleStatus, error) {
	for _, s := range g.is.Status() {
		if cut(s.Name) == name {
			return s, nil
		}
	}
	return inspect.ScheduleStatus{}, absent("there is no schedule %q in %q", name, g.id)
}

// scheduleRow is the row of a schedule.
func (p *Page) scheduleRow(g *entry[inspect.Schedules], s inspect.ScheduleStatus) scheduleRow {
	s.Name, s.When, s.Description = cut(s.Name), cut(s.When), p.redacted(s.Description)
	return scheduleRow{Group: g.id, ScheduleStatus: s, Can: p.can("pauseSchedule", "resumeSchedule", "runNow")}
}
