package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// item is a row of the table. The times of Item are set only in the results of methods.
type item struct {
	durable.Item
	enqueued, runAt, started, ended, expires, failing int64
	on                                                durable.NodeID // while Running
	was                                               durable.State  // the state in the file
	place                                             string         // see durable.Insert.Place
}

// isHead is true for the head of a key. Statements spell out the conditions of the indexes,
// so that SQLite uses them.
const isHead = "queue = ? and key = ? and key <> '' and state in (2, 4, 8, 16)"

// items reads items without their data.
func (t *moment) items(where string, args ...any) (all []*item) {
	found := rows(t, func(i *item) list {
		return list{&i.ID, &i.Key, &i.place, &i.Rank, &i.State, &i.Attempts, &i.Token, &i.Unique, &i.enqueued, &i.runAt, &i.started, &i.ended, &i.on, &i.Node, &i.expires, &i.Cancel, &i.Err, &i.failing, &i.Losses, &i.Extra, &i.Cost, &i.Note}
	}, `select id, key, lane, rank, state, attempts, token, unique_id, enqueued, run_at, started, ended, node, node_name,
	coalesce((select expires from durable_node as n where n.id = i.node), 0), cancel, err, failing, losses, extra, cost,
	coalesce((select a.err from durable_attempt as a where i.state = 2 and a.item = i.id and a.token = i.token and a.kind = 5), '') from durable_item as i where `+where, args...)
	for n := range found {
		found[n].was = found[n].State
		found[n].SetPlace(found[n].place)
		all = append(all, &found[n])
	}
	return all
}

// first reads one item, or returns nil.
func (t *moment) first(where string, args ...any) *item {
	if all := t.items(where+" limit 1", args...); len(all) > 0 {
		return all[0]
	}
	return nil
}

// find reads the items that are in the queue.
func (t *moment) find(ids ...durable.ItemID) map[durable.ItemID]*item {
	known := map[durable.ItemID]*item{}
	if len(ids) > 0 {
		for _, i := range t.items("id in (select value from json_each(?)) and +queue = ?", encode(ids), t.queue) {
			known[i.ID] = i
		}
	}
	return known
}

// encode makes a list for json_each.
func encode(v any) string {
	text, _ := json.Marshal(v) // cannot fail for numbers and valid texts
	return string(text)
}

// view is the item as the store shows it.
func (i *item) view() durable.Item {
	i.Enqueued, i.RunAt, i.Started, i.Ended, i.Expires, i.Failing = at(i.enqueued), at(i.runAt), at(i.started), at(i.ended), at(i.expires), at(i.failing)
	item := i.Item
	item.Token = max(0, i.Token) // below 0 after a lost lease
	return item
}

// full returns an item with its data.
func (t *moment) full(i *item) durable.Item {
	t.get(list{&i.Data}, "select data from durable_item where id = ?", i.ID)
	return i.view()
}

