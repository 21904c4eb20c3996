package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// lane is the stored form of a node's lane.
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
	err = s.transactOn(ctx, s.forBeats(), changes, func(p *pipeline) {
		p.declare(node)
		if node.KeyEvery > 0 {
			p.do(`insert into {s}.durable_queue as q (queue, key_every, key_burst) values ($1, $2, $3)
				on conflict (queue) do update set key_every = $2, key_burst = $3 where (q.key_every, q.key_burst) <> ($2, $3)`, node.Queue, micros(node.KeyEvery), int64(node.KeyBurst))
		} else {
			p.do("update {s}.durable_queue set key_every = 0, key_burst = 0 where queue = $1 and key_every > 0", node.Queue)
		}
		p.rows(func(rows pgx.Rows) error { return rows.Scan(&id) }, `
insert into {s}.durable_node (id, queue, name, lease, expires, slots, cluster, lanes)
select pg_catalog.nextval('{s}.durable_node_id'), $1, $2, $3::bigint * interval '1 microsecond', pg_catalog.clock_timestamp() + $3::bigint * interval '1 microsecond', $4, $5, $6::jsonb
returning id`, node.Queue, node.Name, micros(node.Lease), node.MaxConcurrency, node.MaxCluster, string(text))
	})
	return id, err
}

// Beat is as in [durable.Store].
func (s *Store) Beat(ctx context.Context, node durable.Node, note string) (b durable.Beaten, err error) {
	all, err := s.Beats(ctx, []durable.Beating{{Node: node, Note: note}})
	if err == nil && all[0].Gone {
		err = durable.ErrLeaseLost
	}
	if len(all) > 0 {
		b = all[0]
	}
	return b, err
}

// Beats is as in [durable.Store].
func (s *Store) Beats(ctx context.Context, all []durable.Beating) ([]durable.Beaten, error) {
	done := make([]durable.Beaten, len(all))
	err := s.transactOn(ctx, s.forBeats(), changes, func(p *pipeline) {
		p.do(byIndex)
		for n, b := range all {
			p.beat(b.Node, b.Note, &done[n])
		}
	})
	if err != nil {
		return nil, err
	}
	for n, b := range done {
		if b.Gone {
			done[n] = durable.Beaten{Lost: b.Lost, Gone: true}
		}
	}
	return done, nil
}

// beat adds the statements of a beat. Their results fill b.
func (p *pipeline) beat(node durable.Node, note string, b *durable.Beaten) {
	*b = durable.Beaten{Gone: true}
	lost := map[durable.NodeID]int{} // the place of each node in b.Lost
	p.rows(func(rows pgx.Rows) error {
		var id durable.NodeID
		var l durable.Lost
		err := rows.Scan(&id, &l.Name)
		lost[id] = len(b.Lost)
		b.Lost = append(b.Lost, l)
		return err
	}, `
with over as (select id from {s}.durable_node where queue = $1 and expires <= pg_catalog.clock_timestamp() order by id for update skip locked)
delete from {s}.durable_node where id in (select id from over) returning id, name`, node.Queue)
	p.free(node.Queue, true, func(id durable.NodeID) {
		if i, ok := lost[id]; ok {
			b.Lost[i].Claims++
		}
	})
	p.rows(func(pgx.Rows) error { b.Gone = false; return nil }, `
update {s}.durable_node set lease = $2::bigint * interval '1 microsecond', expires = pg_catalog.clock_timestamp() + $2::bigint * interval '1 microsecond', note = $3
where id = $1 and expires > pg_catalog.clock_timestamp() returning id`, node.ID, micros(node.Lease), note)
	p.rows(func(rows pgx.Rows) error { return rows.Scan(&b.Paused) }, "select "+isPaused, node.Queue)
	p.rows(func(rows pgx.Rows) error {
		var h durable.Held
		err := rows.Scan(&h.ID, &h.Token, &h.Cancel, &h.Key)
		b.Claims = append(b.Claims, h)
		return err
	}, "select id, token, cancel, key from {s}.durable_item where queue = $1 and node = $2 and state = 4 order by id", node.Queue, node.ID)
	p.rows(func(rows pgx.Rows) error {
		var due bool
		err := scanWaiting(rows, &b.Strays, &b.Classed, &due)
		b.Due = b.Due || due
		return err
	}, waiting, node.Queue)
	p.rows(func(rows pgx.Rows) error { return rows.Scan(&b.Suspect) }, `
with gone as (
	delete from {s}.durable_loss as l where l.queue = $1 and (l.losses <= 0 or not exists (select from {s}.durable_item as i where i.id = l.item and i.state + 0 in (2, 4, 8) offset 0))
)
select exists (
	select from {s}.durable_loss as l cross join lateral (select from {s}.durable_item where id = l.item and state + 0 in (2, 8) and run_at <= pg_catalog.clock_timestamp() offset 0) as i
	where l.queue = $1 and l.losses >= 2)`, node.Queue)
}

