package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Cancel is as in [durable.Store].
func (s *Store) Cancel(ctx context.Context, queue string, ids []durable.ItemID, from durable.State, reason string) ([]durable.State, error) {
	return change(ctx, s, queue, func(t *moment) []durable.State {
		states := make([]durable.State, len(ids))
		places := make([]int, len(ids)) // in the order of ids
		for n := range places {
			places[n] = n
		}
		slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(ids[a], ids[b]) })
		for _, n := range places {
			switch i := t.find(ids[n])[ids[n]]; {
			case i == nil || i.State&from == 0:
			case i.Flow > 0 && t.cancelFlow(i, reason):
				states[n] = i.State
			case i.State == durable.Running:
				i.Cancel, states[n] = cmp.Or(i.Cancel, reason), durable.Running
				t.save(i)
			case i.State&(durable.Waiting|durable.Halted|durable.Dead) != 0:
				i.Err, i.State, states[n] = reason, durable.Cancelled, durable.Cancelled
				t.save(t.leave(i)...)
			}
		}
		return states
	})
}

// Again is as in [durable.Store].
func (s *Store) Again(ctx context.Context, queue string, ids []durable.ItemID, from durable.State) ([]durable.ItemID, error) {
	return change(ctx, s, queue, func(t *moment) (changed []durable.ItemID) {
		for _, id := range slices.Sorted(slices.Values(ids)) {
			if i := t.find(id)[id]; i != nil && i.State&from&(durable.Dead|durable.Halted|durable.Cancelled) != 0 {
				if i.Flow == 2 && len(t.toUndo(i)) == 0 {
					t.forget(i)
				}
				t.again(i)
				changed = append(changed, id)
			}
		}
		return changed
	})
}

// again lets an item that does not run wait as if it were new.
func (t *moment) again(i *item) {
	state := durable.Ready
	if i.State == durable.Blocked || i.State&durable.Finished != 0 && t.first(isHead, t.queue, i.Key) != nil {
		state = durable.Blocked
	}
	i.State, i.Attempts, i.Losses, i.Token, i.runAt, i.Cancel, i.ended, i.failing, t.freed = state, 0, 0, 0, t.space(i.Key, t.now), "", 0, 0, true
	t.save(i)
}

// run runs one statement.
func (s *Store) run(ctx context.Context, queue, query string, args ...any) error {
	_, err := change(ctx, s, queue, func(t *moment) int { return t.do(query, args...) })
	return err
}

// Prune is as in [durable.Store].
func (s *Store) Prune(ctx context.Context, queue string, keep durable.Keep, most int) (pruned int, more bool, err error) {
	pruned, err = change(ctx, s, queue, func(t *moment) (pruned int) {
		for state, age := range map[durable.State]time.Duration{durable.Done: keep.Done, durable.Dead: keep.Dead, durable.Cancelled: keep.Cancelled} {
			if age >= 0 {
				gone, flows := t.pruneItems(`delete from durable_item where id in (
	select id from durable_item where queue = ? and state = ? and state >= 16 and ended <= ? order by ended limit ?) returning id, flow > 0`, queue, state, t.in(-age), most-pruned)
				if len(gone) > 0 {
					t.do("delete from durable_attempt where item in (select value from json_each(?)) returning item", encode(gone))
					t.do("delete from durable_result where item in (select value from json_each(?)) returning item", encode(gone))
					t.pruneFlows(gone, flows)
				}
				pruned += len(gone)
			}
		}
		t.prunePauses()
		ids := t.do("delete from durable_unique where queue = ?1 and unique_id in (select unique_id from durable_unique where queue = ?1 and until <= ?2 order by until limit ?3) returning 1", queue, t.now, most)
		more = max(pruned, ids, t.pruneSignals(keep.Signals, most)) >= most
		return pruned
	})
	return pruned, more && err == nil, err
}

// LastTick returns the latest tick of a schedule that MarkTick has stored, or the zero time.
// With MarkTick and ResetTick it makes [Store] a store of scheduledtasks.
func (s *Store) LastTick(ctx context.Context, schedule string) (time.Time, error) {
	return look(ctx, s, "", func(t *moment) (tick time.Time) {
		var us int64
		t.get(list{&us}, "select tick from durable_tick where schedule = ?", schedule)
		return at(us)
	})
}

// MarkTick stores the tick of a schedule, in microseconds. If the stored tick is later, it
// changes nothing.
func (s *Store) MarkTick(ctx context.Context, schedule string, tick time.Time) error {
	return s.run(ctx, "", "insert into durable_tick (schedule, tick) values (?, ?) on conflict (schedule) do update set tick = max(tick, excluded.tick)", schedule, tick.UnixMicro())
}

