package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

// tx is a transaction of the store, which happens at one time. After the first error its
// methods do nothing, and it is rolled back.
type tx struct {
	ctx   context.Context
	query func(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	queue string
	now   time.Time
	freed bool // items of the queue, or room for them, so others shall look
	err   error
}

func newTx(ctx context.Context, query func(context.Context, string, ...any) (*sql.Rows, error), queue string) *tx {
	return &tx{ctx: ctx, query: query, queue: queue, now: time.Now().Truncate(time.Microsecond)}
}

// change runs fn in a transaction that writes. It holds the lock of all processes, so what it
// has read stays so until the commit.
func (s *Store) change(ctx context.Context, queue string, fn func(t *tx)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.closed.Load() {
		return s.errClosed()
	}
	committing := false
	err := s.w.Tx(ctx, func(inner context.Context, raw *sqlitewriter.Tx) error {
		t := newTx(inner, raw.Query, queue)
		fn(t)
		t.announce()
		committing = t.err == nil
		return t.err
	})
	switch {
	case err == nil, ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return err
	case !committing, errors.Is(err, core.ErrClosed), errors.Is(err, sqlitewriter.ErrTxTimeout), errors.Is(err, sqlitewriter.ErrNoSpace):
		return fmt.Errorf("sqlite: %w", err)
	}
	return fmt.Errorf("sqlite: %w: %w", durable.ErrUndecided, err)
}

// look runs fn in a transaction that only reads. It waits for no lock.
func (s *Store) look(ctx context.Context, queue string, fn func(t *tx)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.closed.Load() {
		return s.errClosed()
	}
	raw, err := s.w.DB().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err == nil {
		t := newTx(ctx, raw.QueryContext, queue)
		fn(t)
		_ = raw.Rollback() // nothing was written
		err = t.err
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("sqlite: %w", err)
}

// rows runs a statement and calls read for each row of its result.
func (t *tx) rows(read func(scan func(dest ...any) error) error, query string, args ...any) {
	if t.err != nil {
		return
	}
	rows, err := t.query(t.ctx, query, args...)
	if err != nil {
		t.err = err
		return
	}
	defer rows.Close()
	for t.err == nil && rows.Next() {
		t.err = read(rows.Scan)
	}
	t.err = errors.Join(t.err, rows.Err())
}

// list is the arguments of a statement, or where its result goes.
type list = []any

// get reads the last row of a result, and reports whether there is one.
func (t *tx) get(dest list, query string, args ...any) (found bool) {
	t.rows(func(scan func(...any) error) error { found = true; return scan(dest...) }, query, args...)
	return found
}

// do runs a statement and returns how many rows its returning clause gives.
func (t *tx) do(query string, args ...any) (n int) {
	t.rows(func(func(...any) error) error { n++; return nil }, query, args...)
	return n
}

// announce lets other processes know that they should look for items.
func (t *tx) announce() {
	if t.freed {
		t.do("insert into durable_queue (queue, changes) values (?, 1) on conflict (queue) do update set changes = changes + 1", t.queue)
	}
}

func (t *tx) paused() (paused bool) {
	t.get(list{&paused}, "select paused from durable_queue where queue = ?", t.queue)
	return paused
}

// micros is a time as the tables have it, and at is back from there.
func micros(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}

func at(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}
