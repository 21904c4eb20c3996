package sqlitewriter

import (
	"context"
	"database/sql"

	"github.com/ephemeralgo/ephemeral/core/filelock"
)

// Start is Tx for the lifecycle suite: it returns when the function is accepted.
func (w *Writer) Start(ctx context.Context, fn func(context.Context, *Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx = context.WithoutCancel(ctx)
	it := &write{alone: true}
	it.run = func(tx *sql.Tx) error { return w.call(it, tx, fn) }
	if err := w.accept(ctx, it); err != nil {
		return err
	}
	go w.perform(ctx, it)
	return nil
}

// BeforeCommit calls fn before each commit, until the returned function is called.
func BeforeCommit(fn func()) (undo func()) {
	testBeforeCommit = fn
	return func() { testBeforeCommit = func() {} }
}

// BeforeBegin calls fn before each transaction begins, until the returned function is called.
func BeforeBegin(fn func()) (undo func()) {
	testBeforeBegin = fn
	return func() { testBeforeBegin = func() {} }
}

// Conn is the connection that writes, while nothing is written.
func (w *Writer) Conn() *sql.Conn { return w.conn.sql }

// BreakLock makes each wait for the lock file fail.
func (w *Writer) BreakLock() { _ = w.lock.Close() }

// LockFile locks the lock file of a path as another process would.
func LockFile(path string) (unlock func(), err error) {
	l, err := filelock.Open(path + ".lock")
	if err != nil {
		return nil, err
	}
	return l.Acquire(context.Background())
}
