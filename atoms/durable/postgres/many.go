package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Move is as in [durable.Store].
func (s *Store) Move(ctx context.Context, queue string, ids []durable.ItemID, lane string, rank int) (moved []durable.ItemID, err error) {
	var broken *string
	err = s.transact(ctx, changes, func(p *pipeline) {
		moved, broken = nil, nil
		p.lockItems(queue, ids)
		other := func(states string) string {
			return "exists (select from {s}.durable_item as o where o.queue = $1 and o.key = m.key and o.key <> '' and o.state in " + states +
				" and o.state in (1, 2, 8) and pg_catalog.split_part(o.lane, pg_catalog.chr(1), -1) <> $3 and not o.id = any($2::bigint[]) offset 0)"
		}
		p.rows(func(rows pgx.Rows) error {
			var id durable.ItemID
			var key *string
			if err := rows.Scan(&id, &key); err != nil || key != nil {
				broken = key
				return err
			}
			moved = append(moved, id)
			return nil
		}, `
with mine as materialized (
	select id, key from {s}.durable_item where id = any($2::bigint[]) and queue || '' = $1 and state + 0 in (1, 2, 8)
),
broken as materialized (select key from (select distinct key from mine where key <> '' offset 0) as m where `+other("(1)")+" or "+other("(2, 4, 8, 16)")+` limit 1),
moved as (
	update {s}.durable_item as i set rank = $4, lane = case when i.lane >= pg_catalog.chr(1) and i.lane < pg_catalog.chr(2) then pg_catalog.chr(1) || pg_catalog.split_part(i.lane, pg_catalog.chr(1), 2) || pg_catalog.chr(1) || $3 else $3 end
	where i.id = any(array(select id from mine)) and not exists (select from broken) returning i.id
)
select 0::bigint, key from broken union all (select id, null from moved order by id)`, queue, numbers(ids), lane, rank)
	})
	if broken != nil && err == nil {
		return nil, fmt.Errorf("%w: not all items of key %q that wait are to be moved", durable.ErrOrder, *broken)
	}
	return moved, err
}

// Result is as in [durable.Store].
func (s *Store) Result(ctx context.Context, queue string, id durable.ItemID) (r durable.Result, ok bool, err error) {
	err = s.transact(ctx, snapshot, func(p *pipeline) {
		p.rows(func(rows pgx.Rows) error {
			ok = true
			return rows.Scan(&r.State, &r.Err, &r.Data)
		}, "select i.state, i.err, r.data from {s}.durable_item as i left join {s}.durable_result as r on r.queue = i.queue and r.item = i.id where i.id = $2 and i.queue || '' = $1", queue, id)
	})
	return r, ok, err
}

// Depths is as in [durable.Store].
func (s *Store) Depths(ctx context.Context, queue string) (all []durable.Depth, err error) {
	part := func(states string) string {
		return "select lane, state, run_at, enqueued from {s}.durable_item where queue = $1 and state " + states
	}
	err = s.reading(ctx, queue, func(r reader) (err error) {
		all, err = collect(r, func(row pgx.CollectableRow) (d durable.Depth, err error) {
			var us int64
			err = row.Scan(&d.Place, &d.State, &d.Delayed, &d.Items, &us)
			d.Oldest = duration(us)
			return d, err
		}, `
select lane, state, delayed, pg_catalog.count(*), greatest(0, extract(epoch from pg_catalog.now() - pg_catalog.min(enqueued)) * 1000000)::bigint
from (`+part("= 1 and id > 0")+" union all "+part("in (2, 8)")+" union all "+part("= 4")+" union all "+part("= 16 and state >= 16 and id > 0")+`) as i,
lateral (select state = 2 and run_at > pg_catalog.now() as delayed) as d group by lane, state, delayed`)
		return err
	})
	return all, err
}
