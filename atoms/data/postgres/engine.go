package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

var _ data.Engine = (*engine)(nil)

// An engine is a [data.Engine] over a table. All methods are safe for concurrent use.
type engine struct {
	pool   *pgxpool.Pool
	opts   Options
	table  string // quoted, with the schema
	saves  *groupcommit.Committer[[]data.Item]
	closed atomic.Bool
}

func newEngine(ctx context.Context, pool *pgxpool.Pool, opts Options) (*engine, error) {
	if pool == nil {
		return nil, errors.New("postgres: New needs a pool")
	}
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	e := &engine{pool: pool, opts: opts, table: pgx.Identifier{opts.Schema, opts.Table}.Sanitize()}
	if e.saves, err = groupcommit.New(e.commit, groupcommit.Options{Name: "data.postgres"}); err != nil {
		return nil, err
	}
	err = e.do(ctx, false, func(conn *pgx.Conn) error {
		if err := e.readable(ctx, conn); err != nil {
			return err
		}
		if err := e.create(ctx, conn); err != nil {
			return fmt.Errorf("postgres: table %s: %w", e.table, err)
		}
		return e.check(ctx, conn)
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Load implements [data.Engine].
func (e *engine) Load(ctx context.Context, key string) (value []byte, ok bool, err error) {
	err = e.row(ctx, &value, "select value from "+e.table+" where key = $1", []byte(key))
	if guard.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	return value, err == nil, err
}

// Has implements [data.Engine].
func (e *engine) Has(ctx context.Context, key string) (ok bool, err error) {
	err = e.row(ctx, &ok, "select exists (select from "+e.table+" where key = $1)", []byte(key))
	return ok, err
}

// Len implements [data.Engine]. PostgreSQL counts the rows one by one.
func (e *engine) Len(ctx context.Context) (n int, err error) {
	err = e.row(ctx, &n, "select pg_catalog.count(*) from "+e.table)
	return n, err
}

// Swap implements [data.Engine]. Old is compared as a value of the column: the order of
// fields and the spelling of numbers do not matter in JSONB.
func (e *engine) Swap(ctx context.Context, key string, old []byte, ok bool, value []byte) (bool, error) {
	s := statement{fmt.Sprintf("insert into %s (key, value) values ($1, %s) on conflict do nothing", e.table, e.value("$2::bytea")),
		[]any{[]byte(key), bytesOf(value)}}
	if ok {
		s.sql = fmt.Sprintf("update %s set value = %s, updated_at = pg_catalog.now() where key = $1 and value = %s", e.table, e.value("$2::bytea"), e.value("$3::bytea"))
		s.args = append(s.args, bytesOf(old))
	}
	n, err := e.change(ctx, []string{key}, s)
	return n == 1, err
}

// Delete implements [data.Engine].
func (e *engine) Delete(ctx context.Context, key string) error {
	_, err := e.change(ctx, []string{key}, statement{"delete from " + e.table + " where key = $1", []any{[]byte(key)}})
	return err
}

// Clear implements [data.Engine]. It deletes the rows, so its time grows with their number. It
// does not truncate the table: that needs one more right, and readers would wait. Saves wait
// until Clear has ended, so that they do not deadlock.
func (e *engine) Clear(ctx context.Context) error {
	statements := e.withNotice(nil,
		statement{"lock table " + e.table + " in share row exclusive mode", nil},
		statement{"delete from " + e.table, nil},
	)
	return e.do(ctx, true, func(conn *pgx.Conn) error { return transaction(ctx, conn, statements) })
}

// Close implements [data.Engine]. It does not close the pool.
func (e *engine) Close() error {
	e.closed.Store(true)
	return e.saves.Close()
}

// A statement is SQL with its arguments.
type statement struct {
	sql  string
	args []any
}

// change runs statements in one transaction and one round trip, with the notification of the
// keys. It returns how many rows the first statement has changed.
func (e *engine) change(ctx context.Context, keys []string, statements ...statement) (rows int64, err error) {
	statements = e.withNotice(keys, statements...)
	err = e.do(ctx, true, func(conn *pgx.Conn) error {
		if len(statements) == 1 {
			tag, err := conn.Exec(ctx, statements[0].sql, statements[0].args...)
			rows = tag.RowsAffected()
			return err
		}
		var batch pgx.Batch
		for _, s := range statements {
			batch.Queue(s.sql, s.args...)
		}
		results := conn.SendBatch(ctx, &batch)
		tag, err := results.Exec()
		rows = tag.RowsAffected()
		return cmp.Or(err, results.Close())
	})
	return rows, err
}

// value is the SQL for a value with the bytes of an expression. The bytes are sent as BYTEA, and
// the server parses them. This works in every mode of pgx. An empty value is no JSON: it becomes
// null. The column refuses null, and no value is equal to null.
func (e *engine) value(bytes string) string {
	if e.opts.bytes {
		return bytes
	}
	return "pg_catalog.convert_from(nullif(" + bytes + ", ''), 'UTF8')::jsonb"
}

// bytesOf returns value, or an empty slice for nil: pgx would send nil as null.
func bytesOf(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}
