//go:build unix

package main

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

const storeSchema = "chaos_queue"

// schema is where workers write effects, and where triggers record each change of an item, in
// the transaction that makes it. Changes of one key are in the order of commits, because a
// transaction has the locks of the key and of the item before it gets a number.
const schema = `
create schema chaos;
create table chaos.placed (ref text primary key);
create table chaos.effect (item bigint not null, token bigint not null);
create table chaos.change (
	seq bigint generated always as identity (cache 1) primary key, tx xid8 not null default pg_current_xact_id(),
	item bigint not null, old smallint not null, state smallint not null, old_token bigint not null, token bigint not null, started timestamptz
);
create function chaos.record() returns trigger language plpgsql as $$ begin
	insert into chaos.change (item, old, state, old_token, token, started)
	values (new.id, coalesce(old.state, 0), new.state, coalesce(old.token, 0), new.token, new.started);
	return null;
end $$;
create trigger added after insert on chaos_queue.durable_item for each row execute function chaos.record();
create trigger changed after update on chaos_queue.durable_item for each row
	when (old.state <> new.state or old.token <> new.token) execute function chaos.record();`

// An item is one that is in the store at the end.
type item struct {
	ID     int64
	Key    string
	Lane   string
	Rank   int
	State  durable.State
	Token  int64
	Unique string
	Data   []byte
	Class  string `db:"-"`
	job    job
}

// A change is one of an item, in the database.
type change struct {
	Seq             int64
	Tx              uint64
	Item            int64
	Old, State      durable.State
	OldToken, Token int64
	Started         *time.Time // by the clock of the database
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
	starts  []event // of bodies
}

// load reads what is in the database, and joins the two events of each call.
func load(ctx context.Context, db *pgxpool.Pool, l limits, events []event) (*history, error) {
	h := &history{limits: l, items: map[int64]item{}, placed: map[string]bool{}}
	rows, _ := db.Query(ctx, `select id, key, lane, rank, state, token, unique_id as unique, data from chaos_queue.durable_item`)
	items, err := pgx.CollectRows(rows, pgx.RowToStructByPos[item])
	for _, i := range items {
		if err == nil {
			err = json.Unmarshal(i.Data, &i.job)
		}
		var place durable.Item
		place.SetPlace(i.Lane)
		i.Lane, i.Class = place.Lane, place.Class
		h.items[i.ID] = i
	}
	if err != nil {
		return nil, err
	}
	rows, _ = db.Query(ctx, "select seq, tx, item, old, state, old_token, token, started from chaos.change order by seq")
	if h.changes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[change]); err != nil {
		return nil, err
	}
	rows, _ = db.Query(ctx, "select item, token from chaos.effect")
	if h.effects, err = pgx.CollectRows(rows, pgx.RowToStructByPos[effect]); err != nil {
		return nil, err
	}
	rows, _ = db.Query(ctx, "select ref from chaos.placed")
	placed, err := pgx.CollectRows(rows, pgx.RowTo[string])
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
		case e.Op == "lost", e.Op == "hung":
		case e.Op == "start":
			h.starts = append(h.starts, e)
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
