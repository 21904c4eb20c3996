package sqlitewriter

import (
	"context"
	"database/sql"
	"sync"

	"github.com/ephemeralgo/ephemeral/core/flight"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// A Tx is the transaction of a [Writer.Tx]. It ends when the function returns. Later statements
// fail with [sql.ErrTxDone], and open rows are closed. Pass the context of the function to the
// statements: then they end with the context. All methods are safe for concurrent use.
type Tx struct {
	file *file
	tx   *sql.Tx

	mu    sync.Mutex
	stale []string
}

// txKey marks the contexts of a Tx's functions. A call to the writer with such a context would
// wait for its own end.
type txKey struct{ *file }

// Exec runs a statement.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	r, err := t.tx.ExecContext(ctx, query, args...)
	return r, t.file.explain(ctx, err, query)
}

// Query runs a statement that returns rows.
func (t *Tx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := t.tx.QueryContext(ctx, query, args...)
	return rows, t.file.explain(ctx, err, query)
}

// QueryRow runs a statement that returns one row, or none.
func (t *Tx) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(ctx, query, args...)
}

// Invalidate makes the next [Read] of each key after the commit load the value again.
func (t *Tx) Invalidate(keys ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stale = append(t.stale, keys...)
}

// call calls the function of a Tx.
func (f *file) call(it *write, tx *sql.Tx, fn func(context.Context, *Tx) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(it.ctx, f.opts.TxTimeout, f.named(ErrTxTimeout))
	defer cancel()
	t := &Tx{file: f, tx: tx}
	flight.Run(func() (none struct{}, err error) {
		return none, fn(context.WithValue(ctx, txKey{f}, t), t)
	}, func(_ struct{}, result error) {
		err = result
		if ctx.Err() != nil && (err == nil || guard.Is(err, ctx.Err())) {
			err = context.Cause(ctx)
		}
		it.err = err // the error if fn ends its goroutine
		t.mu.Lock()
		defer t.mu.Unlock()
		it.stale = t.stale
	})
	return err
}
