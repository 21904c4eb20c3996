//go:build unix

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"strings"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

const storeSchema = "chaos_queue"

// schemaOfPostgres is where workers write effects, and where triggers record each change of an item, in
// the transaction that makes it, with the worker that makes it. Changes of one key are in the order
// of commits, because a transaction has the locks of the key and of the item before it gets a number.
const schemaOfPostgres = `
create schema chaos;
create table chaos.placed (ref text primary key);
create table chaos.effect (item bigint not null, token bigint not null);
create table chaos.change (
	seq bigint generated always as identity (cache 1) primary key, tx xid8 not null default pg_current_xact_id(), worker text not null default current_setting('application_name'),
	item bigint not null, old smallint not null, state smallint not null, old_token bigint not null, token bigint not null,
	live boolean not null, -- the node that had it is still there
	started bigint not null -- microseconds, by the clock of the database
);
create table chaos.inside (item bigint not null, token bigint not null);
-- Some commits take long, and end when nobody waits for them any more.
create function chaos.slow() returns trigger language plpgsql as $$ begin
	perform pg_sleep(5) where random() < {slow} and current_setting('application_name') not like 'calm%';
	return null;
end $$;
create constraint trigger slow after insert on chaos.inside deferrable initially deferred for each row execute function chaos.slow();
create view chaos.step as select s.item, s.name, s.state, s.compensates, s.signal, convert_from(coalesce(s.data, ''), 'utf8') as data, (extract(epoch from s.at) * 1000000)::bigint as at,
	(extract(epoch from coalesce(s.until, 'epoch')) * 1000000)::bigint as until, (extract(epoch from i.enqueued) * 1000000)::bigint as enqueued
	from chaos_queue.durable_step as s join chaos_queue.durable_item as i on i.id = s.item;
create view chaos.sent as select item, key, unique_id, taken, (extract(epoch from at) * 1000000)::bigint as at from chaos_queue.durable_signal;
create table chaos.over (node text not null, worker text not null default current_setting('application_name'), live boolean not null);
create function chaos.record() returns trigger language plpgsql as $$ begin
	insert into chaos.change (item, old, state, old_token, token, live, started)
	values (new.id, coalesce(old.state, 0), new.state, coalesce(old.token, 0), new.token, exists (select from chaos_queue.durable_node where id = old.node),
		coalesce(extract(epoch from new.started) * 1000000, 0)::bigint);
	return null;
end $$;
create function chaos.over() returns trigger language plpgsql as $$ begin
	insert into chaos.over (node, live) values (old.name, old.expires > clock_timestamp());
	return null;
end $$;
create trigger added after insert on chaos_queue.durable_item for each row execute function chaos.record();
create trigger changed after update on chaos_queue.durable_item for each row
	when (old.state <> new.state or old.token <> new.token) execute function chaos.record();
create trigger over after delete on chaos_queue.durable_node for each row execute function chaos.over();`

// schemaOfSQLite is the same. A token below 0 is that of a lease that was lost.
const schemaOfSQLite = `
create table chaos_placed (ref text primary key);
create table chaos_effect (item integer not null, token integer not null);
create table chaos_change (
	seq integer primary key autoincrement, tx integer not null, worker text not null, item integer not null,
	old integer not null, state integer not null, old_token integer not null, token integer not null, live integer not null, started integer not null
);
create table chaos_inside (item integer not null, token integer not null);
create view chaos_step as select s.item, s.name, s.state, s.compensates, s.signal, cast(coalesce(s.data, '') as text) as data, s.at, s.until, i.enqueued
	from durable_step as s join durable_item as i on i.id = s.item;
create view chaos_sent as select item, key, unique_id, taken, at from durable_signal;
create table chaos_over (node text not null, worker text not null, live integer not null);
create trigger added after insert on durable_item begin
	insert into chaos_change (tx, worker, item, old, state, old_token, token, live, started) values (chaos_tx(), chaos_worker(), new.id, 0, new.state, 0, max(0, new.token), false, 0);
end;
create trigger changed after update on durable_item when old.state <> new.state or max(0, old.token) <> max(0, new.token) begin
	insert into chaos_change (tx, worker, item, old, state, old_token, token, live, started)
	values (chaos_tx(), chaos_worker(), new.id, old.state, new.state, max(0, old.token), max(0, new.token), exists (select 1 from durable_node where id = old.node), new.started);
end;
create trigger over after delete on durable_node begin
	insert into chaos_over values (old.name, chaos_worker(), old.expires > chaos_now());
end;`

// An item is one that is in the store at the end.
type item struct {
	ID     int64
	Key    string
	Lane   string
	Class  string
	Cost   int64
	Rank   int
	State  durable.State
	Token  int64
	Unique string
	Data   []byte
	job    job
}

// replaced says that newer data may have taken the place of the item's.
func (i item) replaced() bool { return strings.HasPrefix(i.Unique, replaced) }

