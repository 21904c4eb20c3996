package sqlite

import "github.com/ephemeralgo/ephemeral/atoms/durable"

// item is a row of the table.
type item struct {
	durable.Item
	on durable.NodeID // while Running; 0: none
}

// heads are the states in which an item is the head of its key. Statements spell the
// conditions of the indexes out, so that SQLite uses them.
const heads = "queue = ? and key = ? and key <> '' and state in (2, 4, 8, 16)"

// items reads items without their data.
func (t *tx) items(where string, args ...any) (all []*item) {
	t.rows(func(scan func(...any) error) error {
		i := &item{}
		var enqueued, runAt, started, ended, expires int64
		err := scan(&i.ID, &i.Key, &i.Lane, &i.Rank, &i.State, &i.Attempts, &i.Token, &i.Unique, &enqueued, &runAt,
			&started, &ended, &i.on, &i.Node, &expires, &i.Cancel, &i.Err)
		i.Enqueued, i.RunAt, i.Started, i.Ended, i.Expires = at(enqueued), at(runAt), at(started), at(ended), at(expires)
		all = append(all, i)
		return err
	}, `select i.id, key, lane, rank, state, attempts, token, unique_id, enqueued, run_at,
	started, ended, node, node_name, coalesce((select expires from durable_node as n where n.id = node), 0), cancel, err
from durable_item as i where `+where, args...)
	return all
}

// item reads one item, or returns nil.
func (t *tx) item(where string, args ...any) *item {
	all := t.items(where+" limit 1", args...)
	if len(all) == 0 || t.err != nil {
		return nil
	}
	return all[0]
}

func (t *tx) find(id durable.ItemID) *item { return t.item("id = ? and +queue = ?", id, t.queue) }

// full returns an item with its data.
func (t *tx) full(i *item) durable.Item {
	t.get(list{&i.Data}, "select data from durable_item where id = ?", i.ID)
	return i.Item
}

// save writes what changes of an item.
func (t *tx) save(i *item) {
	t.do(`update durable_item set state = ?, attempts = ?, token = ?, run_at = ?, started = ?, ended = ?, node = ?, node_name = ?, cancel = ?, err = ? where id = ?`,
		i.State, i.Attempts, i.Token, micros(i.RunAt), micros(i.Started), micros(i.Ended), i.on, i.Node, i.Cancel, i.Err, i.ID)
}

// entering is the state of an item that begins to wait for its turn in its key.
func (t *tx) entering(key string, id durable.ItemID) durable.State {
	t.freed = true
	if t.get(list{new(int)}, "select 1 from durable_item where "+heads+" and id <> ?", t.queue, key, id) {
		return durable.Blocked
	}
	return durable.Ready
}

// leave gives an item a state in which it does not run. If the item was the head of its key
// and is not any more, the key is promoted, and leave returns the new head.
func (t *tx) leave(i *item, state durable.State) (promoted *item) {
	before := i.State
	i.State, i.on, t.freed = state, 0, true
	if state&(durable.Finished|durable.Halted) != 0 {
		i.Ended = t.now
	}
	t.save(i)
	if i.Key == "" || before == durable.Blocked || state&durable.Finished == 0 {
		return nil
	}
	promoted = t.item("queue = ? and key = ? and state = 1 order by rank, id", t.queue, i.Key)
	if promoted == nil {
		return nil
	}
	promoted.State = durable.Ready
	if promoted.RunAt.Before(t.now) {
		promoted.RunAt = t.now
	}
	t.save(promoted)
	return promoted
}

// take makes an item Running on a node, and returns it.
func (t *tx) take(i *item, n *owner) durable.Item {
	t.get(list{&i.Token}, "update durable_token set last = last + 1 returning last")
	i.State, i.Started, i.on, i.Node, i.Expires = durable.Running, t.now, n.id, n.name, n.expires
	i.Attempts++
	t.save(i)
	return t.full(i)
}
