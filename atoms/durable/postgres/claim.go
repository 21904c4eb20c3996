package postgres

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// lane is how a node's lane is stored.
type lane struct {
	Name  string `json:"name"`
	Limit int    `json:"limit,omitempty"`
}

// Join is as in [durable.Store].
func (s *Store) Join(ctx context.Context, node durable.Node) (id durable.NodeID, err error) {
	var lanes []lane
	for _, l := range node.Lanes {
		lanes = append(lanes, lane{l.Name, l.Limit})
	}
	text, err := json.Marshal(lanes)
	if err != nil {
		return 0, err
	}
	err = s.transact(ctx, changes, func(p *pipeline) {
		p.rows(func(rows pgx.Rows) error { return rows.Scan(&id) }, `
insert into {s}.durable_node (id, queue, name, lease, expires, slots, cluster, lanes)
select nextval('{s}.durable_node_id'), $1, $2, $3::bigint * interval '1 microsecond', clock_timestamp() + $3::bigint * interval '1 microsecond', $4, $5, $6::jsonb
returning id`, node.Queue, node.Name, micros(node.Lease), node.MaxConcurrency, node.MaxCluster, string(text))
	})
	return id, err
}

// Beat is as in [durable.Store].
func (s *Store) Beat(ctx context.Context, node durable.Node, note string) (b durable.Beaten, err error) {
	var alive bool
	err = s.transact(ctx, changes, func(p *pipeline) {
		b, alive = durable.Beaten{}, false
		lost := map[durable.NodeID]int{} // by node, its place in b.Lost
		p.rows(func(rows pgx.Rows) error {
			var id durable.NodeID
			var l durable.Lost
			err := rows.Scan(&id, &l.Name)
			lost[id] = len(b.Lost)
			b.Lost = append(b.Lost, l)
			return err
		}, `
with over as (select id from {s}.durable_node where queue = $1 and expires <= clock_timestamp() order by id for update skip locked)
delete from {s}.durable_node where id in (select id from over) returning id, name`, node.Queue)
		p.free(node.Queue, func(id durable.NodeID) {
			if i, ok := lost[id]; ok {
				b.Lost[i].Claims++
			}
		})
		p.rows(func(pgx.Rows) error { alive = true; return nil }, `
update {s}.durable_node set lease = $2::bigint * interval '1 microsecond', expires = clock_timestamp() + $2::bigint * interval '1 microsecond', note = $3
where id = $1 and expires > clock_timestamp() returning id`, node.ID, micros(node.Lease), note)
		p.rows(func(rows pgx.Rows) error { return rows.Scan(&b.Paused) }, "select paused from {s}.durable_queue where queue = $1", node.Queue)
		p.rows(func(rows pgx.Rows) error {
			var h durable.Held
			err := rows.Scan(&h.ID, &h.Token, &h.Cancel)
			b.Claims = append(b.Claims, h)
			return err
		}, "select id, token, cancel from {s}.durable_item where queue = $1 and node = $2 and state = 4 order by id", node.Queue, node.ID)
	})
	if err == nil && !alive {
		return durable.Beaten{Lost: b.Lost}, durable.ErrLeaseLost
	}
	return b, err
}

// free makes the items of lost nodes Ready, and calls count for the node of each. Items that a
// transaction has locked, for example with Finish, are left to the next beat.
func (p *pipeline) free(queue string, count func(durable.NodeID)) {
	p.rows(func(rows pgx.Rows) error {
		var id durable.NodeID
		err := rows.Scan(&id)
		count(id)
		return err
	}, `
with old as materialized (
	select i.id, i.node from {s}.durable_item as i
	where i.queue = $1 and i.state = 4 and not exists (select from {s}.durable_node as n where n.id = i.node)
	order by i.id for update skip locked
)
update {s}.durable_item as i set state = 2, token = 0, node = null from old where i.id = old.id and i.state = 4 returning old.node`, queue)
}

// Leave is as in [durable.Store].
func (s *Store) Leave(ctx context.Context, node durable.Node) error {
	return s.transact(ctx, changes, func(p *pipeline) {
		p.do("delete from {s}.durable_node where id = $1", node.ID)
		p.free(node.Queue, func(durable.NodeID) {})
	})
}

// lockNode locks the node if it is alive, so that no other process ends it before the
// transaction ends.
func (p *pipeline) lockNode(id durable.NodeID, alive *bool) {
	*alive = false
	p.rows(func(pgx.Rows) error { *alive = true; return nil },
		"select id from {s}.durable_node where id = $1 and expires > clock_timestamp() for key share", id)
}

