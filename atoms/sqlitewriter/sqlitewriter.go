package sqlitewriter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
)

// A Writer is a handle of a SQLite file: it writes to the file, and reads from it. Make one
// with [Open], and close it. Handles of the same file in one process share everything but
// their end. All methods are safe for concurrent use; after Close only those of the lifecycle.
//
// A write must not wait for itself: inside the function of a [Writer.Tx], and inside handlers
// of the signals that the writer raises, Exec, Batch, Tx, Flush, Drain and Stop of handles of
// the file return [core.ErrWouldDeadlock]. They recognise the context that the function
// got, and its goroutine.
type Writer struct {
	*entry
	*file
	once sync.Once // its end

	mu      sync.Mutex
	closed  bool // takes no more writes
	pending map[*write]struct{}
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
	return &Writer{entry: e, file: e.shared, pending: make(map[*write]struct{})}, nil
}

// Name is [Options.Name].
func (w *Writer) Name() string { return w.opts.Name }

// Sink is [Options.Sink]; nil if there is none.
func (w *Writer) Sink() *core.Sink { return w.opts.Sink }

// Path is the absolute path of the file, without symbolic links.
func (w *Writer) Path() string { return w.path }

// Exec runs one or more statements, and returns when they are committed and on the disk,
// or when nothing of them is stored. The result is that of the last statement. The query
// must not begin or end transactions: see [ErrNotAllowed]. Writes are done in the order in
// which they come; those that wait share a transaction.
//
// When ctx ends before the transaction begins, Exec returns its cause. When it ends while the
// statement runs, the statement is interrupted. After that Exec waits for the commit, so its
// result says what is stored.
func (w *Writer) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	results, err := w.Batch(ctx, Statement{SQL: query, Args: args})
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// Batch is [Writer.Exec] of several statements, of which all are committed or none is. It
// returns a result for each.
func (w *Writer) Batch(ctx context.Context, stmts ...Statement) ([]sql.Result, error) {
	it := &write{stmts: stmts}
	if err := w.do(ctx, it); err != nil {
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
	return w.do(ctx, &write{fn: fn})
}

// do has a write committed.
func (w *Writer) do(ctx context.Context, it *write) error {
	if err := w.accept(ctx, it); err != nil {
		return err
	}
	return w.perform(ctx, it)
}

// accept counts a write, which perform will have committed.
func (w *Writer) accept(ctx context.Context, it *write) error {
	if w.inside(ctx) {
		return w.named(core.ErrWouldDeadlock)
	}
	it.ctx, it.settled, it.done = ctx, make(chan struct{}), make(chan struct{})
	it.wait, it.leave = context.WithCancelCause(ctx)
	if it.cancel = it.leave; it.fn != nil {
		it.ctx, it.cancel = context.WithCancelCause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.named(core.ErrClosed)
	}
	w.pending[it] = struct{}{}
	w.enqueued.Add(1)
	return nil
}

func (w *Writer) perform(ctx context.Context, it *write) error {
	if op := core.OperationFrom(ctx); op != nil {
		defer op.WaitsFor(fmt.Sprintf("a write to %q", w.Name()), time.Time{})()
	}
	err := w.commits.Do(it.wait, it)
	if errors.Is(err, groupcommit.ErrUndecided) {
		<-it.settled
		err = it.err
	}
	w.mu.Lock()
	delete(w.pending, it)
	w.mu.Unlock()
	if err == nil {
		w.succeeded.Add(1)
	} else {
		w.failed.Add(1)
	}
	it.leave(nil)
	it.cancel(nil)
	close(it.done)
	return err
}

// DB is a pool of connections that only read. They see what was committed before they began,
// so also all that Exec, Batch and Tx have returned from. It is closed with the last handle.
func (w *Writer) DB() *sql.DB { return w.readers }

// Invalidate makes [Read] load keys again.
func (w *Writer) Invalidate(keys ...string) { w.invalidate(keys...) }

// Stats returns the counters of the file.
func (w *Writer) Stats() Stats {
	s := Stats{Succeeded: w.succeeded.Load(), Failed: w.failed.Load(), Groups: w.groups.Load(), Cache: w.cache.Stats()}
	s.Enqueued = w.enqueued.Load()
	s.Pending = int(s.Enqueued - s.Succeeded - s.Failed)
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Closed = w.closed
	return s
}

// Complete ends the intake of this handle: later writes get [core.ErrClosed]. Those that were
// accepted are committed. Reads go on.
func (w *Writer) Complete() { w.end(nil) }

// Flush waits until all writes of this handle that were accepted so far are committed or have
// failed. When ctx ends first it returns its cause.
func (w *Writer) Flush(ctx context.Context) error { return w.await(ctx, w.unsettled) }

// Drain is Complete and Flush.
func (w *Writer) Drain(ctx context.Context) error {
	return w.await(ctx, func() []*write { return w.end(nil) })
}

// Stop is Complete, and drops the writes of this handle whose transaction has not begun:
// they get [core.ErrStopped]. It waits for the others as Flush does.
func (w *Writer) Stop(ctx context.Context) error {
	return w.await(ctx, func() []*write { return w.end(core.ErrStopped) })
}

// Close is Stop with [core.ErrClosed], ends the contexts of running functions of Tx with that
// cause, and releases the handle. The last handle closes the file. Close waits for the
// functions, unless it is called from inside of one, or of a handler of the writer's
// signals; then the handle is released when that is over. It returns nil.
func (w *Writer) Close() error {
	writes := w.end(core.ErrClosed)
	release := func() {
		for _, it := range writes {
			it.cancel(core.ErrClosed)
			<-it.done
		}
		w.once.Do(w.entry.release)
	}
	if w.inside(background) {
		go release()
	} else {
		release()
	}
	return nil
}

// end ends the intake, and drops what has not begun if there is a cause. It returns the
// writes that have not returned.
func (w *Writer) end(cause error) []*write {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	writes := w.unsettled()
	for _, it := range writes {
		if cause != nil {
			it.leave(w.named(cause))
		}
	}
	return writes
}

// unsettled returns the accepted writes that have not returned.
func (w *Writer) unsettled() []*write {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.pending))
}

// await waits until writes have returned, unless it is called from inside.
func (w *Writer) await(ctx context.Context, writes func() []*write) error {
	if w.inside(ctx) {
		return w.named(core.ErrWouldDeadlock)
	}
	for _, it := range writes() {
		select {
		case <-it.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
