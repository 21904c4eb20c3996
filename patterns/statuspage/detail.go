package statuspage

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// maxFirings is how many firings of a schedule are shown.
const maxFirings = 20

// count counts items of a queue.
func (v itemsSource) count(ctx context.Context, _ effort) (any, error) {
	n, err := v.known.Count(ctx, v.query)
	return object{"queue": v.queue.id, "count": n}, err
}

// item shows one item of a queue.
func (v itemsSource) item(ctx context.Context, _ effort) (any, error) {
	item, ok, err := v.known.Item(ctx, v.id)
	if err == nil && !ok {
		err = absent("there is no item %d of %q, or no longer", v.id, v.queue.id)
	}
	v.page.clean(&item.StoredItem)
	item.Why, item.History = v.page.redacted(item.Why), append([]inspect.ItemAttempt{}, item.History...)
	for i := range item.History {
		a := &item.History[i]
		a.State, a.Node, a.Err = cut(a.State), cut(a.Node), v.page.redacted(a.Err)
	}
	return object{"queue": v.queue.id, "item": item}, err
}

// clean makes an item fit to be shown.
func (p *Page) clean(item *inspect.StoredItem) {
	item.Key, item.Err, item.Note = p.redacted(item.Key), p.redacted(item.Err), p.redacted(item.Note)
	item.Lane, item.Class, item.State, item.Node = cut(item.Lane), cut(item.Class), cut(item.State), cut(item.Node)
}

// items returns what a queue tells about its items.
func (q *cache) items() (inspect.Items, error) {
	known, ok := q.StoredQueue.(inspect.Items)
	if !ok {
		return nil, invalid("queue %q has no details of items, and no changes of many", q.id)
	}
	return known, nil
}

type firingRow struct {
	inspect.Firing
	Coordinator string `json:"coordinator,omitempty"` // of the operation, if the page shows it
}

// schedule shows one schedule.
func (p *Page) schedule(g *entry[inspect.Schedules], name string) (any, error) {
	s, err := scheduleOf(g, name)
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
