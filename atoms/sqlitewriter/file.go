package sqlitewriter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/filelock"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// file is what all handles of a file share.
type file struct {
	opts    Options
	path    string
	handles int // guarded by the lock of files
	commits *groupcommit.Committer[*write]
	cache   *lru.LRU[string, any]
	readers *sql.DB
	raiser  core.Raiser // Options.Sink, or one that does nothing

	lock *filelock.Lock // makes processes take turns; SQLite's busy timeout does not do that

	// Used with the lock held.
	unlock   func()
	writers  *sql.DB // its only connection is that of conn
	conn     *conn   // nil before the first connection, and after a broken one
	opened   atomic.Bool
	reopened bool // SignalReopened is to be raised

	groups atomic.Uint64 // committed
}

// write is a call of Exec, Batch or Tx.
type write struct {
	ctx   context.Context // ends with the context of the caller, and by Stop and Close
	leave context.CancelCauseFunc
	run   func(tx *sql.Tx) error // in a transaction; once more if a write of the group fails
	alone bool                   // it needs a transaction of its own
	stale []string               // keys to invalidate

	begun   atomic.Bool // whether the commit has begun
	err     error
	settled chan struct{} // closed when the commit has ended, or when there will be none
}

// Alone is for groupcommit.
func (it *write) Alone() bool { return it.alone }

// newFile makes the file of a path. It opens no connection.
func newFile(path string, opts Options, lock *filelock.Lock) *file {
	f := &file{opts: opts, path: path, lock: lock, raiser: (*core.Operation)(nil)}
	f.commits = core.Must(groupcommit.New(f.commit, groupcommit.Options{ // the options are checked
		Name: opts.Name, MaxQueued: opts.MaxQueued, MaxBatch: opts.MaxGroup, Begin: f.begin,
	}))
	f.cache = core.Must(lru.New(lru.Options[string, any]{Name: opts.Name, Sink: opts.Sink, Capacity: opts.Capacity, TTL: opts.TTL, MaxAge: opts.TTL}))
	f.readers = openDB(path, "ro&_query_only=1", opts.BusyTimeout, opts.MaxReaders)
	f.writers = openDB(path, "rw"+durable, opts.BusyTimeout, 1)
	f.writers.SetMaxIdleConns(-1) // so that the Close of a connection closes it
	if opts.Sink != nil {
		f.raiser = opts.Sink
		f.commits.OnClosed(opts.Sink.Subscribe(opts.InvalidateOn, f.invalidateOn))
	}
	return f
}

// shut closes a file without handles. No error matters: nothing is being written.
func (f *file) shut() {
	_ = f.commits.Close()
	_ = f.readers.Close()
	f.disconnect()
	_ = f.writers.Close()
	_ = f.lock.Close()
}

// begin is called before a group of writes is taken. It returns a function that is called after
// the commit.
func (f *file) begin(ctx context.Context) (end func(), err error) {
	f.raiser.RaiseKey(SignalWriting, f.opts.Name)
	if f.unlock, err = f.lock.Acquire(ctx); err != nil && ctx.Err() == nil {
		Failed.Raise(f.raiser, f.opts.Name, f.named(err))
	}
	return f.unlock, f.explain(ctx, err)
}

// commit commits a group. The errors are in the writes.
func (f *file) commit(_ context.Context, group []*write, _ []error) error {
	defer f.end(group, time.Now())
	for _, it := range group {
		it.begun.Store(true)
		it.err = groupcommit.ErrUndecided // for a panic of the driver
	}
	err := f.attempt(group)
	again := err != nil && len(group) > 1 && !errors.Is(err, groupcommit.ErrUndecided)
	for i, it := range group {
		if it.err = err; again {
			it.err = f.attempt(group[i : i+1])
		}
	}
	return nil
}

// attempt runs writes in one transaction.
func (f *file) attempt(group []*write) (err error) {
	if err := f.connect(background); err != nil {
		return f.explain(background, err)
	}
	tx, err := f.conn.sql.BeginTx(background, nil)
	if err != nil {
		f.disconnect()
		return f.explain(background, err)
	}
	err = groupcommit.ErrUndecided // for a function that ends its goroutine
	defer func() {
		f.conn.theirs.Store(false)
		if err == nil {
			testBeforeCommit()
			err = f.finish(tx)
		} else if rollback := tx.Rollback(); code(err) == lib.SQLITE_IOERR || rollback != nil && code(rollback) != lib.SQLITE_ERROR {
			f.disconnect() // SQLITE_ERROR: SQLite has rolled back
		}
	}()
	f.conn.theirs.Store(true)
	for _, it := range group {
		if err := it.run(tx); err != nil {
			return err
		}
	}
	return nil
}

// finish commits a transaction.
func (f *file) finish(tx *sql.Tx) error {
	err := tx.Commit()
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

// testBeforeCommit is for tests.
var testBeforeCommit = func() {}

// end ends a group. No lock is held when handlers are called.
func (f *file) end(group []*write, begun time.Time) {
	reopened := f.reopened
	f.reopened = false
	f.unlock()
	defer func() { // also if a handler ends the goroutine
		for _, it := range group {
			close(it.settled)
		}
	}()
	done := Group{Writes: len(group), Duration: time.Since(begun)}
	for _, it := range group {
		f.invalidate(it.stale...) // also if it failed: it may be stored
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
