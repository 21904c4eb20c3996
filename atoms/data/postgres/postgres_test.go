package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/datatest"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func TestSuite(t *testing.T) {
	for name, bytes := range map[string]bool{"JSONB": false, "BYTEA": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			open := func(t testing.TB, table string) data.Engine {
				e, err := newEngine(t.Context(), f.pool, Options{Schema: f.opts.Schema, CreateSchema: true, Table: table, bytes: bytes})
				require.NoError(t, err)
				return e
			}
			datatest.Run(t, func(t testing.TB) data.Engine { return open(t, fmt.Sprintf("t%d", rand.Uint64())) }, datatest.Options{
				JSON:   !bytes,
				Reopen: func(t testing.TB, closed data.Engine) data.Engine { return open(t, closed.(*engine).opts.Table) },
			})
		})
	}
}

// Every mode of pgx works, including the modes for poolers such as PgBouncer. In BYTEA, nil is
// a value.
func TestModesOfPgx(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeCacheDescribe} {
		for _, bytes := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, bytes), func(t *testing.T) {
				f := newFixture(t, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
				e := f.open(func(o *Options) { o.bytes, o.Notify = bytes, "channel" })
				require.NoError(t, e.Save(t.Context(), pairs("a\x00\xff", `"1"`, "b", `"2"`)))
				old := map[bool]string{false: ` "\u0032"`, true: `"2"`}[bytes] // JSONB compares JSON, not text
				ok, err := e.Swap(t.Context(), "b", []byte(old), true, []byte(`"3\\"`))
				assert.True(t, ok, "%v", err)
				require.NoError(t, e.Delete(t.Context(), "none"))
				assert.Equal(t, []string{"a\x00\xff", `"1"`, "b", `"3\\"`}, list(t, e.List(t.Context(), "", true)))
				if bytes {
					require.NoError(t, e.Save(t.Context(), []data.Item{{Key: "b"}}))
					ok, err := e.Swap(t.Context(), "b", nil, true, nil)
					assert.True(t, ok, "%v", err)
				} else {
					assert.Equal(t, []string{"b", `"3\\"`}, list(t, e.Query(t.Context(), nil, `3\`)))
				}
			})
		}
	}
}

type order struct {
	Customer customer       `json:"customer"`
	Total    float64        `json:"total"`
	Tags     []string       `json:"tags,omitempty"`
	More     map[string]any `json:"more,omitempty"`
}

type customer struct {
	City string `json:"city"`
}

// ownCodec is a codec other than the codec of package data.
type ownCodec struct{ data.JSON[order] }

// Open makes the table that its codec needs, in the schema public, and the store says that
// it is there.
func TestOpen(t *testing.T) {
	f := newFixture(t)
	for codec, column := range map[data.Codec[order]]string{nil: "jsonb", data.JSON[order]{}: "jsonb", ownCodec{}: "bytea"} {
		name := fmt.Sprintf("test_%016x", rand.Uint64())
		t.Cleanup(func() {
			connect(t, setting(t, "EPHEMERAL_POSTGRES_DSN")).Exec(context.Background(), "drop table "+name)
		})
		sink := signals.NewSink(signals.SinkOptions{})
		s, err := Open[string](t.Context(), f.pool, data.Options[order]{Name: name, Sink: sink, Codec: codec})
		require.NoError(t, err)
		assert.True(t, sink.Has("initialized.data."+name))
		assert.Equal(t, column, one[string](f, "select format_type(atttypid, null) from pg_attribute where attrelid = $1::text::regclass and attname = 'value'", "public."+name))
		want := order{Customer: customer{"Berlin"}, Total: 12.5}
		require.NoError(t, s.Save(t.Context(), "a", want))
		got, ok, err := s.Load(t.Context(), "a")
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, want, got)
		require.NoError(t, s.Close())
		require.NoError(t, f.pool.Ping(t.Context()), "the pool is the caller's")
	}
	_, err := Open[string](t.Context(), f.pool, data.Options[order]{Name: "a b"})
	assert.ErrorContains(t, err, `"a b"`)
	_, err = Open[string, order](t.Context(), nil, data.Options[order]{})
	assert.ErrorContains(t, err, "needs a pool")
}

// The names of a path are data, however they are written; numbers, lists and objects match
// as JSON.
func TestQuery(t *testing.T) {
	f := newFixture(t)
	s, err := newStore[string](f.open(), data.Options[order]{})
	require.NoError(t, err)
	defer s.Close()
	quote := `a"b'} or true; --`
	orders := map[string]order{
		"a": {Customer: customer{"Berlin"}, Total: 10, Tags: []string{"x", "y"}},
		"b": {Customer: customer{"Paris"}, Total: 10.5, More: map[string]any{quote: map[string]any{"c": nil}}},
		"c": {Customer: customer{"Berlin"}, Total: 1e3, More: map[string]any{"c": quote}},
	}
	for key, o := range orders {
		require.NoError(t, s.Save(t.Context(), key, o))
	}
	for _, test := range []struct {
		path  []string
		value any
		want  string
	}{
		{[]string{"customer", "city"}, "Berlin", "ac"},
		{[]string{"customer.city"}, "Berlin", ""},
		{[]string{"customer"}, customer{"Paris"}, "b"},
		{nil, order{Customer: customer{"Berlin"}, Total: 10}, "a"},
		{[]string{"total"}, 10, "a"},
		{[]string{"total"}, 1000.0, "c"},
		{[]string{"tags"}, []string{"y"}, "a"},
		{[]string{"more", quote, "c"}, nil, "b"},
		{[]string{"more", "c"}, quote, "c"},
		{[]string{quote}, quote, ""},
		{nil, map[string]any{}, "abc"},
	} {
		got := ""
		for entry, err := range s.Query(t.Context(), test.path, test.value) {
			require.NoError(t, err)
			assert.Equal(t, orders[entry.Key], entry.Value)
			got += entry.Key
		}
		assert.Equal(t, test.want, got, "%q: %v", test.path, test.value)
	}
	for range s.Query(t.Context(), nil, map[string]any{}) {
		break
	}
	fails := func(s Store[string, order], value any, want string) {
		n := 0
		for _, err := range s.Query(t.Context(), []string{"total"}, value) {
			assert.ErrorContains(t, err, want)
			n++
		}
		assert.Equal(t, 1, n, "errors")
	}
	fails(s, make(chan int), "unsupported type")
	fails(s, "\x00", "22P05")
	f.exec("insert into " + f.opts.Schema + ".data values ('d', '{\"total\": \"none\"}')")
	fails(s, "none", `key "d"`)
	raw, err := newStore[string](f.open(bytea, func(o *Options) { o.Table = "raw" }), data.Options[order]{})
	require.NoError(t, err)
	defer raw.Close()
	fails(raw, 1, "needs a column of JSONB")
	require.NoError(t, s.Close())
	fails(s, 1, core.ErrClosed.Error())
}

func TestOptions(t *testing.T) {
	for want, opts := range map[string]Options{
		`Options.Table must have 1 to 63 letters, digits and underscores and not begin with a digit, not "data; drop table x"`: {Table: "data; drop table x"},
		`Options.Schema must have`:                          {Schema: `a"b`},
		`Options.Notify must have at most 63 bytes, not 64`: {Notify: fmt.Sprintf("%064d", 0)},
	} {
		_, err := newEngine(t.Context(), new(pgxpool.Pool), opts)
		assert.ErrorContains(t, err, "postgres: "+want)
	}
}
