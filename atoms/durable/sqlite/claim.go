package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// Join is as in [durable.Store].
func (s *Store) Join(ctx context.Context, node durable.Node) (durable.NodeID, error) {
	text, err := json.Marshal(node)
	if err != nil {
		return 0, err
	}
	return change(ctx, s, node.Queue, func(t *moment) (id durable.NodeID) {
		t.get(list{&id}, "insert into durable_node (queue, name, expires, node) values (?, ?, ?, ?) returning id", node.Queue, node.Name, t.in(node.Lease), string(text))
		return id
	})
}

// Beat is as in [durable.Store].
func (s *Store) Beat(ctx context.Context, node durable.Node, note string) (durable.Beaten, error) {
	all, err := s.Beats(ctx, []durable.Beating{{Node: node, Note: note}})
	if err != nil {
		return durable.Beaten{}, err
	}
	if all[0].Gone { // what it did for the others is committed
		err = durable.ErrLeaseLost
	}
	return all[0], err
}

// Beats is as in [durable.Store].
func (s *Store) Beats(ctx context.Context, all []durable.Beating) ([]durable.Beaten, error) {
	return change(ctx, s, "", func(t *moment) (done []durable.Beaten) {
		for _, b := range all {
			t.queue, t.freed = b.Node.Queue, false
			done = append(done, t.beat(b.Node, b.Note))
			t.announce()
		}
		t.freed = false
		return done
	})
}

func (t *moment) beat(node durable.Node, note string) (b durable.Beaten) {
	over := rows(t, func(n *durable.Node) list { return list{&n.ID, &n.Name} }, "select id, name from durable_node where queue = ? and expires <= ? order by id", t.queue, t.now)
	for _, n := range over {
		b.Lost = append(b.Lost, durable.Lost{Name: n.Name, Claims: t.free(n.ID, true)})
	}
	b.Gone = t.do("update durable_node set expires = ?, note = ? where id = ? returning id", t.in(node.Lease), note, node.ID) == 0
	if !b.Gone {
		b.Paused = t.paused()
		b.Claims = rows(t, func(h *durable.Held) list { return list{&h.ID, &h.Token, &h.Cancel, &h.Key} },
			"select id, token, cancel, key from durable_item where queue = ? and node = ? and state = 4 order by id", t.queue, node.ID)
		b.Strays, b.Due = t.waiting()
		b.Suspect = t.get(list{new(int)}, "select 1 from durable_item where queue = ? and losses >= 1 and losses >= 2 and run_at <= ? and state in (2, 8) limit 1", t.queue, t.now)
	}
	return b
}

// free ends a node, whose lease is lost or not, and returns how many claims it had.
func (t *moment) free(id durable.NodeID, lost bool) int {
	t.freed = true
	t.do("delete from durable_node where id = ?", id)
	if lost {
		for _, i := range t.items("queue = ? and node = ? and state = 4", t.queue, id) {
			t.attempted(i, durable.EndLost, "the lease of the node was lost")
		}
	}
	return t.do(`update durable_item set state = 2, token = iif(?1, -token, 0), node = 0, attempts = iif(?1 and losses >= 2, attempts, attempts - 1),
	run_at = iif(?1 and losses >= 1, ?2 + (1000000 << min(losses - 1, 6)), run_at), losses = losses + ?1
where queue = ?3 and node = ?4 and state = 4 returning id`, lost, t.now, t.queue, id)
}

// waiting are the lanes with items that wait, which no node has, and whether an item of any lane can be
// claimed. It takes few steps in an index for each lane.
func (t *moment) waiting() (strays []string, due bool) {
	type lane struct {
		name       string
		stray, due bool
	}
	for _, l := range rows(t, func(l *lane) list { return list{&l.name, &l.stray, &l.due} }, `
with recursive due (lane) as (
	select (select min(lane) from durable_item where queue = ?1 and state in (2, 8))
	union all
	select (select min(i.lane) from durable_item as i where i.queue = ?1 and i.state in (2, 8) and i.lane > due.lane) from due where due.lane is not null
)
select lane, exists (select 1 from durable_node where queue = ?1 and expires > ?2) and not exists (select 1 from durable_node as n, json_each(n.node, '$.Lanes') as l where n.queue = ?1 and n.expires > ?2 and l.value ->> 'Name' = due.lane),
	(select min(i.run_at) from durable_item as i where i.queue = ?1 and i.lane = due.lane and i.state in (2, 8)) <= ?2
from due where lane is not null`, t.queue, t.now) {
		if due = due || l.due; l.stray {
			strays = append(strays, l.name)
		}
	}
	return strays, due
}

// Leave is as in [durable.Store].
func (s *Store) Leave(ctx context.Context, node durable.Node) error {
	_, err := change(ctx, s, node.Queue, func(t *moment) int { return t.free(node.ID, false) })
	return err
}

// Ahead is as in [durable.Store].
func (s *Store) Ahead(slots int) int { return slots }

// Turn is as in [durable.Store]. No end is ever busy.
func (s *Store) Turn(ctx context.Context, node durable.Node, ends []durable.End, want durable.Want) (durable.Turned, error) {
	if len(ends) == 0 && want.Max == 0 {
		return durable.Turned{}, context.Cause(ctx)
	}
	alive := true
	turned, err := change(ctx, s, node.Queue, func(t *moment) durable.Turned {
		var n claimer
		alive = t.get(list{&n.id, &n.name, &n.expires}, "select id, name, expires from durable_node where id = ? and expires > ?", node.ID, t.now)
		if t.paused() {
			n.id = 0
		}
		done := t.end(ends, n)
		for _, e := range done.Ends {
			if e.Next != nil {
				want.Max--
			}
		}
		if want.Ahead > 0 && t.get(list{new(int)}, "select 1 from durable_item where queue = ? and losses >= 1 limit 1", t.queue) {
			want.Max -= want.Ahead
		}
		if n.id != 0 && want.Max > 0 {
			done.Items = t.take(n, t.claim(node, want))
		}
		return done
	})
	if err == nil && !alive && want.Max > 0 {
		err = durable.ErrLeaseLost // the ends are committed
	}
	return turned, err
}

