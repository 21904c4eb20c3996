package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

// setting returns a variable that scripts/postgres sets, or skips the test.
func setting(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		message := "NOT TESTED: there is no " + name + ". In the root of the repository, run: go run ./scripts/postgres go test ./atoms/data/postgres"
		if os.Getenv("EPHEMERAL_POSTGRES_REQUIRED") != "" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	return value
}

// connect makes a pool, after configure has changed its configuration.
func connect(t testing.TB, dsn string, configure ...func(c *pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
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

// fixture has what a test needs: a pool, and a separate schema.
type fixture struct {
	testing.TB
	pool *pgxpool.Pool
	opts Options
}

func newFixture(t testing.TB, configure ...func(c *pgxpool.Config)) *fixture {
	t.Helper()
	return newFixtureAt(t, setting(t, "EPHEMERAL_POSTGRES_DSN"), configure...)
}

func newFixtureAt(t testing.TB, dsn string, configure ...func(c *pgxpool.Config)) *fixture {
	t.Helper()
	f := &fixture{t, connect(t, dsn, configure...), Options{Schema: fmt.Sprintf("test_%016x", rand.Uint64()), CreateSchema: true}}
	plain := connect(t, dsn)
	t.Cleanup(func() {
		_, err := plain.Exec(context.Background(), "drop schema if exists "+f.opts.Schema+" cascade")
		require.NoError(t, err)
	})
	return f
}

// open makes an engine, after change has changed the options.
func (f *fixture) open(change ...func(o *Options)) *engine {
	f.Helper()
	opts := f.opts
	for _, change := range change {
		change(&opts)
	}
	e, err := newEngine(f.Context(), f.pool, opts)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, e.Close()) })
	return e
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	_, err := f.pool.Exec(f.Context(), sql, args...)
	require.NoError(f, err)
}

// one returns the only value that a query returns.
func one[T any](f *fixture, sql string, args ...any) T {
	f.Helper()
	rows, err := f.pool.Query(f.Context(), sql, args...)
	require.NoError(f, err)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(f, err)
	return value
}

// pairs makes items of keys and values in turn.
func pairs(texts ...string) (items []data.Item) {
	for i := 0; i < len(texts); i += 2 {
		items = append(items, data.Item{Key: texts[i], Value: []byte(texts[i+1])})
	}
	return items
}

// list returns what e has: keys and values in turn.
func list(t testing.TB, items iter.Seq2[data.Item, error]) (texts []string) {
	t.Helper()
	for item, err := range items {
		require.NoError(t, err)
		texts = append(texts, item.Key, string(item.Value))
	}
	return texts
}

// atOnce calls fn n times at once and reports its errors.
func atOnce(t testing.TB, n int, fn func(i int) error) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { assert.NoError(t, fn(i)) })
	}
	all.Wait()
}

func bytea(o *Options)   { o.bytes = true }
func noRetry(o *Options) { o.RetryFor = -1 }

var errBroken = errors.New("the connection is broken on purpose")

// wire is between a pool and the server. Its functions can make the connection fail.
type wire struct {
	write func(message []byte) error
	read  func() error
}

func (w *wire) connect(c *pgxpool.Config) {
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &wiredConn{Conn: conn, wire: w}, err
	}
}

type wiredConn struct {
	net.Conn
	wire *wire
	ends atomic.Bool // the pool is closing the connection, in the background
}

func (c *wiredConn) Write(b []byte) (int, error) {
	if b[0] == 'X' {
		c.ends.Store(true)
	}
	return c.pass(b, func() error { return c.wire.write(b) }, c.Conn.Write)
}

func (c *wiredConn) Read(b []byte) (int, error) { return c.pass(b, c.wire.read, c.Conn.Read) }

// pass calls do, unless fails says that the connection breaks.
func (c *wiredConn) pass(b []byte, fails func() error, do func([]byte) (int, error)) (int, error) {
	if !c.ends.Load() {
		if err := fails(); err != nil {
			c.Close()
			return 0, err
		}
	}
	return do(b)
}

func works() error { return nil }