// Claim is as in [durable.Store]. Without limits, nodes claim side by side.
func (s *Store) Claim(ctx context.Context, node durable.Node, want durable.Want) (claimed []durable.Item, err error) {
	var alive bool
	if err = s.transact(ctx, changes, func(p *pipeline) { p.claim(node, want, &claimed, &alive) }); err != nil {
		return nil, err
	}
	if !alive {
		return nil, durable.ErrLeaseLost
	}
	return claimed, nil
}

func (p *pipeline) claim(node durable.Node, want durable.Want, claimed *[]durable.Item, alive *bool) {
	var names []string
	var limits []int32
	limited := node.MaxCluster > 0
	for _, l := range node.Lanes {
		names, limits = append(names, l.Name), append(limits, int32(l.Limit))
		limited = limited || l.Limit > 0
	}
	aged := int64(-1) // no
	if want.Aged > 0 {
		aged = micros(want.Aged)
	}
	if limited {
		p.do("select "+claimLock, node.Queue)
	}
	p.lockNode(node.ID, alive)
	var turns []int // of the items in claimed
	*claimed = nil
	p.rows(func(rows pgx.Rows) error {
		var turn int
		i, err := scanItem(rows, &turn)
		at, _ := slices.BinarySearch(turns, turn)
		turns, *claimed = slices.Insert(turns, at, turn), slices.Insert(*claimed, at, i)
		return err
	}, `
with clock as materialized (select clock_timestamp() as now),
n as materialized (
	select id, name, expires from {s}.durable_node, clock where id = $2 and expires > now
		and not exists (select from {s}.durable_queue where queue = $1 and paused)
),
running as materialized (select lane, count(*) as running from {s}.durable_item where queue = $1 and state = 4 group by lane),
room as materialized (
	select greatest(0, least($5::bigint, case when $6::int > 0 then $6 - coalesce(sum(running), 0) else $5 end)) as room from running
),
lanes as materialized (
	select lane, place, greatest(0, least(room, case when most > 0 then most - coalesce(running, 0) else room end)) as room
	from unnest($3::text[], $4::int[]) with ordinality as l (lane, most, place) left join running using (lane), room
),
found as materialized (
	select c.id, c.run_at, l.place from lanes as l, lateral (
		select i.id, i.run_at from {s}.durable_item as i
		where i.queue = $1 and i.lane = l.lane and i.state in (2, 8) and i.run_at <= (select now from clock)
		order by i.run_at, i.id limit l.room for update skip locked
	) as c where exists (select from n)
),
ranked as (
	select id, run_at, place, $7::bigint >= 0 and run_at <= now - $7::bigint * interval '1 microsecond'
		and row_number() over (order by run_at, id) = 1 as aged
	from found, clock
),
taken as (
	select id, row_number() over (order by aged desc, place, run_at, id) as turn from ranked
	order by turn limit (select room from room)
)
update {s}.durable_item as i
set state = 4, token = nextval('{s}.durable_token'), attempts = attempts + 1, started = now, node = n.id, node_name = n.name
from taken, clock, n where i.id = taken.id
returning turn, `+columns, node.Queue, node.ID, names, limits, want.Max, node.MaxCluster, aged)
}

// End is as in [durable.Store].
func (s *Store) End(ctx context.Context, node durable.Node, ends []durable.End) (done []durable.Ended, err error) {
	if len(ends) == 0 {
		return nil, nil
	}
	err = s.transact(ctx, changes, func(p *pipeline) { done = p.end(node, ends) })
	return done, err
}

