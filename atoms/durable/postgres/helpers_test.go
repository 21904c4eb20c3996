package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

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
