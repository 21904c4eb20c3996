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
		read := func(rows pgx.Rows) error {
			var id durable.ItemID
			var state durable.State
			err := rows.Scan(&id, &state)
			for i := range ids {
				if ids[i] == id {
					states[i] = state
					if state == durable.Cancelled { // it is cancelled already, by an earlier entry of ids
						break
					}
				}
			}
			return err
		}
		p.rows(read, `
update {s}.durable_item as i set
	state = case state when 4 then 4 else 128 end,
	ended = case when state <> 4 then pg_catalog.clock_timestamp() end,
	err = case when state = 4 then err else $3 end,
	cancel = case when state = 4 and cancel = '' then $3 else cancel end
where queue || '' = $1 and id = any($2::bigint[]) and state + 0 in (1, 2, 4, 8, 16, 64) and state & $4::smallint <> 0 and not (`+undoes+`) returning id, state`, queue, numbers(ids), reason, int16(from))
		p.promote(queue, ids)
		p.rows(read, `
with undone as (
	update {s}.durable_item as i set flow = 2,
		state = case when old.goes or i.state = 1 then i.state when i.state <> 64 or i.key = '' or old.turn = 1 and not exists `+head("i.key")+` then 2 else 1 end,
		attempts = case when old.goes then i.attempts else 0 end, token = case when old.goes then i.token else 0 end,
		run_at = case when old.goes then i.run_at else `+spaced("(select pg_catalog.clock_timestamp())")+` end,
		cancel = '', ended = null, failing = case when old.goes then i.failing end
	from (
		select id, flow = 2 and state <> 16 and state <> 64 as goes, pg_catalog.row_number() over (partition by key, state = 64 order by id) as turn from {s}.durable_item as i
		where queue || '' = $1 and id = any($2::bigint[]) and state + 0 in (1, 2, 4, 8, 16, 64) and state & $4::smallint <> 0 and `+undoes+`
	) as old where i.id = old.id and i.id = any($2::bigint[]) returning i.id, i.state, old.goes
),
flows as (
	update {s}.durable_flow set undo = 128, reason = $3, `+noWait+` where `+placed("flow", "undone")+`
),
losses as (`+beside("loss", "(select * from undone where not goes)")+`)
select id, state from undone`, queue, numbers(ids), reason, int16(from))
	})
	return states, err
}

// undoes is the condition that Cancel of an item i undoes its flow, or that it is being undone.
var undoes = `i.flow + 0 > 0 and (i.flow + 0 = 2 and i.state + 0 in (1, 2, 4, 8) or i.state + 0 <> 4 and ` + toUndo("i.id") + `)`

// toUndo is the condition that an item has a step that is to be undone.
func toUndo(item string) string {
	return "exists (select from {s}.durable_step as s where s.queue = $1 and s.item = " + item + " and s.compensates and s.state < 3 offset 0)"
}

// noWait ends the wait of a flow.
const noWait = "step = '', pattern = '', likes = '', since = null, until = null"

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
		flow = case when old.own is null then i.flow else 0 end, lane = case when old.own is null then i.lane else {s}.durable_place_1(i.lane, old.own) end,
		state = case when i.key = '' or i.state = 16 or old.turn = 1 and not exists `+head("i.key")+`
		then 2 else 1 end
	from (
		select id, pg_catalog.row_number() over (partition by key, state = 16 order by id) as turn,
			case when flow = 2 and not `+toUndo("o.id")+` then (select f.class from {s}.durable_flow as f where f.queue = $1 and f.item = o.id) end as own from {s}.durable_item as o
		where queue || '' = $1 and id = any($2::bigint[]) and state + 0 in (16, 64, 128) and state & $3::smallint <> 0
	) as old where i.id = old.id and i.id = any($2::bigint[]) returning i.id, i.flow, old.own
),
losses as (`+beside("loss", "again")+`),
flows as (update {s}.durable_flow set `+noWait+` where `+placed("flow", "(select * from again where flow > 0)")+`),
steps as (`+beside("step", "(select * from again where own is not null)")+`),
undone as (`+beside("flow", "(select * from again where own is not null)")+`)
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
		const flowed, signalled = "(select * from gone where flow > 0)", "(select * from gone where exists (select from {s}.durable_signal where queue = $1 and item > 0 offset 0))"
		p.do(inOrder)
		p.prunePauses(queue, max, &more)
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
gone as (delete from {s}.durable_item where id = any(array(select id from old)) returning id, flow),
attempts as (`+beside("attempt", "gone")+`),
results as (`+beside("result", "gone")+`),
flows as (`+beside("flow", flowed)+`),
steps as (`+beside("step", flowed)+`),
signals as (`+beside("signal", signalled)+`)
select pg_catalog.count(*) from gone`, queue, states, ages, max)
		p.prune("unique", "until <= (select pg_catalog.clock_timestamp()) order by until", queue, max, &more)
		if keep.Signals >= 0 { // Signals that are still needed are looked at again after a quarter of that time. Otherwise each Prune would read all of them.
			p.rows(func(pgx.Rows) error { more = true; return nil }, `
with clock as materialized (select pg_catalog.clock_timestamp() as now),
old as materialized (
	select s.place, exists `+head("s.key")+` or exists (select from {s}.durable_item as i where i.queue = $1 and i.key = s.key and i.key <> '' and i.state in (32, 64, 128) and i.state >= 32
		and i.ended > (select now from clock) - $2::bigint * interval '1 microsecond' offset 0) as needed
	from (
		select ctid as place, key from {s}.durable_signal
		where queue = $1 and item = 0 and checked <= (select now from clock) - $2::bigint * interval '1 microsecond' order by checked limit $3 for update skip locked
	) as s
),
later as (update {s}.durable_signal set checked = (select now from clock) - $2::bigint * interval '0.75 microseconds' where ctid = any(array(select place from old where needed))),
gone as (delete from {s}.durable_signal where ctid = any(array(select place from old where not needed)) returning 1)
select from old having pg_catalog.count(*) >= $3 and pg_catalog.bool_or(not needed)`, queue, micros(keep.Signals), 2*durable.MaxSignals)
		}
	})
	return pruned, more && err == nil, err
}

// prune deletes at most max rows of a table that are old, but not those that others have locked: it waits for nobody.
func (p *pipeline) prune(table, old, queue string, max int, more *bool) {
	table = "{s}.durable_" + table
	p.rows(func(rows pgx.Rows) error {
		var gone int
		err := rows.Scan(&gone)
		*more = *more || gone == max
		return err
	}, `
with gone as (
	delete from `+table+` where ctid = any(array(select ctid from `+table+` where queue = $1 and `+old+` limit $2 for update skip locked)) returning 1
) select pg_catalog.count(*) from gone`, queue, max)
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
