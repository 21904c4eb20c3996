package sqlitewriter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// A Writer is a handle of a SQLite file: it writes to the file and reads from it. Make one
// with [Open], and close it. The handles of one file in a process share the file, the queue
// and the cache. Each handle has its own counters and its own Close. All methods are safe for
// concurrent use. After Close, writes return [core.ErrClosed], and DB, Read and Backup must
// not be used.
//
// A write must not wait for itself. So Exec, Batch, Tx, Checkpoint, Flush, Drain and Stop return
// [core.ErrWouldDeadlock] in two places: inside the function of a [Writer.Tx] of the same file,
// and inside handlers of signals that a write raises. Such a call is recognised by its goroutine.
// In a function it is also recognised by the context that the function got.
type Writer struct {
	*file
	once sync.Once // releases the handle once

	mu      sync.Mutex
	stats   Stats
	closed  bool // the handle takes no more writes
	pending map[*write]struct{}
}

var _ core.Lifecycle = (*Writer)(nil)

// Errors of a writer. Compare with errors.Is. An error that wraps ErrNoSpace, ErrBusy or
// ErrNotAllowed also wraps the error of SQLite.
var (
	// ErrNoSpace: the disk is full. Nothing of the write is stored.
	ErrNoSpace = errors.New("sqlitewriter: no space left for the database")
	// ErrBusy: another program used the file for longer than [Options.BusyTimeout]. Nothing of the
	// write is stored.
	ErrBusy = errors.New("sqlitewriter: another program uses the database for longer than Options.BusyTimeout")
	// ErrMoved: the file, or its log PATH-wal, was deleted, renamed or replaced while it was open.
	// Nothing of the write is stored. Close all handles, and open the file again.
	ErrMoved = errors.New("sqlitewriter: the file was deleted, renamed or replaced")
	// ErrNotAllowed: a statement would begin or end a transaction, start a checkpoint, attach a file
	// or change settings of the writer's connection. Use [Writer.Batch] and [Writer.Tx] for transactions.
	ErrNotAllowed = errors.New("sqlitewriter: a write may not control transactions or checkpoints, attach files or change settings of the connection")
	// ErrTxTimeout: the function of a [Writer.Tx] took longer than [Options.TxTimeout]. The cause
	// of the function's context wraps it too.
	ErrTxTimeout = errors.New("sqlitewriter: transaction took longer than Options.TxTimeout")
	// ErrType: a key of [Read] has a value of another type.
	ErrType = errors.New("sqlitewriter: the value of the key is not a")
)

// A Statement is a part of a [Writer.Batch].
type Statement struct {
	SQL         string
	Args        []any
	Invalidates []string // keys of [Read] that are loaded again after the commit
}

// Open opens the SQLite file at path, and creates it if it does not exist. If the file is open
// in this process already, even by another path or a symbolic link, Open returns one more
// handle of it; see [Options]. The path is not a connection string. Databases in memory are
// refused. SQLite's -wal and -shm files and the lock file, PATH.lock, appear beside it, with the
// permissions of the file. A new file has 0644 without the bits of the umask; for others, make an
// empty file first.
//
// The first Open of a file waits while another process writes. If ctx ends first, Open returns
// an error that wraps the cause of ctx. For other programs, see [Options.BusyTimeout].
func Open(ctx context.Context, path string, opts Options) (*Writer, error) {
	f, err := acquire(ctx, path, opts)
	if err != nil {
		return nil, fmt.Errorf("sqlitewriter: open %q: %w", path, err)
	}
	return &Writer{file: f, pending: make(map[*write]struct{})}, nil
}

// Path is the absolute path of the file, without symbolic links.
func (w *Writer) Path() string { return w.path }

// Exec runs query, which has one or more statements. It returns when all of them are committed
// and on the disk. If one of them fails, none is stored. The result is the result of the last
// statement. The query must not begin or end transactions: see [ErrNotAllowed].
//
// If ctx ends before the transaction begins, even while another program delays it, Exec returns
// the cause of ctx, and nothing is stored. If ctx ends while a statement runs, the statement is
// interrupted, and Exec returns the cause too. If ctx ends later, Exec waits for the commit, and
// its result says whether the write is stored.
func (w *Writer) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	results, err := w.Batch(ctx, Statement{SQL: query, Args: args})
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// Batch is [Writer.Exec] for several statements: all of them are committed, or none is. It
// returns a result for each.
func (w *Writer) Batch(ctx context.Context, stmts ...Statement) ([]sql.Result, error) {
	it, results := new(write), make([]sql.Result, len(stmts))
	for _, s := range stmts {
		it.stale = append(it.stale, s.Invalidates...)
	}
	it.run = func(*sql.Tx) (err error) {
		for i, s := range stmts {
			if results[i], err = w.conn.exec(it.ctx, s.SQL, s.Args...); err != nil {
				return w.explain(it.ctx, err, s.SQL)
			}
		}
		return nil
	}
	if err := w.do(ctx, it); err != nil {
		return nil, err
	}
	return results, nil
}

// Tx calls fn in its own transaction. If fn returns nil, the transaction is committed. If fn
// returns an error or panics, the transaction is rolled back. Tx returns the error of fn or of
// the commit; after a panic it is a [core.PanicError].
//
// The function runs on a goroutine of the writer, and other writes wait until it has returned.
// Its context has the values of ctx. The context ends when ctx ends, when the handle is closed,
// and after [Options.TxTimeout]. Then fn should return, and the transaction is rolled back, even
// if fn returns nil.
func (w *Writer) Tx(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	if fn == nil {
		panic("sqlitewriter: Tx needs a function")
	}
	it := &write{alone: true}
	it.run = func(tx *sql.Tx) error { return w.call(it, tx, fn) }
	return w.do(ctx, it)
}

