package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Several processes that open a store for the first time at once do not fail. Names are
// quoted: reserved words and capital letters are possible.
func TestFirstUseByManyAtOnce(t *testing.T) {
	f := newFixture(t)
	f.opts.Table = "Select"
	atOnce(t, 16, func(int) error {
		e, err := newEngine(t.Context(), connect(t, setting(t, "EPHEMERAL_POSTGRES_DSN")), f.opts)
		if err != nil {
			return err
		}
		defer e.Close()
		return e.Save(t.Context(), pairs("a", "1"))
	})
	assert.Equal(t, 1, one[int](f, `select count(*) from `+f.opts.Schema+`."Select"`))
}

func TestTableOfAnotherShape(t *testing.T) {
	f := newFixture(t)
	f.open()
	const times = "created_at timestamptz default now(), updated_at timestamptz default now()"
	for i, test := range []struct{ columns, want string }{
		{"key bytea primary key, value jsonb, " + times + ", more text", ""},
		{"key bytea unique, value jsonb, " + times + ", more text not null default ''", ""},
		{"key text primary key, value jsonb, " + times, "key text"},
		{"key bytea primary key, value bytea, " + times, "value jsonb), not (created_at timestamp with time zone, key bytea, updated_at timestamp with time zone, value bytea)"},
		{"key bytea primary key, value jsonb", "not (key bytea, value jsonb)"},
		{"key bytea, value jsonb, " + times, "must be its primary key"},
		{"key bytea primary key deferrable, value jsonb, " + times, "must be its primary key"},
		{"key bytea, value jsonb, " + times + ", more text, primary key (key, more)", "must be its primary key"},
		{"key bytea primary key, value jsonb, " + times + ", more text not null", `["more"] of table`},
	} {
		opts := f.opts
		opts.Table = fmt.Sprintf("t%d", i)
		f.exec(fmt.Sprintf("create table %s.%s (%s)", opts.Schema, opts.Table, test.columns))
		_, err := newEngine(t.Context(), f.pool, opts)
		if test.want == "" {
			assert.NoError(t, err, test.columns)
		} else {
			assert.ErrorContains(t, err, test.want)
		}
	}
	f.exec("create view " + f.opts.Schema + ".v as select 1")
	opts := f.opts
	opts.Table = "v"
	_, err := newEngine(t.Context(), f.pool, opts)
	assert.ErrorContains(t, err, "is not a table")
	_, err = newEngine(t.Context(), f.pool, Options{Schema: "none_" + opts.Schema})
	assert.ErrorContains(t, err, "does not exist")
}

// A user that may not create tables can use one, with the rights to read and to change rows.
func TestFewRights(t *testing.T) {
	f := newFixture(t)
	f.open()
	role := "role_" + f.opts.Schema
	f.exec("create role " + role)
	defer f.exec("drop role " + role)
	defer f.exec("drop owned by " + role)
	f.exec(fmt.Sprintf("grant usage on schema %[1]s to %[2]s; grant select, insert, update, delete on all tables in schema %[1]s to %[2]s", f.opts.Schema, role))
	f.pool = connect(t, setting(t, "EPHEMERAL_POSTGRES_DSN"), func(c *pgxpool.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "set role "+role)
			return err
		}
	})
	e := f.open()
	require.NoError(t, e.Save(t.Context(), pairs("a", "1")))
	require.NoError(t, e.Clear(t.Context()))
	n, err := e.Len(t.Context())
	require.NoError(t, err)
	assert.Zero(t, n)
	f.pool = connect(t, setting(t, "EPHEMERAL_POSTGRES_DSN"))
}

// A role that may create no schema makes its table in a schema that it was given.
func TestCreateSchemaThatIsThere(t *testing.T) {
	f := newFixture(t)
	f.exec(strings.ReplaceAll("create role ROLE; create schema ROLE authorization ROLE", "ROLE", f.opts.Schema))
	defer f.exec(strings.ReplaceAll("drop owned by ROLE; drop role ROLE", "ROLE", f.opts.Schema))
	pool := f.pool
	f.pool = connect(t, setting(t, "EPHEMERAL_POSTGRES_DSN"), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = f.opts.Schema })
	require.NoError(t, f.open().Save(t.Context(), pairs("a", "1")))
	f.pool = pool
}

// In modes with results as text, another form of bytes is an error at once.
func TestFormOfBytes(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		f := newFixture(t, func(c *pgxpool.Config) {
			c.ConnConfig.DefaultQueryExecMode = mode
			c.ConnConfig.RuntimeParams["bytea_output"] = "escape"
		})
		_, err := newEngine(t.Context(), f.pool, f.opts)
		assert.ErrorContains(t, err, "needs bytea_output hex, not escape")
	}
}
