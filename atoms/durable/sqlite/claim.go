package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// alive reports whether the lease of a node is not over.
func (t *moment) alive(id durable.NodeID) bool {
	return t.get(list{new(int)}, "select 1 from durable_node where id = ? and expires > ?", id, t.now)
}

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
	alive := true
	b, err := change(ctx, s, node.Queue, func(t *moment) (b durable.Beaten) {
		over := rows(t, func(n *durable.Node) list { return list{&n.ID, &n.Name} }, "select id, name from durable_node where queue = ? and expires <= ? order by id", t.queue, t.now)
		for _, n := range over {
			b.Lost = append(b.Lost, durable.Lost{Name: n.Name, Claims: t.free(n.ID)})
		}
		alive = t.do("update durable_node set expires = ?, note = ? where id = ? returning id", t.in(node.Lease), note, node.ID) > 0
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
		if !t.alive(node.ID) {
			t.err = cmp.Or(t.err, durable.ErrLeaseLost)
		}
		if t.err != nil || t.paused() {
			return nil
		}
		return t.claim(node, want)
	})
}

func (t *moment) claim(node durable.Node, want durable.Want) (claimed []durable.Item) {
	// due returns what can be claimed of a lane now, the first one first.
	due := func(l core.Lane, most int) []item {
		return t.items(`queue = ?1 and lane = ?2 and state in (2, 8) and run_at <= ?3 order by run_at, id limit max(0, min(?4,
	iif(?5 > 0, ?5 - (select count(*) from durable_item where queue = ?1 and state = 4), ?4),
	iif(?6 > 0, ?6 - (select count(*) from durable_item where queue = ?1 and lane = ?2 and state = 4), ?4)))`,
			t.queue, l.Name, t.now, most, node.MaxCluster, l.Limit)
	}
	if want.Aged > 0 {
		var old []item
		for _, l := range node.Lanes {
			old = append(old, due(l, 1)...)
		}
		slices.SortFunc(old, func(a, b item) int { return cmp.Or(cmp.Compare(a.runAt, b.runAt), cmp.Compare(a.ID, b.ID)) })
		if len(old) > 0 && old[0].runAt <= t.in(-want.Aged) {
			claimed = append(claimed, t.take(&old[0], node.ID))
		}
	}
	for _, l := range node.Lanes {
		for _, i := range due(l, want.Max-len(claimed)) {
			claimed = append(claimed, t.take(&i, node.ID))
		}
	}
	return claimed
}

// End is as in [durable.Store].
func (s *Store) End(ctx context.Context, node durable.Node, ends []durable.End) ([]durable.Ended, error) {
	return change(ctx, s, node.Queue, func(t *moment) (done []durable.Ended) {
		claims := t.alive(node.ID) && !t.paused()
		for _, e := range ends {
			e.HandOver = e.HandOver && claims
			done = append(done, t.end(e, node.ID))
		}
		return done
	})
}

// end ends a claim, and with HandOver the node claims the next item of the key if it may.
func (t *moment) end(e durable.End, node durable.NodeID) durable.Ended {
	i := t.find(e.ID)
	switch {
	case i == nil || i.Token != e.Token:
		return durable.Ended{Outcome: durable.OutcomeFenced}
	case i.State != durable.Running:
		return durable.Ended{Outcome: durable.OutcomeAlready, State: i.State}
	}
	promoted := t.leave(i, t.after(i, e))
	done := durable.Ended{Outcome: durable.OutcomeEnded, State: i.State}
	if promoted != nil && e.HandOver && promoted.Lane == i.Lane && promoted.runAt <= t.now {
		next := t.take(promoted, node)
		done.Next = &next
	}
	return done
}

var stateAfter = [...]durable.State{durable.EndDone: durable.Done, durable.EndRetry: durable.Retry, durable.EndDead: durable.Dead, durable.EndHalted: durable.Halted,
	durable.EndSnoozed: durable.Ready, durable.EndGivenBack: durable.Ready, durable.EndCancelled: durable.Cancelled}

// after changes a claim as its end says, and returns the state that follows.
func (t *moment) after(i *item, e durable.End) durable.State {
	state := stateAfter[e.Kind]
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