// Checkpoint moves the log, PATH-wal, into the file and empties it. It takes its turn among the writes, and waits for
// no reader: if a query or a transaction of [Writer.DB], or of another program, needs a part of the log, Checkpoint moves
// what it can and returns false. SQLite moves the log by itself, about every 4 MB, but the log grows while a reader
// needs it. It is then cut to 16 MiB by the next writes. If ctx ends first, Checkpoint returns the cause of ctx.
func (w *Writer) Checkpoint(ctx context.Context) (whole bool, err error) {
	it := &write{alone: true}
	it.run = func(tx *sql.Tx) error {
		w.conn.theirs.Store(false)
		err := tx.Rollback()
		if w.tx, w.patience = nil, 0; err != nil {
			return w.explain(it.ctx, err)
		}
		var busy, frames, moved int
		err = w.file.wait(w.conn, func() error {
			return w.conn.sql.QueryRowContext(it.ctx, "pragma wal_checkpoint(truncate)").Scan(&busy, &frames, &moved)
		})
		whole = busy == 0
		return w.explain(it.ctx, err)
	}
	err = w.do(ctx, it)
	return whole && err == nil, err
}

// do commits a write.
func (w *Writer) do(ctx context.Context, it *write) error {
	if err := w.accept(ctx, it); err != nil {
		return err
	}
	return w.perform(ctx, it)
}

// accept counts a write. Then perform commits it.
func (w *Writer) accept(ctx context.Context, it *write) error {
	if w.inside(ctx) {
		return w.named(core.ErrWouldDeadlock)
	}
	it.settled = make(chan struct{})
	it.ctx, it.leave = context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.named(core.ErrClosed)
	}
	w.pending[it] = struct{}{}
	w.stats.Enqueued++
	return nil
}

func (w *Writer) perform(ctx context.Context, it *write) error {
	defer it.leave(nil)
	if op := core.OperationFrom(ctx); op != nil {
		defer op.WaitsFor(fmt.Sprintf("a write to %q", w.opts.Name), time.Time{})()
	}
	err := w.commits.Do(it.ctx, it)
	if err == nil || guard.Is(err, groupcommit.ErrUndecided) { // a commit has taken the write
		it.withdraw()
		<-it.settled
		err = it.err
	} else {
		close(it.settled)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, it)
	if err == nil {
		w.stats.Succeeded++
	} else {
		w.stats.Failed++
	}
	return err
}

// DB returns a pool of connections that only read. A query sees each write that had returned nil
// when the query began. A transaction sees the same data until it ends; meanwhile the log of the file grows: see
// [Writer.Checkpoint]. The Close of the last handle closes the pool.
func (w *Writer) DB() *sql.DB { return w.readers }

// Invalidate makes the next [Read] of each key load the value again.
func (w *Writer) Invalidate(keys ...string) { w.invalidate(keys...) }

// Name is [Options.Name], or its default.
func (w *Writer) Name() string { return w.opts.Name }

// Stats returns the counters of the handle and its file.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Pending, s.Groups, s.Cache = len(w.pending), w.groups.Load(), w.cache.Stats()
	if log, err := os.Stat(w.path + "-wal"); err == nil {
		s.Log = log.Size()
	}
	return s
}

// Complete ends the intake of this handle: later writes get [core.ErrClosed]. Writes that were
// accepted before are committed. Reads go on.
func (w *Writer) Complete() { w.end(true, nil) }

// Flush waits until all writes that this handle has accepted so far are committed or have
// failed. If ctx ends first, Flush returns the cause of ctx.
func (w *Writer) Flush(ctx context.Context) error { return w.wait(ctx, false, nil) }

// Drain is Complete and then Flush.
func (w *Writer) Drain(ctx context.Context) error { return w.wait(ctx, true, nil) }

// Stop ends the intake of this handle like Complete. It drops the writes of this handle whose
// transaction has not begun: they return [core.ErrStopped]. Then Stop waits for the other writes,
// like Flush.
func (w *Writer) Stop(ctx context.Context) error { return w.wait(ctx, true, core.ErrStopped) }

// Close ends the intake of this handle and drops its writes. If the statement or the function of
// a write runs, its context ends with the cause [core.ErrClosed], and Close waits until it has
// returned. Then Close releases the handle. The Close of the last handle closes the file. On the
// goroutine of a Tx's function, and in a handler of a signal that a write raises, Close does not
// wait: the handle is released later. Close always returns nil. Close gets no context, so it does not
// recognise other goroutines of a function. If the function waits for a goroutine that calls Close,
// that wait must end with the function's context.
func (w *Writer) Close() error {
	writes := w.end(true, core.ErrClosed)
	release := func() {
		for _, it := range writes {
			<-it.settled
		}
		w.once.Do(w.release)
	}
	if w.inside(background) {
		go release()
	} else {
		release()
	}
	return nil
}

// wait waits for the writes that end returns. Inside the function of a Tx, or a handler, it
// returns an error.
func (w *Writer) wait(ctx context.Context, closed bool, cause error) error {
	if w.inside(ctx) {
		return w.named(core.ErrWouldDeadlock)
	}
	for _, it := range w.end(closed, cause) {
		select {
		case <-it.settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// end returns the writes that are not settled. If closed is true, it ends the intake. If cause is
// not nil, it ends the contexts of writes whose commit has not begun. If cause is core.ErrClosed,
// it ends the contexts of all writes.
func (w *Writer) end(closed bool, cause error) (writes []*write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = w.closed || closed
	for it := range w.pending {
		if cause == core.ErrClosed || cause != nil && it.state.Load() != begun {
			it.leave(w.named(cause))
		}
		writes = append(writes, it)
	}
	return writes
}
