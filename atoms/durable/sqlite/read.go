package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// Items is as in [durable.Store].
func (s *Store) Items(ctx context.Context, queue string, q durable.Query) (items []durable.Item, err error) {
	err = s.look(ctx, queue, func(t *tx) {
		for _, i := range t.items("id > ?2 and +queue = ?1 and (?3 = 0 or state & ?3 <> 0) and (?4 = '' or key = ?4) and (?5 = '' or lane = ?5) order by id limit ?6",
			queue, q.After, q.State, q.Key, q.Lane, cmp.Or(q.Limit, 100)) {
			items = append(items, t.full(i))
		}
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}

// Stats is as in [durable.Store]. It reads indexes only, one entry for each item.
func (s *Store) Stats(ctx context.Context, queue string) (st durable.Stats, err error) {
	var oldest int64
	err = s.look(ctx, queue, func(t *tx) {
		t.get(list{&st.Items, &st.Blocked, &st.Ready, &st.Delayed, &st.Running, &st.Retry, &st.Halted, &st.Done, &st.Dead, &st.Cancelled, &oldest, &st.Nodes}, `
select count(*), count(*) filter (where state = 1),
	count(*) filter (where state = 2 and run_at <= ?2), count(*) filter (where state = 2 and run_at > ?2),
	count(*) filter (where state = 4), count(*) filter (where state = 8), count(*) filter (where state = 16),
	count(*) filter (where state = 32), count(*) filter (where state = 64), count(*) filter (where state = 128),
	coalesce(?2 - min(enqueued) filter (where run_at <= ?2), 0),
	(select count(*) from durable_node where queue = ?1 and expires > ?2)
from (
	select state, run_at, enqueued from durable_item where queue = ?1 and state in (2, 8)
	union all select 1, 0, enqueued from durable_item where queue = ?1 and state = 1
	union all select 4, null, null from durable_item where queue = ?1 and state = 4
	union all select state, null, null from durable_item where queue = ?1 and state >= 16
)`, queue, micros(t.now))
		st.Oldest, st.Paused = max(0, time.Duration(oldest)*time.Microsecond), t.paused()
	})
	return st, err
}

// Explain is as in [durable.Store].
func (s *Store) Explain(ctx context.Context, queue string, id durable.ItemID) (x durable.Explanation, ok bool, err error) {
	err = s.look(ctx, queue, func(t *tx) {
		i := t.find(id)
		if ok = i != nil; ok {
			x = t.explain(i)
		}
	})
	if err != nil || !ok {
		return durable.Explanation{}, false, err
	}
	return x, true, nil
}

func (t *tx) explain(i *item) durable.Explanation {
	x := durable.Explanation{Item: t.full(i), Time: t.now, Paused: t.paused()}
	count := func(n *int, where string, args ...any) {
		t.get(list{n}, "select count(*) from durable_item where queue = ? and "+where, append(list{t.queue}, args...)...)
	}
	count(&x.Running, "state = 4")
	count(&x.LaneRunning, "state = 4 and lane = ?", i.Lane)
	switch i.State {
	case durable.Blocked:
		if head := t.item(heads, t.queue, i.Key); head != nil {
			item := t.full(head)
			x.Head = &item
		}
		count(&x.Ahead, "key = ? and state = 1 and (rank, id) < (?, ?)", i.Key, i.Rank, i.ID)
		x.Ahead++
	case durable.Ready, durable.Retry:
		count(&x.Before, "lane = ? and state in (2, 8) and run_at <= ? and (run_at, id) < (?, ?)", i.Lane, micros(t.now), micros(i.RunAt), i.ID)
	}
	t.rows(func(scan func(...any) error) error {
		var lease int64
		var text string
		n := durable.Serving{Node: durable.Node{Queue: t.queue}}
		err := scan(&n.Node.ID, &n.Node.Name, &lease, &n.Node.MaxConcurrency, &n.Node.MaxCluster, &text, &n.Note, &n.Running)
		if err != nil {
			return err
		}
		var lanes []lane
		err = json.Unmarshal([]byte(text), &lanes)
		for _, l := range lanes {
			n.Node.Lanes = append(n.Node.Lanes, core.Lane{Name: l.Name, Limit: l.Limit})
		}
		n.Node.Lease = time.Duration(lease) * time.Microsecond
		x.Nodes = append(x.Nodes, n)
		return err
	}, `select id, name, lease, slots, cluster, lanes, note,
	(select count(*) from durable_item as i where i.queue = n.queue and i.node = n.id and state = 4)
from durable_node as n where queue = ? and expires > ? order by id`, t.queue, micros(t.now))
	return x
}
