package sqlitewriter

import (
	"context"
	"database/sql"
)

// Start is Tx for the lifecycle suite: it returns when the function is accepted.
func (w *Writer) Start(ctx context.Context, fn func(context.Context, *Tx) error) error {
	it := &item{by: w, fn: fn}
	it.ctx, it.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return w.enqueue("Start", ctx, it)
}

// BeforeCommit calls fn with the number of writes in a group before it is committed, until
// the returned function is called.
func BeforeCommit(fn func(stmts []Statement)) (undo func()) {
	testBeforeCommit = func(items []*item) {
		var all []Statement
		for _, it := range items {
			all = append(all, it.stmts...)
		}
		fn(all)
	}
	return func() { testBeforeCommit = func([]*item) {} }
}

// Conn is the connection that writes, while nothing is written.
func (w *Writer) Conn() *sql.Conn { return w.file.conn.sql }

// Begin is Batch that returns when the write is accepted, and does not leave with ctx.
func (w *Writer) Begin(ctx context.Context, stmts ...Statement) (wait func() error) {
	it := &item{by: w, ctx: ctx, stmts: stmts}
	if err := w.enqueue("Begin", ctx, it); err != nil {
		return func() error { return err }
	}
	return func() error { <-it.done; return it.err }
}

// LockFile locks the lock file of a path as another process would.
func LockFile(path string) (unlock func(), err error) {
	l, err := openLock(path)
	if err != nil {
		return nil, err
	}
	if _, err := l.acquire(func() bool { return false }); err != nil {
		return nil, err
	}
	return l.close, nil
}

// WaitIdle waits until there is no turn, and so no goroutine.
func (w *Writer) WaitIdle(ctx context.Context) error { return w.file.turns.WaitIdle(ctx) }
