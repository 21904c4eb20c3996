package sqlite

import (
	"context"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// item is a row of the table. The times of Item are set only in the results of methods.
type item struct {
	durable.Item
	enqueued, runAt, started, ended, expires int64
	on                                       durable.NodeID // while Running
}

// isHead is true for the head of a key. Statements spell out the conditions of the indexes,
// so that SQLite uses them.
const isHead = "queue = ? and key = ? and key <> '' and state in (2, 4, 8, 16)"

// items reads items without their data.
func (t *moment) items(where string, args ...any) []item {
	return rows(t, func(i *item) list {
		return list{&i.ID, &i.Key, &i.Lane, &i.Rank, &i.State, &i.Attempts, &i.Token, &i.Unique, &i.enqueued, &i.runAt, &i.started, &i.ended, &i.on, &i.Node, &i.expires, &i.Cancel, &i.Err}
	}, `select id, key, lane, rank, state, attempts, token, unique_id, enqueued, run_at, started, ended, node, node_name,
	coalesce((select expires from durable_node as n where n.id = i.node), 0), cancel, err from durable_item as i where `+where, args...)
}

// first reads one item, or returns nil.
func (t *moment) first(where string, args ...any) *item {
	if all := t.items(where+" limit 1", args...); len(all) > 0 {
		return &all[0]
	}
	return nil
}

func (t *moment) find(id durable.ItemID) *item { return t.first("id = ? and +queue = ?", id, t.queue) }

// view is the item as the store shows it.
func (i *item) view() durable.Item {
	i.Enqueued, i.RunAt, i.Started, i.Ended, i.Expires = at(i.enqueued), at(i.runAt), at(i.started), at(i.ended), at(i.expires)
	return i.Item
}

// full returns an item with its data.
func (t *moment) full(i *item) durable.Item {
	t.get(list{&i.Data}, "select data from durable_item where id = ?", i.ID)
	return i.view()
}

// at is the time of so many microseconds; 0 is none.
func at(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

// save writes the columns of an item that change.
func (t *moment) save(i *item) {
	t.do("update durable_item set state = ?, attempts = ?, token = ?, run_at = ?, started = ?, ended = ?, node = ?, node_name = ?, cancel = ?, err = ? where id = ?",
		i.State, i.Attempts, i.Token, i.runAt, i.started, i.ended, i.on, i.Node, i.Cancel, i.Err, i.ID)
}

// leave gives an item a state in which it does not run. If it was the head of its key and no
// longer is, the key is promoted, and leave returns the new head.
func (t *moment) leave(i *item, state durable.State) (promoted *item) {
	wasHead := i.Key != "" && i.State&(durable.Blocked|durable.Dead) == 0
	i.State, i.on, t.freed = state, 0, true
	if state&(durable.Finished|durable.Halted) != 0 {
		i.ended = t.now
	}
	t.save(i)
	if wasHead && state&durable.Finished != 0 {
		promoted = t.first("queue = ? and key = ? and state = 1 order by rank, id", t.queue, i.Key)
	}
	if promoted != nil {
		promoted.State, promoted.runAt = durable.Ready, max(promoted.runAt, t.now)
		t.save(promoted)
	}
	return promoted
}

// take makes an item Running on a node.
func (t *moment) take(i *item, node durable.NodeID) durable.Item {
	i.State, i.started = durable.Running, t.now
	t.get(list{&i.Token}, "update durable_token set last = last + 1 returning last")
	t.get(list{&i.Node, &i.expires}, "select name, expires from durable_node where id = ?", node)
	t.get(list{&i.Attempts, &i.Data}, "update durable_item set state = 4, token = ?, attempts = attempts + 1, started = ?, node = ?, node_name = ? where id = ? returning attempts, data",
		i.Token, t.now, node, i.Node, i.ID)
	return i.view()
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
	done.Duplicate = in.Unique != "" && t.get(list{&done.ID}, "select item from durable_unique where queue = ? and unique_id = ? and until > ?", t.queue, in.Unique, t.now)
	if done.Duplicate {
		return done
	}
	t.freed = true
	t.get(list{&done.ID}, `insert into durable_item (queue, key, lane, rank, unique_id, enqueued, run_at, data, state) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,
	iif(exists (select 1 from durable_item where queue = ?1 and key = ?2 and key <> '' and state in (2, 4, 8, 16)), 1, 2)) returning id`,
		t.queue, in.Key, in.Lane, in.Rank, in.Unique, t.now, t.in(in.Delay), append([]byte{}, in.Data...))
	if in.Unique != "" {
		t.do("insert or replace into durable_unique (queue, unique_id, item, until) values (?, ?, ?, ?)", t.queue, in.Unique, done.ID, t.in(in.UniqueFor))
	}
	return done
}
