package postgres

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Bodies hold all connections of the pool for longer than the lease. The process keeps its
// lease, and items end and start meanwhile.
func TestBodiesHoldAllConnections(t *testing.T) {
	s, other := open(t, func(c *pgxpool.Config) { c.MaxConns = 4 }), connect(t)
	free, held := make(chan struct{}), make(chan struct{}, 10)
	q, err := durable.New(s, strings.ToLower, func(ctx context.Context, item string) error {
		if item != "quick" {
			conn, err := s.pool.Acquire(ctx)
			require.NoError(t, err)
			defer conn.Release()
			held <- struct{}{}
			<-free
		}
		return nil
	}, durable.Options{Lease: time.Second, MaxConcurrency: 5})
	require.NoError(t, err)
	defer q.Close()
	ids, err := q.EnqueueAll(t.Context(), []string{"a", "b", "c", "d"})
	require.NoError(t, err)
	lost := q.Sink().Monitor(durable.SignalLeaseLost, 0)
	defer lost.Stop()
	go q.Run(t.Context())
	for range ids {
		<-held
	}
	var was time.Time
	lease := func() (expires time.Time) {
		require.NoError(t, other.QueryRow(t.Context(), s.sql("select max(expires) from {s}.durable_node")).Scan(&expires))
		return expires
	}
	for was = lease(); lease().Before(was.Add(1500*time.Millisecond)) && lost.Count() == 0; {
	}
	_, err = other.Exec(t.Context(), s.sql(`insert into {s}.durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, data)
		values (nextval('{s}.durable_item_id'), 'durable', 'quick', '', 0, 2, '', now(), now(), '"quick"')`))
	require.NoError(t, err)
	for done := 0; done == 0 && lost.Count() == 0; {
		require.NoError(t, other.QueryRow(t.Context(), s.sql("select count(*) from {s}.durable_item where state = 32")).Scan(&done))
	}
	assert.Zero(t, lost.Count())
	close(free)
}

// After the last queue, the store has no connections.
func TestOwnConnections(t *testing.T) {
	s := open(t)
	first, second := s.Connect(), s.Connect()
	turns, beats := s.forTurns(), s.forBeats()
	require.NotSame(t, s.pool, turns)
	first()
	first()
	require.Same(t, turns, s.forTurns())
	second()
	require.Same(t, s.pool, s.forTurns())
	for _, pool := range []*pgxpool.Pool{turns, beats} {
		require.ErrorContains(t, pool.Ping(t.Context()), "closed pool")
	}
}

