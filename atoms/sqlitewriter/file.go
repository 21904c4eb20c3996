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
	commits *groupcommit.Committer[*write]
	cache   *lru.LRU[string, any]

	readers  *sql.DB
	raiser   core.Raiser // Options.Sink, or one that does nothing
	unlisten func()

	// Used by the commit.
	lock     *filelock.Lock // makes processes take turns, which SQLite's busy timeout does not
	unlock   func()
	conn     *conn // nil if it was broken
	reopened bool  // the connection, and no signal has said so
	group    []*write
	begun    time.Time

	groups atomic.Uint64 // committed
}

// write is a call of Exec, Batch or Tx.
type write struct {
	run   context.Context // of the caller; of a Tx, ctx
	ctx   context.Context // of the caller; it also ends with Stop and Close
	leave context.CancelCauseFunc
	fn    func(context.Context, *Tx) error // of a Tx
	stmts []Statement

	begun   atomic.Bool // the commit
	results []sql.Result
	stale   []string // keys to invalidate
	err     error
	settled chan struct{} // closed when the commit has ended, or there is none
}

// Alone reports whether the write needs a transaction of its own.
func (it *write) Alone() bool { return it.fn != nil }

// openFile opens a file, which exists.
func openFile(ctx context.Context, path string, opts Options) (*file, error) {
	f := &file{opts: opts, path: path, raiser: (*core.Operation)(nil), unlisten: func() {}}
	f.commits = core.Must(groupcommit.New(f.commit, groupcommit.Options{ // the options are checked
		Name: opts.Name, MaxQueued: opts.MaxQueued, MaxBatch: opts.MaxGroup, Begin: f.begin,
	}))
	f.cache = core.Must(lru.New(lru.Options[string, any]{Name: opts.Name, Sink: opts.Sink, Capacity: opts.Capacity, TTL: opts.TTL}))
	f.readers = openDB(path, "ro&_query_only=1", opts.BusyTimeout, opts.MaxReaders)
	if opts.Sink != nil {
		f.raiser = opts.Sink
		f.unlisten = opts.Sink.Subscribe(opts.InvalidateOn, f.invalidateOn)
	}
	err := f.connect(ctx)
	if err != nil {
		f.shut()
		return nil, err
	}
	return f, nil
}

// connect opens the connection that writes.
func (f *file) connect(ctx context.Context) (err error) {
	if f.lock, err = filelock.Open(f.path + ".lock"); err != nil {
		return err
	}
	unlock, err := f.lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	f.conn, err = openConn(ctx, f.path, f.opts.BusyTimeout)
	return err
}

// shut closes what openFile has opened. No handle is open.
func (f *file) shut() {
	_ = f.commits.Close()
	f.unlisten()
	_ = f.readers.Close() // nothing was written
	f.drop()
	if f.lock != nil {
		_ = f.lock.Close() // nothing was written
	}
}

// begin is called before a group of writes is taken. The function that it returns is called
// after the commit.
func (f *file) begin(ctx context.Context) (end func(), err error) {
	f.raiser.RaiseKey(SignalWriting, f.opts.Name)
	if f.unlock, err = f.lock.Acquire(ctx); err != nil {
		return nil, f.explain(ctx, err)
	}
	f.group, f.begun = nil, time.Now()
	return f.end, nil
}

// commit commits a group of statements, or one function.
func (f *file) commit(_ context.Context, group []*write, errs []error) error {
	f.group = group
	for _, it := range group {
		it.begun.Store(true)
		it.err = errUndecided // for a panic of the driver
	}
	err := f.attempt(group)
	again := err != nil && len(group) > 1 && !errors.Is(err, errUndecided)
	for i, it := range group {
		if it.err = err; again {
			it.err = f.attempt(group[i : i+1])
		}
		errs[i] = it.err
	}
	return nil
}

// attempt runs writes in one transaction.
func (f *file) attempt(group []*write) (err error) {
	if f.conn == nil {
		if f.conn, err = openConn(background, f.path, f.opts.BusyTimeout); err != nil {
			return f.explain(background, err)
		}
		f.reopened = true
	}
	tx, err := f.conn.sql.BeginTx(background, nil)
	if err != nil {
		f.drop()
		return f.explain(background, err)
	}
	err = errUndecided // for a function that ends its goroutine
	defer func() {
		f.conn.theirs.Store(false)
		if err == nil {
			testBeforeCommit(group)
			err = f.finish(tx)
		} else if rollback := tx.Rollback(); code(err) == lib.SQLITE_IOERR || rollback != nil && code(rollback) != lib.SQLITE_ERROR {
			f.drop() // SQLITE_ERROR: SQLite has rolled back
		}
	}()
	f.conn.theirs.Store(true)
	for _, it := range group {
		if err := f.perform(it, tx); err != nil {
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
		f.drop()
		return f.named(fmt.Errorf("%w: %w", errUndecided, err))
	}
	f.groups.Add(1)
	return nil
}

// perform runs a write.
func (f *file) perform(it *write, tx *sql.Tx) error {
	if it.fn != nil {
		return f.call(it, tx)
	}
	it.results = it.results[:0]
	for _, s := range it.stmts {
		r, err := f.conn.exec(it.run, s.SQL, s.Args...)
		if err != nil {
			return f.explain(it.run, err)
		}
		it.results = append(it.results, r)
	}
	return nil
}

// testBeforeCommit is for tests.
var testBeforeCommit = func([]*write) {}

// drop closes the connection, also when it is broken.
func (f *file) drop() {
	if f.conn != nil {
		f.conn.forget()
		_ = errors.Join(f.conn.sql.Close(), f.conn.db.Close())
		f.conn = nil
	}
}

// end ends a group. No lock is held when handlers are called.
func (f *file) end() {
	f.unlock()
	defer func() { // also if a handler ends the goroutine
		for _, it := range f.group {
			close(it.settled)
		}
	}()
	done := Group{Writes: len(f.group), Duration: time.Since(f.begun)}
	for _, it := range f.group {
		f.invalidate(it.stale...) // also if it failed: it may be stored
		for _, s := range it.stmts {
			f.invalidate(s.Invalidates...)
		}
		if it.err != nil {
			done.Failed++
			Failed.Raise(f.raiser, f.opts.Name, it.err)
		}
	}
	if f.reopened {
		f.reopened = false
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
