package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Items is as in [durable.Store].
func (s *Store) Items(ctx context.Context, queue string, q durable.Query) ([]durable.Item, error) {
	return look(ctx, s, queue, func(t *moment) (items []durable.Item) {
		for _, i := range t.items("id > ?2 and +queue = ?1 and (?3 = 0 or state & ?3) and (?4 = '' or key = ?4) and (?5 = '' or lane = ?5) order by id limit ?6",
			queue, q.After, q.State, q.Key, q.Lane, cmp.Or(q.Limit, 100)) {
			items = append(items, t.full(&i))
		}
		return items
	})
}

// Stats is as in [durable.Store]. It reads indexes only, with an entry for each item.
func (s *Store) Stats(ctx context.Context, queue string) (durable.Stats, error) {
	return look(ctx, s, queue, func(t *moment) (st durable.Stats) {
		var oldest int64
		t.get(list{&st.Items, &st.Blocked, &st.Ready, &st.Delayed, &st.Running, &st.Retry, &st.Halted, &st.Done, &st.Dead, &st.Cancelled, &oldest, &st.Nodes}, `
select count(*), count(*) filter (where state = 1),
	count(*) filter (where state = 2 and run_at <= ?2), count(*) filter (where state = 2 and run_at > ?2),
	count(*) filter (where state = 4), count(*) filter (where state = 8), count(*) filter (where state = 16),
	count(*) filter (where state = 32), count(*) filter (where state = 64), count(*) filter (where state = 128),
	coalesce(?2 - min(enqueued) filter (where run_at <= ?2), 0), (select count(*) from durable_node where queue = ?1 and expires > ?2)
from (
	select state, run_at, enqueued from durable_item where queue = ?1 and state in (2, 8)
	union all select 1, 0, enqueued from durable_item where queue = ?1 and state = 1
	union all select 4, null, null from durable_item where queue = ?1 and state = 4
	union all select state, null, null from durable_item where queue = ?1 and state >= 16
)`, queue, micros(t.now))
		st.Oldest, st.Paused = max(0, time.Duration(oldest)*time.Microsecond), t.paused()
		return st
	})
}

// Explain is as in [durable.Store].
func (s *Store) Explain(ctx context.Context, queue string, id durable.ItemID) (x durable.Explanation, ok bool, err error) {
	ok, err = look(ctx, s, queue, func(t *moment) bool {
		i := t.find(id)
		if i != nil {
			x = t.explain(i)
		}
		return i != nil
	})
	return x, ok, err
}

func (t *moment) explain(i *item) durable.Explanation {
	x := durable.Explanation{Item: t.full(i), Time: t.now, Paused: t.paused()}
	const count = "select count(*) from durable_item where queue = ? and "
	t.get(list{&x.Running}, count+"state = 4", t.queue)
	t.get(list{&x.LaneRunning}, count+"state = 4 and lane = ?", t.queue, i.Lane)
	switch i.State {
	case durable.Blocked:
		if head := t.first(isHead, t.queue, i.Key); head != nil {
			item := t.full(head)
			x.Head = &item
		}
		t.get(list{&x.Ahead}, count+"key = ? and state = 1 and (rank, id) < (?, ?)", t.queue, i.Key, i.Rank, i.ID)
		x.Ahead++
	case durable.Ready, durable.Retry:
		t.get(list{&x.Before}, count+"lane = ? and state in (2, 8) and run_at <= ? and (run_at, id) < (?, ?)", t.queue, i.Lane, micros(t.now), micros(i.RunAt), i.ID)
	}
	x.Nodes = rows(t, func(n *durable.Serving) list { return list{decoder{&n.Node}, &n.Node.ID, &n.Note, &n.Running} }, `
select node, id, note, (select count(*) from durable_item as i where i.queue = n.queue and i.node = n.id and state = 4)
from durable_node as n where queue = ? and expires > ? order by id`, t.queue, micros(t.now))
	return x
}

// decoder says where a column of JSON goes.
type decoder struct{ to any }

func (d decoder) Scan(text any) error { return json.Unmarshal([]byte(text.(string)), d.to) }
