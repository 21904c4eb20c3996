package sqlitewriter_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// foreign runs a statement on a separate connection, like a program without the lock file. For
// SQLite, such a connection is like a connection of another process.
func foreign(t testing.TB, path, query string) (end func()) {
	t.Helper()
	db := core.Must(sql.Open("sqlite", path))
	c := core.Must(db.Conn(context.Background()))
	core.Must(c.ExecContext(context.Background(), query))
	return sync.OnceFunc(func() {
		assert.NoError(t, errors.Join(c.Close(), db.Close()))
	})
}

// While another program writes, each caller leaves when its context ends, and so do the callers of
// a handle that is closed or stopped. Nothing of their writes is stored. Reads do not wait.
func TestCallersLeaveWhileAnotherProgramWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openLog(t, sqlitewriter.Options{BusyTimeout: time.Hour, MaxGroup: 2})
		closed, stopped := openAt(t, w.Path(), sqlitewriter.Options{}), openAt(t, w.Path(), sqlitewriter.Options{})
		end := foreign(t, w.Path(), "begin immediate")
		defer end()
		begun := time.Now()
		add := func(ctx context.Context, w *sqlitewriter.Writer, text string) func() error {
			wait := begin(ctx, w, sqlitewriter.Statement{SQL: insert, Args: []any{text}})
			synctest.Wait() // it waits
			return wait
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		first, last, closes, stops := add(ctx, w, "a"), add(t.Context(), w, "b"), add(t.Context(), closed, "c"), add(t.Context(), stopped, "d")
		tx := make(chan error, 1)
		go func() { tx <- w.Tx(ctx, nothing) }()
		synctest.Wait()
		cancel(errOnPurpose)
		assert.Equal(t, []error{errOnPurpose, errOnPurpose}, []error{first(), <-tx})
		require.NoError(t, closed.Close())
		assert.ErrorIs(t, closes(), core.ErrClosed)
		require.NoError(t, stopped.Stop(t.Context()))
		assert.ErrorIs(t, stops(), core.ErrStopped)
		assert.Empty(t, texts(t, w.DB()))
		assert.Zero(t, time.Since(begun))
		end()
		assert.NoError(t, last())
		assert.Equal(t, []string{"b"}, texts(t, w.DB()))

		defer foreign(t, w.Path(), "begin immediate")()
		alone := add(t.Context(), w, "e")
		require.NoError(t, w.Close())
		assert.ErrorIs(t, alone(), core.ErrClosed)
	})
}

// All writes that wait for another program share one BusyTimeout, even if they are several groups.
// There is one signal, and the connection is kept.
func TestBusyTimeoutIsOneBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		w := openLog(t, sqlitewriter.Options{BusyTimeout: 3 * time.Second, MaxGroup: 4, Sink: sink})
		end := foreign(t, w.Path(), "begin immediate")
		defer end()
		raised := coretest.Watch(t, sink, "write.*")
		begun, late := time.Now(), time.Now().Add(time.Second)
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				time.Sleep(time.Until(late) * time.Duration(i%2))
				_, err := w.Exec(t.Context(), insert, fmt.Sprint(i))
				assert.ErrorIs(t, err, sqlitewriter.ErrBusy)
				assert.ErrorContains(t, err, "database is locked")
				assert.NotErrorIs(t, err, groupcommit.ErrUndecided)
				assert.ErrorIs(t, w.Tx(t.Context(), nothing), sqlitewriter.ErrBusy)
			})
		}
		synctest.Wait()
		all.Wait()
		assert.Equal(t, 6*time.Second, time.Since(begun), "one bound for Exec and one for Tx")
		raised.ExpectExactly("write.start", "write.error", "write.start", "write.error")
		end()
		execute(t, w, insert, "a")
		assert.Equal(t, []string{"a"}, texts(t, w.DB()))
	})
}

func nothing(context.Context, *sqlitewriter.Tx) error { return nil }

