package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

// An outcome is what an error says about the statement that it ended.
type outcome int

const (
	failed    outcome = iota // nothing has changed, and it would fail again
	again                    // nothing has changed, and it may succeed later
	undecided                // it may have changed something
)

// outcomeOfConnect judges the error of a connection that was not made.
func outcomeOfConnect(err error) outcome {
	if code := sqlState(err); code != "" {
		switch code[:2] {
		case "08", "53", "57": // connection, too many connections, starting up
			return again
		}
		return failed // such as a wrong password
	}
	if connect := (*pgconn.ConnectError)(nil); errors.As(err, &connect) {
		return again
	}
	return failed
}

// outcomeOf judges the error of a statement, which makes a change or only reads. Broken says
// that the connection cannot be used any more.
func outcomeOf(err error, change, broken bool) outcome {
	pg := (*pgconn.PgError)(nil)
	switch {
	case errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR": // it is rolled back
		if pg.Code == "40001" || pg.Code == "40P01" { // serialization failure, deadlock
			return again
		}
		return failed
	case nothingSent(err), broken && !change:
		return again
	case broken: // also after FATAL, which may come after the commit and before the answer
		return undecided
	}
	return failed
}

// nothingSent reports whether a statement, or its commit, was not sent. "conn closed" should say so, but pgx
// returns it also when the answer to a statement without arguments, or in the simple
// protocol, is lost.
func nothingSent(err error) bool {
	if errors.As(err, new(notCommitted)) {
		return true
	}
	return pgconn.SafeToRetry(err) && !strings.HasSuffix(err.Error(), "conn closed")
}

// sqlState returns the code of an error of the server, or "".
func sqlState(err error) string {
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// do calls fn with a connection, and again as long as the error says that this can help.
func (e *Engine) do(ctx context.Context, change bool, fn func(conn *pgx.Conn) error) error {
	began := time.Now()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		err, next := e.try(ctx, change, fn)
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
			return fmt.Errorf("postgres: %w", e.explain(err))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

func (e *Engine) try(ctx context.Context, change bool, fn func(conn *pgx.Conn) error) (error, outcome) {
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return err, outcomeOfConnect(err)
	}
	defer conn.Release()
	if conn.Conn().IsClosed() {
		return errors.New("the connection of the pool is closed"), again
	}
	err = fn(conn.Conn())
	return err, outcomeOf(err, change, conn.Conn().IsClosed())
}

// notCommitted is an error before the commit was sent.
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
