package sqlite

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Options configure a [Store]. The zero value is the default.
type Options struct {
	// WakeEvery is how often a running queue checks for changes by other processes. 0 means 20
	// ms; the minimum is 1 ms. If it is negative, only the queue's poll finds such changes.
	WakeEvery time.Duration
}

func (o Options) resolved() (Options, error) {
	o.WakeEvery = cmp.Or(o.WakeEvery, 20*time.Millisecond)
	if o.WakeEvery > 0 && o.WakeEvery < time.Millisecond {
		return o, fmt.Errorf("sqlite: Options.WakeEvery is %v, but must be at least 1ms, or negative", o.WakeEvery)
	}
	return o, nil
}

// A Store is a [durable.Store] in a SQLite file, and a [durable.Waker]. Make one with [Open].
// It is safe for concurrent use, and for use by several processes of one host. It needs no
// closing. The caller closes the writer after all queues. After that, methods that write
// return [core.ErrClosed].
//
// In the function of a [sqlitewriter.Writer.Tx] of the same file, methods that write return
// [core.ErrWouldDeadlock], and so do Enqueue and Signal of a queue: use [Enqueue], [Signal] and [Finish] there. A
// goroutine that the function has started is recognised only if it uses the function's context.
type Store struct {
	w      *sqlitewriter.Writer
	opts   Options
	wakers sync.Map // of *waker

	mu      sync.Mutex
	running int    // wakers
	unwatch func() // ends the goroutine that looks for changes, and waits for it
}

var _ interface {
	durable.Store
	durable.Waker
} = (*Store)(nil)

// Open returns the store in the file that w writes to. It creates or updates the tables in one
// transaction. It is no error if the tables are newer than this program. The file may have
// other tables.
func Open(ctx context.Context, w *sqlitewriter.Writer, opts Options) (*Store, error) {
	opts, err := opts.resolved()
	if w == nil {
		err = errors.Join(errors.New("sqlite: Open needs a Writer"), err)
	}
	if err != nil {
		return nil, err
	}
	if err := w.Tx(ctx, migrate(migrations)); err != nil {
		return nil, fmt.Errorf("sqlite: open the tables in %s: %w", w.Path(), err)
	}
	return &Store{w: w, opts: opts}, nil
}

// Inside reports whether the caller is in the function of a [sqlitewriter.Writer.Tx] of the file.
func (s *Store) Inside(ctx context.Context) bool {
	ended, end := context.WithCancel(ctx)
	end()
	return guard.Is(s.w.Flush(ended), core.ErrWouldDeadlock) // Flush does not wait
}

//go:embed migrations
var migrations embed.FS

// migrate runs the steps that are missing, in the order of their numbers. Steps only add: a program that knows fewer of them
// goes on working.
func migrate(steps fs.FS) func(ctx context.Context, raw *sqlitewriter.Tx) error {
	return func(ctx context.Context, raw *sqlitewriter.Tx) error {
		t := newMoment(ctx, raw.Query, "")
		t.do("create table if not exists durable_migration (step integer primary key, at text not null default current_timestamp) strict")
		var done int
		t.get(list{&done}, "select coalesce(max(step), 0) from durable_migration")
		for n := done + 1; t.err == nil; n++ {
			names, _ := fs.Glob(steps, fmt.Sprintf("migrations/%d_*.sql", n))
			if len(names) == 0 {
				break
			}
			text, _ := fs.ReadFile(steps, names[0])
			_, t.err = raw.Exec(ctx, string(text)) // several statements
			t.do("insert into durable_migration (step) values (?)", n)
		}
		return t.err
	}
}
