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

// StartExec is Exec that returns when the write is accepted.
func (w *Writer) StartExec(query string, args ...any) error {
	it := &item{by: w, ctx: background, stmts: []Statement{{SQL: query, Args: args}}}
	return w.enqueue("StartExec", background, it)
}
