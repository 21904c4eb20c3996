package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Cancel is as in [durable.Store].
func (s *Store) Cancel(ctx context.Context, queue string, ids []durable.ItemID, from durable.State, reason string) (states []durable.State, err error) {
	err = s.transact(ctx, changes, func(p *pipeline) {
		states = make([]durable.State, len(ids))
		p.lockItems(queue, ids)
		p.rows(func(rows pgx.Rows) error {
			var id durable.ItemID
			var state durable.State
			err := rows.Scan(&id, &state)
			for i := range ids {
				if ids[i] == id {
					states[i] = state
					if state != durable.Running { // it is cancelled already, by an earlier entry of ids
						break
					}
				}
			}
			return err
		}, `
update {s}.durable_item set
	state = case state when 4 then 4 else 128 end,
	ended = case when state <> 4 then pg_catalog.clock_timestamp() end,
	err = case when state = 4 then err else $3 end,
	cancel = case when state = 4 and cancel = '' then $3 else cancel end
where queue || '' = $1 and id = any($2::bigint[]) and state + 0 in (1, 2, 4, 8, 16, 64) and state & $4::smallint <> 0 returning id, state`, queue, numbers(ids), reason, int16(from))
		p.promote(queue, ids)
	})
	return states, err
}

// promote promotes each key whose head, one of the ids, has just left.
func (p *pipeline) promote(queue string, ids []durable.ItemID) {
	p.do(`
update {s}.durable_item as i set state = 2, run_at = `+spaced("greatest(i.run_at, (select pg_catalog.clock_timestamp()))")+` where i.id = any(array(select next.id from (
	select distinct key from {s}.durable_item as old
	where id = any($2::bigint[]) and queue || '' = $1 and key <> '' and state + 0 >= 32 and not exists `+head("old.key")+`
) as gone cross join lateral (
	select id from {s}.durable_item as b where b.queue = $1 and b.key = gone.key and b.state = 1 order by b.rank, b.id limit 1
) as next))`, queue, numbers(ids))
}

// head is a subquery for the head of a key. "offset 0" makes the server look in the unique index
// for each key, even if its statistics are old.
func head(key string) string {
	return "(select from {s}.durable_item as h where h.queue = $1 and h.key = " + key + " and h.key <> '' and h.state in (2, 4, 8, 16) offset 0)"
}

// Again is as in [durable.Store].
func (s *Store) Again(ctx context.Context, queue string, ids []durable.ItemID, from durable.State) (changed []durable.ItemID, err error) {
	err = s.transact(ctx, changes, func(p *pipeline) {
		changed = nil
		p.lockItems(queue, ids)
		p.rows(func(rows pgx.Rows) error {
			var id durable.ItemID
			err := rows.Scan(&id)
			changed = append(changed, id)
			return err
		}, `
with again as (
	update {s}.durable_item as i set attempts = 0, token = 0, run_at = `+spaced("(select pg_catalog.clock_timestamp())")+`, cancel = '', ended = null, failing = null,
		state = case when i.key = '' or i.state = 16 or old.turn = 1 and not exists `+head("i.key")+`
		then 2 else 1 end
	from (
		select id, pg_catalog.row_number() over (partition by key, state = 16 order by id) as turn from {s}.durable_item
		where queue || '' = $1 and id = any($2::bigint[]) and state + 0 in (16, 64, 128) and state & $3::smallint <> 0
	) as old where i.id = old.id and i.id = any($2::bigint[]) returning i.id
),
losses as (`+beside("loss", "again")+`)
select id from again order by id`, queue, numbers(ids), int16(from))
	})
	return changed, err
}

// Prune is as in [durable.Store].
func (s *Store) Prune(ctx context.Context, queue string, keep durable.Keep, max int) (pruned int, more bool, err error) {
	var states []int16
	var ages []int64
	for state, age := range map[durable.State]time.Duration{durable.Done: keep.Done, durable.Dead: keep.Dead, durable.Cancelled: keep.Cancelled} {
		if age >= 0 {
			states, ages = append(states, int16(state)), append(ages, micros(age))
		}
	}
	err = s.transactOn(ctx, s.forBeats(), changes, func(p *pipeline) {
		more = false
		p.do(inOrder)
		p.prunePauses(queue)
		p.rows(func(rows pgx.Rows) error {
			err := rows.Scan(&pruned)
			more = more || pruned == max
			return err
		}, `
with clock as materialized (select pg_catalog.clock_timestamp() as now),
old as (
	select i.id from clock, unnest($2::smallint[], $3::bigint[]) as k (state, age), lateral (
		select id from {s}.durable_item where queue = $1 and state >= 16 and id > 0 and state = k.state and ended <= now - age * interval '1 microsecond'
		order by ended limit $4 for update skip locked
	) as i limit $4
),
gone as (delete from {s}.durable_item where id = any(array(select id from old)) returning id),
attempts as (`+beside("attempt", "gone")+`),
results as (`+beside("result", "gone")+`)
select pg_catalog.count(*) from gone`, queue, states, ages, max)
		p.rows(func(rows pgx.Rows) error {
			var ids int
			err := rows.Scan(&ids)
			more = more || ids == max
			return err
		}, `
with gone as (
	delete from {s}.durable_unique where ctid = any(array(
		select ctid from {s}.durable_unique where queue = $1 and until <= (select pg_catalog.clock_timestamp()) order by until limit $2 for update skip locked))
	returning 1
) select pg_catalog.count(*) from gone`, queue, max)
	})
	return pruned, more && err == nil, err
}

// LastTick returns the latest tick of a schedule that MarkTick has stored, or the zero time.
// With MarkTick and ResetTick it makes [Store] a store of scheduledtasks.
func (s *Store) LastTick(ctx context.Context, schedule string) (tick time.Time, err error) {
	err = s.transact(ctx, snapshot, func(p *pipeline) {
		p.rows(func(rows pgx.Rows) error { return rows.Scan(&tick) }, "select tick from {s}.durable_tick where schedule = $1", schedule)
	})
	return tick, err
}

// MarkTick stores the tick of a schedule. If the stored tick is later, it changes nothing.
func (s *Store) MarkTick(ctx context.Context, schedule string, tick time.Time) error {
	return s.transact(ctx, changes, func(p *pipeline) {
		p.do(`insert into {s}.durable_tick as t (schedule, tick) values ($1, $2)
			on conflict (schedule) do update set tick = greatest(t.tick, excluded.tick)`, schedule, tick)
	})
}

// ResetTick stores a time in place of the tick of a schedule, even if the stored tick is
// later.
func (s *Store) ResetTick(ctx context.Context, schedule string, to time.Time) error {
	return s.transact(ctx, changes, func(p *pipeline) {
		p.do("insert into {s}.durable_tick (schedule, tick) values ($1, $2) on conflict (schedule) do update set tick = excluded.tick", schedule, to)
	})
}
