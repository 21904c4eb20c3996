package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a [Store]. The zero value is the default.
type Options struct {
	// WakeEvery is how often a process with a running queue looks whether another process
	// has changed the queue; 0 means 20 ms, at least 1 ms; negative never, so that only
	// the queue's own poll finds items of other processes.
	WakeEvery time.Duration
}

func (o Options) resolved() (Options, error) {
	if o.WakeEvery == 0 {
		o.WakeEvery = 20 * time.Millisecond
	}
	if o.WakeEvery > 0 && o.WakeEvery < time.Millisecond {
		return o, fmt.Errorf("sqlite: Options.WakeEvery is %v, but must be at least 1ms, or negative", o.WakeEvery)
	}
	return o, nil
}

// A Store is a [durable.Store] in a SQLite file, and a [durable.Waker]. Make one with [Open] or
// [New]. It is safe for concurrent use, and for use by several processes of one host. Close
// it when all queues have stopped; later calls return [core.ErrClosed].
//
// In the function of a [sqlitewriter.Writer.Tx] of the same file, methods that write return
// [core.ErrWouldDeadlock]. Use [Enqueue] and [Finish] there.
type Store struct {
	w      *sqlitewriter.Writer
	opts   Options
	owned  bool // the handle is the store's
	closed atomic.Bool

	mu     sync.Mutex // guards what follows; nothing waits under it
	wakers map[string][]*func()
	watch  *watch // nil: nobody listens
}

var (
	_ durable.Store = (*Store)(nil)
	_ durable.Waker = (*Store)(nil)
)

// Open returns the store in the SQLite file of that path, and creates the file and the tables
// if they are not there, or brings the tables up to date. The path is that of
// [sqlitewriter.Open]: no connection string, no database in memory, no file of a network.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	w, err := sqlitewriter.Open(ctx, path, sqlitewriter.Options{})
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	s, err := New(ctx, w, opts)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	s.owned = true
	return s, nil
}

// New returns the store in the file that w writes to, as [Open] does. The writer stays the
// caller's: close it after the store.
func New(ctx context.Context, w *sqlitewriter.Writer, opts Options) (*Store, error) {
	opts, err := opts.resolved()
	if w == nil {
		err = errors.Join(errors.New("sqlite: New needs a Writer"), err)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{w: w, opts: opts, wakers: map[string][]*func(){}}
	if err := w.Tx(ctx, migrate); err != nil {
		return nil, fmt.Errorf("sqlite: open the tables in %s: %w", w.Path(), err)
	}
	return s, nil
}

// Writer writes to the file of the store. Its Tx makes the transactions for [Enqueue] and
// [Finish]. It is closed with the store if [Open] has opened it.
func (s *Store) Writer() *sqlitewriter.Writer { return s.w }

// Close ends the store. If [Open] has opened the file, it gives the file back, and waits for
// transactions that run. It returns nil.
func (s *Store) Close() error {
	s.closed.Store(true)
	if s.owned {
		return s.w.Close()
	}
	return nil
}

//go:embed migrations
var migrations embed.FS

// migrate runs the steps that are missing. Steps only add: a program that knows fewer of them
// goes on working.
func migrate(ctx context.Context, tx *sqlitewriter.Tx) error {
	const table = "create table if not exists durable_migration (step integer primary key, at text not null default current_timestamp) strict"
	if _, err := tx.Exec(ctx, table); err != nil {
		return err
	}
	var done int
	if err := tx.QueryRow(ctx, "select coalesce(max(step), 0) from durable_migration").Scan(&done); err != nil {
		return err
	}
	names, _ := fs.Glob(migrations, "migrations/*.sql") // sorted
	for n, name := range names[min(done, len(names)):] {
		text, _ := migrations.ReadFile(name)
		if _, err := tx.Exec(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err := tx.Exec(ctx, "insert into durable_migration (step) values (?)", done+n+1); err != nil {
			return err
		}
	}
	return nil
}

// errClosed is the error of calls after Close.
func (s *Store) errClosed() error { return fmt.Errorf("sqlite: store %s: %w", s.w.Path(), core.ErrClosed) }
