package sqlitewriter

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Writer is a handle of a SQLite file: it writes to the file, and reads from it. Make one
// with [Open], and close it. Handles of the same file in one process share everything but
// their end. All methods are safe for concurrent use.
//
// A write must not wait for itself: inside the function of a [Writer.Tx], and inside handlers
// of the signals that the writer raises, Exec, Batch, Tx, Flush, Drain and Stop of handles of
// the file return [core.ErrWouldDeadlock]. They recognise the context that the function
// got, and its goroutine.
type Writer struct {
	file   *entry
	once   sync.Once // its end
	ended  bool      // Close was called; guarded by the lock of the file, as is closed
	closed bool      // takes no more writes
}

var _ core.Lifecycle = (*Writer)(nil)

// A Statement is one of a [Writer.Batch].
type Statement struct {
	SQL         string
	Args        []any
	Invalidates []string // keys of [Read] that are loaded again after the commit
}

// Open opens the SQLite file of that path for writing, and makes it if there is none. The path
// is no connection string. Symbolic links, relative paths and hard links that name a file
// that is open in this process give another handle of it; see [Options]. Databases in memory
// are refused. Beside the file there will be SQLite's -wal and -shm, and two lock files.
//
// Open waits, until ctx ends, for processes that write.
func Open(ctx context.Context, path string, opts Options) (*Writer, error) {
	e, err := acquire(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	return &Writer{file: e}, nil
}

// Name is [Options.Name].
func (w *Writer) Name() string { return w.file.opts.Name }

// Sink is [Options.Sink]; nil if there is none.
func (w *Writer) Sink() *core.Sink { return w.file.opts.Sink }

// Path is the absolute path of the file, without symbolic links.
func (w *Writer) Path() string { return w.file.path }

// Exec runs one or more statements, and returns when they are committed and on the disk,
// or when nothing of them is stored. The result is that of the last statement. The query
// must not begin or end transactions: see [ErrNotAllowed]. Writes are done in the order in
// which they come; those that wait share a transaction.
//
// When ctx ends before the transaction begins, Exec returns its cause. When it ends while the
// statement runs, the statement is interrupted. After that Exec waits for the commit, so its
// result says what is stored.
func (w *Writer) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	it := &item{by: w, ctx: ctx, stmts: []Statement{{SQL: query, Args: args}}}
	if err := w.do("Exec", ctx, it); err != nil {
		return nil, err
	}
	return it.results[0], nil
}

// Batch is [Writer.Exec] of several statements, of which all are committed or none is. It
// returns a result for each.
func (w *Writer) Batch(ctx context.Context, stmts ...Statement) ([]sql.Result, error) {
	it := &item{by: w, ctx: ctx, stmts: stmts}
	if err := w.do("Batch", ctx, it); err != nil {
		return nil, err
	}
	return it.results, nil
}

// Tx calls fn in a transaction of its own, which is committed when fn returns nil and rolled
// back otherwise, also if fn panics. It returns the error of fn, or that of the commit; for a
// panic a [core.PanicError].
//
// Other writes wait meanwhile. So the context of fn, which has the values of ctx, ends with
// ctx, by Close and after [Options.TxTimeout]; then the transaction is rolled back and other
// writes go on, whether fn returns or not. Tx returns when fn has returned. The function runs
// on a goroutine of the writer.
func (w *Writer) Tx(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	if fn == nil {
		panic("sqlitewriter: Tx needs a function")
	}
	it := &item{by: w, fn: fn}
	it.ctx, it.cancel = context.WithCancelCause(ctx)
	defer it.cancel(nil)
	return w.do("Tx", ctx, it)
}

// do brings an item, and waits until it is settled.
func (w *Writer) do(call string, ctx context.Context, it *item) error {
	if err := w.enqueue(call, ctx, it); err != nil {
		return err
	}
	if op := core.OperationFrom(ctx); op != nil {
		defer op.WaitsFor(fmt.Sprintf("a write to %q", w.Name()), time.Time{})()
	}
	select {
	case <-it.done:
		return it.err
	case <-ctx.Done():
	}
	f := w.file
	f.mu.Lock()
	f.queue.withdraw(it, context.Cause(ctx))
	f.mu.Unlock()
	<-it.done // if its group has begun, it ends soon
	return it.err
}

