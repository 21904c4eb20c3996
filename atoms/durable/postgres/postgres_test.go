package postgres

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/durabletest"
)

// The modes are those of programs beside and behind PgBouncer.
func TestStore(t *testing.T) {
	for name, mode := range map[string]pgx.QueryExecMode{"statements are cached": pgx.QueryExecModeCacheStatement, "exec": pgx.QueryExecModeExec, "simple": pgx.QueryExecModeSimpleProtocol} {
		t.Run(name, func(t *testing.T) {
			if mode != pgx.QueryExecModeCacheStatement && os.Getenv("EPHEMERAL_LONG") == "" {
				t.Skip("EPHEMERAL_LONG=1 runs it")
			}
			schema := newSchema(t)
			durabletest.Run(t, func(t testing.TB) durable.Store {
				return openIn(t, schema, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
			})
		})
	}
}
