package sqlitewriter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/ephemeralgo/ephemeral/core"
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
	unlisten func()

	// Used by the commit.
	lock     lock
	conn     *conn // nil if it was broken
	reopened bool  // the connection, and no signal has said so
	group    []*write
	begun    time.Time

	mu    sync.Mutex
	stats Stats
}

// write is a call of Exec, Batch or Tx.
type write struct {
	ctx    context.Context // of the caller; of a Tx, it also ends with Close
	cancel context.CancelCauseFunc
	wait   context.Context // of the caller; it also ends with Stop and Close
	leave  context.CancelCauseFunc
	fn     func(context.Context, *Tx) error // of a Tx
	stmts  []Statement

	results []sql.Result
	stale   []string // keys to invalidate
	err     error
	settled chan struct{} // closed when the commit has ended
	done    chan struct{} // closed when the call returns
}

// Alone reports whether the write needs a transaction of its own.
func (it *write) Alone() bool { return it.fn != nil }

// openFile opens a file, which exists.
func openFile(ctx context.Context, path string, opts Options) (f *file, err error) {
	f = &file{opts: opts, path: path, lock: lock{path: path + ".lock"}}
	defer func() {
		if err != nil {
			f.shut()
			err = fmt.Errorf("sqlitewriter: open %q: %w", path, err)
		}
	}()
	f.commits, err = groupcommit.New(f.commit, groupcommit.Options{
		Name: opts.Name, MaxQueued: opts.MaxQueued, MaxBatch: opts.MaxGroup, Begin: f.begin,
	})
	if err != nil {
		return f, err
	}
	f.cache, err = lru.New(lru.Options[string, any]{Name: opts.Name, Sink: opts.Sink, Capacity: opts.Capacity, TTL: opts.TTL})
	if err != nil {
		return f, err
	}
	if err := f.lock.acquire(ctx); err != nil {
		return f, err
	}
	f.conn, err = openConn(ctx, path, opts.BusyTimeout)
	f.lock.release()
	if err != nil {
		return f, err
	}
	if f.readers, err = openDB(path, "ro&_query_only=1", opts.BusyTimeout, opts.MaxReaders); err != nil {
		return f, err
	}
	if opts.Sink != nil {
		f.unlisten = opts.Sink.Subscribe(opts.InvalidateOn, f.invalidateOn)
	}
	return f, nil
}

// shut closes what openFile has opened. No handle is open.
func (f *file) shut() {
	if f.commits != nil {
		_ = f.commits.Close()
	}
	if f.unlisten != nil {
		f.unlisten()
	}
	if f.readers != nil {
		_ = f.readers.Close() // nothing was written
	}
	f.drop()
	f.lock.close()
}

// begin is called before a group of writes is taken. The function that it returns is called
// after the commit.
func (f *file) begin(ctx context.Context) (end func(), err error) {
	f.raise(SignalWriting)
	if err := f.lock.acquire(ctx); err != nil {
		return nil, f.named(err)
	}
	runtime.Gosched() // so that callers that the last group has released can be in the next one
	f.group, f.begun = nil, time.Now()
	return f.end, nil
}

// commit commits a group of statements, or one function.
func (f *file) commit(_ context.Context, group []*write, errs []error) error {
	f.group = group
	defer func() { // also if a function ends the goroutine
		for i, it := range group {
			errs[i] = it.err
		}
	}()
	for _, it := range group {
		it.err = f.named(errEnded)
	}
	err := f.attempt(group)
	if err == nil || len(group) == 1 || errors.Is(err, errUndecided) {
		for _, it := range group {
			it.err = err
		}
		return nil
	}
	for i, it := range group {
		it.err = f.attempt(group[i : i+1])
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
	tx, err := f.conn.begin()
	if err != nil {
		if code(err) != lib.SQLITE_BUSY {
			f.drop()
		}
		return f.explain(background, err)
	}
	err = errEnded
	defer func() {
		if err != nil {
			if rollback := f.conn.end(tx.Rollback); code(rollback) != lib.SQLITE_ERROR && rollback != nil || code(err) == lib.SQLITE_IOERR {
				f.drop()
			}
			return
		}
		testBeforeCommit(group)
		if err = f.conn.end(tx.Commit); err == nil {
			f.count(func(s *Stats) { s.Groups++ })
			return
		}
		undecided := false
		switch code(err) {
		case lib.SQLITE_CONSTRAINT, lib.SQLITE_FULL, lib.SQLITE_BUSY:
		default:
			undecided = true
			f.drop()
		}
		if err = f.explain(background, err); undecided {
			err = fmt.Errorf("%w: %w", err, errUndecided)
		}
	}()
	for _, it := range group {
		if err := f.run(it, tx); err != nil {
			return err
		}
	}
	return nil
}

// run runs a write.
func (f *file) run(it *write, tx *sql.Tx) error {
	if it.fn != nil {
		return f.call(it, tx)
	}
	it.results = it.results[:0]
	for _, s := range it.stmts {
		r, err := f.conn.exec(it.ctx, s.SQL, s.Args...)
		if err != nil {
			return f.explain(it.ctx, err)
		}
		it.results = append(it.results, r)
	}
	return nil
}

// testBeforeCommit is for tests.
var testBeforeCommit = func([]*write) {}

// drop closes the connection.
func (f *file) drop() {
	if f.conn != nil {
		f.conn.close()
		f.conn = nil
	}
}

// end ends a group. No lock is held when handlers are called.
func (f *file) end() {
	f.lock.release()
	done := Group{Writes: len(f.group), Duration: time.Since(f.begun)}
	defer func() { // also if a handler ends the goroutine
		for _, it := range f.group {
			close(it.settled)
		}
	}()
	for _, it := range f.group {
		f.invalidate(it.stale...) // also if it failed: it may be stored
		for _, s := range it.stmts {
			f.invalidate(s.Invalidates...)
		}
		if it.err != nil {
			done.Failed++
			raise(f, Failed, it.err)
			continue
		}
		for _, r := range it.results {
			n, _ := r.RowsAffected() // it is known
			done.Rows += n
		}
	}
	if f.reopened {
		f.reopened = false
		f.raise(SignalReopened)
	}
	if done.Failed < done.Writes {
		raise(f, Written, done)
	}
}

func (f *file) count(add func(*Stats)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	add(&f.stats)
}

// inside reports whether the caller is a function or handler that a commit waits for.
func (f *file) inside(ctx context.Context) bool {
	return ctx.Value(txKey{f}) != nil || f.commits.Inside(ctx)
}

// raise raises a signal without a payload.
func (f *file) raise(name string) {
	if f.opts.Sink != nil {
		f.opts.Sink.RaiseKey(name, f.opts.Name)
	}
}

// raise raises a signal with a payload.
func raise[P any](f *file, kind core.Kind[P], payload P) {
	if f.opts.Sink != nil {
		kind.Raise(f.opts.Sink, f.opts.Name, payload)
	}
}

// invalidate makes Read load keys again.
func (f *file) invalidate(keys ...string) {
	for _, key := range keys {
		f.cache.Remove(key)
	}
}

// invalidateOn handles a signal that matches [Options.InvalidateOn].
func (f *file) invalidateOn(s core.Signal) {
	key, ok := core.ParseCommand(s.Name, CommandInvalidate)
	if !ok {
		key = s.Key
	}
	if key == "" {
		f.cache.Clear()
		return
	}
	f.invalidate(key)
}