// enqueue puts an item into the queue, where it may have to wait for room.
func (w *Writer) enqueue(call string, ctx context.Context, it *item) error {
	f := w.file
	var err error
	switch {
	case f.inside(ctx):
		err = f.wouldDeadlock(call)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	it.done = make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.closed {
		err = f.named("", core.ErrClosed)
	}
	if err != nil {
		f.queue.stats.Rejected++
		return err
	}
	f.queue.push(it)
	f.kick()
	return nil
}

// DB is a pool of connections that only read. They see what was committed before they began,
// so also all that Exec, Batch and Tx have returned from. It is closed with the last handle.
func (w *Writer) DB() *sql.DB { return w.file.readers }

// Invalidate makes [Read] load keys again.
func (w *Writer) Invalidate(keys ...string) { w.file.invalidate(keys...) }

// Stats returns the counters of the file.
func (w *Writer) Stats() Stats {
	f := w.file
	files.mu.Lock()
	handles := f.handles
	files.mu.Unlock()
	f.mu.Lock()
	s := f.queue.stats
	s.Pending, s.Running = len(f.queue.pending), len(f.queue.running)
	s.Closed = w.closed
	f.mu.Unlock()
	s.Handles, s.Cache = handles, f.cache.Stats()
	return s
}

// Complete ends the intake of this handle: later writes get [core.ErrClosed]. Those that were
// accepted are committed. Reads go on.
func (w *Writer) Complete() { w.end(nil, false) }

// Flush waits until all writes of this handle that were accepted so far are committed or have
// failed. When ctx ends first it returns its cause.
func (w *Writer) Flush(ctx context.Context) error {
	return w.wait("Flush", ctx, w.unsettled)
}

// Drain is Complete and Flush.
func (w *Writer) Drain(ctx context.Context) error {
	return w.wait("Drain", ctx, func() []*item { return w.end(nil, false) })
}

// Stop is Complete, and drops the writes of this handle whose transaction has not begun:
// they get [core.ErrStopped]. It waits for the others as Flush does.
func (w *Writer) Stop(ctx context.Context) error {
	return w.wait("Stop", ctx, func() []*item { return w.end(core.ErrStopped, false) })
}

// Close is Stop with [core.ErrClosed], ends the contexts of running functions of Tx with that
// cause, and releases the handle. The last handle closes the file, and writes what is in
// SQLite's log into it. Close waits for the functions, unless it is called from inside of
// one, or of a handler of the writer's signals; then the handle is released when that is over.
func (w *Writer) Close() error {
	end := func() []*item { return w.end(core.ErrClosed, true) }
	switch {
	case w.wait("Close", background, end) == nil:
		w.release()
	case len(end()) == 0: // it is called from inside
		go w.release() // which waits for the turn
	}
	return nil
}

// release ends the handle.
func (w *Writer) release() { w.once.Do(w.file.release) }

// end ends the intake, and drops what has not begun if there is a cause. It returns the
// items that are not settled.
func (w *Writer) end(cause error, closing bool) []*item {
	f := w.file
	f.mu.Lock()
	w.closed = true
	w.ended = w.ended || closing
	f.queue.turnAway(w, f.named("", core.ErrClosed))
	if cause != nil {
		for _, it := range f.queue.of(w) {
			f.queue.withdraw(it, f.named("", cause))
		}
	}
	items := f.queue.of(w)
	f.mu.Unlock()
	for _, it := range items {
		if closing && it.cancel != nil {
			it.cancel(core.ErrClosed)
		}
	}
	return items
}

// unsettled returns the accepted items that are not settled.
func (w *Writer) unsettled() []*item {
	w.file.mu.Lock()
	defer w.file.mu.Unlock()
	return w.file.queue.of(w)
}

// wait waits until the items that the function returns are settled, unless it is called from inside.
func (w *Writer) wait(call string, ctx context.Context, items func() []*item) error {
	if w.file.inside(ctx) {
		return w.file.wouldDeadlock(call)
	}
	for _, it := range items() {
		select {
		case <-it.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// isEnded reports whether Close was called.
func (w *Writer) isEnded() bool {
	w.file.mu.Lock()
	defer w.file.mu.Unlock()
	return w.ended
}