// If a write of a group fails, the others are repeated. If another program begins to write before
// that, they wait for the rest of BusyTimeout, and their callers can leave.
func TestARepeatedGroupHasOneBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openLog(t, sqlitewriter.Options{BusyTimeout: 3 * time.Second})
		begins := 0
		var end func()
		defer sqlitewriter.BeforeBegin(func() {
			if begins++; begins == 4 { // the Tx, the group, "a", "b"
				end = foreign(t, w.Path(), "begin immediate")
			}
		})()
		ctx, cancel := context.WithCancelCause(t.Context())
		var begun time.Time
		var errs [5]error
		var calls []func()
		for i, text := range []string{"a", "b", "b", "c", "d"} {
			calls = append(calls, func() {
				use := t.Context()
				if text == "c" {
					use = ctx
				}
				_, errs[i] = w.Exec(use, insert, text)
				if text == "c" {
					assert.Equal(t, time.Second, time.Since(begun))
				}
			})
		}
		calls = append(calls, func() {
			begun = time.Now()
			time.AfterFunc(time.Second, func() { cancel(errOnPurpose) })
		})
		held(t, w, calls...)
		assert.Equal(t, 3*time.Second, time.Since(begun))
		end()
		assert.NoError(t, errs[0])
		for _, i := range []int{1, 2, 4} {
			assert.ErrorIs(t, errs[i], sqlitewriter.ErrBusy)
		}
		assert.Equal(t, errOnPurpose, errs[3])
		assert.Equal(t, 4, begins)
		assert.Equal(t, []string{"a"}, texts(t, w.DB()))
	})
}

// Open waits for a program that uses a file that is not in WAL mode yet, until the program has
// ended, ctx ends, or BusyTimeout is over.
func TestOpenWaitsForAnotherProgram(t *testing.T) {
	for name, query := range map[string]string{
		"writer": "create table log(x); begin immediate", "commit": "create table log(x); begin exclusive", "reader": "create table log(x); begin; select * from log",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "app.db")
				end := foreign(t, path, query)
				defer end()
				open := func(ctx context.Context, busy time.Duration) chan error {
					result := make(chan error, 1)
					go func() {
						w, err := sqlitewriter.Open(ctx, path, sqlitewriter.Options{BusyTimeout: busy})
						if err == nil {
							err = w.Close()
						}
						result <- err
					}()
					synctest.Wait() // it waits
					return result
				}
				begun := time.Now()
				assert.ErrorIs(t, <-open(t.Context(), -1), sqlitewriter.ErrBusy)
				assert.Zero(t, time.Since(begun))
				assert.ErrorIs(t, <-open(t.Context(), time.Second), sqlitewriter.ErrBusy)
				assert.Equal(t, time.Second, time.Since(begun))
				ctx, cancel := context.WithCancelCause(t.Context())
				leaves := open(ctx, time.Hour)
				cancel(errOnPurpose)
				assert.ErrorIs(t, <-leaves, errOnPurpose)
				opens := open(t.Context(), math.MaxInt64)
				end()
				assert.NoError(t, <-opens)
			})
		})
	}
}

// If the file or its log is deleted or replaced, nothing is written to the old file, which
// nobody can open any more. That stays so until all handles are closed.
func TestMovedFile(t *testing.T) {
	for name, move := range map[string]func(path string) error{
		"deleted": os.Remove,
		"renamed": func(path string) error { return os.Rename(path, path+"2") },
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+"2"), os.WriteFile(path, nil, 0o644))
		},
		"log": func(path string) error { return os.Remove(path + "-wal") },
	} {
		t.Run(name, func(t *testing.T) {
			w := openLog(t, sqlitewriter.Options{})
			require.NoError(t, move(w.Path()))
			for range 2 {
				_, err := w.Exec(t.Context(), insert, "a")
				assert.ErrorIs(t, err, sqlitewriter.ErrMoved)
				assert.ErrorIs(t, w.Tx(t.Context(), nothing), sqlitewriter.ErrMoved)
			}
			require.NoError(t, w.Close())
			execute(t, openAt(t, w.Path(), sqlitewriter.Options{}), "create table if not exists log(x)")
		})
	}
}
