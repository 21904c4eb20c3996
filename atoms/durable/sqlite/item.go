package sqlite

import (
	"context"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// item is a row of the table.
type item struct {
	durable.Item
	on durable.NodeID // while Running; 0: none
}

// isHead is true for the head of a key. Statements spell out the conditions of the indexes,
// so that SQLite uses them.
const isHead = "queue = ? and key = ? and key <> '' and state in (2, 4, 8, 16)"

// items reads items without their data.
func (t *moment) items(where string, args ...any) []item {
	return rows(t, func(i *item) list {
		return list{&i.ID, &i.Key, &i.Lane, &i.Rank, &i.State, &i.Attempts, &i.Token, &i.Unique, at{&i.Enqueued}, at{&i.RunAt},
			at{&i.Started}, at{&i.Ended}, &i.on, &i.Node, at{&i.Expires}, &i.Cancel, &i.Err}
	}, `select id, key, lane, rank, state, attempts, token, unique_id, enqueued, run_at,
	started, ended, node, node_name, (select expires from durable_node as n where n.id = i.node), cancel, err
from durable_item as i where `+where, args...)
}

// first reads one item, or returns nil.
func (t *moment) first(where string, args ...any) *item {
	if all := t.items(where+" limit 1", args...); len(all) > 0 {
		return &all[0]
	}
	return nil
}

func (t *moment) find(id durable.ItemID) *item { return t.first("id = ? and +queue = ?", id, t.queue) }

// full returns an item with its data.
func (t *moment) full(i *item) durable.Item {
	t.get(list{&i.Data}, "select data from durable_item where id = ?", i.ID)
	return i.Item
}

// save writes what changes of an item.
func (t *moment) save(i *item) {
	t.do("update durable_item set state = ?, attempts = ?, token = ?, run_at = ?, started = ?, ended = ?, node = ?, node_name = ?, cancel = ?, err = ? where id = ?",
		i.State, i.Attempts, i.Token, micros(i.RunAt), micros(i.Started), micros(i.Ended), i.on, i.Node, i.Cancel, i.Err, i.ID)
}

// enter returns the state of an item that begins to wait.
func (t *moment) enter(id durable.ItemID, key string) durable.State {
	t.freed = true
	if t.get(list{new(int)}, "select 1 from durable_item where "+isHead+" and id <> ?", t.queue, key, id) {
		return durable.Blocked
	}
	return durable.Ready
}

// leave gives an item a state in which it does not run. If the item was the head of its key
// and is not any more, the key is promoted, and leave returns the new head.
func (t *moment) leave(i *item, state durable.State) (promoted *item) {
	before := i.State
	i.State, i.on, t.freed = state, 0, true
	if state&(durable.Finished|durable.Halted) != 0 {
		i.Ended = t.now
	}
	t.save(i)
	if i.Key == "" || before == durable.Blocked || state&durable.Finished == 0 {
		return nil
	}
	promoted = t.first("queue = ? and key = ? and state = 1 order by rank, id", t.queue, i.Key)
	if promoted != nil {
		promoted.State = durable.Ready
		if promoted.RunAt.Before(t.now) {
			promoted.RunAt = t.now
		}
		t.save(promoted)
	}
	return promoted
}

// take makes an item Running on a node.
func (t *moment) take(i *item, n *owner) durable.Item {
	t.get(list{&i.Token}, "update durable_token set last = last + 1 returning last")
	i.State, i.Attempts, i.Started, i.on, i.Node, i.Expires = durable.Running, i.Attempts+1, t.now, n.id, n.name, n.expires
	t.save(i)
	return t.full(i)
}

// Insert is as in [durable.Store].
func (s *Store) Insert(ctx context.Context, queue string, items []durable.Insert) ([]durable.Inserted, error) {
	return change(ctx, s, queue, func(t *moment) (done []durable.Inserted) {
		for _, in := range items {
			done = append(done, t.insert(in))
		}
		return done
	})
}

func (t *moment) insert(in durable.Insert) (done durable.Inserted) {
	if in.Unique != "" && t.get(list{&done.ID}, "select item from durable_unique where queue = ? and unique_id = ? and until > ?", t.queue, in.Unique, micros(t.now)) {
		done.Duplicate = true
		return done
	}
	later := func(d time.Duration) int64 { return micros(t.now.Add(d)) }
	t.get(list{&done.ID}, "insert into durable_item (queue, key, lane, rank, state, unique_id, enqueued, run_at, data) values (?, ?, ?, ?, ?, ?, ?, ?, ?) returning id",
		t.queue, in.Key, in.Lane, in.Rank, t.enter(0, in.Key), in.Unique, later(0), later(in.Delay), append([]byte{}, in.Data...))
	if in.Unique != "" {
		t.do("insert or replace into durable_unique (queue, unique_id, item, until) values (?, ?, ?, ?)", t.queue, in.Unique, done.ID, later(in.UniqueFor))
	}
	return done
}
