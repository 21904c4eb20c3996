package sqlitewriter

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// file is what all handles of a file share.
type file struct {
	place
	opts  Options
	turns *core.Coordinator[struct{}] // its operations are the turns; one has the connection
	calls atomic.Int64                // functions of the user, and turns that may call handlers
	lock  *lock

	readers  *sql.DB
	cache    *lru.LRU[string, any]
	unlisten func()

	conn     *conn       // used by the turn; nil if it was broken
	reopened atomic.Bool // a connection, and it is not counted yet

	mu    sync.Mutex
	queue queue
	busy  bool // there is a turn
}

func newFile(p place, opts Options) *file {
	f := &file{place: p, opts: opts}
	f.queue = queue{maxQueued: opts.MaxQueued, maxGroup: opts.MaxGroup, running: make(map[*item]struct{})}
	f.turns = core.Must(core.NewCoordinator(f.turn, core.Options{Name: opts.Name, MaxConcurrency: math.MaxInt32, MaxTracked: -1}))
	f.cache = core.Must(lru.New(lru.Options[string, any]{ // the options are checked
		Name: opts.Name, Sink: opts.Sink, Capacity: opts.Capacity, TTL: opts.TTL, SampleEvery: opts.SampleEvery,
	}))
	return f
}

// open opens the file, which exists. Shut is called also if it fails.
func (f *file) open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("sqlitewriter: open %q: %w", f.path, err)
		}
	}()
	if f.lock, err = openLock(f.path); err != nil {
		return err
	}
	if ok, err := f.lock.acquire(func() bool { return ctx.Err() != nil }); !ok {
		return cmp.Or(err, context.Cause(ctx))
	}
	f.conn, err = openConn(ctx, f.path, f.opts.BusyTimeout)
	f.lock.release()
	if err != nil {
		return err
	}
	if f.readers, err = openDB(f.path, "ro&_query_only=1", f.opts.BusyTimeout, f.opts.MaxReaders); err != nil {
		return err
	}
	if f.opts.Sink != nil {
		f.unlisten = f.opts.Sink.Subscribe(f.opts.InvalidateOn, f.invalidateOn)
	}
	return nil
}

// shut closes what open has opened, when no turn runs any more. It writes what is in the log
// into the file.
func (f *file) shut() {
	_ = f.turns.Close()
	if f.unlisten != nil {
		f.unlisten()
	}
	if f.readers != nil {
		_ = f.readers.Close() // nothing was written
	}
	if f.conn != nil {
		_ = f.conn.control("pragma wal_checkpoint(truncate)") // if not, the next process does it
		f.conn.close()
	}
	if f.lock != nil {
		f.lock.close()
	}
}

// kick begins a turn if there is work and none has begun. mu is held.
func (f *file) kick() {
	if !f.busy && len(f.queue.pending) > 0 {
		f.busy = true
		core.Must(f.turns.TryEnqueue(background, struct{}{})) // it has room, and is open as long as a handle is
	}
}

// turn runs the next group.
func (f *file) turn(context.Context, struct{}) error {
	if f.opts.Sink != nil {
		f.calls.Add(1)
		defer f.calls.Add(-1)
	}
	f.raise(SignalWriting)
	ok, err := f.lock.acquire(f.idle)
	runtime.Gosched() // so that callers that the last group has released can be in the next one
	f.mu.Lock()
	var group []*item
	if ok || err != nil {
		group = f.queue.take()
	}
	f.mu.Unlock()
	begun := time.Now()
	switch {
	case len(group) > 0 && err == nil && group[0].fn != nil:
		f.runTx(group[0])
		return nil
	case err == nil:
		f.runGroup(group)
	default:
		fail(group, err)
	}
	f.leave(group, begun)
	return nil
}

// leave ends a turn, in which these items have run.
func (f *file) leave(group []*item, begun time.Time) {
	defer f.next() // also if a handler of a signal ends the goroutine
	defer f.finish(group, begun)
	f.lock.release()
}

// idle reports whether no write waits any more.
func (f *file) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue.pending) == 0
}

// next ends a turn, and begins the next one if there is work.
func (f *file) next() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy = false
	f.kick()
}

