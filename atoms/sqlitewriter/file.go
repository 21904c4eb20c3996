package sqlitewriter

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/filelock"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/lru"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// file is what all handles of a file share.
type file struct {
	opts    Options
	path    string
	info    os.FileInfo // of the path
	handles int         // guarded by files.mu
	commits *groupcommit.Committer[*write]
	cache   *lru.LRU[string, any]
	readers *sql.DB
	raiser  signals.Raiser // Options.Sink, or a raiser that does nothing

	lock *filelock.Lock // makes processes take turns; SQLite's busy timeout does not do that

	// Used with the lock held.
	unlock   func()        // also rolls back tx
	patience time.Duration // how long the group may still wait for other programs
	tx       *sql.Tx       // a transaction that has begun, for the next attempt
	writers  *sql.DB       // its only connection is in conn
	conn     *conn         // nil before the first connection, and after a broken one
	opened   atomic.Bool
	reopened bool // SignalReopened is to be raised

	groups atomic.Uint64 // committed
}

// write is a call of Exec, Batch or Tx.
type write struct {
	ctx   context.Context // ends with the context of the caller, and by Stop and Close
	leave context.CancelCauseFunc
	run   func(tx *sql.Tx) error // runs in a transaction; is called again if a write of the group fails
	alone bool                   // it needs its own transaction
	stale []string               // keys to invalidate

	state   atomic.Int32 // waiting, begun or left
	err     error
	settled chan struct{} // closed when the commit has ended, or when there will be none
}

// States of a write: it can leave, its transaction has begun, it has left.
const waiting, begun, left = 0, 1, 2

// begin reports whether the write is still there. From now on it cannot leave.
func (it *write) begin() bool {
	return it.state.CompareAndSwap(waiting, begun) || it.state.Load() == begun
}

// withdraw makes the write leave if its context has ended and its transaction has not begun.
func (it *write) withdraw() {
	if it.ctx.Err() != nil && it.state.CompareAndSwap(waiting, left) {
		it.err = context.Cause(it.ctx)
		close(it.settled)
	}
}

// Alone tells groupcommit that the write needs its own transaction.
func (it *write) Alone() bool { return it.alone }

// newFile makes the file of a path. It opens no connection.
func newFile(path string, info os.FileInfo, opts Options, lock *filelock.Lock) *file {
	f := &file{opts: opts, path: path, info: info, lock: lock, raiser: (*core.Operation)(nil)}
	f.commits = core.Must(groupcommit.New(f.commit, groupcommit.Options{ // the options are valid
		Name: opts.Name, MaxQueued: opts.MaxQueued, MaxBatch: opts.MaxGroup, Begin: f.begin,
	}))
	f.cache = core.Must(lru.New(lru.Options[string, any]{Sink: opts.Sink, Capacity: opts.Capacity, TTL: opts.TTL, MaxAge: opts.TTL}))
	f.readers = openDB(path, "ro&_query_only=1", opts.BusyTimeout, opts.MaxReaders)
	f.writers = openDB(path, "rw", 0, 1)
	f.writers.SetMaxIdleConns(-1) // so that the Close of a connection closes it
	if opts.Sink != nil {
		f.raiser = opts.Sink
		f.commits.OnClosed(opts.Sink.Subscribe(opts.InvalidateOn, f.invalidateOn))
	}
	return f
}

// shut closes a file without handles. It ignores errors, because nothing is being written.
func (f *file) shut() {
	_ = f.commits.Close()
	_ = f.readers.Close()
	f.disconnect()
	_ = f.writers.Close()
	_ = f.lock.Close()
}

// begin is called before a group of writes is taken, and begins a transaction. Writes can leave
// meanwhile. It returns a function that is called after the commit, or if all writes have left.
func (f *file) begin(ctx context.Context) (end func(), err error) {
	f.raiser.RaiseKey(SignalWriting, f.opts.Name)
	unlock, err := f.lock.Acquire(ctx)
	if err == nil {
		f.patience, f.unlock = f.opts.BusyTimeout, func() { f.rollback(); unlock() }
		if err = f.beginTx(ctx); err != nil {
			f.unlock()
		}
	}
	if err = f.explain(ctx, err); err != nil && ctx.Err() == nil {
		Failed.Raise(f.raiser, f.opts.Name, err)
	}
	return f.unlock, err
}

