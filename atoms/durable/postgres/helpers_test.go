package postgres

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // tests wait for the server and do not compute
		panic(err)
	}
	os.Exit(m.Run())
}

// connect makes a pool to the server that scripts/postgres starts, or skips the test.
func connect(t testing.TB, configure ...func(c *pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	dsn := os.Getenv("EPHEMERAL_POSTGRES_DSN")
	if dsn == "" {
		message := "NOT TESTED: there is no EPHEMERAL_POSTGRES_DSN. In the root of the repository, run: go run ./scripts/postgres go test ./atoms/durable/postgres"
		if os.Getenv("EPHEMERAL_POSTGRES_REQUIRED") != "" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	config, err := pgxpool.ParseConfig(dsn)
	require.NoError(t, err)
	for _, configure := range configure {
		configure(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// newSchema returns the name of a schema that is dropped at the end of the test.
func newSchema(t testing.TB) string {
	t.Helper()
	schema := fmt.Sprintf("test_%016x", rand.Uint64())
	pool := connect(t)
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), "drop schema if exists "+schema+" cascade")
		require.NoError(t, err)
	})
	return schema
}

func open(t testing.TB, configure ...func(c *pgxpool.Config)) *Store {
	t.Helper()
	return openIn(t, newSchema(t), configure...)
}

func openIn(t testing.TB, schema string, configure ...func(c *pgxpool.Config)) *Store {
	t.Helper()
	s, err := Open(t.Context(), connect(t, configure...), Options{Schema: schema})
	require.NoError(t, err)
	return s
}

func exec(t testing.TB, s *Store, sql string, args ...any) {
	t.Helper()
	_, err := s.pool.Exec(context.Background(), s.sql(sql), args...)
	require.NoError(t, err)
}

func nothing(context.Context, string) error { return nil }

// queue makes a queue on a store, which is closed at the end of the test.
func queue(t testing.TB, s durable.Store, work core.Work[string], opts durable.Options) *durable.Queue[string] {
	t.Helper()
	q, err := durable.New(s, strings.ToLower, work, opts)
	require.NoError(t, err)
	t.Cleanup(func() { q.Close() })
	return q
}
