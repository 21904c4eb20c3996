package sqlitewriter

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core/flight"
)

// A Tx is the transaction of a [Writer.Tx]. It is over when its function returns, or when the
// context of the function ends. All methods are safe for concurrent use; statements run one
// after the other. Their context has to be made from that of the function: with any other
// they fail with [ErrTxDone], as they do when the transaction is over.
type Tx struct {
	file *file
	ctx  context.Context // of the function

	mu   sync.Mutex // held while a statement runs
	over bool
	err  error // of the end
	rows []*sql.Rows
	item *item
}

// txKey is the key of contexts from which a call to the writer would wait for itself.
type txKey struct{ *file }

// Exec runs a statement.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check(ctx); err != nil {
		return nil, err
	}
	r, err := t.file.conn.exec(ctx, query, args...)
	if err == nil {
		t.item.results = append(t.item.results, r)
	}
	return r, t.file.explain(ctx, err)
}

// Query runs a statement that returns rows, which are closed when the transaction is over.
func (t *Tx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check(ctx); err != nil {
		return nil, err
	}
	rows, err := t.file.conn.sql.QueryContext(ctx, query, args...)
	if err == nil {
		t.rows = append(t.rows, rows)
	}
	return rows, t.file.explain(ctx, err)
}

// QueryRow runs a statement that returns one row, or none.
func (t *Tx) QueryRow(ctx context.Context, query string, args ...any) *Row {
	rows, err := t.Query(ctx, query, args...)
	return &Row{rows, err}
}

// A Row is the result of [Tx.QueryRow].
type Row struct {
	rows *sql.Rows
	err  error
}

// Scan copies the columns of the row. It returns [sql.ErrNoRows] if there is none.
func (r *Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		return cmp.Or(r.rows.Err(), sql.ErrNoRows)
	}
	return cmp.Or(r.rows.Scan(dest...), r.rows.Close())
}

// Invalidate invalidates keys of [Read] after the commit, in every case in which there is one.
func (t *Tx) Invalidate(keys ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.item.stale = append(t.item.stale, keys...)
}

// check is called with mu held.
func (t *Tx) check(ctx context.Context) error {
	if t.over || ctx.Value(txKey{t.file}) != t {
		return t.file.named("", ErrTxDone)
	}
	return nil
}

// end commits the transaction, or rolls it back because of an error. Only the first call
// does, and returns true.
func (t *Tx) end(cause error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.over, t.err = true, cause
	for _, rows := range t.rows {
		_ = rows.Close() // rows that are open hold up the commit
	}
	f := t.file
	if cause == nil {
		t.err = f.explain(background, f.commit())
	} else {
		f.undo(cause)
	}
	return true
}

// runTx runs the function of an item in a transaction. When the context of the function
// ends, the transaction is over, and other writes go on, even if the function does not return.
func (f *file) runTx(it *item) {
	begun := time.Now()
	if err := f.begin(); err != nil {
		it.err = f.explain(it.ctx, err)
		f.leave([]*item{it}, begun)
		return
	}
	ctx, cancel := context.WithTimeoutCause(it.ctx, f.opts.TxTimeout, f.named("", ErrTxTimeout))
	t := &Tx{file: f, item: it}
	t.ctx = context.WithValue(ctx, txKey{f}, t)
	handed := make(chan struct{}) // the turn, to the next one
	stop := context.AfterFunc(ctx, func() {
		if t.end(context.Cause(ctx)) {
			f.lock.release()
			f.next()
			close(handed)
		}
	})
	f.calls.Add(1)
	flight.Run(func() (none struct{}, err error) { return none, it.fn(t.ctx, t) }, func(_ struct{}, err error) {
		defer cancel()
		f.calls.Add(-1)
		stop()
		if ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err())) {
			err = context.Cause(ctx)
		}
		mine := t.end(err)
		it.err = t.err
		if mine {
			f.leave([]*item{it}, begun)
		} else {
			<-handed // so that the file is not closed before
			f.finish([]*item{it}, begun)
		}
	})
}