// beginTx begins a transaction, for attempt. There may be a transaction even after an error.
func (f *file) beginTx(ctx context.Context) error {
	testBeforeBegin()
	if err := f.connect(ctx); err != nil {
		return err
	}
	err := f.wait(f.conn, func() (err error) { f.tx, err = f.conn.sql.BeginTx(ctx, nil); return err })
	if err != nil && code(err) != lib.SQLITE_BUSY {
		f.disconnect()
	}
	if err != nil {
		return err
	}
	if f.conn.log == nil {
		f.conn.log, _ = os.Stat(f.path + "-wal")
	}
	return cmp.Or(check(f.path, f.info), check(f.path+"-wal", f.conn.log))
}

// rollback ends the transaction, if there is one.
func (f *file) rollback() {
	if f.tx == nil {
		return
	}
	if err := f.tx.Rollback(); err != nil && code(err) != lib.SQLITE_ERROR { // SQLITE_ERROR: SQLite has rolled back
		f.disconnect()
	}
	f.tx = nil
}

// commit commits a group. The errors are in the writes.
func (f *file) commit(ctx context.Context, group []*write, _ []error) error {
	defer f.end(group, time.Now())
	group = slices.DeleteFunc(slices.Clone(group), func(it *write) bool { return !it.begin() })
	err := f.attempt(group)
	if err == nil || len(group) == 1 || guard.Is(err, groupcommit.ErrUndecided) || guard.Is(err, ErrBusy) {
		return nil
	}
	for _, it := range group {
		it.state.Store(waiting)
		it.withdraw()
	}
	err = nil
	for _, it := range group {
		if f.tx == nil && err == nil {
			err = f.explain(ctx, f.beginTx(ctx))
		}
		if !it.begin() {
			continue // f.tx is now the transaction of the next write
		}
		if it.err = err; err == nil {
			_ = f.attempt([]*write{it})
		}
	}
	return nil
}

// attempt runs writes in the transaction that has begun. It sets their errors.
func (f *file) attempt(group []*write) (err error) {
	err = groupcommit.ErrUndecided // the error if a function ends its goroutine or the driver panics
	for _, it := range group {
		it.err = err
	}
	defer func() {
		f.conn.theirs.Store(false)
		if err == nil {
			testBeforeCommit()
			err = f.finish()
		} else if f.rollback(); code(err) == lib.SQLITE_IOERR {
			f.disconnect()
		}
		f.tx = nil
		for _, it := range group {
			if err != groupcommit.ErrUndecided {
				it.err = err
			}
		}
	}()
	f.conn.theirs.Store(true)
	for _, it := range group {
		var err error
		if panicked := guard.Do("an argument or its error", func() { err = it.run(f.tx) }); panicked != nil {
			err = f.named(panicked)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finish commits the transaction.
func (f *file) finish() error {
	if f.tx == nil { // it was a checkpoint
		return nil
	}
	err := f.tx.Commit()
	switch code(err) {
	case lib.SQLITE_CONSTRAINT, lib.SQLITE_FULL, lib.SQLITE_BUSY: // the driver has rolled back
		return f.explain(background, err)
	}
	if err != nil {
		f.disconnect()
		return f.named(fmt.Errorf("%w: %w", groupcommit.ErrUndecided, err))
	}
	f.groups.Add(1)
	return nil
}

// For tests.
var testBeforeBegin, testBeforeCommit = func() {}, func() {}

// end ends a group. No lock is held when handlers are called.
func (f *file) end(group []*write, begun time.Time) {
	group = slices.DeleteFunc(group, func(it *write) bool { return !it.begin() })
	reopened := f.reopened
	f.reopened = false
	f.unlock()
	defer func() { // even if a handler ends the goroutine
		for _, it := range group {
			close(it.settled)
		}
	}()
	done := Group{Writes: len(group), Duration: time.Since(begun)}
	for _, it := range group {
		f.invalidate(it.stale...) // even after a failure: the write may be stored
		if it.err != nil {
			done.Failed++
			Failed.Raise(f.raiser, f.opts.Name, it.err)
		}
	}
	if reopened {
		f.raiser.RaiseKey(SignalReopened, f.opts.Name)
	}
	if done.Failed < done.Writes {
		Written.Raise(f.raiser, f.opts.Name, done)
	}
}

// inside reports whether the caller is a function or handler that a commit waits for.
func (f *file) inside(ctx context.Context) bool {
	return ctx.Value(txKey{f}) != nil || f.commits.Inside(ctx)
}
