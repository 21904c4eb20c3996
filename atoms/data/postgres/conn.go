package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// An outcome is the meaning of the error of a statement.
type outcome int

const (
	failed    outcome = iota // nothing has changed; another try would fail, too
	again                    // nothing has changed; a later try may succeed
	undecided                // something may have changed
)

// outcomeOfConnect judges the error of a connection that was not made.
func outcomeOfConnect(err error) outcome {
	code := sqlState(err) // the server may have no room, or may be starting
	if _, connect := guard.As[*pgconn.ConnectError](err); connect && (code == "" || slices.Contains([]string{"08", "53", "57"}, code[:2])) {
		return again
	}
	return failed // for example a wrong password
}

// outcomeOf judges the error of a statement. Broken says that the connection cannot be used any
// more.
func outcomeOf(err error, change, broken bool) outcome {
	pg, ok := guard.As[*pgconn.PgError](err)
	rolledBack := ok && pg.SeverityUnlocalized == "ERROR"
	switch {
	case rolledBack && (pg.Code == "40001" || pg.Code == "40P01"): // serialization failure, deadlock
		return again
	case rolledBack:
		return failed
	case nothingSent(err), broken && !change:
		return again
	case broken: // includes FATAL, which may come between the commit and the answer
		return undecided
	}
	return failed
}

// nothingSent reports whether a statement, or the commit after it, was not sent. The error
// "conn closed" does not prove that: pgx returns it also if the answer to a statement in
// the simple protocol was lost.
func nothingSent(err error) bool {
	_, not := guard.As[notCommitted](err)
	return not || pgconn.SafeToRetry(err) && !strings.HasSuffix(guard.Text(err), "conn closed")
}

// sqlState returns the code of an error of the server, or "".
func sqlState(err error) string {
	if pg, ok := guard.As[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// do calls fn with a connection. It calls fn again while the outcome of the error is again.
func (e *engine) do(ctx context.Context, change bool, fn func(conn *pgx.Conn) error) error {
	began := time.Now()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		next, err := e.try(ctx, change, fn)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil && sqlState(err) == "" {
			err = context.Cause(ctx)
		}
		switch {
		case next == undecided:
			return fmt.Errorf("postgres: %w: %w", data.ErrUndecided, err)
		case next == failed || ctx.Err() != nil || time.Since(began)+wait > e.opts.RetryFor:
			return e.explain(err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// row scans the only column of the only row of a query.
func (e *engine) row(ctx context.Context, into any, sql string, args ...any) error {
	return e.do(ctx, false, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, sql, args...).Scan(into) })
}

func (e *engine) try(ctx context.Context, change bool, fn func(conn *pgx.Conn) error) (outcome, error) {
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return outcomeOfConnect(err), err
	}
	defer conn.Release()
	err = fn(conn.Conn())
	return outcomeOf(err, change, conn.Conn().IsClosed()), err
}

// notCommitted is an error that came before the commit was sent.
type notCommitted struct{ error }

func (e notCommitted) Unwrap() error { return e.error }

// transaction runs statements one after the other in a transaction.
func transaction(ctx context.Context, conn *pgx.Conn, statements []statement) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return notCommitted{err}
	}
	defer tx.Rollback(ctx)
	for _, s := range statements {
		if _, err := tx.Exec(ctx, s.sql, s.args...); err != nil {
			return notCommitted{err}
		}
	}
	return tx.Commit(ctx)
}
