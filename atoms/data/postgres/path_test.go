package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// A schema that comes first in search_path has functions with the names of those of PostgreSQL. None is called.
func TestShadowedFunctions(t *testing.T) {
	f := newFixture(t)
	f.opts.Schema += "_shadow"
	schema := f.opts.Schema
	f.exec(strings.ReplaceAll(shadows, "SCHEMA", schema))
	defer f.exec("drop schema " + schema + " cascade")
	f.pool = connect(t, setting(t, "EPHEMERAL_POSTGRES_DSN"), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["search_path"] = schema + ", pg_catalog"
	})
	_, err := f.pool.Exec(t.Context(), "select now()")
	require.ErrorContains(t, err, "a shadow was called")
	for i, bytes := range []bool{false, true} {
		e := f.open(func(o *Options) { o.Table, o.bytes, o.Notify = []string{"a", "b"}[i], bytes, "changes" })
		require.NoError(t, e.Save(t.Context(), pairs("a", "1", "b", "2")))
		swapped, err := e.Swap(t.Context(), "a", []byte("1"), true, []byte("3"))
		require.NoError(t, err)
		assert.True(t, swapped)
		_, err = e.Swap(t.Context(), "c", nil, false, []byte("4"))
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "3", "b", "2", "c", "4"}, list(t, e.List(t.Context(), "", true)))
		assert.Equal(t, []string{"a", "", "b", "", "c", ""}, list(t, e.List(t.Context(), "", false)))
		if !bytes {
			assert.Equal(t, []string{"b", "2"}, list(t, e.Query(t.Context(), nil, 2)))
		}
		_, _, err = e.Load(t.Context(), "a")
		require.NoError(t, err)
		_, err = e.Has(t.Context(), "a")
		require.NoError(t, err)
		require.NoError(t, e.Delete(t.Context(), "a"))
		n, err := e.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2, n)
		require.NoError(t, e.Clear(t.Context()))
	}
}