// end adds the statements of End, which fill the result.
func (p *pipeline) end(node durable.Node, ends []durable.End) []durable.Ended {
	var (
		ids           []durable.ItemID
		tokens, after []int64
		kinds         []int16
		errs          []string
		hand          []bool
		places        = map[durable.ItemID]int{}
		done          = make([]durable.Ended, len(ends))
	)
	for n, e := range ends {
		places[e.ID] = n
		done[n] = durable.Ended{Outcome: durable.OutcomeFenced}
		ids, tokens, after = append(ids, e.ID), append(tokens, e.Token), append(after, micros(e.After))
		kinds, errs, hand = append(kinds, int16(e.Kind)), append(errs, e.Err), append(hand, e.HandOver)
	}
	p.lockKeysOf(node.Queue, ids)
	if slices.Contains(hand, true) {
		p.lockNode(node.ID, new(bool)) // before the rows, as Beat does
	}
	p.lockRows(node.Queue, ids)
	outcome := func(o durable.Outcome) func(pgx.Rows) error {
		return func(rows pgx.Rows) error {
			var id durable.ItemID
			var state durable.State
			err := rows.Scan(&id, &state)
			done[places[id]] = durable.Ended{Outcome: o, State: state}
			return err
		}
	}
	p.rows(outcome(durable.OutcomeAlready), `
select i.id, i.state from unnest($2::bigint[], $3::bigint[]) as e (id, token)
join {s}.durable_item as i on i.id = e.id and i.token = e.token where i.queue = $1 and i.state <> 4`, node.Queue, numbers(ids), tokens)
	p.rows(outcome(durable.OutcomeEnded), `
with mine as materialized (
	select e.*, i.token as current, i.queue, i.state, i.cancel
	from unnest($2::bigint[], $3::bigint[], $4::smallint[], $5::bigint[], $6::text[]) as e (id, token, kind, after, err)
	join {s}.durable_item as i on i.id = e.id
)
update {s}.durable_item as i set
	state = case e.kind when 1 then 32 when 2 then 8 when 3 then 64 when 4 then case when i.key = '' then 64 else 16 end when 7 then 128 else 2 end,
	attempts = case when e.kind in (5, 6) then i.attempts - 1 else i.attempts end,
	run_at = case when e.kind in (2, 5) then clock_timestamp() + e.after * interval '1 microsecond' else i.run_at end,
	ended = case when e.kind in (1, 3, 4, 7) then clock_timestamp() end,
	err = case when e.kind in (5, 6) then i.err else e.err end,
	node = null
from (
	select id, after, case when cancelled then 7 else kind end as kind, case when cancelled then cancel else err end as err
	from mine, lateral (select cancel <> '' and kind in (2, 5, 6) as cancelled) as x
	where current = token and queue = $1 and state = 4
) as e where i.id = e.id returning i.id, i.state`, node.Queue, numbers(ids), tokens, kinds, after, errs)
	p.promote(node.Queue, ids, hand, node.ID, func(ended durable.ItemID, next durable.Item) { done[places[ended]].Next = &next })
	return done
}

// head is a subquery for the head of a key. "offset 0" makes the server look in the unique index
// for each key, also if its statistics are old. "materialized" makes it begin with the ids.
func head(key string) string {
	return "(select from {s}.durable_item as h where h.queue = $1 and h.key = " + key + " and h.key <> '' and h.state in (2, 4, 8, 16) offset 0)"
}

// promote promotes each key whose head, one of the ids, has just left. If hand is true for an
// id and the node may claim the promoted item, it claims it at once, and handed is called.
func (p *pipeline) promote(queue string, ids []durable.ItemID, hand []bool, node durable.NodeID, handed func(ended durable.ItemID, next durable.Item)) {
	p.rows(func(rows pgx.Rows) error {
		var ended durable.ItemID
		next, err := scanItem(rows, &ended)
		if next.State == durable.Running {
			handed(ended, next)
		}
		return err
	}, `
with clock as materialized (select clock_timestamp() as now),
old as materialized (
	select o.*, e.hand from unnest($2::bigint[], $3::bool[]) as e (id, hand) join {s}.durable_item as o on o.id = e.id
),
gone as (
	select distinct on (key) key, id, lane, hand from old
	where queue = $1 and key <> '' and state >= 32 and not exists `+head("old.key")+`
	order by key, ended desc
),
owner as materialized (
	select id, name, expires from {s}.durable_node, clock where id = $4 and expires > now
		and not exists (select from {s}.durable_queue where queue = $1 and paused)
),
next as (
	select b.id, gone.id as ended, n.id as node, n.name, n.expires
	from clock cross join gone cross join lateral (
		select id, lane, run_at from {s}.durable_item as i where i.queue = $1 and i.key = gone.key and i.state = 1 order by i.rank, i.id limit 1
	) as b
	left join owner as n on gone.hand and b.lane = gone.lane and b.run_at <= now
)
update {s}.durable_item as i set
	state = case when n.node is null then 2 else 4 end,
	run_at = greatest(i.run_at, now),
	token = case when n.node is null then i.token else nextval('{s}.durable_token') end,
	attempts = case when n.node is null then i.attempts else i.attempts + 1 end,
	started = case when n.node is null then i.started else now end,
	node = n.node, node_name = coalesce(n.name, i.node_name)
from next as n, clock where i.id = n.id
returning n.ended, `+columns, queue, numbers(ids), hand, node)
}

// lanesOf reads what Join has stored.
func lanesOf(text []byte) (lanes []core.Lane, err error) {
	var stored []lane
	err = json.Unmarshal(text, &stored)
	for _, l := range stored {
		lanes = append(lanes, core.Lane{Name: l.Name, Limit: l.Limit})
	}
	return lanes, err
}
