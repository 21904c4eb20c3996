package statuspage

import (
	"context"
	"fmt"
	"net/http"

	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// maxFirings is how many firings of a schedule are shown.
const maxFirings = 20

// countSource counts items of a queue.
type countSource itemsSource

func (v *countSource) frame(ctx context.Context, _ effort) (any, error) {
	known, err := itemsOf(v.queue)
	if err != nil {
		return nil, err
	}
	n, err := known.Count(ctx, v.query)
	return map[string]any{"queue": v.queue.id, "count": n}, err
}

// itemSource shows one item of a queue.
type itemSource struct {
	page  *Page
	queue *entry[inspect.StoredQueue]
	id    int64
}

type itemFrame struct {
	Queue string             `json:"queue"`
	Item  inspect.ItemDetail `json:"item"`
}

func (v *itemSource) frame(ctx context.Context, _ effort) (any, error) {
	known, err := itemsOf(v.queue)
	if err != nil {
		return nil, err
	}
	item, ok, err := known.Item(ctx, v.id)
	if err == nil && !ok {
		err = failure{code: http.StatusNotFound, text: fmt.Sprintf("there is no item %d of %q, or no longer", v.id, v.queue.id)}
	}
	v.page.clean(&item.StoredItem)
	item.Why = v.page.redacted(item.Why)
	item.History = append([]inspect.ItemAttempt{}, item.History...)
	for i := range item.History {
		a := &item.History[i]
		a.State, a.Node, a.Err = cut(a.State), cut(a.Node), v.page.redacted(a.Err)
	}
	return itemFrame{v.queue.id, item}, err
}

// clean makes an item fit to be shown.
func (p *Page) clean(item *inspect.StoredItem) {
	item.Key, item.Err, item.Note = p.redacted(item.Key), p.redacted(item.Err), p.redacted(item.Note)
	item.Lane, item.Class, item.State, item.Node = cut(item.Lane), cut(item.Class), cut(item.State), cut(item.Node)
}

// itemsOf returns what a queue tells about its items.
func itemsOf(q *entry[inspect.StoredQueue]) (inspect.Items, error) {
	known, ok := q.is.(inspect.Items)
	if !ok {
		return nil, invalid("queue %q has no details of items, and no changes of many", q.id)
	}
	return known, nil
}

// scheduleSource shows one schedule.
type scheduleSource struct {
	page  *Page
	group *entry[inspect.Schedules]
	name  string
}

type scheduleFrame struct {
	scheduleRow
	Firings []firingRow `json:"firings"` // the newest first
}

type firingRow struct {
	inspect.Firing
	Coordinator string `json:"coordinator,omitempty"` // of the operation, if the page shows it
}

func (v *scheduleSource) frame(context.Context, effort) (any, error) {
	for _, s := range v.group.is.Status() {
		if s.Name != v.name {
			continue
		}
		shown := scheduleFrame{v.page.scheduleRow(v.group, s), []firingRow{}}
		if known, ok := v.group.is.(inspect.Firings); ok {
			for _, f := range known.Firings(v.name) {
				if len(shown.Firings) == maxFirings {
					break
				}
				f.State, f.Err = cut(f.State), v.page.redacted(f.Err)
				row := firingRow{Firing: f}
				if f.Operation != 0 {
					row.Coordinator = v.page.locate(f.Operation, "")
				}
				shown.Firings = append(shown.Firings, row)
			}
		}
		return shown, nil
	}
	return nil, failure{code: http.StatusNotFound, text: fmt.Sprintf("there is no schedule %q in %q", v.name, v.group.id)}
}

// scheduleRow is the row of a schedule.
func (p *Page) scheduleRow(g *entry[inspect.Schedules], s inspect.ScheduleStatus) scheduleRow {
	s.Name, s.When, s.Description = cut(s.Name), cut(s.When), p.redacted(s.Description)
	return scheduleRow{Group: g.id, ScheduleStatus: s, Can: p.can("pauseSchedule", "resumeSchedule", "runNow")}
}
