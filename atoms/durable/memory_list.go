package durable

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

func (m *memory) Items(ctx context.Context, queue string, query Query) (Page, error) {
	return call(ctx, m, queue, func(q *memQueue, now time.Time) (page Page, err error) {
		var ids []ItemID
		ids, page.Next, err = query.Walk(q.places, func(p Part, most int) (found []Looked, _ error) {
			for _, i := range q.in(p.State, p.has) {
				if l := (Looked{p.at(i.Item), i.ID, query.matches(i.Item, now)}); compareLooked(l, p.From) > 0 && (Query{Due: query.Due, Delayed: query.Delayed}).matches(i.Item, now) {
					found = append(found, l)
				}
			}
			slices.SortFunc(found, compareLooked)
			return found[:min(most, len(found))], nil
		})
		for _, id := range ids {
			page.Items = append(page.Items, q.find(id).view())
		}
		return page, err
	})
}

func (m *memory) Count(ctx context.Context, queue string, query Query) (int, error) {
	return call(ctx, m, queue, func(q *memQueue, now time.Time) (int, error) {
		return len(q.in(query.states(), func(i *memItem) bool { return query.matches(i.Item, now) })), nil
	})
}

func compareLooked(a, b Looked) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) }

// places are those with items that are in one of the states, sorted.
func (q *memQueue) places(states State) (places []string, _ error) {
	for _, i := range q.in(states, every) {
		places = append(places, place(i.Lane, i.Class))
	}
	slices.Sort(places)
	return slices.Compact(places), nil
}

func (p Part) has(i *memItem) bool {
	return (p.Key == "" || i.Key == p.Key) && (place(i.Lane, i.Class) == p.Place || p.Place == "" && (p.Key != "" || p.State&Waiting == 0))
}

func (p Part) at(i Item) int64 {
	switch {
	case p.State == Blocked && p.Key != "":
		return int64(i.Rank)
	case p.State&^(Ready|Retry) == 0:
		return i.RunAt.UnixMicro()
	case p.State&^(Finished|Halted) == 0:
		return i.Ended.UnixMicro()
	}
	return 0
}

func (m *memory) Move(ctx context.Context, queue string, ids []ItemID, lane string, rank int) ([]ItemID, error) {
	return call(ctx, m, queue, func(q *memQueue, _ time.Time) (moved []ItemID, _ error) {
		mine := q.in(Waiting, func(i *memItem) bool { return slices.Contains(ids, i.ID) })
		for _, i := range mine {
			if i.Key != "" && len(q.in(Waiting, func(o *memItem) bool { return o.Key == i.Key && o.Lane != lane && !slices.Contains(ids, o.ID) })) > 0 {
				return nil, fmt.Errorf("%w: not all items of key %q that wait are to be moved", ErrOrder, i.Key)
			}
		}
		for _, i := range mine {
			i.Lane, i.Rank, moved = lane, rank, append(moved, i.ID)
		}
		return moved, nil
	})
}

func (m *memory) Result(ctx context.Context, queue string, id ItemID) (r Result, ok bool, err error) {
	r, err = call(ctx, m, queue, func(q *memQueue, _ time.Time) (r Result, _ error) {
		if i := q.find(id); i != nil {
			ok, r = true, Result{i.State, i.Err, slices.Clone(i.result)}
		}
		return r, nil
	})
	return r, ok, err
}

func (m *memory) Depths(ctx context.Context, queue string) ([]Depth, error) {
	return call(ctx, m, queue, func(q *memQueue, now time.Time) (all []Depth, _ error) {
		for _, i := range q.in(Waiting|Running|Halted, every) {
			all = append(all, Depth{place(i.Lane, i.Class), i.State, i.State == Ready && i.RunAt.After(now), Waits{1, now.Sub(i.Enqueued)}})
		}
		return all, nil
	})
}