// at turns microseconds into a time; 0 is no time.
func at(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

// save writes the columns of items that change.
func (t *moment) save(items ...*item) {
	var values []list
	for _, i := range items {
		values = append(values, list{i.ID, int(i.State), i.Attempts, i.Token, i.runAt, i.started, i.ended, i.on, i.Node, i.Cancel, i.Err, i.Losses, i.failing})
	}
	if len(items) > 0 {
		t.do(`update durable_item set state = v ->> 1, attempts = v ->> 2, token = v ->> 3, run_at = v ->> 4, started = v ->> 5, ended = v ->> 6,
	node = v ->> 7, node_name = v ->> 8, cancel = v ->> 9, err = v ->> 10, losses = v ->> 11, failing = v ->> 12 from (select value as v from json_each(?)) where id = v ->> 0`, encode(values))
	}
}

// leave saves items that do not run, with their new states. If an item is no longer the head of its key,
// leave promotes the key. It returns the new heads, which the caller saves.
func (t *moment) leave(items ...*item) (promoted []*item) {
	var keys []string
	for _, i := range items {
		if i.State&(durable.Retry|durable.Dead|durable.Halted) != 0 && i.failing == 0 {
			i.failing = t.now
		}
		if i.on, t.freed = 0, true; i.State&(durable.Finished|durable.Halted) != 0 {
			i.ended = t.now
		}
		if i.Key != "" && i.was&(durable.Blocked|durable.Dead) == 0 && i.State&durable.Finished != 0 {
			keys = append(keys, i.Key)
		}
	}
	if t.save(items...); len(keys) == 0 {
		return nil
	}
	promoted = t.items(`id in (
	select (select id from durable_item as b where b.queue = ?1 and b.key = k.value and b.state = 1 order by b.rank, b.id limit 1) from json_each(?2) as k)`, t.queue, encode(keys))
	for _, i := range promoted {
		i.State, i.runAt = durable.Ready, t.space(i.Key, max(i.runAt, t.now))
	}
	return promoted
}

// take makes items Running on a node.
func (t *moment) take(n claimer, items []*item) (taken []durable.Item) {
	if len(items) == 0 {
		return nil
	}
	var last int64
	t.get(list{&last}, "update durable_token set last = last + ? returning last", len(items))
	var ids []durable.ItemID
	for at, i := range items {
		i.State, i.started, i.on, i.Node, i.expires, i.Note = durable.Running, t.now, n.id, n.name, n.expires, ""
		i.Attempts++
		i.Token = last - int64(len(items)-1-at)
		ids = append(ids, i.ID)
	}
	t.save(items...)
	type data struct {
		id   durable.ItemID
		data []byte
	}
	of := map[durable.ItemID][]byte{}
	for _, d := range rows(t, func(d *data) list { return list{&d.id, &d.data} }, "select id, data from durable_item where id in (select value from json_each(?))", encode(ids)) {
		of[d.id] = d.data
	}
	for _, i := range items {
		i.Data, i.Trial = of[i.ID], t.tried(i.Key)
		view := i.view()
		view.Cost = 0
		taken = append(taken, view)
	}
	return taken
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
	runAt := t.in(in.Delay)
	if !in.RunAt.IsZero() {
		runAt = max(runAt, in.RunAt.UnixMicro())
	}
	spaced := func(head bool) int64 {
		if head && in.Rated {
			return t.space(in.Key, runAt)
		}
		return runAt
	}
	if in.Unique != "" && t.get(list{&done.ID}, "select item from durable_unique where queue = ? and unique_id = ? and until > ?", t.queue, in.Unique, t.now) {
		if done.Duplicate = !in.Replace; done.Duplicate {
			return done
		}
		if old := t.find(done.ID)[done.ID]; old != nil && old.State&durable.Waiting != 0 {
			if done.Duplicate, done.OtherKey = true, old.Key != in.Key; !done.OtherKey {
				t.freed = true
				t.do(`update durable_item set state = iif(state = 8, 2, state), attempts = 0, losses = 0, token = 0, err = '', failing = 0,
	lane = ?, rank = ?, run_at = ?, data = ?, extra = ?, cost = ? where id = ?`, in.Place(), in.Rank, spaced(old.State != durable.Blocked), append([]byte{}, in.Data...), in.Extra, in.Cost, done.ID)
				t.do("update durable_unique set until = ? where queue = ? and unique_id = ?", t.in(in.UniqueFor), t.queue, in.Unique)
			}
			return done
		}
	}
	head := true // or another item of its key is
	if in.SkipIfAlive || in.Rated {
		if now := t.first(isHead, t.queue, in.Key); now != nil && in.SkipIfAlive {
			return durable.Inserted{ID: now.ID, Duplicate: true}
		} else if now != nil {
			head = false
		}
	}
	t.freed = true
	t.get(list{&done.ID}, `insert into durable_item (queue, key, lane, rank, unique_id, enqueued, run_at, data, extra, cost, state) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
	iif(exists (select 1 from durable_item where queue = ?1 and key = ?2 and key <> '' and state in (2, 4, 8, 16)), 1, 2)) returning id`,
		t.queue, in.Key, in.Place(), in.Rank, in.Unique, t.now, spaced(head), append([]byte{}, in.Data...), in.Extra, in.Cost)
	if in.Unique != "" {
		t.do("insert or replace into durable_unique (queue, unique_id, item, until) values (?, ?, ?, ?)", t.queue, in.Unique, done.ID, t.in(in.UniqueFor))
	}
	return done
}