// ResetTick stores a time in place of the tick of a schedule, even if the stored tick is
// later.
func (s *Store) ResetTick(ctx context.Context, schedule string, to time.Time) error {
	return s.run(ctx, "", "insert into durable_tick (schedule, tick) values (?, ?) on conflict (schedule) do update set tick = excluded.tick", schedule, to.UnixMicro())
}

// Stats is as in [durable.Store]. It reads one index entry for each item.
func (s *Store) Stats(ctx context.Context, queue string) (durable.Stats, error) {
	return look(ctx, s, queue, (*moment).stats)
}

func (t *moment) stats() (st durable.Stats) {
	var oldest int64
	t.get(list{&st.Items, &st.Blocked, &st.Ready, &st.Delayed, &st.Running, &st.Retry, &st.Halted, &st.Done, &st.Dead, &st.Cancelled, &oldest, &st.Nodes}, `
select count(*), count(*) filter (where state = 1), count(*) filter (where state = 2 and run_at <= ?2), count(*) filter (where state = 2 and run_at > ?2),
	count(*) filter (where state = 4), count(*) filter (where state = 8), count(*) filter (where state = 16),
	count(*) filter (where state = 32), count(*) filter (where state = 64), count(*) filter (where state = 128),
	coalesce(?2 - min(enqueued) filter (where run_at <= ?2), 0), (select count(*) from durable_node where queue = ?1 and expires > ?2)
from (
	select state, run_at, enqueued from durable_item where queue = ?1 and state in (2, 8)
	union all select 1, 0, enqueued from durable_item where queue = ?1 and state = 1
	union all select 4, null, null from durable_item where queue = ?1 and state = 4
	union all select state, null, null from durable_item where queue = ?1 and state >= 16
)`, t.queue, t.now)
	st.Oldest, st.Paused, st.Pauses = max(0, time.Duration(oldest)*time.Microsecond), t.stopped(), t.paused("true")
	st.Strays, _, _ = t.waiting()
	st.Classes = t.classStats()
	return st
}

// Explain is as in [durable.Store].
func (s *Store) Explain(ctx context.Context, queue string, id durable.ItemID) (x durable.Explanation, ok bool, err error) {
	ok, err = look(ctx, s, queue, func(t *moment) bool {
		i := t.find(id)[id]
		if i != nil {
			x = t.explain(i)
		}
		return i != nil
	})
	return x, ok, err
}

func (t *moment) explain(i *item) durable.Explanation {
	x := durable.Explanation{Attempts: t.attempts(i.ID), Item: t.full(i), Time: at(t.now)}
	const count = "select count(*) from durable_item where queue = ? and "
	t.get(list{&x.Running}, count+"state = 4", t.queue)
	t.get(list{&x.LaneRunning}, "select count(*) from durable_item where queue = ?1 and state = 4 and "+inLane, t.queue, i.Lane)
	class, price := i.Class, i.Cost
	switch i.State {
	case durable.Blocked:
		if head := t.first(isHead, t.queue, i.Key); head != nil {
			item := t.full(head)
			x.Head, class, price = &item, head.Class, head.Cost
		}
		t.get(list{&x.Ahead}, count+"key = ? and state = 1 and (rank, id) < (?, ?)", t.queue, i.Key, i.Rank, i.ID)
		x.Ahead++
	case durable.Ready, durable.Retry:
		t.get(list{&x.Before}, count+"lane = ? and state in (2, 8) and run_at <= ? and (run_at, id) < (?, ?)", t.queue, i.place, t.now, i.runAt, i.ID)
	}
	x.Class = t.classOf(class, price)
	if next := t.space(i.Key, t.now); next > t.now {
		x.KeyNext = at(next)
	}
	for _, p := range t.paused("true") {
		if p.Class == "" && p.Key == "" || p.Class != "" && p.Class == class || p.Key != "" && p.Key == i.Key {
			x.Pauses = append(x.Pauses, p)
		}
	}
	x.Nodes = rows(t, func(n *durable.Serving) list { return list{decoder{&n.Node}, &n.Node.ID, &n.Note, &n.Running} },
		`select node, id, note, (select count(*) from durable_item as i where i.queue = n.queue and i.node = n.id and state = 4)
from durable_node as n where queue = ? and expires > ? order by id`, t.queue, t.now)
	return x
}

// decoder says where a column of JSON goes.
type decoder struct{ to any }

func (d decoder) Scan(text any) error { return json.Unmarshal([]byte(text.(string)), d.to) }
