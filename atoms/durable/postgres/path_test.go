package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// shadows makes functions that fail, with the names and arguments of those of PostgreSQL.
const shadows = `
create schema SCHEMA;
do $do$ declare f record; begin
	for f in
		select proname as name, pg_get_function_identity_arguments(oid) as args, case when proretset then 'setof ' else '' end || prorettype::regtype as result
		from pg_proc where pronamespace = 'pg_catalog'::regnamespace and prokind = 'f' and provariadic = 0 and not proretset
		union all select distinct proname, arg, 'int' from pg_proc, unnest(array['', 'int', 'smallint', 'bigint', 'text', 'boolean', 'timestamptz', 'double precision', 'text, text', 'anyarray']) as arg
		where pronamespace = 'pg_catalog'::regnamespace and (prokind in ('a', 'w') or provariadic <> 0 or proretset)
	loop
		begin
			execute format('create function SCHEMA.%I(%s) returns %s language plpgsql as $$ begin raise exception ''a shadow was called''; end $$', f.name, f.args, f.result);
		exception when others then -- pseudo types
		end;
	end loop;
end $do$`

// shadowed puts a schema first in search_path whose functions have the names of those of PostgreSQL, and fail.
func shadowed(t *testing.T) func(c *pgxpool.Config) {
	schema := newSchema(t) + "_shadow"
	pool := connect(t)
	_, err := pool.Exec(t.Context(), strings.ReplaceAll(shadows, "SCHEMA", schema))
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), "drop schema "+schema+" cascade")
		require.NoError(t, err)
	})
	return func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["search_path"] = schema + ", pg_catalog" }
}

// A schema that comes first in search_path has functions with the names of those of PostgreSQL. None is called.
// TestStore has such a schema, too.
func TestShadowedFunctions(t *testing.T) {
	if coretest.Race {
		t.Skip("the code is that of TestStore")
	}
	shadowed := shadowed(t)
	s := open(t, shadowed)
	_, err := s.pool.Exec(t.Context(), "select now()")
	require.ErrorContains(t, err, "a shadow was called")
	_, err = s.pool.Exec(t.Context(), "select count(*)")
	require.Error(t, err)
	newer, err := openWith(t.Context(), connect(t, shadowed), Options{Schema: s.opts.Schema}, newer)
	require.NoError(t, err)
	require.NoError(t, newer.buildOnce(t.Context()))
	q := queue(t, s, func(ctx context.Context, item string) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return Finish(ctx, tx) })
	}, durable.Options{})
	ended := make(chan signals.Signal, 1)
	defer q.Sink().Subscribe(durable.SignalSucceeded, func(s signals.Signal) { ended <- s })()
	require.NoError(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		_, err := Enqueue(t.Context(), tx, q.With(durable.ItemOptions{Unique: "ada"}), "Ada")
		return err
	}))
	go q.Run(t.Context())
	<-ended
}
