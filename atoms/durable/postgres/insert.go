package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Insert is as in [durable.Store].
func (s *Store) Insert(ctx context.Context, queue string, items []durable.Insert) (done []durable.Inserted, err error) {
	if len(items) == 0 {
		return nil, nil
	}
	var strange []string
	err = s.transact(ctx, changes, func(p *pipeline) {
		strange = p.strange(queue, items)
		p.insert(queue, items, &done)
	})
	for _, class := range strange {
		if err == nil {
			s.known.Store(durable.Insert{Lane: queue, Class: class}.Place(), true)
		}
	}
	return done, err
}

// insert takes the ids after the locks of the keys, so that the ids of a key rise in the
// order of commits. The locks of Unique ids are taken with those of the keys. A Unique id that is in use keeps its item. Even then its row is written,
// so that the statement sees the newest commits.
func (p *pipeline) insert(queue string, items []durable.Insert, done *[]durable.Inserted) {
	var (
		keys, lanes, uniques, extras []string
		ranks                        []int32
		datas                        [][]byte
		delays, runAts, fors, costs  []int64
		replaces, skips, rated       []bool
		single                       bool
	)
	for _, i := range items {
		keys, lanes, uniques, ranks = append(keys, i.Key), append(lanes, i.Place()), append(uniques, i.Unique), append(ranks, int32(i.Rank))
		datas, delays, fors = append(datas, append([]byte{}, i.Data...)), append(delays, micros(i.Delay)), append(fors, micros(i.UniqueFor))
		runAt := int64(0)
		if !i.RunAt.IsZero() {
			runAt = i.RunAt.UnixMicro()
		}
		extras, runAts, replaces, skips = append(extras, i.Extra), append(runAts, runAt), append(replaces, i.Replace), append(skips, i.SkipIfAlive)
		costs, rated = append(costs, i.Cost), append(rated, i.Rated)
		single = single || i.Replace || i.SkipIfAlive || i.Rated
	}
	if items[0].NoWait {
		p.do("select pg_catalog.set_config('ephemeral.busy', coalesce((select pg_catalog.array_agg(h) from ("+hashes+") as hashes where not pg_catalog.pg_try_advisory_xact_lock(h)), '{}')::text, true)", queue, keys, uniques)
	} else {
		p.lockKeys(queue, keys, uniques...)
	}
	for _, class := range p.strange(queue, items) {
		p.do("insert into {s}.durable_class (queue, name, since, seen) values ($1, $2, pg_catalog.clock_timestamp(), pg_catalog.clock_timestamp()) on conflict do nothing", queue, class)
	}
	*done = nil
	read := func(rows pgx.Rows) error {
		var i durable.Inserted
		err := rows.Scan(&i.ID, &i.Duplicate, &i.OtherKey, &i.Busy)
		*done = append(*done, i)
		return err
	}
	if single {
		p.rows(read, "select item, duplicate, other_key, busy from {s}.durable_insert_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
			queue, keys, lanes, ranks, datas, delays, runAts, uniques, fors, extras, replaces, skips, items[0].NoWait, costs, rated)
		return
	}
	p.rows(read, `
with clock as materialized (select pg_catalog.clock_timestamp() as now),
new as materialized (
	select u.*, pg_catalog.nextval('{s}.durable_item_id') as id
	from (select * from unnest($2::text[], $3::text[], $4::int[], $5::bytea[], $6::bigint[], $7::text[], $8::bigint[], $11::bigint[], $12::text[], $13::bigint[])
		with ordinality as u (key, lane, rank, data, delay, unique_id, unique_for, run_at, extra, cost, place)
		where not $9 or not array[`+keyHash+`, `+uniqueHash+`] && coalesce(nullif(pg_catalog.current_setting('ephemeral.busy', true), ''), '{}')::bigint[] order by place) as u
),
claimed as (
	insert into {s}.durable_unique as u (queue, unique_id, item, until)
	select distinct on (unique_id) $1, unique_id, id, now + unique_for * interval '1 microsecond'
	from new, clock where unique_id <> '' order by unique_id, place
	on conflict (queue, unique_id) do update set
		item = case when u.until <= (select now from clock) then excluded.item else u.item end,
		until = case when u.until <= (select now from clock) then excluded.until else u.until end
	returning unique_id, item
),
decided as materialized (
	select new.*, coalesce(claimed.item, new.id) as item from new left join claimed using (unique_id)
),
inserted as (
	insert into {s}.durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, data, extra, cost)
	select id, $1, key, lane, rank,
		case when key = '' or pg_catalog.row_number() over (partition by key order by place) = 1 and not exists `+head("d.key")+`
		then 2 else 1 end,
		unique_id, now, greatest(now + delay * interval '1 microsecond', timestamptz 'epoch' + run_at * interval '1 microsecond'), data, nullif(extra, ''), nullif(cost, 0)
	from decided as d, clock where item = id
)
select coalesce(d.item, 0), coalesce(d.item <> d.id, false), false, d.id is null
from pg_catalog.generate_series(1, $10::int) as p (place) left join decided as d using (place) order by p.place`,
		queue, keys, lanes, ranks, datas, delays, uniques, fors, items[0].NoWait, len(items), runAts, extras, costs)
}
