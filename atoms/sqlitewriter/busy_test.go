package sqlitewriter_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

const fairEnv = "SQLITEWRITER_FAIR_CHILD"

// fairRows is how many rows all processes write together.
var fairRows = func() int64 {
	if os.Getenv("EPHEMERAL_LONG") != "" {
		return 1000
	}
	return 300
}()

// fairChild writes rows with the number of the process until there are enough of them.
func fairChild(env string) {
	dir, number := env[1:], int(env[0]-'0')
	w := core.Must(sqlitewriter.Open(context.Background(), filepath.Join(dir, "fair.db"), sqlitewriter.Options{MaxGroup: -1}))
	os.Stdout.WriteString("ready\n")
	io.ReadAll(os.Stdin) // waits until all children are ready
	var all sync.WaitGroup
	for range 2 { // two goroutines, so that the next turn can follow at once
		all.Go(func() {
			for id := int64(0); id < fairRows; {
				id = core.Must(core.Must(w.Exec(context.Background(), "insert into fair(process) values(?)", number)).LastInsertId())
			}
		})
	}
	all.Wait()
	core.Must(0, w.Close())
	os.Exit(0)
}

// Processes that write all the time get about the same number of turns.
func TestProcessesTakeTurns(t *testing.T) {
	if env, ok := os.LookupEnv(fairEnv); ok {
		fairChild(env)
	}
	const processes = 5
	dir := t.TempDir()
	w := openAt(t, filepath.Join(dir, "fair.db"), sqlitewriter.Options{})
	execute(t, w, "create table fair(id integer primary key, process int)")
	var children []*exec.Cmd
	var begin []io.Closer
	for i := range processes {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcessesTakeTurns$")
		child.Env = append(os.Environ(), fairEnv+"="+string(rune('0'+i))+dir)
		child.Stderr = os.Stderr
		in, out := core.Must(child.StdinPipe()), core.Must(child.StdoutPipe())
		require.NoError(t, child.Start())
		require.Equal(t, "ready\n", core.Must(bufio.NewReader(out).ReadString('\n')))
		children, begin = append(children, child), append(begin, in)
	}
	for _, in := range begin {
		require.NoError(t, in.Close())
	}
	for _, child := range children {
		require.NoError(t, child.Wait())
	}
	var counts []int
	for i := range processes {
		var n int
		require.NoError(t, w.DB().QueryRow("select count(*) from fair where process=? and id<=?", i, fairRows).Scan(&n))
		counts = append(counts, n)
	}
	t.Log(counts)
	assert.Less(t, slices.Max(counts), 3*slices.Min(counts), "%v", counts)
}

// A write that waits for another process ends with its context, and so do Open and Close.
func TestWaitForTheLockEnds(t *testing.T) {
	w := openLog(t, sqlitewriter.Options{})
	unlock := core.Must(sqlitewriter.LockFile(w.Path()))
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errOnPurpose)
	defer cancel()
	_, err := w.Exec(ctx, insert, "a")
	assert.Equal(t, errOnPurpose, err)
	later := begin(t.Context(), w, sqlitewriter.Statement{SQL: insert, Args: []any{"b"}})
	unlock()
	require.NoError(t, later())
	assert.Equal(t, []string{"b"}, texts(t, w.DB()))

	defer core.Must(sqlitewriter.LockFile(w.Path()))()
	require.NoError(t, w.Start(t.Context(), func(context.Context, *sqlitewriter.Tx) error { panic("it waits") }))
	require.NoError(t, w.Close())
	ctx, cancel = context.WithTimeoutCause(t.Context(), time.Millisecond, errOnPurpose)
	defer cancel()
	_, err = sqlitewriter.Open(ctx, w.Path(), sqlitewriter.Options{})
	assert.ErrorIs(t, err, errOnPurpose)
}

// If the lock file fails, the writes that wait for it fail, and a signal says so once.
func TestFailureOfTheLockFileIsSignalled(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	w := openLog(t, sqlitewriter.Options{Sink: sink})
	raised := coretest.Watch(t, sink, "write.*")
	w.BreakLock()
	_, err := w.Exec(t.Context(), insert, "a")
	assert.ErrorContains(t, err, "app.db.lock: use of closed file")
	failure, _ := sqlitewriter.Failed.From(raised.ExpectExactly(sqlitewriter.SignalWriting, sqlitewriter.Failed.Name())[1])
	assert.Equal(t, err, failure)
}

// savers is how many goroutines of a child save. Each saves its own items in order.
const savers = 8

// save returns a child that saves items until it is killed. It acknowledges each when it is
// committed, or too early.
func save(early bool) func(dir string, round int, acknowledge func(item string)) {
	return func(dir string, round int, acknowledge func(item string)) {
		ctx := context.Background()
		w := core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "kill.db"), sqlitewriter.Options{}))
		core.Must(w.Exec(ctx, "create table if not exists log(id integer primary key, text text, twin text)"))
		for saver := range savers {
			go func() {
				for n := 0; ; n++ {
					item := fmt.Sprintf("%d.%d.%d", round, saver, n)
					if early {
						acknowledge(item)
					}
					core.Must(w.Batch(ctx,
						sqlitewriter.Statement{SQL: "insert into log(text) values(?)", Args: []any{item}},
						sqlitewriter.Statement{SQL: "update log set twin=text where text=?", Args: []any{item}}))
					if !early {
						acknowledge(item)
					}
				}
			}()
		}
	}
}

// checkSaved checks that all acknowledged items are there, once, in order, and complete.
func checkSaved(dir string, acked []string) error {
	w, err := sqlitewriter.Open(context.Background(), filepath.Join(dir, "kill.db"), sqlitewriter.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	var is string
	if err := w.DB().QueryRow("pragma integrity_check").Scan(&is); err != nil || is != "ok" {
		return fmt.Errorf("integrity: %s, %v", is, err)
	}
	if len(acked) == 0 {
		return nil // there may be no table
	}
	rows, err := w.DB().Query("select text, coalesce(twin, '') from log order by id")
	if err != nil {
		return err
	}
	defer rows.Close()
	saved, next := map[string]bool{}, map[[2]int]int{}
	for rows.Next() {
		var item, twin string
		if err := rows.Scan(&item, &twin); err != nil {
			return err
		}
		var round, saver, n int
		if _, err := fmt.Sscanf(item, "%d.%d.%d", &round, &saver, &n); err != nil {
			return err
		}
		if want := next[[2]int{round, saver}]; n != want || twin != item {
			return fmt.Errorf("%s (%s) is there, want number %d", item, twin, want)
		}
		next[[2]int{round, saver}]++
		saved[item] = true
	}
	for _, item := range acked {
		if !saved[item] {
			return fmt.Errorf("%s was acknowledged and is lost", item)
		}
	}
	return rows.Err()
}

// When Batch has returned, its writes survive SIGKILL.
func TestKill(t *testing.T) {
	require.NoError(t, coretest.KillLoop(t, coretest.Kill{Child: save(false), Check: checkSaved}))
}

// The same test fails if a write is acknowledged before the commit.
func TestKillFindsEarlyAcknowledgement(t *testing.T) {
	require.ErrorContains(t, coretest.KillLoop(t, coretest.Kill{Child: save(true), Check: checkSaved, Rounds: 50}), "lost")
}
