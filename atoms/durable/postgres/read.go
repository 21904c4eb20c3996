package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Stats is as in [durable.Store].
func (s *Store) Stats(ctx context.Context, queue string) (st durable.Stats, err error) {
	var oldest int64
	err = s.transact(ctx, snapshot, func(p *pipeline) {
		p.rows(func(rows pgx.Rows) error {
			return rows.Scan(&st.Items, &st.Blocked, &st.Ready, &st.Delayed, &st.Running, &st.Retry, &st.Halted, &st.Done, &st.Dead, &st.Cancelled,
				&oldest, &st.Nodes, &st.Paused)
		}, `
select pg_catalog.count(*), pg_catalog.count(*) filter (where state = 1),
	pg_catalog.count(*) filter (where state = 2 and run_at <= pg_catalog.now()), pg_catalog.count(*) filter (where state = 2 and run_at > pg_catalog.now()),
	pg_catalog.count(*) filter (where state = 4), pg_catalog.count(*) filter (where state = 8), pg_catalog.count(*) filter (where state = 16),
	pg_catalog.count(*) filter (where state = 32), pg_catalog.count(*) filter (where state = 64), pg_catalog.count(*) filter (where state = 128),
	coalesce(extract(epoch from greatest(interval '0', pg_catalog.now() - pg_catalog.min(enqueued) filter (where run_at <= pg_catalog.now()))) * 1000000, 0)::bigint,
	(select pg_catalog.count(*) from {s}.durable_node where queue = $1 and expires > pg_catalog.now()),
	`+isPaused+`
from (
	select state, run_at, enqueued from {s}.durable_item where queue = $1 and state in (2, 8)
	union all select 1, '-infinity', enqueued from {s}.durable_item where queue = $1 and state = 1 and id > 0
	union all select 4, null, null from {s}.durable_item where queue = $1 and state = 4
	union all select state, null, null from {s}.durable_item where queue = $1 and state >= 16 and id > 0
) as i`, queue)
		p.rows(func(rows pgx.Rows) error {
			var us int64
			err := rows.Scan(&us)
			st.OldestTransaction = duration(us)
			return err
		}, `
select coalesce(extract(epoch from pg_catalog.max(pg_catalog.clock_timestamp() - xact_start)) * 1000000, 0)::bigint from pg_catalog.pg_stat_activity
where datname = pg_catalog.current_database() and pid <> pg_catalog.pg_backend_pid() and (backend_xmin is not null or backend_xid is not null)`)
		st.Strays = nil
		p.rows(func(rows pgx.Rows) error {
			return scanWaiting(rows, &st.Strays, new(bool), new(bool))
		}, waiting, queue)
		st.Pauses = nil
		p.paused(queue, func(durable.Pause) bool { return true }, &st.Pauses)
		st.Classes = nil
		p.classes(queue, 0, func(c durable.ClassStats) { st.Classes = append(st.Classes, c) })
	})
	st.Oldest = duration(oldest)
	return st, err
}

// Explain is as in [durable.Store].
func (s *Store) Explain(ctx context.Context, queue string, id durable.ItemID) (x durable.Explanation, ok bool, err error) {
	of := func(which string) string { // of items i of the queue beside the item me; "offset 0" makes the server look in an index for them
		return "from (select * from {s}.durable_item where id = $2 and queue || '' = $1 offset 0) as me cross join lateral (select * from {s}.durable_item as i where i.queue = $1 and " + which + " offset 0) as i "
	}
	err = s.transact(ctx, snapshot, func(p *pipeline) {
		x, ok = durable.Explanation{}, false
		count := func(n *int, which string) {
			p.rows(func(rows pgx.Rows) error { return rows.Scan(n) }, "select pg_catalog.count(*) "+of(which), queue, id)
		}
		p.rows(func(rows pgx.Rows) (err error) {
			ok = true
			x.Item, err = scanItem(rows, &x.Time)
			return err
		}, "select pg_catalog.now(), "+columns+
			" from {s}.durable_item as i left join {s}.durable_node as n on n.id = i.node where i.queue || '' = $1 and i.id = $2", queue, id)
		p.attempts(queue, id, &x.Attempts)
		count(&x.Ahead, "me.state = 1 and i.key = me.key and i.state = 1 and (i.rank, i.id) < (me.rank, me.id)")
		p.rows(func(rows pgx.Rows) error {
			head, err := scanItem(rows)
			x.Head = &head
			x.Ahead++
			return err
		}, "select "+columns+" "+of("me.state = 1 and i.key = me.key and i.key <> '' and i.state in (2, 4, 8, 16)")+"left join {s}.durable_node as n on n.id = i.node", queue, id)
		count(&x.Before, "me.state in (2, 8) and i.lane = me.lane and i.state in (2, 8) and i.run_at <= pg_catalog.now() and (i.run_at, i.id) < (me.run_at, me.id)")
		count(&x.Running, "i.state = 4")
		count(&x.LaneRunning, "i.state = 4 and pg_catalog.split_part(i.lane, pg_catalog.chr(1), -1) = pg_catalog.split_part(me.lane, pg_catalog.chr(1), -1)")
		p.rows(func(rows pgx.Rows) error {
			var next *time.Time
			err := rows.Scan(&next)
			if next != nil && next.After(x.Time) {
				x.KeyNext = *next
			}
			return err
		}, "select {s}.durable_space_1($1, i.key, q.key_every, q.key_burst, pg_catalog.now(), pg_catalog.now()) from {s}.durable_item as i, {s}.durable_queue as q where q.queue = $1 and i.queue || '' = $1 and i.id = $2", queue, id)
		p.classes(queue, id, func(c durable.ClassStats) { x.Class = &c })
		p.paused(queue, func(p durable.Pause) bool {
			return p.Class == "" && p.Key == "" || p.Class != "" && x.Class != nil && p.Class == x.Class.Name || p.Key != "" && p.Key == x.Item.Key
		}, &x.Pauses)
		p.rows(func(rows pgx.Rows) error {
			var lease int64
			var lanes []byte
			n := durable.Serving{Node: durable.Node{Queue: queue}}
			if err := rows.Scan(&n.Node.ID, &n.Node.Name, &lease, &n.Node.MaxConcurrency, &n.Node.MaxCluster, &lanes, &n.Note, &n.Running); err != nil {
				return err
			}
			n.Node.Lease = duration(lease)
			var err error
			n.Node.Lanes, err = lanesOf(lanes)
			x.Nodes = append(x.Nodes, n)
			return err
		}, `
select id, name, (extract(epoch from lease) * 1000000)::bigint, slots, cluster, lanes, note,
	(select pg_catalog.count(*) from {s}.durable_item as i where i.queue = $1 and i.node = n.id and i.state = 4)
from {s}.durable_node as n where queue = $1 and expires > pg_catalog.now() order by id`, queue)
	})
	if !ok {
		x = durable.Explanation{}
	}
	return x, ok, err
}