// A claimer is a node that claims, or nobody if the id is 0.
type claimer struct {
	id      durable.NodeID
	name    string
	expires int64
}

// claim returns what a node can claim now, in the order of its claims.
func (t *moment) claim(node durable.Node, want durable.Want) (found []*item) {
	busy := map[string]int{} // by lane, of what is found before
	var first durable.ItemID
	// due returns what can be claimed of a lane now, the first one first.
	due := func(l core.Lane, most int) []*item {
		return t.items(`queue = ?1 and lane = ?2 and state in (2, 8) and run_at <= ?3 and id <> ?9 and (losses >= 2) = ?10 order by run_at, id limit max(0, min(?4,
	iif(?5 > 0, ?5 - ?7 - (select count(*) from durable_item where queue = ?1 and state = 4), ?4),
	iif(?6 > 0, ?6 - ?8 - (select count(*) from durable_item where queue = ?1 and lane = ?2 and state = 4), ?4)))`,
			t.queue, l.Name, t.now, most, node.MaxCluster, l.Limit, len(found), busy[l.Name], first, want.Alone)
	}
	if want.Aged > 0 {
		var old []*item
		for _, l := range node.Lanes {
			old = append(old, due(l, 1)...)
		}
		slices.SortFunc(old, func(a, b *item) int { return cmp.Or(cmp.Compare(a.runAt, b.runAt), cmp.Compare(a.ID, b.ID)) })
		if len(old) > 0 && old[0].runAt <= t.in(-want.Aged) {
			found, first = old[:1], old[0].ID
			busy[old[0].Lane]++
		}
	}
	for _, l := range node.Lanes {
		found = append(found, due(l, want.Max-len(found))...)
	}
	return found
}

// end ends claims, and n claims the next items of their keys if it may.
func (t *moment) end(ends []durable.End, n claimer) (done durable.Turned) {
	var ids []durable.ItemID
	for _, e := range ends {
		ids = append(ids, e.ID)
	}
	known := t.find(ids...)
	var left []*item
	over := map[string]int{} // by key, the place of its end
	for place, e := range ends {
		i := known[e.ID]
		switch {
		case i != nil && e.Token > 0 && i.Token == -e.Token && i.State == durable.Ready && e.Kind == durable.EndGivenBack: // after its lease was lost
			if i.Losses > durable.LossesAlone {
				i.Attempts--
			}
			i.Losses, i.Token = max(0, i.Losses-1), 0
			t.save(i)
			done.Ends = append(done.Ends, durable.Ended{Outcome: durable.OutcomeAlready, State: i.State})
		case i == nil || i.Token != e.Token:
			done.Ends = append(done.Ends, durable.Ended{Outcome: durable.OutcomeFenced})
		case i.State != durable.Running:
			done.Ends = append(done.Ends, durable.Ended{Outcome: durable.OutcomeAlready, State: i.State})
		default:
			i.State = t.after(i, e)
			if i.State == durable.Ready && e.Kind == durable.EndSnoozed {
				t.attempted(i, e.Kind, e.Err)
			} else if i.State&(durable.Ready|durable.Done) == 0 {
				t.attempted(i, kindOf[i.State], i.Err)
			}
			over[i.Key] = place
			left = append(left, i)
			done.Ends = append(done.Ends, durable.Ended{Outcome: durable.OutcomeEnded, State: i.State})
		}
	}
	var taken []*item
	for _, next := range t.leave(left...) {
		e := ends[over[next.Key]]
		if e.HandOver && n.id != 0 && next.Lane == known[e.ID].Lane && next.runAt <= t.now {
			taken = append(taken, next)
		} else {
			done.Ends[over[next.Key]].Promoted = true
			t.save(next)
		}
	}
	for _, next := range t.take(n, taken) {
		done.Ends[over[next.Key]].Next = &next
	}
	return done
}

var stateAfter = [...]durable.State{durable.EndDone: durable.Done, durable.EndRetry: durable.Retry, durable.EndDead: durable.Dead, durable.EndHalted: durable.Halted,
	durable.EndSnoozed: durable.Ready, durable.EndGivenBack: durable.Ready, durable.EndCancelled: durable.Cancelled}

var kindOf = map[durable.State]durable.EndKind{durable.Retry: durable.EndRetry, durable.Dead: durable.EndDead, durable.Halted: durable.EndHalted, durable.Cancelled: durable.EndCancelled}

// after changes a claim as its end says, and returns the state that follows.
func (t *moment) after(i *item, e durable.End) durable.State {
	state := stateAfter[e.Kind]
	if e.Kind != durable.EndGivenBack {
		i.Losses = 0
	}
	if i.Cancel != "" && state&durable.Waiting != 0 {
		state, e = durable.Cancelled, durable.End{Err: i.Cancel}
	}
	if e.Kind == durable.EndRetry || e.Kind == durable.EndSnoozed {
		i.runAt = t.in(e.After)
	}
	if state == durable.Ready {
		i.Attempts--
	} else {
		i.Err = e.Err
	}
	if state == durable.Halted && i.Key == "" {
		state = durable.Dead
	}
	return state
}