// scanWaiting reads a row of waiting, and adds its lane if no node has it.
func scanWaiting(rows pgx.Rows, strays *[]string, classed, due *bool) error {
	var lane string
	var stray bool
	var class string
	err := rows.Scan(&lane, &class, &stray, due)
	*classed = *classed || class != ""
	if at, known := slices.BinarySearch(*strays, lane); stray && !known {
		*strays = slices.Insert(*strays, at, lane)
	}
	return err
}

// waiting selects the lanes with items that wait, whether no node has them, and whether an item can be
// claimed. It takes few steps in an index for each lane, and for each class in it.
const waiting = `
with recursive due (lane) as (
	(select lane from {s}.durable_item where queue = $1 and state in (2, 8) order by lane limit 1)
	union all
	select (select i.lane from {s}.durable_item as i where i.queue = $1 and i.state in (2, 8) and i.lane > due.lane order by i.lane limit 1) from due where due.lane is not null
),
nodes as materialized (select lanes from {s}.durable_node where queue = $1 and expires > pg_catalog.clock_timestamp())
select pg_catalog.split_part(lane, pg_catalog.chr(1), -1), pg_catalog.split_part(lane, pg_catalog.chr(1), 2), exists (select from nodes) and not exists (select from nodes where lanes @> pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_object('name', pg_catalog.split_part(lane, pg_catalog.chr(1), -1)))),
	(select i.run_at from {s}.durable_item as i where i.queue = $1 and i.lane = due.lane and i.state in (2, 8) order by i.run_at limit 1) <= pg_catalog.clock_timestamp()
from due where lane is not null`

// free makes the items of ended nodes Ready, and calls count with the node of each item. Lost says
// that the leases of the nodes were lost. Items that a transaction has locked, for example with
// Finish, are left to the next beat.
func (p *pipeline) free(queue string, lost bool, count func(durable.NodeID)) {
	p.rows(func(rows pgx.Rows) error {
		var id durable.NodeID
		err := rows.Scan(&id)
		count(id)
		return err
	}, `
with held as materialized (
	select i.id, i.node, i.token, i.node_name, i.started, i.key, coalesce((select l.losses from {s}.durable_loss as l where l.queue = $1 and l.item = i.id), 0) as losses
	from {s}.durable_item as i
	where i.queue = $1 and i.state = 4 and not exists (select from {s}.durable_node as n where n.id = i.node)
	order by i.id for update skip locked
),
old as materialized (
	select i.*, k.full_at, k.next from held as i left join lateral (
		select f.full_at, least(f.full_at, r.most) - r.every * (r.burst - 1) as next from (
			select c.now, q.key_burst as burst, q.key_every * interval '1 microsecond' as every, c.now + q.key_every * q.key_burst * interval '1 microsecond' as most
			from {s}.durable_queue as q, pg_catalog.clock_timestamp() as c (now) where q.queue = $1 and q.key_every > 0 and i.key <> ''
		) as r cross join lateral (
			select greatest(least((select b.full_at from {s}.durable_key as b where b.queue = $1 and b.key = i.key), r.most), least(i.started, r.now)) + r.every as full_at
		) as f
	) as k on true
),
freed as (
	update {s}.durable_item as i set state = 2, token = 0, node = null,
		attempts = case when $2 and old.losses >= 2 then i.attempts else i.attempts - 1 end,
		run_at = greatest(old.next, case when $2 and old.losses >= 1 then pg_catalog.clock_timestamp() + pg_catalog.power(2, least(old.losses - 1, 6)) * interval '1 second' else i.run_at end)
	from old where i.id = old.id and i.id = any(array(select id from old)) and i.state + 0 = 4 returning old.*
),
booked as (
	insert into {s}.durable_key as k (queue, key, full_at) select $1, key, full_at from freed where full_at is not null order by key
	on conflict (queue, key) do update set full_at = greatest(k.full_at, excluded.full_at)
),
losses as (
	insert into {s}.durable_loss as l (queue, item, losses, token) select $1, id, 1, token from freed where $2
	on conflict (queue, item) do update set losses = l.losses + 1, token = excluded.token
),
mine as (select * from freed where $2),
gone as (`+trim+`),
attempts as (
	insert into {s}.durable_attempt (queue, item, token, kind, node_name, started, ended, err)
	select $1, id, token, 8, node_name, started, pg_catalog.clock_timestamp(), 'the lease of the node was lost' from mine
)
select node from freed`, queue, lost)
}

// Leave is as in [durable.Store].
func (s *Store) Leave(ctx context.Context, node durable.Node) error {
	return s.transactOn(ctx, s.forBeats(), changes, func(p *pipeline) {
		p.do(byIndex)
		p.do("delete from {s}.durable_node where id = $1", node.ID)
		p.free(node.Queue, false, func(durable.NodeID) {})
	})
}

