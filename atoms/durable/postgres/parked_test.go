package postgres

import (
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/durabletest"
)

// 200,000 parked flows make no call slow: not claims, beats, depths, the first page, nor a signal. The times are logged, and count
// on a quiet machine only: there, claims take 1.1 times as long as without the flows. So that a busy machine does not fail
// the test, it limits the rows that are read, and times only to what no plan should take. Depths counts the parked flows: it reads them all.
func TestManyParkedFlows(t *testing.T) {
	if os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("EPHEMERAL_LONG=1 runs it")
	}
	s := open(t, func(c *pgxpool.Config) { c.MaxConns = 1 }) // so that rowsRead counts what the calls have read
	n := node(t, s, time.Hour, 0)
	turns := func() time.Duration { // for 100 items
		var items []durable.Insert
		for range 100 {
			items = append(items, durable.Insert{Data: []byte("x")})
		}
		_, err := s.Insert(t.Context(), "q", items)
		require.NoError(t, err)
		began := time.Now()
		var ends []durable.End
		for done := 0; done < 100; {
			turned, err := s.Turn(t.Context(), n, ends, durable.Want{Max: 10})
			require.NoError(t, err)
			ends = nil
			for _, i := range turned.Items {
				ends = append(ends, end(i, durable.EndDone)...)
			}
			done += len(turned.Items)
		}
		endAll(t, s, n, ends)
		return time.Since(began)
	}
	most := func() time.Duration { // the shortest of several
		least := time.Hour
		for range 10 {
			least = min(least, turns())
		}
		return least
	}
	turns()
	without := most()
	exec(t, s, `insert into {s}.durable_item (id, queue, key, lane, rank, state, flow, unique_id, enqueued, run_at, started, token, node_name, data)
		select nextval('{s}.durable_item_id'), 'q', 'order ' || n, '', 0, 2, 1, '', now(), now() + interval '1 day' + n * interval '1 ms', now(), n, 'n', 'x' from generate_series(1, 200000) as n`)
	exec(t, s, `insert into {s}.durable_flow (queue, item, version, class, step, pattern, likes, since, until)
		select 'q', id, 1, '', 'approval', 'approval.*', 'approval.%', now(), run_at from {s}.durable_item where flow = 1`)
	exec(t, s, `insert into {s}.durable_step (queue, item, name, seq, state, compensates, attempt, took, at, signal)
		select 'q', id, 'approval', 1, 1, false, 1, 0, now(), '' from {s}.durable_item where flow = 1`)
	exec(t, s, "vacuum analyze {s}.durable_item, {s}.durable_flow, {s}.durable_step")
	exec(t, s, "checkpoint") // or pages are written whole
	before := rowsRead(t, s)
	with := most()
	rows := rowsRead(t, s) - before
	t.Logf("100 items: %v, with the parked flows %v, %d rows for 1000", without, with, rows)
	assert.Less(t, rows, 70_000)
	assert.Less(t, with, 10*without)
	cost := func(what string, limit int, call func() error) {
		least, before := time.Hour, rowsRead(t, s)
		for range 3 {
			began := time.Now()
			require.NoError(t, call())
			least = min(least, time.Since(began))
		}
		rows := rowsRead(t, s) - before
		t.Logf("%s: %v, %d rows for 3", what, least, rows)
		assert.Less(t, rows, limit, what)
		assert.Less(t, least, 5*time.Second, what)
	}
	cost("depths", 1_000_000, func() error { _, err := s.Depths(t.Context(), "q"); return err })
	cost("the first page", 20_000, func() error { _, err := s.Items(t.Context(), "q", durable.Query{Limit: 100}); return err })
	cost("a beat", 20_000, func() error { _, err := s.Beat(t.Context(), n, ""); return err })
	cost("a signal", 20_000, func() error {
		_, err := s.Signal(t.Context(), "q", []durable.Signal{{Key: "order 77", Name: "approval.given"}})
		return err
	})
	cost("prune", 20_000, func() error { _, _, err := s.Prune(t.Context(), "q", durable.Keep{}, 100); return err })
}

// fillMany adds 200,000 items: most have ended, 200 are in a lane and of a key that are rare.
const fillMany = `
insert into {s}.durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, started, ended, token, node_name, err, data)
select n, 'q', case when n % 1000 = 0 then 'rare' when state = 1 then 'hot' when n % 2 = 0 then 'key ' || n else '' end, case when n % 1000 = 1 then 'rare' when n % 1000 = 2 then chr(1) || 'stripe' || chr(1) || 'slow' when n % 2 = 0 then 'hot' else 'slow' end, 0, state, '', at, at, at,
	case when state >= 16 then at end, n, 'n', case when n % 100000 = 0 then 'timeout of carrier' else '' end, 'x'
from (
	select n, now() - interval '1 hour' + n / 100 * interval '1 ms' as at,
		case when n % 1000 = 0 then 32 when n % 20 = 3 then 2 when n % 20 = 4 then 1 when n % 1000 = 5 then 8 when n % 20 = 6 then 64 when n % 1000 = 7 then 16 else 32 end as state
	from generate_series(1, 200000) as n
) as all_of_them`

func TestPagesOfMany(t *testing.T) {
	if os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("EPHEMERAL_LONG=1 runs it")
	}
	s := open(t)
	exec(t, s, "alter table {s}.durable_item set unlogged") // which is faster to fill
	exec(t, s, fillMany)
	exec(t, s, "vacuum analyze {s}.durable_item")
	durabletest.Pages(t, s, "q")
}