// most is how many attempts the item may have; if it was replaced, those of any. The Compensates of a flow have 8, each.
func (i item) most() int {
	if i.job.Trip != nil && i.job.Trip.Undo {
		return 8
	}
	if i.job.Most == 0 || i.replaced() {
		return maxAttempts
	}
	return i.job.Most
}

// A change is one of an item, in the database.
type change struct {
	Seq             int64
	Tx              uint64
	Worker          string // that has made it
	Item            int64
	Old, State      durable.State
	OldToken, Token int64
	Live            bool // the node that had the item is still there
	Started         int64
}

// An over is the end of a node.
type over struct {
	Node, Worker string // name of the node, and the worker that ended it
	Live         bool   // its lease was not over
}

// freed says that a lease was over.
func (c change) freed() bool {
	return c.Old == durable.Running && c.State == durable.Ready && c.Token == 0
}

type effect struct{ Item, Token int64 }

// A call is what a worker has asked for, and when. Its Out is "maybe" if nobody knows.
type call struct {
	event
	To int64
}

// A history is all that is known at the end.
type history struct {
	limits  limits
	items   map[int64]item
	changes []change
	effects []effect
	placed  map[string]bool // refs of the transactions of callers
	calls   []call
	tells   []event // ends of claims, as their processes have seen them
	bodies  []event // starts and stops of bodies
	overs   []over
	inside  []effect // of steps whose effects are in the transactions that record them
	steps   []step
	sent    []sent
}

// load reads what is in the database, and joins the two events of each call. Local makes a statement
// one of the engine.
func load(ctx context.Context, db *sql.DB, local func(string) string, l limits, events []event) (*history, error) {
	h := &history{limits: l, items: map[int64]item{}, placed: map[string]bool{}}
	var items []item
	var placed []string
	err := errors.Join(
		rows(ctx, db, &items, local("select id, key, lane, rank, state, token, unique_id, data, coalesce(cost, 0) from chaos_queue.durable_item"), func(i *item) []any {
			return []any{&i.ID, &i.Key, &i.Lane, &i.Rank, &i.State, &i.Token, &i.Unique, &i.Data, &i.Cost}
		}),
		rows(ctx, db, &h.changes, local("select seq, tx, worker, item, old, state, old_token, token, live, started from chaos.change order by seq"), func(c *change) []any {
			return []any{&c.Seq, &c.Tx, &c.Worker, &c.Item, &c.Old, &c.State, &c.OldToken, &c.Token, &c.Live, &c.Started}
		}),
		rows(ctx, db, &h.effects, local("select item, token from chaos.effect"), func(e *effect) []any { return []any{&e.Item, &e.Token} }),
		rows(ctx, db, &h.overs, local("select node, worker, live from chaos.over"), func(o *over) []any { return []any{&o.Node, &o.Worker, &o.Live} }),
		rows(ctx, db, &h.inside, local("select item, token from chaos.inside"), func(e *effect) []any { return []any{&e.Item, &e.Token} }),
		rows(ctx, db, &h.steps, local("select item, name, state, compensates, signal, data, at, until, enqueued from chaos.step"), func(s *step) []any {
			return []any{&s.Item, &s.Name, &s.State, &s.Compensates, &s.Signal, &s.Data, &s.At, &s.Until, &s.Enqueued}
		}),
		rows(ctx, db, &h.sent, local("select item, key, unique_id, taken, at from chaos.sent"), func(s *sent) []any { return []any{&s.Item, &s.Key, &s.Unique, &s.Taken, &s.At} }),
		rows(ctx, db, &placed, local("select ref from chaos.placed"), func(ref *string) []any { return []any{ref} }))
	for _, i := range items {
		var place durable.Item
		place.SetPlace(i.Lane)
		err = errors.Join(err, json.Unmarshal(i.Data, &i.job))
		i.Token, i.Lane, i.Class = max(0, i.Token), place.Lane, place.Class
		h.items[i.ID] = i
	}
	for _, ref := range placed {
		h.placed[ref] = true
	}
	h.read(events)
	return h, err
}

func (h *history) read(events []event) {
	type id struct {
		worker string
		call   int64
	}
	begun := map[id]int{}
	for _, e := range events {
		at, ok := begun[id{e.Worker, e.Call}]
		switch {
		case e.Op == "lost", e.Op == "hung", e.Op == "waits":
		case e.Op == "took", e.Op == "late":
			h.calls = append(h.calls, call{e, e.At})
		case e.Op == "start", e.Op == "stop":
			h.bodies = append(h.bodies, e)
		case e.Op == "told":
			e.Out = strings.TrimPrefix(e.Out, "durable.")
			h.tells = append(h.tells, e)
		case !ok:
			begun[id{e.Worker, e.Call}] = len(h.calls)
			e.Out = "maybe"
			h.calls = append(h.calls, call{e, math.MaxInt64})
		default:
			c := &h.calls[at]
			c.Item, c.Out = e.Item, e.Out
			if c.Out != "maybe" {
				c.To = e.At
			}
		}
	}
}
