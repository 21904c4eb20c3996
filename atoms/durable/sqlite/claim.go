package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// Join is as in [durable.Store].
func (s *Store) Join(ctx context.Context, node durable.Node) (durable.NodeID, error) {
	stored := node
	stored.Classes, stored.KeyEvery, stored.KeyBurst = nil, 0, 0
	text, err := json.Marshal(stored)
	if err != nil {
		return 0, err
	}
	return change(ctx, s, node.Queue, func(t *moment) (id durable.NodeID) {
		for _, c := range node.Classes {
			t.declare(c)
		}
		if r := t.rule(); r.every != node.KeyEvery.Microseconds() || r.burst != int64(node.KeyBurst) {
			t.do("insert into durable_queue (queue, key_every, key_burst) values (?1, ?2, ?3) on conflict (queue) do update set key_every = ?2, key_burst = ?3", t.queue, node.KeyEvery.Microseconds(), node.KeyBurst)
		}
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
	if all[0].Gone { // the ends of the other nodes are committed
		err = durable.ErrLeaseLost
	}
	return all[0], err
}

// Beats is as in [durable.Store].
func (s *Store) Beats(ctx context.Context, all []durable.Beating) ([]durable.Beaten, error) {
	return change(ctx, s, "", func(t *moment) (done []durable.Beaten) {
		for _, b := range all {
			t.queue, t.freed, t.rules = b.Node.Queue, false, nil
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
		b.Paused = t.stopped()
		b.Claims = rows(t, func(h *durable.Held) list { return list{&h.ID, &h.Token, &h.Cancel, &h.Key} },
			"select id, token, cancel, key from durable_item where queue = ? and node = ? and state = 4 order by id", t.queue, node.ID)
		b.Strays, b.Classed, b.Due = t.waiting()
		b.Suspect = t.get(list{new(int)}, "select 1 from durable_item where queue = ? and losses >= 1 and losses >= 2 and run_at <= ? and state in (2, 8) limit 1", t.queue, t.now)
	}
	return b
}

// free ends a node and returns how many claims it had. Lost says that its lease was lost.
func (t *moment) free(id durable.NodeID, lost bool) int {
	t.freed = true
	t.do("delete from durable_node where id = ?", id)
	var booked []*item
	if every := t.rule().every; lost || every > 0 {
		for _, i := range t.items("queue = ? and node = ? and state = 4", t.queue, id) {
			if lost {
				t.attempted(i, durable.EndLost, "the lease of the node was lost")
			}
			if every > 0 && i.Key != "" {
				t.book(i)
				booked = append(booked, i)
			}
		}
	}
	defer func() {
		for _, i := range booked {
			t.do("update durable_item set run_at = max(run_at, ?) where id = ?", t.space(i.Key, 0), i.ID)
		}
	}()
	return t.do(`update durable_item set state = 2, token = iif(?1, -token, 0), node = 0, attempts = iif(?1 and losses >= 2, attempts, attempts - 1),
	run_at = iif(?1 and losses >= 1, ?2 + (1000000 << min(losses - 1, 6)), run_at), losses = losses + ?1
where queue = ?3 and node = ?4 and state = 4 returning id`, lost, t.now, t.queue, id)
}

// waiting returns the lanes that no node has and in which items wait, and whether an item of any lane
// can be claimed. It takes few steps in an index for each lane.
func (t *moment) waiting() (strays []string, classed, due bool) {
	type lane struct {
		name       string
		stray, due bool
	}
	nobody := map[string]bool{}
	for _, l := range rows(t, func(l *lane) list { return list{&l.name, &l.stray, &l.due} }, `
with recursive due (lane) as (
	select (select min(lane) from durable_item where queue = ?1 and state in (2, 8))
	union all
	select (select min(i.lane) from durable_item as i where i.queue = ?1 and i.state in (2, 8) and i.lane > due.lane) from due where due.lane is not null
)
select lane, exists (select 1 from durable_node where queue = ?1 and expires > ?2) and not exists (select 1 from durable_node as n, json_each(n.node, '$.Lanes') as l where n.queue = ?1 and n.expires > ?2 and l.value ->> 'Name' = `+laneOf+`),
	(select min(i.run_at) from durable_item as i where i.queue = ?1 and i.lane = due.lane and i.state in (2, 8)) <= ?2
from due where lane is not null`, t.queue, t.now) {
		var i durable.Item
		i.SetPlace(l.name)
		classed = classed || i.Class != ""
		if due = due || l.due; l.stray {
			nobody[i.Lane] = true
		}
	}
	return slices.Sorted(maps.Keys(nobody)), classed, due
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
		t.gates = want.Gates
		if n.classes = len(node.Classes) > 0; t.stopped() {
			n.id = 0
		}
		done := t.end(ends, n)
		for _, e := range done.Ends {
			if e.Next != nil {
				want.Max--
			}
		}
		var places []*item
		if n.id != 0 && want.Max > 0 && len(node.Classes) > 0 {
			places = t.places()
		}
		if want.Ahead > 0 && (len(places) > 0 && t.bounds() || t.get(list{new(int)}, "select 1 from durable_item where queue = ? and losses >= 1 limit 1", t.queue)) {
			want.Max -= want.Ahead
		}
		if n.id != 0 && want.Max > 0 {
			found, waits := t.claim(node, want, places)
			done.Items = t.take(n, found)
			t.charge()
			done.Waits = waits()
		}
		t.charge()
		return done
	})
	if err == nil && !alive && want.Max > 0 {
		err = durable.ErrLeaseLost // the ends are committed
	}
	return turned, err
}

// A claimer is a node that claims. If the id is 0, nobody claims.
type claimer struct {
	id      durable.NodeID
	name    string
	expires int64
	classes bool // it claims items of classes
}

// inLane is true for items of the lane ?2 in all classes.
const inLane = "(lane = ?2 or lane >= char(1) and lane < char(2) and substr(lane, -length(char(1) || ?2)) = char(1) || ?2)"

// laneOf is the lane in due.lane.
const laneOf = "iif(due.lane >= char(1) and due.lane < char(2), substr(due.lane, instr(substr(due.lane, 2), char(1)) + 2), due.lane)"

// claim returns what a node can claim now, in the order of its claims. After they are taken, waits
// returns which classes have no room. Places are those of classes.
func (t *moment) claim(node durable.Node, want durable.Want, places []*item) (found []*item, waits func() []durable.ClassWait) {
	most := want.Max
	if node.MaxCluster > 0 {
		running := 0
		t.get(list{&running}, "select count(*) from durable_item where queue = ? and state = 4", t.queue)
		most = min(most, node.MaxCluster-running)
	}
	rooms := map[string]int{} // by lane
	for _, l := range node.Lanes {
		if rooms[l.Name] = most; l.Limit > 0 {
			running := 0
			t.get(list{&running}, "select count(*) from durable_item where queue = ?1 and state = 4 and "+inLane, t.queue, l.Name)
			rooms[l.Name] = l.Limit - running
		}
	}
	var first durable.ItemID
	taken, again := map[durable.ItemID]bool{}, 0
	held := ""
	if t.rule().pauses {
		held = fmt.Sprintf(unheld, t.now)
	}
	// due returns the items of a lane that can be claimed now, in order, whatever they cost; ok may leave some out.
	var affords func(*item) bool // with Alone, items that lack their cost are passed over
	if want.Alone {
		affords = t.affords
	}
	due := func(l core.Lane, most int, ok func(*item) bool) (all []*item) {
		most = min(most, rooms[l.Name])
		classes := 0
		of := func(place, class string) {
			if limit := min(most, t.room(class)); limit > 0 {
				if limit += again; want.Alone { // again: those that are taken are there again
					limit = -1 // all
				}
				for _, i := range t.items("queue = ? and lane = ? and state in (2, 8) and run_at <= ? and id <> ? and (losses >= 2) = ?"+held+" order by run_at, id limit ?",
					t.queue, place, t.now, first, want.Alone, limit) {
					if !taken[i.ID] && (ok == nil || ok(i)) {
						all = append(all, i)
					}
				}
			}
		}
		of(l.Name, "")
		for _, p := range places {
			if p.Lane == l.Name {
				of(p.place, p.Class)
				classes++
			}
		}
		if classes > 0 {
			slices.SortFunc(all, byRunAt)
		}
		return all[:max(0, min(len(all), most))]
	}
	admit := func(items ...*item) {
		for _, i := range items {
			rooms[i.Lane]--
			t.admit(i)
		}
		found = append(found, items...)
	}
	if want.Aged > 0 {
		var old []*item
		for _, l := range node.Lanes {
			old = append(old, due(l, min(1, most), t.affords)...)
		}
		slices.SortFunc(old, byRunAt)
		if len(old) > 0 && old[0].runAt <= t.in(-want.Aged) {
			first = old[0].ID
			admit(old[0])
		}
	}
	for _, l := range node.Lanes {
		again = 0
		for more := true; more; {
			more = false
			for _, i := range due(l, most-len(found), affords) {
				if t.room(i.Class) <= 0 {
					continue
				}
				if more = more || !t.affords(i); !t.affords(i) { // nothing else of the class is claimed
					c := t.classes[i.Class]
					c.waits, c.lacks = true, i.Cost
					continue
				}
				admit(i)
				taken[i.ID] = true
				again++
			}
		}
	}
	return found, func() []durable.ClassWait {
		if len(found) >= most {
			return nil
		}
		return t.waits(places, slices.DeleteFunc(slices.Clone(node.Lanes), func(l core.Lane) bool { return rooms[l.Name] <= 0 }), want.Alone)
	}
}

func byRunAt(a, b *item) int { return cmp.Or(cmp.Compare(a.runAt, b.runAt), cmp.Compare(a.ID, b.ID)) }

// end ends claims, and n claims the next items of their keys if it may.
func (t *moment) end(ends []durable.End, n claimer) (done durable.Turned) {
	var ids []durable.ItemID
	for _, e := range ends {
		ids = append(ids, e.ID)
	}
	known := t.find(ids...)
	var left []*item
	over := map[string]int{} // for each key, the place of its end
	for place, e := range ends {
		i := known[e.ID]
		switch {
		case i != nil && e.Token > 0 && i.Token == -e.Token && i.State == durable.Ready && e.Kind == durable.EndGivenBack: // the lease of this claim was lost
			if i.Losses > durable.LossesAlone {
				i.Attempts--
			}
			i.Losses, i.Token = max(0, i.Losses-1), 0
			t.save(i)
			done.Ends = append(done.Ends, durable.Ended{Outcome: durable.OutcomeAlready, State: i.State})
		case i == nil || i.Token != e.Token || i.Flow == 2 && i.State == durable.Running && e.Kind == durable.EndDone:
			done.Ends = append(done.Ends, durable.Ended{Outcome: durable.OutcomeFenced})
		case i.State != durable.Running:
			done.Ends = append(done.Ends, durable.Ended{Outcome: durable.OutcomeAlready, State: i.State})
		default:
			t.bill(i.Class, e.Calls, e.Cost)
			t.book(i)
			state, kind, text := t.apply(i, e)
			if i.State = state; state&durable.Waiting != 0 {
				i.runAt = t.space(i.Key, i.runAt)
			}
			if state == durable.Done && t.tried(i.Key) {
				t.do("delete from durable_pause where queue = ? and key = ? and class = ''", t.queue, i.Key)
			}
			if state == durable.Done && e.Result != nil {
				t.do("insert or replace into durable_result (item, data) values (?, ?)", i.ID, e.Result)
			}
			if kind != 0 {
				t.attempted(i, kind, text)
			}
			over[i.Key] = place
			left = append(left, i)
			done.Ends = append(done.Ends, durable.Ended{Outcome: durable.OutcomeEnded, State: i.State})
		}
	}
	var taken []*item
	for _, next := range t.leave(left...) {
		e := ends[over[next.Key]]
		if e.HandOver && n.id != 0 && next.place == known[e.ID].place && next.runAt <= t.now && (n.classes || next.Class == "") && t.room(next.Class) > 0 && t.affords(next) && !t.held(next.Key) {
			t.admit(next)
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
