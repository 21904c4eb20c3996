package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// owner is a row of the table of nodes.
type owner struct {
	id      durable.NodeID
	name    string
	expires time.Time
}

// alive returns a node whose lease is not over, or nil.
func (t *moment) alive(id durable.NodeID) *owner {
	n := owner{id: id}
	if !t.get(list{&n.name, at{&n.expires}}, "select name, expires from durable_node where id = ? and expires > ?", id, micros(t.now)) {
		return nil
	}
	return &n
}

// Join is as in [durable.Store].
func (s *Store) Join(ctx context.Context, node durable.Node) (durable.NodeID, error) {
	text, err := json.Marshal(node)
	if err != nil {
		return 0, err
	}
	return change(ctx, s, node.Queue, func(t *moment) (id durable.NodeID) {
		t.get(list{&id}, "insert into durable_node (queue, name, expires, node) values (?, ?, ?, ?) returning id", node.Queue, node.Name, micros(t.now.Add(node.Lease)), string(text))
		return id
	})
}

// Beat is as in [durable.Store].
func (s *Store) Beat(ctx context.Context, node durable.Node, note string) (durable.Beaten, error) {
	alive := true
	b, err := change(ctx, s, node.Queue, func(t *moment) (b durable.Beaten) {
		for _, n := range rows(t, func(n *owner) list { return list{&n.id, &n.name} },
			"select id, name from durable_node where queue = ? and expires <= ? order by id", t.queue, micros(t.now)) {
			b.Lost = append(b.Lost, durable.Lost{Name: n.name, Claims: t.free(n.id)})
		}
		alive = t.do("update durable_node set expires = ?, note = ? where id = ? returning id", micros(t.now.Add(node.Lease)), note, node.ID) > 0
		if alive {
			b.Paused = t.paused()
			b.Claims = rows(t, func(h *durable.Held) list { return list{&h.ID, &h.Token, &h.Cancel} },
				"select id, token, cancel from durable_item where queue = ? and node = ? and state = 4 order by id", t.queue, node.ID)
		}
		return b
	})
	if err == nil && !alive { // what it did for the others is committed
		err = durable.ErrLeaseLost
	}
	return b, err
}

// free ends a node, and returns how many claims it had.
func (t *moment) free(id durable.NodeID) int {
	t.freed = true
	t.do("delete from durable_node where id = ?", id)
	return t.do("update durable_item set state = 2, token = 0, node = 0 where queue = ? and node = ? and state = 4 returning id", t.queue, id)
}

// Leave is as in [durable.Store].
func (s *Store) Leave(ctx context.Context, node durable.Node) error {
	_, err := change(ctx, s, node.Queue, func(t *moment) int { return t.free(node.ID) })
	return err
}

// Claim is as in [durable.Store].
func (s *Store) Claim(ctx context.Context, node durable.Node, want durable.Want) ([]durable.Item, error) {
	return change(ctx, s, node.Queue, func(t *moment) []durable.Item {
		n := t.alive(node.ID)
		if n == nil {
			t.err = cmp.Or(t.err, durable.ErrLeaseLost)
		} else if !t.paused() {
			return t.claim(n, node, want)
		}
		return nil
	})
}

func (t *moment) claim(n *owner, node durable.Node, want durable.Want) (claimed []durable.Item) {
	// due returns what can be claimed of a lane now, the first one first.
	due := func(l core.Lane, most int) []item {
		return t.items(`queue = ?1 and lane = ?2 and state in (2, 8) and run_at <= ?3 order by run_at, id limit max(0, min(?4,
	iif(?5 > 0, ?5 - (select count(*) from durable_item where queue = ?1 and state = 4), ?4),
	iif(?6 > 0, ?6 - (select count(*) from durable_item where queue = ?1 and lane = ?2 and state = 4), ?4)))`,
			t.queue, l.Name, micros(t.now), most, node.MaxCluster, l.Limit)
	}
	if want.Aged > 0 {
		var old []item
		for _, l := range node.Lanes {
			old = append(old, due(l, 1)...)
		}
		slices.SortFunc(old, func(a, b item) int { return cmp.Or(a.RunAt.Compare(b.RunAt), cmp.Compare(a.ID, b.ID)) })
		if len(old) > 0 && t.now.Sub(old[0].RunAt) >= want.Aged {
			claimed = append(claimed, t.take(&old[0], n))
		}
	}
	for _, l := range node.Lanes {
		for _, i := range due(l, want.Max-len(claimed)) {
			claimed = append(claimed, t.take(&i, n))
		}
	}
	return claimed
}

// End is as in [durable.Store].
func (s *Store) End(ctx context.Context, node durable.Node, ends []durable.End) ([]durable.Ended, error) {
	return change(ctx, s, node.Queue, func(t *moment) (done []durable.Ended) {
		n := t.alive(node.ID)
		if t.paused() {
			n = nil // claims nothing
		}
		for _, e := range ends {
			done = append(done, t.end(e, n))
		}
		return done
	})
}

// end ends a claim. The node claims the next item of the key if it may, unless it is nil.
func (t *moment) end(e durable.End, n *owner) durable.Ended {
	i := t.find(e.ID)
	switch {
	case i == nil || i.Token != e.Token:
		return durable.Ended{Outcome: durable.OutcomeFenced}
	case i.State != durable.Running:
		return durable.Ended{Outcome: durable.OutcomeAlready, State: i.State}
	}
	promoted := t.leave(i, i.apply(e, t.now))
	done := durable.Ended{Outcome: durable.OutcomeEnded, State: i.State}
	if promoted != nil && e.HandOver && n != nil && promoted.Lane == i.Lane && !promoted.RunAt.After(t.now) {
		next := t.take(promoted, n)
		done.Next = &next
	}
	return done
}

var stateAfter = [...]durable.State{durable.EndDone: durable.Done, durable.EndRetry: durable.Retry, durable.EndDead: durable.Dead, durable.EndHalted: durable.Halted,
	durable.EndSnoozed: durable.Ready, durable.EndGivenBack: durable.Ready, durable.EndCancelled: durable.Cancelled}

// apply changes a claim as its end says, and returns the state that follows.
func (i *item) apply(e durable.End, now time.Time) durable.State {
	state := stateAfter[e.Kind]
	if i.Cancel != "" && state&durable.Waiting != 0 {
		state, e = durable.Cancelled, durable.End{Err: i.Cancel}
	}
	if e.Kind == durable.EndRetry || e.Kind == durable.EndSnoozed {
		i.RunAt = now.Add(e.After)
	}
	if state == durable.Ready {
		i.Attempts--
	} else {
		i.Err = e.Err
	}
	if state == durable.Halted && i.Key == "" {
		return durable.Dead
	}
	return state
}
