package postgres

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// note is the text of the snooze of an item i: it is that of the attempt with the token of the item.
const note = `coalesce((select a.err from {s}.durable_attempt as a where i.state + 0 = 2 and a.queue = i.queue and a.item = i.id and a.token = i.token and a.kind = 5), '')`

// trim deletes all but the last attempts of items m, of which one more is added.
const trim = `delete from {s}.durable_attempt where ctid = any(array(select old.place from mine as m cross join lateral (
	select a.ctid as place from {s}.durable_attempt as a where a.queue = $1 and a.item = m.id and a.token <> m.token order by a.token desc offset 9) as old))`

// beside returns a statement that deletes the rows of a table which belong to items m, whose first argument is the queue.
func beside(table, m string) string {
	return "delete from {s}.durable_" + table + " where " + placed(table, m)
}

// placed is true for the rows of a table which belong to items m, in a statement whose first argument is the queue. The items
// are locked, so the rows keep their places. With a join, or a list of ids, the server may read all rows of the queue.
func placed(table, m string) string {
	return "ctid = any(array(select k.place from " + m + " as m cross join lateral (select ctid as place from {s}.durable_" + table + " where queue = $1 and item = m.id offset 0) as k))"
}

// keeping returns what is to be written beside the items of ends, as parts of the statement that makes the turn t,
// whose first argument is the queue. Add adds an argument, and returns its name. Items are there as they were
// before: Running.
func keeping(ends []durable.End, add func(arg any) string) string {
	var ids []int64
	var kinds []int16
	var errs []string
	var results [][]byte
	failed, returned, parts := false, false, ""
	for _, e := range ends {
		ids, kinds, errs, failed = append(ids, int64(e.ID)), append(kinds, int16(e.Kind)), append(errs, e.Err), failed || e.Kind != durable.EndDone
		results, returned = append(results, e.Result), returned || e.Result != nil
	}
	if returned {
		parts = fmt.Sprintf(`,
results as (
	insert into {s}.durable_result (queue, item, data)
	select $1, e.id, e.data from t join unnest(%s::bigint[], %s::bytea[]) with ordinality as e (id, data, place) using (place)
	where t.kind = 1 and t.outcome = 1 and t.state = 32 and e.data is not null
	on conflict (queue, item) do update set data = excluded.data
)`, add(ids), add(results))
	}
	if last := lastSteps(ends); last != nil { // only of items that have a flow
		parts += fmt.Sprintf(`,
steps as (
	insert into {s}.durable_step (queue, item, name, seq, state, compensates, attempt, took, at, until, signal, data)
	select distinct on (f.id, s.name) $1, f.id, s.name, s.seq, s.state, s.compensates, s.attempt, s.took, pg_catalog.clock_timestamp(), timestamptz 'epoch' + s.until * interval '1 microsecond', s.signal, pg_catalog.decode(s.data, 'base64')
	from t join pg_catalog.jsonb_to_recordset(%s::jsonb) as f (place int, id bigint, steps jsonb) using (place)
	cross join lateral rows from (pg_catalog.jsonb_to_recordset(f.steps)
		as (name text, seq int, state smallint, compensates boolean, attempt int, took bigint, until bigint, signal text, data text)) with ordinality as s (name, seq, state, compensates, attempt, took, until, signal, data, n)
	where t.kind = 1 and t.outcome = 1 and t.state = 32 and exists (select from {s}.durable_flow as o where o.queue = $1 and o.item = f.id) order by f.id, s.name, s.n desc
	on conflict (queue, item, name) do update set seq = excluded.seq, state = excluded.state, compensates = excluded.compensates, attempt = excluded.attempt,
		took = excluded.took, at = excluded.at, until = excluded.until, signal = excluded.signal, data = excluded.data
)`, add(encode(last)))
	}
	if !failed {
		return parts
	}
	return parts + fmt.Sprintf(`,
mine as materialized (
	select e.id, i.token, case t.state when 8 then 2 when 64 then 3 when 16 then 4 when 2 then 5 else 7 end as kind, i.node_name, i.started,
		case when i.cancel <> '' and t.state = 128 and e.kind <> 7 then i.cancel else e.err end as err
	from t join unnest(%s::bigint[], %s::smallint[], %s::text[]) with ordinality as e (id, kind, err, place) using (place)
	cross join lateral (select * from {s}.durable_item where id = e.id offset 0) as i
	where t.kind = 1 and t.outcome = 1 and t.flow = 0 and t.state <> 32 and (t.state <> 2 or e.kind = 5)
),
gone as (%s),
attempts as (
	insert into {s}.durable_attempt (queue, item, token, kind, node_name, started, ended, err)
	select $1, id, token, kind, node_name, started, pg_catalog.clock_timestamp(), pg_catalog.left(err, %s) from mine
)`, add(ids), add(kinds), add(errs), trim, add(durable.MaxAttemptError))
}

// attempts adds the statement that reads those of an item.
func (p *pipeline) attempts(queue string, id durable.ItemID, to *[]durable.Attempt) {
	p.rows(func(rows pgx.Rows) error {
		var a durable.Attempt
		err := rows.Scan(&a.Token, &a.Kind, &a.Node, &a.Started, &a.Ended, &a.Err)
		*to = slices.Insert(*to, 0, a)
		return err
	}, "select token, kind, node_name, started, ended, err from {s}.durable_attempt where queue = $1 and item = $2 order by token desc limit $3", queue, id, durable.MaxAttempts)
}
