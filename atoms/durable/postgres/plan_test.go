package postgres

import (
	"cmp"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// What a call reads does not depend on how many items there are, also if the statistics are those of other items, or
// if the statements were planned for empty tables.
func TestPlans(t *testing.T) {
	const many = 2000 // a call that read them all would read more than it may
	states := []durable.State{durable.Blocked, durable.Running, durable.Dead}
	if os.Getenv("EPHEMERAL_LONG") != "" {
		states = append(states, durable.Ready, durable.Retry, durable.Halted, durable.Done, durable.Cancelled)
	}
	s := open(t, func(c *pgxpool.Config) { c.MaxConns = 1 }) // so that it counts what the calls have read
	const tables = "{s}.durable_item, {s}.durable_attempt, {s}.durable_result, {s}.durable_unique, {s}.durable_loss, {s}.durable_node, {s}.durable_flow, {s}.durable_step, {s}.durable_signal"
	read := func() int { return rowsRead(t, s) }
	exec(t, s, "do $$ declare n text; begin foreach n in array string_to_array('"+tables+"', ', ') loop execute 'alter table ' || n || ' set (autovacuum_enabled = off)'; end loop; end $$")
	fill := func(queue string, state durable.State, node durable.NodeID, many int) {
		key := fmt.Sprintf("'key %d ' || n", state)
		if state == durable.Blocked {
			key = fmt.Sprintf("'key ' || n %% %d", many/50)
			exec(t, s, `insert into {s}.durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, data)
				select nextval('{s}.durable_item_id'), $1, 'key ' || n, '', 0, 2, '', now(), now() + interval '1 hour', '1' from generate_series(0, $2) as n`, queue, many/50-1)
		}
		exec(t, s, `insert into {s}.durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, started, ended, node, node_name, token, data)
			select nextval('{s}.durable_item_id'), $1, `+key+`, '', 0, $2::int, '', now(), now(), now(), case when $2 >= 16 then now() - n * interval '1 us' end, case when $2 = 4 then $3::bigint end, 'n', 1, '1' from generate_series(1, $4) as n`, queue, int(state), node, many)
		exec(t, s, "update {s}.durable_item set flow = 1 where queue = $1 and state = $2 and id % 2 = 0", queue, int(state)) // each second one has a flow
		exec(t, s, "insert into {s}.durable_flow (queue, item, version, class) select $1, id, 1, '' from {s}.durable_item where queue = $1 and state = $2 and flow = 1", queue, int(state))
		exec(t, s, `insert into {s}.durable_step (queue, item, name, seq, state, compensates, attempt, took, at, signal, data)
			select $1, id, 'step ' || n, n, 2, id % 4 = 0, 1, 1, now(), '', '1' from {s}.durable_item, generate_series(1, 2) as n where queue = $1 and state = $2 and flow = 1`, queue, int(state))
		exec(t, s, `insert into {s}.durable_signal (seq, item, at, checked, queue, key, name, unique_id, data)
			select nextval('{s}.durable_signal_seq'), case when id % 4 = 0 then id else 0 end, now(), now(), $1, case when id % 4 = 0 then '' else key end, 'go', id, '1' from {s}.durable_item where queue = $1 and state = $2`, queue, int(state))
		exec(t, s, "insert into {s}.durable_attempt select $1, id, 0, 2, 'n', now(), now(), 'e' from {s}.durable_item where queue = $1 and state = $2", queue, int(state))
		exec(t, s, "insert into {s}.durable_loss select $1, id, 1, 1 from {s}.durable_item where queue = $1 and state = 4", queue)
		exec(t, s, "insert into {s}.durable_result select $1, id, '1' from {s}.durable_item where queue = $1 and state = $2", queue, int(state))
		exec(t, s, "insert into {s}.durable_unique select $1, n, n, now() + interval '1 hour' from generate_series(1, $2) as n on conflict do nothing", queue, many)
	}
	calls := func(of, queue string, state durable.State) {
		n := durable.Node{Queue: queue, Name: "n", Lease: time.Hour, MaxConcurrency: 10, Lanes: node(t, s, time.Hour, 0).Lanes}
		var err error
		n.ID, err = s.Join(t.Context(), n)
		require.NoError(t, err)
		page, err := s.Items(t.Context(), queue, durable.Query{State: state, Limit: 20})
		require.NoError(t, err)
		ids, key := []durable.ItemID{1}, ""
		var ends []durable.End
		for _, i := range page.Items {
			ids, key = append(ids, i.ID), cmp.Or(key, i.Key)
			if state == durable.Running && len(ends) < 5 {
				ends = append(ends, durable.End{ID: i.ID, Key: i.Key, Token: i.Token, Kind: durable.EndRetry, Err: "e"})
			}
		}
		before := read()
		cost := func(call string, err error) {
			require.NoError(t, err, call)
			now := read()
			if of != "" {
				assert.Less(t, now-before, 1500, "%s %s of %v", of, call, state)
			}
			before = read()
		}
		_, err = s.Insert(t.Context(), queue, []durable.Insert{{Key: key}, {Key: "new"}, {Unique: "1", UniqueFor: time.Hour}})
		cost("Insert", err)
		_, err = s.Turn(t.Context(), n, ends, durable.Want{Max: 5, Aged: time.Second})
		cost("Turn", err)
		if state == durable.Running {
			for n := range ends {
				ends[n].Token++ // of an old claim
				ends[n].Kind, ends[n].Park = durable.EndParked, durable.Park{Step: "wait", Pattern: "go", For: time.Hour}
			}
			_, err = s.Turn(t.Context(), n, ends, durable.Want{})
			cost("Turn of flows", err)
			var records []durable.Record
			for _, i := range page.Items {
				records = append(records, durable.Record{ID: i.ID, Token: i.Token, Steps: []durable.Step{{Name: "new", Seq: 3, State: durable.StepDone}}})
			}
			_, err = s.Record(t.Context(), queue, records)
			cost("Record", err)
		}
		_, _, err = s.Journal(t.Context(), queue, ids[len(ids)-1], true)
		cost("Journal", err)
		_, err = s.Signal(t.Context(), queue, []durable.Signal{{Key: cmp.Or(key, "none"), Name: "go", UniqueID: "u"}, {Item: ids[len(ids)-1], Name: "go"}}[:min(2, len(ids))])
		cost("Signal", err)
		_, err = s.Signals(t.Context(), queue, cmp.Or(key, "none"), 0, 10)
		cost("Signals", err)
		if queue == "small" || state != durable.Running {
			_, err = s.Beat(t.Context(), n, "")
			cost("Beat", err)
		}
		_, _, err = s.Result(t.Context(), queue, ids[len(ids)-1])
		cost("Result", err)
		if state == durable.Blocked || state&durable.Finished != 0 {
			_, _, err = s.Explain(t.Context(), queue, ids[len(ids)-1])
			cost("Explain", err)
		}
		for _, q := range []durable.Query{{State: state &^ durable.Running, Limit: 20}, {Key: key, Limit: 20}} {
			if q.State == 0 && q.Key == "" { // running items are sorted
				continue
			}
			_, err = s.Items(t.Context(), queue, q)
			cost(fmt.Sprintf("Items %+v", q), err)
		}
		_, err = s.Move(t.Context(), queue, ids[:min(2, len(ids))], "", 0)
		cost("Move", err)
		_, err = s.Cancel(t.Context(), queue, ids, ^durable.State(0), "why")
		cost("Cancel", err)
		_, err = s.Again(t.Context(), queue, ids, ^durable.State(0))
		cost("Again", err)
		_, _, err = s.Prune(t.Context(), queue, durable.Keep{Signals: time.Hour}, 20)
		cost("Prune", err)
		if queue == "small" {
			require.NoError(t, s.Leave(t.Context(), n))
			cost("Leave", err)
		}
	}
	for _, old := range []string{"plans of empty tables", "statistics of done items"} {
		for _, state := range states {
			exec(t, s, "truncate "+tables)
			s.pool.Reset()
			if old == "plans of empty tables" {
				exec(t, s, "analyze "+tables)
				for range 7 { // after that, the server keeps the plans, but not if a table is truncated
					calls("", "q", durable.Ready)
				}
				exec(t, s, "delete from {s}.durable_item; delete from {s}.durable_attempt; delete from {s}.durable_unique; delete from {s}.durable_loss; delete from {s}.durable_node")
			} else {
				fill("done", durable.Done, 0, many)
				exec(t, s, "vacuum analyze "+tables)
			}
			if state == durable.Retry {
				fill("q", durable.Ready, 0, many) // which a list of the others passes over
			}
			fill("q", state, node(t, s, time.Hour, 0).ID, many)
			fill("small", state, 0, 50)
			calls(old, "q", state)
			calls(old, "small", state)
		}
	}
}

// rowsRead is how many rows and entries of indexes all calls have read. The pool of the store has one connection.
func rowsRead(t *testing.T, s *Store) (rows int) {
	t.Helper()
	exec(t, s, "select pg_stat_force_next_flush()")
	require.NoError(t, s.pool.QueryRow(t.Context(), `select (select sum(seq_tup_read) from pg_stat_user_tables where schemaname = $1)
		+ (select sum(idx_tup_read) from pg_stat_user_indexes where schemaname = $1)`, s.opts.Schema).Scan(&rows))
	return rows
}
