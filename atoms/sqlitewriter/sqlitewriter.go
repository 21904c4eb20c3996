package sqlitewriter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
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
	*entry
	file *file
	once sync.Once   // its end
	gone atomic.Bool // Close was called

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
	return &Writer{entry: e, file: e.file, pending: make(map[*write]struct{})}, nil
}

// Name is [Options.Name].
func (w *Writer) Name() string { return w.file.opts.Name }

// Sink is [Options.Sink]; nil if there is none.
func (w *Writer) Sink() *core.Sink { return w.file.opts.Sink }

// Path is the absolute path of the file, without symbolic links.
func (w *Writer) Path() string { return w.entry.path }

// Exec runs one or more statements, and returns when they are committed and on the disk,
// or when nothing of them is stored. The result is that of the last statement. The query
// must not begin or end transactions: see [ErrNotAllowed]. Writes are done in the order in
// which they come; those that wait share a transaction.
//
// When ctx ends before the transaction begins, Exec returns its cause. When it ends while the
// statement runs, the statement is interrupted. After that Exec waits for the commit, so its
// result says what is stored.
func (w *Writer) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	it := &write{ctx: ctx, stmts: []Statement{{SQL: query, Args: args}}}
	if err := w.do("Exec", ctx, it); err != nil {
		return nil, err
	}
	return it.results[0], nil
}

// Batch is [Writer.Exec] of several statements, of which all are committed or none is. It
// returns a result for each.
func (w *Writer) Batch(ctx context.Context, stmts ...Statement) ([]sql.Result, error) {
	it := &write{ctx: ctx, stmts: stmts}
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
	it := &write{fn: fn}
	it.ctx, it.cancel = context.WithCancelCause(ctx)
	defer it.cancel(nil)
	return w.do("Tx", ctx, it)
}

// do has a write committed.
func (w *Writer) do(call string, ctx context.Context, it *write) error {
	if err := w.accept(call, ctx, it); err != nil {
		return err
	}
	return w.perform(ctx, it)
}

// accept counts a write that perform will have committed.
func (w *Writer) accept(call string, ctx context.Context, it *write) error {
	f := w.file
	if f.inside(ctx) {
		return f.wouldDeadlock(call)
	}
	it.wait, it.leave = context.WithCancelCause(ctx)
	it.settled, it.done = make(chan struct{}), make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return f.named(core.ErrClosed)
	}
	w.pending[it] = struct{}{}
	f.count(func(s *Stats) { s.Enqueued++; s.Pending++ })
	return nil
}

func (w *Writer) perform(ctx context.Context, it *write) error {
	if op := core.OperationFrom(ctx); op != nil {
		defer op.WaitsFor(fmt.Sprintf("a write to %q", w.Name()), time.Time{})()
	}
	err := w.file.commits.Do(it.wait, it)
	if errors.Is(err, groupcommit.ErrUndecided) {
		<-it.settled
		err = it.err
	}
	w.mu.Lock()
	delete(w.pending, it)
	w.mu.Unlock()
	w.file.count(func(s *Stats) {
		s.Pending--
		if err == nil {
			s.Succeeded++
		} else {
			s.Failed++
		}
	})
	it.leave(nil)
	close(it.done)
	return err
}

// DB is a pool of connections that only read. They see what was committed before they began,
// so also all that Exec, Batch and Tx have returned from. It is closed with the last handle.
func (w *Writer) DB() *sql.DB { return w.file.readers }

// Invalidate makes [Read] load keys again.
func (w *Writer) Invalidate(keys ...string) { w.file.invalidate(keys...) }

// Stats returns the counters of the file.
func (w *Writer) Stats() Stats {
	var s Stats
	w.file.count(func(now *Stats) { s = *now })
	w.mu.Lock()
	s.Closed = w.closed
	w.mu.Unlock()
	s.Handles, s.Cache = w.add(0), w.file.cache.Stats()
	return s
}

// Complete ends the intake of this handle: later writes get [core.ErrClosed]. Those that were
// accepted are committed. Reads go on.
func (w *Writer) Complete() { w.end(nil) }

// Flush waits until all writes of this handle that were accepted so far are committed or have
// failed. When ctx ends first it returns its cause.
func (w *Writer) Flush(ctx context.Context) error {
	return w.await("Flush", ctx, w.unsettled)
}

// Drain is Complete and Flush.
func (w *Writer) Drain(ctx context.Context) error {
	return w.await("Drain", ctx, func() []*write { return w.end(nil) })
}

// Stop is Complete, and drops the writes of this handle whose transaction has not begun:
// they get [core.ErrStopped]. It waits for the others as Flush does.
func (w *Writer) Stop(ctx context.Context) error {
	return w.await("Stop", ctx, func() []*write { return w.end(core.ErrStopped) })
}

// Close is Stop with [core.ErrClosed], ends the contexts of running functions of Tx with that
// cause, and releases the handle. The last handle closes the file. Close waits for the
// functions, unless it is called from inside of one, or of a handler of the writer's
// signals; then the handle is released when that is over. It returns nil.
func (w *Writer) Close() error {
	w.gone.Store(true)
	writes := w.end(core.ErrClosed)
	for _, it := range writes {
		if it.cancel != nil {
			it.cancel(core.ErrClosed)
		}
	}
	release := func() {
		for _, it := range writes {
			<-it.done
		}
		w.once.Do(w.leave)
	}
	if w.file.inside(background) {
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
			it.leave(w.file.named(cause))
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
func (w *Writer) await(call string, ctx context.Context, writes func() []*write) error {
	if w.file.inside(ctx) {
		return w.file.wouldDeadlock(call)
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