// The tables are those of the first version, and have many items. A program of today opens them
// and works, while the index is built behind a transaction that is open; the statements of the
// first version go on working. An index whose build was interrupted is built again.
func TestIndexIsBuiltBesideTheWork(t *testing.T) {
	items := 20_000
	if os.Getenv("EPHEMERAL_LONG") != "" {
		items = 1_000_000
	}
	schema, pool := newSchema(t), connect(t)
	old := &Store{pool: pool, in: `"` + schema + `"`}
	exec(t, old, "create schema {s}; create table {s}.durable_migration (step int primary key, at timestamptz not null default now()); insert into {s}.durable_migration values (1)")
	exec(t, old, Migrations(schema)[0])
	exec(t, old, "alter table {s}.durable_item set unlogged") // which is faster to fill
	exec(t, old, `insert into {s}.durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, ended, data)
		select nextval('{s}.durable_item_id'), 'q', '', '', 0, 32, '', now(), now(), now() - interval '1 day', '1' from generate_series(1, $1)`, items)
	const valid = "select coalesce((select indisvalid from pg_index where indexrelid = to_regclass('{s}.durable_item_ends')), false)"
	built := func() (is bool) {
		require.NoError(t, pool.QueryRow(t.Context(), old.sql(valid)).Scan(&is))
		return is
	}
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.Background())
	_, err = tx.Exec(t.Context(), old.sql("update {s}.durable_item set err = 'x' where id = 1"))
	require.NoError(t, err)

	s := openIn(t, schema)
	release := s.Connect()
	untilBlocked(t, s, tx, nil)
	openIn(t, schema) // waits for no lock that the build holds
	n := node(t, s, time.Hour, 0)
	insert(t, s, "ada", "ada")
	claimed := claim(t, s, n, 1)
	require.Len(t, claimed, 1)
	_, err = pool.Exec(t.Context(), s.sql("update {s}.durable_item set state = 32, ended = now(), node = null where id = $1 and token = $2 and state = 4"), claimed[0].ID, claimed[0].Token)
	require.NoError(t, err)
	_, _, err = s.Prune(t.Context(), "q", durable.Keep{Done: -1, Dead: -1, Cancelled: -1}, 10)
	require.NoError(t, err)
	require.False(t, built())
	release() // the program ends in the middle
	require.NoError(t, tx.Rollback(t.Context()))

	defer s.Connect()()
	const all = "select to_regclass('{s}.durable_item_ended') is null and count(*) = $1 from {s}.durable_migration"
	for done := false; !done || !built(); {
		require.NoError(t, pool.QueryRow(t.Context(), s.sql(all), len(Migrations(schema))).Scan(&done))
	}
	_, more, err := s.Prune(t.Context(), "q", durable.Keep{Done: time.Hour, Dead: -1, Cancelled: -1}, 10)
	require.NoError(t, err)
	assert.True(t, more)
	_, err = pool.Exec(t.Context(), s.sql("analyze {s}.durable_item")) // or the planner knows only of few rows
	require.NoError(t, err)
	var plan string
	rows, err := pool.Query(t.Context(), s.sql("explain select id from {s}.durable_item where queue = 'q' and state >= 16 and id > 0 and state = 32 and ended <= now() order by ended limit 500"))
	require.NoError(t, err)
	for rows.Next() {
		var line string
		require.NoError(t, rows.Scan(&line))
		plan += line
	}
	assert.Contains(t, plan, "durable_item_ends")
	assert.NotContains(t, plan, "Sort")
}

// Without tables, or with those of an older version, SkipMigrations is an error at once.
func TestSkipMigrationsNeedsTables(t *testing.T) {
	schema, pool := newSchema(t), connect(t)
	opts := Options{Schema: schema, SkipMigrations: true}
	_, err := Open(t.Context(), pool, opts)
	require.ErrorContains(t, err, "run all steps of Migrations")
	_, err = pool.Exec(t.Context(), "create schema "+schema)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), Migrations(schema)[0])
	require.NoError(t, err)
	_, err = Open(t.Context(), pool, opts)
	require.ErrorContains(t, err, "run all steps of Migrations")
}

// The server gives the role of the program few connections. Items are added, run and end, more slowly.
func TestFewConnections(t *testing.T) {
	for limit := 1; limit <= 4; limit++ {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			role, pool := newSchema(t), connect(t)
			_, err := pool.Exec(t.Context(), strings.ReplaceAll(fmt.Sprintf("create role ROLE login connection limit %d; create schema ROLE authorization ROLE", limit), "ROLE", role))
			require.NoError(t, err)
			s := openIn(t, role, func(c *pgxpool.Config) { c.ConnConfig.User = role })
			t.Cleanup(func() {
				s.pool.Close()
				_, err := pool.Exec(context.Background(), strings.ReplaceAll("drop owned by ROLE; drop role ROLE", "ROLE", role))
				require.NoError(t, err)
			})
			q, err := durable.New(s, strings.ToLower, func(context.Context, string) error { return nil }, durable.Options{Poll: 100 * time.Millisecond, Lease: time.Minute})
			require.NoError(t, err)
			defer q.Close()
			ended := make(chan signals.Signal, 20)
			defer q.Sink().Subscribe(durable.SignalSucceeded, func(s signals.Signal) { ended <- s })()
			go q.Run(t.Context())
			for i := range 10 {
				_, err := q.Enqueue(t.Context(), fmt.Sprint("ada ", i))
				require.NoError(t, err)
				<-ended
			}
			_, err = q.List(t.Context(), durable.Query{})
			require.NoError(t, err)
		})
	}
}
