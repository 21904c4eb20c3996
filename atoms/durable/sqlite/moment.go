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
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// moment is a transaction of the store, which happens at one time. After the first error its
// methods do nothing, and it is rolled back.
type moment struct {
	ctx   context.Context
	query query
	queue string
	now   int64 // microseconds
	freed bool  // items can be claimed now, or a limit has room for them
	err   error

	classes map[string]*class // see counted; nil: not read
	gates   []durable.Gate    // of this turn
	rules   *rules            // see rule; nil: not read
}

type query = func(ctx context.Context, query string, args ...any) (*sql.Rows, error)

func newMoment(ctx context.Context, q query, queue string) *moment {
	return &moment{ctx: ctx, query: q, queue: queue, now: time.Now().UnixMicro()}
}

func (t *moment) in(d time.Duration) int64 { return t.now + d.Microseconds() }

// change runs fn in a transaction that writes. It holds the lock for all processes, so nothing
// that it has read changes before the commit.
func change[V any](ctx context.Context, s *Store, queue string, fn func(t *moment) V) (result V, err error) {
	if ctx.Err() != nil {
		return result, context.Cause(ctx)
	}
	committing := false
	err = s.w.Tx(ctx, func(inner context.Context, raw *sqlitewriter.Tx) error {
		t := newMoment(inner, raw.Query, queue)
		result = fn(t)
		t.announce()
		committing = t.err == nil
		return t.err
	})
	is := func(target error) bool { return guard.Is(err, target) }
	rolledBack := is(core.ErrClosed) || is(sqlitewriter.ErrTxTimeout) || is(sqlitewriter.ErrNoSpace) || ctx.Err() != nil && is(context.Cause(ctx))
	if err != nil && committing && !rolledBack {
		return *new(V), fmt.Errorf("sqlite: %w: %w", durable.ErrUndecided, err)
	}
	return answer(ctx, result, err)
}

// look runs fn in a transaction that only reads, and waits for no lock.
func look[V any](ctx context.Context, s *Store, queue string, fn func(t *moment) V) (result V, err error) {
	raw, err := s.w.DB().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err == nil {
		t := newMoment(ctx, raw.QueryContext, queue)
		result = fn(t)
		_ = raw.Rollback() // nothing was written
		err = t.err
	}
	return answer(ctx, result, err)
}

// answer has the result of a method.
func answer[V any](ctx context.Context, result V, err error) (V, error) {
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return *new(V), context.Cause(ctx)
	}
	return *new(V), fmt.Errorf("sqlite: %w", err)
}

// announce lets other processes know that they should look for items.
func (t *moment) announce() {
	if t.freed {
		t.do("insert into durable_queue (queue, changes) values (?, 1) on conflict (queue) do update set changes = changes + 1", t.queue)
	}
}

// list has the arguments of a statement, or the destinations of its columns.
type list = []any

// rows runs a statement and returns its rows. Into returns the destinations of the columns.
func rows[V any](t *moment, into func(v *V) list, query string, args ...any) (all []V) {
	if t.err != nil {
		return nil
	}
	found, err := t.query(t.ctx, query, args...)
	if err != nil {
		t.err = err
		return nil
	}
	for err == nil && found.Next() {
		all = append(all, *new(V))
		err = found.Scan(into(&all[len(all)-1])...)
	}
	t.err = errors.Join(err, found.Err(), found.Close())
	return all
}

// get reads a row, and reports whether there is one.
func (t *moment) get(into list, query string, args ...any) bool {
	return len(rows(t, func(*struct{}) list { return into }, query, args...)) > 0
}

// do runs a statement, and returns how many ids the statement returned.
func (t *moment) do(query string, args ...any) int {
	return len(rows(t, func(id *int64) list { return list{id} }, query, args...))
}
