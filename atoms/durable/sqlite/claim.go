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
	err = s.change(ctx, node.Queue, func(t *tx) {
		t.get(list{&id}, "insert into durable_node (queue, name, lease, expires, slots, cluster, lanes) values (?, ?, ?, ?, ?, ?, ?) returning id",
			node.Queue, node.Name, node.Lease.Microseconds(), micros(t.now.Add(node.Lease)), node.MaxConcurrency, node.MaxCluster, string(text))
	})
	return id, err
}

// Beat is as in [durable.Store].
func (s *Store) Beat(ctx context.Context, node durable.Node, note string) (b durable.Beaten, err error) {
	var alive bool
	err = s.change(ctx, node.Queue, func(t *tx) {
		var over []durable.NodeID
		t.rows(func(scan func(...any) error) error {
			var id durable.NodeID
			var l durable.Lost
			err := scan(&id, &l.Name)
			over, b.Lost = append(over, id), append(b.Lost, l)
			return err
		}, "select id, name from durable_node where queue = ? and expires <= ? order by id", t.queue, micros(t.now))
		for n, id := range over {
			b.Lost[n].Claims = t.free(id)
		}
		alive = t.do("update durable_node set lease = ?, expires = ?, note = ? where id = ? returning id",
			node.Lease.Microseconds(), micros(t.now.Add(node.Lease)), note, node.ID) > 0
		b.Paused = t.paused()
		t.rows(func(scan func(...any) error) error {
			var h durable.Held
			err := scan(&h.ID, &h.Token, &h.Cancel)
			b.Claims = append(b.Claims, h)
			return err
		}, "select id, token, cancel from durable_item where queue = ? and node = ? and state = 4 order by id", t.queue, node.ID)
	})
	switch {
	case err != nil:
		return durable.Beaten{}, err
	case !alive:
		return durable.Beaten{Lost: b.Lost}, durable.ErrLeaseLost
	}
	return b, nil
}

// free ends a node, and returns how many items were running on it.
func (t *tx) free(id durable.NodeID) (claims int) {
	t.freed = true
	t.do("delete from durable_node where id = ?", id)
	return t.do("update durable_item set state = 2, token = 0, node = 0 where queue = ? and node = ? and state = 4 returning id", t.queue, id)
}

// Leave is as in [durable.Store].
func (s *Store) Leave(ctx context.Context, node durable.Node) error {
	return s.change(ctx, node.Queue, func(t *tx) { t.free(node.ID) })
}

// owner is a node whose lease is not over.
type owner struct {
	id      durable.NodeID
	name    string
	expires time.Time
}

// alive returns the node, or nil if its lease is over.
func (t *tx) alive(id durable.NodeID) *owner {
	n, expires := owner{id: id}, int64(0)
	if !t.get(list{&n.name, &expires}, "select name, expires from durable_node where id = ? and expires > ?", id, micros(t.now)) {
		return nil
	}
	n.expires = at(expires)
	return &n
}

// Claim is as in [durable.Store].
func (s *Store) Claim(ctx context.Context, node durable.Node, want durable.Want) (claimed []durable.Item, err error) {
	var n *owner
	err = s.change(ctx, node.Queue, func(t *tx) {
		if n = t.alive(node.ID); n != nil && !t.paused() {
			claimed = t.claim(n, node, want)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case n == nil:
		return nil, durable.ErrLeaseLost
	}
	return claimed, nil
}

func (t *tx) claim(n *owner, node durable.Node, want durable.Want) (claimed []durable.Item) {
	total, running := 0, map[string]int{}
	t.rows(func(scan func(...any) error) error {
		var name string
		var n int
		err := scan(&name, &n)
		total, running[name] = total+n, n
		return err
	}, "select lane, count(*) from durable_item where queue = ? and state = 4 group by lane", t.queue)
	// due returns what can be claimed of a lane now, the first one first.
	due := func(l core.Lane, most int) []*item {
		if node.MaxCluster > 0 {
			most = min(most, node.MaxCluster-total)
		}
		if l.Limit > 0 {
			most = min(most, l.Limit-running[l.Name])
		}
		return t.items("queue = ? and lane = ? and state in (2, 8) and run_at <= ? order by run_at, id limit ?", t.queue, l.Name, micros(t.now), max(0, most))
	}
	take := func(i *item) {
		total++
		running[i.Lane]++
		claimed = append(claimed, t.take(i, n))
	}
	if want.Aged > 0 {
		var first []*item
		for _, l := range node.Lanes {
			first = append(first, due(l, 1)...)
		}
		if len(first) > 0 {
			if i := slices.MinFunc(first, byRunAt); t.now.Sub(i.RunAt) >= want.Aged {
				take(i)
			}
		}
	}
	for _, l := range node.Lanes {
		for _, i := range due(l, want.Max-len(claimed)) {
			take(i)
		}
	}
	return claimed
}

func byRunAt(a, b *item) int { return cmp.Or(a.RunAt.Compare(b.RunAt), cmp.Compare(a.ID, b.ID)) }

// End is as in [durable.Store].
func (s *Store) End(ctx context.Context, node durable.Node, ends []durable.End) (done []durable.Ended, err error) {
	if err = s.change(ctx, node.Queue, func(t *tx) { done = t.end(node.ID, ends) }); err != nil {
		return nil, err
	}
	return done, nil
}

func (t *tx) end(node durable.NodeID, ends []durable.End) (done []durable.Ended) {
	n, paused := t.alive(node), t.paused()
	for _, e := range ends {
		i := t.find(e.ID)
		switch {
		case i == nil || i.Token != e.Token:
			done = append(done, durable.Ended{Outcome: durable.OutcomeFenced})
			continue
		case i.State != durable.Running:
			done = append(done, durable.Ended{Outcome: durable.OutcomeAlready, State: i.State})
			continue
		}
		promoted := t.leave(i, i.end(e, t.now))
		ended := durable.Ended{Outcome: durable.OutcomeEnded, State: i.State}
		if promoted != nil && e.HandOver && n != nil && !paused && promoted.Lane == i.Lane && !promoted.RunAt.After(t.now) {
			next := t.take(promoted, n)
			ended.Next = &next
		}
		done = append(done, ended)
	}
	return done
}

// end changes a claim as its end says, and returns its new state.
func (i *item) end(e durable.End, now time.Time) durable.State {
	kind := e.Kind
	back := kind == durable.EndSnoozed || kind == durable.EndGivenBack
	if i.Cancel != "" && (kind == durable.EndRetry || back) {
		kind, back, e.Err = durable.EndCancelled, false, i.Cancel
	}
	if back {
		i.Attempts--
	} else {
		i.Err = e.Err
	}
	if kind == durable.EndRetry || kind == durable.EndSnoozed {
		i.RunAt = now.Add(e.After)
	}
	switch kind {
	case durable.EndDone:
		return durable.Done
	case durable.EndRetry:
		return durable.Retry
	case durable.EndHalted:
		if i.Key != "" {
			return durable.Halted
		}
		return durable.Dead
	case durable.EndDead:
		return durable.Dead
	case durable.EndCancelled:
		return durable.Cancelled
	}
	return durable.Ready
}