// begin begins a transaction, on a new connection if the old one is broken.
func (f *file) begin() error {
	for again := true; ; again = false {
		if f.conn == nil {
			c, err := openConn(background, f.path, f.opts.BusyTimeout)
			if err != nil {
				return err
			}
			f.conn = c
			f.reopened.Store(true)
		}
		err := f.conn.begin()
		if err == nil || !broken(err) {
			return err
		}
		if f.drop(); !again {
			return err
		}
	}
}

// drop closes a connection that is broken.
func (f *file) drop() {
	f.conn.close()
	f.conn = nil
}

// runGroup runs a group of statements.
func (f *file) runGroup(group []*item) {
	for groups := [][]*item{group}; len(groups) > 0; {
		g := groups[0]
		groups = groups[1:]
		fault := f.attempt(g)
		if fault == nil {
			continue
		}
		failed, again := fault.split(g)
		fail(failed, fault.err)
		groups = append(again, groups...)
		f.count(func(s *Stats) { s.Retried += uint64(len(again)) })
	}
}

func fail(group []*item, err error) {
	for _, it := range group {
		it.err = err
	}
}

// attempt runs items in one transaction. It is committed if there is no fault.
func (f *file) attempt(items []*item) *fault {
	if len(items) == 0 {
		return nil
	}
	if err := f.begin(); err != nil {
		return &fault{err: err, item: -1, unknown: true} // it would fail for each
	}
	for i, it := range items {
		if err := f.conn.run(it); err != nil {
			f.undo(err)
			return &fault{err: err, item: i}
		}
	}
	testBeforeCommit(items)
	if err := f.commit(); err != nil {
		return &fault{err: err, item: -1, unknown: f.conn == nil}
	}
	return nil
}

// undo ends the transaction after an error.
func (f *file) undo(err error) {
	if broken(err) {
		f.drop()
		return
	}
	_ = f.conn.rollback() // fails if SQLite has done so already
}

// commit commits the transaction. After an error nothing is stored, unless the connection
// had to be dropped: then nobody knows.
func (f *file) commit() error {
	err := f.conn.commit()
	switch {
	case err == nil:
		f.count(func(s *Stats) { s.Groups++ })
	case f.conn.rollback() != nil && code(err) != lib.SQLITE_FULL: // SQLite has ended the transaction
		f.drop()
	}
	return err
}

// testBeforeCommit is for tests.
var testBeforeCommit = func([]*item) {}

// finish settles the items of a group. No lock is held.
func (f *file) finish(group []*item, begun time.Time) {
	defer f.settle(group)
	if f.reopened.Swap(false) {
		f.count(func(s *Stats) { s.Reopened++ })
		f.raise(SignalReopened)
	}
	done := Group{Writes: len(group), Duration: time.Since(begun)}
	for _, it := range group {
		f.invalidate(it.stale...) // also if it failed: nobody knows what a commit that failed has stored
		for _, s := range it.stmts {
			f.invalidate(s.Invalidates...)
		}
		if it.err == nil {
			for _, r := range it.results {
				n, _ := r.RowsAffected() // it is known
				done.Rows += n
			}
			continue
		}
		done.Failed++
		if it.fn == nil {
			it.err = f.explain(it.ctx, it.err)
		}
		raise(f, Failed, it.err)
	}
	if done.Failed < done.Writes {
		raise(f, Written, done)
	}
}

// settle gives the items of a group to their callers, and frees what they used.
func (f *file) settle(group []*item) {
	var ended []*Writer
	f.mu.Lock()
	for _, it := range group {
		f.queue.settle(it, it.err)
		if it.by.ended && len(f.queue.of(it.by)) == 0 {
			ended = append(ended, it.by)
		}
	}
	f.mu.Unlock()
	for _, w := range ended {
		go w.release() // which waits for this turn
	}
}

func (f *file) count(add func(*Stats)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	add(&f.queue.stats)
}

// inside reports whether the caller is a function or handler that a turn waits for.
func (f *file) inside(ctx context.Context) bool {
	return ctx.Value(txKey{f}) != nil || f.calls.Load() > 0 && f.turns.Inside(ctx)
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
