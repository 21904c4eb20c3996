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
	q := queue(t, s, func(ctx context.Context, item string) error {
		if item != "quick" {
			conn, err := s.pool.Acquire(ctx)
			require.NoError(t, err)
			defer conn.Release()
			held <- struct{}{}
			<-free
		}
		return nil
	}, durable.Options{Lease: time.Second, MaxConcurrency: 5})
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
	_, first := s.Connect()
	_, second := s.Connect()
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

// newer returns the steps of a program that has an index more, and one less.
func newer(schema string) []string {
	return append(Migrations(schema), "-- Outside of a transaction\ncreate index concurrently durable_item_new on "+schema+".durable_item (err) where state = 32",
		"-- Outside of a transaction\ndrop index concurrently if exists "+schema+".durable_item_again")
}

// The tables are those of an older program, and have many items. A newer program opens them and works, while it builds
// an index behind a transaction that is open; the older one goes on working. An index whose build was interrupted is
// built again.
func TestIndexIsBuiltBesideTheWork(t *testing.T) {
	items := 20_000
	if os.Getenv("EPHEMERAL_LONG") != "" {
		items = 300_000
	}
	old := open(t)
	schema, pool := old.opts.Schema, old.pool
	exec(t, old, `insert into {s}.durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, ended, data)
		select nextval('{s}.durable_item_id'), 'q', '', '', 0, 32, '', now(), now(), now() - interval '1 day', '1' from generate_series(1, $1)`, items)
	const index = "select coalesce((select indisvalid from pg_index where indexrelid = to_regclass('{s}.durable_item_new')), false)"
	built := func() (is bool) {
		require.NoError(t, pool.QueryRow(t.Context(), old.sql(index)).Scan(&is))
		return is
	}
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.Background())
	_, err = tx.Exec(t.Context(), old.sql("update {s}.durable_item set err = 'x' where id = 1"))
	require.NoError(t, err)

	s, err := openWith(t.Context(), connect(t), Options{Schema: schema}, newer)
	require.NoError(t, err)
	_, release := s.Connect()
	untilBlocked(t, s, tx, nil)
	_, err = openWith(t.Context(), connect(t), Options{Schema: schema}, newer) // waits for no lock that the build holds
	require.NoError(t, err)
	for _, s := range []*Store{s, openIn(t, schema)} {
		n := node(t, s, time.Hour, 0)
		insert(t, s, "ada")
		claimed := claim(t, s, n, 1)
		require.Len(t, claimed, 1)
		require.Equal(t, durable.OutcomeEnded, endAll(t, s, n, end(claimed[0], durable.EndDone))[0].Outcome)
	}
	require.False(t, built())
	release() // the program ends in the middle
	require.NoError(t, tx.Rollback(t.Context()))

	_, release = s.Connect()
	defer release()
	const all = "select to_regclass('{s}.durable_item_again') is null and count(*) = $1 from {s}.durable_migration"
	for done := false; !done || !built(); {
		require.NoError(t, pool.QueryRow(t.Context(), s.sql(all), len(newer(schema))).Scan(&done))
	}
}

// Without tables, SkipMigrations is an error at once.
func TestSkipMigrationsNeedsTables(t *testing.T) {
	_, err := Open(t.Context(), connect(t), Options{Schema: newSchema(t), SkipMigrations: true})
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
			q := queue(t, s, nothing, durable.Options{Poll: 100 * time.Millisecond, Lease: time.Minute})
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