// Ahead is as in [durable.Store]: a turn with 50 items takes about twice as long as one with a few.
func (s *Store) Ahead(slots int) int { return max(slots, 50) }

// Turn is as in [durable.Store]. Without limits, nodes claim side by side.
func (s *Store) Turn(ctx context.Context, node durable.Node, ends []durable.End, want durable.Want) (t durable.Turned, err error) {
	if len(ends) == 0 && want.Max == 0 {
		return t, nil
	}
	var alive bool
	if err = s.transactOn(ctx, s.forTurns(), changes, func(p *pipeline) {
		if slices.ContainsFunc(ends, func(e durable.End) bool { return e.Kind != durable.EndDone || len(e.Steps) > 0 }) {
			p.do(byIndex) // for attempts and steps; the function sees to itself
		}
		p.turn(node, ends, want, false, &t, &alive)
	}); err != nil {
		return durable.Turned{}, err
	}
	if !alive {
		return t, durable.ErrLeaseLost
	}
	return t, nil
}

// turn adds the call of the function. Its rows fill the result. If wait is true, it waits for
// locks without a time limit.
func (p *pipeline) turn(node durable.Node, ends []durable.End, want durable.Want, wait bool, t *durable.Turned, alive *bool) {
	var (
		names, keys, errs []string
		limits            []int32
		tokens, after     []int64
		calls, costs      []int64 // nil: none
		gates             []string
		most              []int64
		ids               []durable.ItemID
		kinds             []int16
		hand              []bool
		aged, patience    = int64(-1), int64(0) // no
		turns             []int                 // of the items
	)
	for _, l := range node.Lanes {
		names, limits = append(names, l.Name), append(limits, int32(l.Limit))
	}
	for _, e := range ends {
		ids, tokens, keys, after = append(ids, e.ID), append(tokens, e.Token), append(keys, e.Key), append(after, micros(e.After))
		kinds, errs, hand = append(kinds, int16(e.Kind)), append(errs, e.Err), append(hand, e.HandOver)
		patience = max(patience, e.Patience.Milliseconds())
	}
	if slices.ContainsFunc(ends, func(e durable.End) bool { return e.Calls != 0 || e.Cost != 0 }) {
		for _, e := range ends {
			calls, costs = append(calls, e.Calls), append(costs, e.Cost)
		}
	}
	for _, g := range want.Gates {
		gates, most = append(gates, g.Class), append(most, int64(g.Limit))
	}
	if want.Aged > 0 {
		aged = micros(want.Aged)
	}
	if wait {
		patience = -1
	}
	*t, *alive = durable.Turned{Ends: append([]durable.Ended(nil), make([]durable.Ended, len(ends))...)}, true // nil if there are none
	args := []any{node.Queue, node.ID, names, limits, node.MaxCluster, want.Max, want.Ahead, aged, want.Alone, len(node.Classes) > 0, patience, numbers(ids), tokens, keys, kinds, after, errs, hand, calls, costs, gates, most}
	add := func(arg any) string { args = append(args, arg); return fmt.Sprint("$", len(args)) }
	kept, flows := keeping(ends, add), ""
	if text := flowsOf(ends); text != "" {
		flows = ", " + add(text) + "::jsonb"
	}
	p.rows(func(rows pgx.Rows) error {
		var kind, place int
		var outcome durable.Outcome
		i, err := scanItem(rows, &kind, &place, &outcome)
		switch {
		case err != nil:
			return err
		case kind == 0:
			*alive = false
		case kind == 1:
			if t.Ends[place-1].Outcome = outcome; outcome <= durable.OutcomeAlready {
				t.Ends[place-1].State = i.State
			}
		case kind == 2 && i.State == durable.Running:
			i.Trial = outcome == 1
			t.Ends[place-1].Next = &i
		case kind == 2:
			t.Ends[place-1].Promoted = true
		case kind == 4:
			t.Waits = append(t.Waits, durable.ClassWait{Class: i.Key, Next: duration(int64(i.ID)), Half: duration(i.Token)})
		case kind == 5:
			shadow(t, i.ID, duration(i.Token))
		default:
			i.Trial = outcome == 1
			at, _ := slices.BinarySearch(turns, place)
			turns, t.Items = slices.Insert(turns, at, place), slices.Insert(t.Items, at, i)
		}
		return nil
	}, "with t as materialized (select * from {s}.durable_turn_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22"+flows+"))"+kept+`
select kind, place, outcome, `+common+", i.expires, i.losses, '', 0 from t as i", args...)
}

// shadow sets Shadow of an item that the turn has claimed.
func shadow(t *durable.Turned, id durable.ItemID, late time.Duration) {
	for n := range t.Items {
		if t.Items[n].ID == id {
			t.Items[n].Shadow = late
		}
	}
	for _, e := range t.Ends {
		if e.Next != nil && e.Next.ID == id {
			e.Next.Shadow = late
		}
	}
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
