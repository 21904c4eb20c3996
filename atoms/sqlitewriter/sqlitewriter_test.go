package sqlitewriter_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/lru"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errOnPurpose = errors.New("on purpose")

// openLog opens a file with a table for rows in order.
func openLog(t testing.TB, opts sqlitewriter.Options) *sqlitewriter.Writer {
	t.Helper()
	w := open(t, opts)
	execute(t, w, "create table log(id integer primary key, text text unique)")
	return w
}

func execute(t testing.TB, w *sqlitewriter.Writer, query string, args ...any) {
	t.Helper()
	_, err := w.Exec(context.Background(), query, args...)
	require.NoError(t, err)
}

const insert = "insert into log(text) values(?)"

// texts returns the rows of the log, in order.
func texts(t testing.TB, db *sql.DB) (all []string) {
	t.Helper()
	rows := core.Must(db.QueryContext(context.Background(), "select text from log order by id"))
	defer rows.Close()
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		all = append(all, text)
	}
	require.NoError(t, rows.Err())
	return all
}

// held makes calls while a transaction keeps writes from starting. So the calls share the next
// transaction. Each call begins when the call before it waits.
func held(t *testing.T, w *sqlitewriter.Writer, calls ...func()) {
	t.Helper()
	let, all := make(chan struct{}), sync.WaitGroup{}
	require.NoError(t, w.Start(context.Background(), func(context.Context, *sqlitewriter.Tx) error { <-let; return nil }))
	synctest.Wait()
	for _, call := range calls {
		all.Go(call)
		synctest.Wait()
	}
	close(let)
	all.Wait()
}

// begin is Batch on its own goroutine.
func begin(ctx context.Context, w *sqlitewriter.Writer, stmts ...sqlitewriter.Statement) (wait func() error) {
	result := make(chan error, 1)
	go func() {
		_, err := w.Batch(ctx, stmts...)
		result <- err
	}()
	return func() error { return <-result }
}

// A commit that has returned survives a power cut: the settings of the connection that writes say
// so.
func TestCommitsAreDurable(t *testing.T) {
	w := open(t, sqlitewriter.Options{MaxReaders: 3})
	assert.Equal(t, 3, w.DB().Stats().MaxOpenConnections)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "fullfsync": "1", "foreign_keys": "1", "busy_timeout": "10000"} {
		var got string
		require.NoError(t, w.Conn().QueryRowContext(t.Context(), "pragma "+pragma).Scan(&got))
		assert.Equal(t, want, got, pragma)
	}
}

func TestReadYourWrites(t *testing.T) {
	w := openLog(t, sqlitewriter.Options{})
	for i := range 20 {
		assert.EqualValues(t, i+1, core.Must(core.Must(w.Exec(t.Context(), insert, fmt.Sprint(i))).LastInsertId()))
		require.Len(t, texts(t, w.DB()), i+1)
	}
	_, err := w.DB().ExecContext(t.Context(), insert, "x")
	assert.ErrorContains(t, err, "readonly")
	none, err := w.Batch(t.Context())
	assert.NoError(t, err)
	assert.Empty(t, none)
}

// Writes that wait at the same time share a transaction, in order. A write that fails has no effect
// on the others.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openLog(t, sqlitewriter.Options{MaxGroup: 4})
		before := w.Stats().Groups
		var errs [6]error
		var calls []func()
		for i, text := range []string{"a", "b", "a", "c", "d", "e"} {
			calls = append(calls, func() { _, errs[i] = w.Exec(t.Context(), insert, text) })
		}
		held(t, w, calls...)
		assert.Equal(t, []string{"a", "b", "c", "d", "e"}, texts(t, w.DB()))
		assert.ErrorContains(t, errs[2], `sqlitewriter: "app.db": constraint failed: UNIQUE`)
		assert.NoError(t, errors.Join(errs[0], errs[1], errs[3], errs[4], errs[5]))
		s := w.Stats()
		assert.EqualValues(t, 5, s.Groups-before) // groups: the Tx, three writes alone, and two together
		assert.EqualValues(t, 1, s.Failed)
		assert.EqualValues(t, s.Enqueued, uint64(s.Pending)+s.Succeeded+s.Failed)
	})
}

const endless = "with recursive n(i) as (select 1 union all select i+1 from n) insert into log(text) select 'half' || i from n"

// Close interrupts a running statement, and the statement is rolled back.
func TestCloseInterruptsAStatement(t *testing.T) {
	sink, turn := signals.NewSink(signals.SinkOptions{}), make(chan struct{})
	w := openLog(t, sqlitewriter.Options{Sink: sink})
	other := openAt(t, w.Path(), sqlitewriter.Options{})
	defer sink.Subscribe(sqlitewriter.SignalWriting, func(signals.Signal) { close(turn) })()
	wait := begin(t.Context(), w, sqlitewriter.Statement{SQL: endless})
	<-turn
	require.NoError(t, w.Close())
	assert.ErrorIs(t, wait(), core.ErrClosed)
	assert.Empty(t, texts(t, other.DB()))
}

// A write that fails is never half applied, in whatever way it ends the transaction that it shares.
func TestNoFailureIsHalfApplied(t *testing.T) {
	type statement = sqlitewriter.Statement
	add := func(text string) statement { return statement{SQL: insert, Args: []any{text}} }
	for name, fails := range map[string][]statement{
		"script":      {{SQL: "insert into log(text) values('half'); insert into log(text) values('a')"}},
		"or fail":     {{SQL: "insert or fail into log(text) values('half'), ('a')"}},
		"or rollback": {{SQL: "insert or rollback into log(text) values('half'), ('a')"}},
		"batch":       {add("half"), {SQL: "nonsense"}},
		"commit":      {add("half"), {SQL: "insert into child values(7)"}}, // a foreign key that is checked at the end
		"interrupted": {{SQL: endless}},
	} {
		test := func(t *testing.T) {
			w := openLog(t, sqlitewriter.Options{})
			execute(t, w, "create table child(id references log(id) deferrable initially deferred)")
			ctx, wait, let := t.Context(), synctest.Wait, make(chan struct{})
			if name == "interrupted" { // takes real time: this test has no bubble
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, 20*time.Millisecond, errOnPurpose)
				defer cancel()
				wait = func() {}
			}
			require.NoError(t, w.Start(ctx, func(context.Context, *sqlitewriter.Tx) error { <-let; return nil }))
			wait()
			a := begin(t.Context(), w, add("a"))
			wait()
			failing := begin(ctx, w, fails...)
			wait()
			b := begin(t.Context(), w, add("b"))
			wait()
			close(let)
			require.NoError(t, errors.Join(a(), b()))
			err := failing()
			require.Error(t, err)
			if name == "interrupted" {
				assert.Equal(t, errOnPurpose, err)
			}
			assert.ElementsMatch(t, []string{"a", "b"}, texts(t, w.DB()))
		}
		if name == "interrupted" {
			t.Run(name, test)
		} else {
			t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
		}
	}
}

// Statements of callers control neither the transaction that they share nor the connection.
func TestStatementsMayNotSpoilTheConnection(t *testing.T) {
	w := openLog(t, sqlitewriter.Options{})
	for _, query := range []string{
		"commit", "rollback", "begin", "end", "savepoint item", "release item", "insert into log(text) values('x'); commit",
		"pragma synchronous=off", "pragma query_only(1)", "pragma locking_mode=exclusive", "pragma journal_mode=delete", "attach 'other.db' as other",
		"pragma wal_checkpoint", "PRAGMA WAL_CHECKPOINT(truncate)", // the pragma waits for the transaction
	} {
		_, err := w.Exec(t.Context(), query)
		assert.ErrorIs(t, err, sqlitewriter.ErrNotAllowed, query)
		assert.ErrorContains(t, err, query)
		err = w.Tx(t.Context(), func(ctx context.Context, tx *sqlitewriter.Tx) error {
			_, err := tx.Exec(ctx, query)
			return err
		})
		assert.ErrorIs(t, err, sqlitewriter.ErrNotAllowed, query)
	}
	execute(t, w, "pragma user_version=7; PRAGMA table_info(log); select * from pragma_foreign_key_list('log')")
	_, err := w.Exec(t.Context(), "vacuum")
	assert.ErrorContains(t, err, `"vacuum" is empty or cannot run in a transaction`)
	execute(t, w, insert, "'); drop table log; --")
	assert.Equal(t, []string{"'); drop table log; --"}, texts(t, w.DB()))
	var many []sqlitewriter.Statement // more than are kept prepared
	for i := range 600 {
		many = append(many, sqlitewriter.Statement{SQL: fmt.Sprintf("insert into log(text) values(%d)", i)})
	}
	_, err = w.Batch(t.Context(), many...)
	require.NoError(t, err)
}

func TestTx(t *testing.T) {
	w := openLog(t, sqlitewriter.Options{})
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "value")
	var kept *sqlitewriter.Tx
	require.NoError(t, w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error {
		kept = tx
		assert.Equal(t, "value", ctx.Value(key{}))
		var id int
		require.NoError(t, tx.QueryRow(ctx, insert+" returning id", "a").Scan(&id))
		assert.Equal(t, 1, id)
		assert.ErrorIs(t, tx.QueryRow(ctx, "select 1 where 0").Scan(&id), sql.ErrNoRows)
		_, err := tx.Query(ctx, "select * from log") // the end of the transaction closes the rows
		assert.NoError(t, err)
		return nil
	}))
	_, err := kept.Exec(ctx, insert, "late")
	assert.ErrorIs(t, err, sql.ErrTxDone)

	// The error of the function is returned as it is, and a panic as an error.
	add := func(ctx context.Context, tx *sqlitewriter.Tx) {
		_, err := tx.Exec(ctx, insert, "half")
		require.NoError(t, err)
	}
	err = w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error { add(ctx, tx); return errOnPurpose })
	assert.Equal(t, errOnPurpose, err)
	err = w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error { add(ctx, tx); panic("on purpose") })
	_, ok := errors.AsType[*core.PanicError](err)
	assert.True(t, ok, err)
	ended, cancel := context.WithCancelCause(ctx)
	err = w.Tx(ended, func(ctx context.Context, tx *sqlitewriter.Tx) error { add(ctx, tx); cancel(errOnPurpose); return nil })
	assert.Equal(t, errOnPurpose, err)
	assert.Equal(t, []string{"a"}, texts(t, w.DB()))
}

// A call is refused if it would wait for its own transaction, or for the write that has raised a
// signal.
func TestNoCallWaitsForItself(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	w := openLog(t, sqlitewriter.Options{Sink: sink})
	calls := func(ctx context.Context) {
		_, err := w.Exec(ctx, insert, "x")
		assert.ErrorIs(t, err, core.ErrWouldDeadlock)
		_, err = w.Batch(ctx)
		assert.ErrorIs(t, err, core.ErrWouldDeadlock)
		assert.ErrorIs(t, w.Tx(ctx, func(context.Context, *sqlitewriter.Tx) error { return nil }), core.ErrWouldDeadlock)
		assert.ErrorIs(t, w.Flush(ctx), core.ErrWouldDeadlock)
	}
	require.NoError(t, w.Tx(t.Context(), func(ctx context.Context, _ *sqlitewriter.Tx) error {
		calls(context.Background()) // by its goroutine
		var other sync.WaitGroup
		other.Go(func() { calls(ctx) })
		other.Wait()
		return nil
	}))
	handled := 0
	assert.Equal(t, 0, read(t, w))
	names := strings.Join([]string{sqlitewriter.SignalWriting, sqlitewriter.Written.Name(), lru.SignalInvalidated}, ",")
	defer sink.Subscribe(names, func(signals.Signal) { handled++; calls(context.Background()) })()
	_, err := w.Batch(t.Context(), sqlitewriter.Statement{SQL: insert, Args: []any{"a"}, Invalidates: []string{"rows"}})
	require.NoError(t, err)
	assert.Equal(t, 3, handled)
}

// If a function takes too long, its transaction is rolled back, even if it returns nil.
func TestTxTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openLog(t, sqlitewriter.Options{TxTimeout: time.Minute})
		begun := time.Now()
		err := w.Tx(t.Context(), func(ctx context.Context, tx *sqlitewriter.Tx) error {
			_, err := tx.Exec(ctx, insert, "half")
			require.NoError(t, err)
			<-ctx.Done()
			_, err = tx.Exec(ctx, insert, "late")
			assert.ErrorIs(t, err, sqlitewriter.ErrTxTimeout)
			return nil
		})
		assert.ErrorIs(t, err, sqlitewriter.ErrTxTimeout)
		assert.Equal(t, time.Minute, time.Since(begun))
		assert.Empty(t, texts(t, w.DB()))
	})
}

// If the context of a caller ends while its write waits, it gets the cause, and nothing is stored.
func TestLeavingTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openLog(t, sqlitewriter.Options{MaxQueued: 1})
		ctx, cancel := context.WithCancelCause(t.Context())
		var pending, waiting, late error
		held(t, w,
			func() { _, pending = w.Exec(ctx, insert, "a") },
			func() { _, waiting = w.Exec(ctx, insert, "b") },
			func() { execute(t, w, insert, "c") },
			func() { cancel(errOnPurpose) },
			func() { _, late = w.Exec(ctx, insert, "d") })
		assert.Equal(t, []error{errOnPurpose, errOnPurpose, errOnPurpose}, []error{pending, waiting, late})
		assert.Equal(t, []string{"c"}, texts(t, w.DB()))
	})
}

// After any text, the result can be used, and the writer still works.
func FuzzExec(f *testing.F) {
	for _, query := range []string{
		"", " ;", "-- x", "/* x", "/**/;--\n;", "\x00", "\ufeff", "select 1; -- x", "select 1; commit", "insert into log(text) values(1) returning id",
		"commit", "pragma synchronous=0", "vacuum", "detach main", "explain rollback", "create trigger t after insert on log begin select raise(rollback, 'x'); end",
	} {
		f.Add(query)
	}
	w := openLog(f, sqlitewriter.Options{})
	f.Fuzz(func(t *testing.T, query string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r, err := w.Exec(ctx, query); err == nil {
			_, err = r.RowsAffected()
			assert.NoError(t, err)
		}
		execute(t, w, "create table if not exists other(x); insert into other values(1); drop table other")
		var synchronous int
		require.NoError(t, w.Conn().QueryRowContext(t.Context(), "pragma synchronous").Scan(&synchronous))
		assert.Equal(t, 2, synchronous)
	})
}

// A connection that is broken is replaced.
func TestBrokenConnectionIsReopened(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	w := openLog(t, sqlitewriter.Options{Sink: sink})
	facts := coretest.Watch(t, sink, sqlitewriter.SignalReopened)
	require.NoError(t, w.Conn().Close())
	_, err := w.Exec(t.Context(), insert, "a")
	assert.ErrorIs(t, err, sql.ErrConnDone)
	execute(t, w, insert, "b")
	assert.Equal(t, []string{"b"}, texts(t, w.DB()))
	facts.ExpectExactly(sqlitewriter.SignalReopened)
}

// Signals have names without SQL, the file's name as key, and numbers as payload.
func TestSignals(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	w := openLog(t, sqlitewriter.Options{Sink: sink})
	facts := coretest.Watch(t, sink, "*")
	execute(t, w, insert, "a")
	_, err := w.Exec(t.Context(), insert, "a")
	require.Error(t, err)
	got := facts.ExpectExactly("write.start", "write.done", "write.start", "write.error")
	group, ok := sqlitewriter.Written.From(got[1])
	assert.True(t, ok)
	assert.Positive(t, group.Duration)
	group.Duration = 0
	assert.Equal(t, sqlitewriter.Group{Writes: 1}, group)
	failure, _ := sqlitewriter.Failed.From(got[3])
	assert.Equal(t, err, failure)
	for _, s := range got {
		assert.Equal(t, "app.db", s.Key)
	}
}

// A backup is complete and consistent while writes go on, and takes the place of the file at once.
func TestBackup(t *testing.T) {
	w := openLog(t, sqlitewriter.Options{})
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ; i += 2 {
			select {
			case <-stop:
				return
			default:
				_, err := w.Batch(context.Background(), sqlitewriter.Statement{SQL: insert, Args: []any{i}}, sqlitewriter.Statement{SQL: insert, Args: []any{i + 1}})
				assert.NoError(t, err)
			}
		}
	})
	target := filepath.Join(t.TempDir(), "100% ?;'copy")
	for range 5 {
		before := len(texts(t, w.DB()))
		require.NoError(t, w.Backup(t.Context(), target))
		copied := openAt(t, target, sqlitewriter.Options{})
		rows := texts(t, copied.DB())
		assert.GreaterOrEqual(t, len(rows), before)
		assert.Zero(t, len(rows)%2)
		require.NoError(t, copied.Close())
	}
	close(stop)
	all.Wait()
	assert.ErrorContains(t, w.Backup(t.Context(), w.Path()), "must not replace the database")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, w.Backup(ended, target+"2"), context.Canceled)
	for _, name := range core.Must(filepath.Glob(filepath.Join(filepath.Dir(target), "*"))) {
		assert.False(t, strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, "copy2"), name)
	}
}

// Close writes SQLite's log into the file.
func TestCloseCheckpoints(t *testing.T) {
	w := openLog(t, sqlitewriter.Options{})
	execute(t, w, insert, "a")
	assert.FileExists(t, w.Path()+"-wal")
	core.Must(w.DB().ExecContext(t.Context(), "select 1"))
	require.NoError(t, w.Close())
	assert.NoFileExists(t, w.Path()+"-wal")
	only := filepath.Join(t.TempDir(), "only.db")
	require.NoError(t, os.WriteFile(only, core.Must(os.ReadFile(w.Path())), 0o644))
	assert.Equal(t, []string{"a"}, texts(t, openAt(t, only, sqlitewriter.Options{}).DB()))
}

// An argument whose Value returns an error whose methods panic.
type hostile struct{ error }

func (hostile) Value() (driver.Value, error) { return nil, hostile{} }
func (hostile) Unwrap() error                { panic("Unwrap") }

// An error of a caller whose methods panic is the error of its write. Other writes go on.
func TestErrorsThatPanic(t *testing.T) {
	w := openLog(t, sqlitewriter.Options{})
	_, err := w.Exec(t.Context(), insert, hostile{})
	require.Error(t, err)
	assert.NotContains(t, guard.Text(err), groupcommit.ErrUndecided.Error())
	ctx, cancel := context.WithCancel(t.Context())
	err = w.Tx(ctx, func(context.Context, *sqlitewriter.Tx) error {
		cancel()
		return hostile{}
	})
	assert.Equal(t, hostile{}, err)
	execute(t, w, insert, "after it")
}

// open opens a file in a directory of the test.
func open(t testing.TB, opts sqlitewriter.Options) *sqlitewriter.Writer {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "app.db"), opts)
}

func openAt(t testing.TB, path string, opts sqlitewriter.Options) *sqlitewriter.Writer {
	t.Helper()
	w := core.Must(sqlitewriter.Open(context.Background(), path, opts))
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		w := open(t, sqlitewriter.Options{TxTimeout: -1})
		return coretest.Subject{
			Lifecycle: w,
			Submit: func(ctx context.Context, body coretest.Body) error {
				return w.Start(ctx, func(ctx context.Context, _ *sqlitewriter.Tx) error { return body(ctx) })
			},
		}
	})
}

func countRows(ctx context.Context, db *sql.DB) (n int, err error) {
	err = db.QueryRowContext(ctx, "select count(*) from log").Scan(&n)
	return n, err
}

func read(t testing.TB, w *sqlitewriter.Writer) int {
	t.Helper()
	return core.Must(sqlitewriter.Read(context.Background(), w, "rows", countRows))
}

// Every way to invalidate a key works.
func TestInvalidation(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	w := openLog(t, sqlitewriter.Options{Sink: sink, InvalidateOn: "cache.invalidate:*,rows.changed"})
	assert.Equal(t, 0, read(t, w))
	raised := coretest.Watch(t, sink, "cache.*")
	text := byte('a')
	for name, invalidate := range map[string]func(){
		"Invalidate": func() { w.Invalidate("other", "rows") },
		"command":    func() { sink.Raise("cache.invalidate:rows") },
		"key":        func() { sink.RaiseKey("rows.changed", "rows") },
		"all":        func() { sink.Raise("rows.changed") },
		"Batch": func() {
			core.Must(w.Batch(t.Context(), sqlitewriter.Statement{SQL: "delete from log where 0", Invalidates: []string{"rows"}}))
		},
		"Tx": func() {
			require.NoError(t, w.Tx(t.Context(), func(_ context.Context, tx *sqlitewriter.Tx) error {
				tx.Invalidate("rows")
				return nil
			}))
		},
	} {
		before := read(t, w)
		execute(t, w, insert, string(text))
		text++
		assert.Equal(t, before, read(t, w), name)
		invalidate()
		assert.Equal(t, before+1, read(t, w), name)
	}
	raised.Expect(lru.SignalHit)
}

// A write invalidates its keys after the commit, even if its caller has gone.
func TestInvalidationWithoutCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openLog(t, sqlitewriter.Options{})
		assert.Equal(t, 0, read(t, w))
		ctx, cancel := context.WithCancel(t.Context())
		defer sqlitewriter.BeforeCommit(cancel)()
		_, err := w.Batch(ctx, sqlitewriter.Statement{SQL: insert, Args: []any{"a"}, Invalidates: []string{"rows"}})
		assert.NoError(t, err, "the caller waits for the result, which is a success")
		assert.Equal(t, 1, read(t, w))
	})
}

// A missing row is looked for again, so an insert need not name its key.
func TestMissingRowsAreNotKept(t *testing.T) {
	w := openLog(t, sqlitewriter.Options{})
	text := func(ctx context.Context, db *sql.DB) (text string, err error) {
		err = db.QueryRowContext(ctx, "select text from log where id=1").Scan(&text)
		return text, err
	}
	_, err := sqlitewriter.Read(t.Context(), w, "1", text)
	assert.Equal(t, sql.ErrNoRows, err)
	execute(t, w, insert, "a")
	got, err := sqlitewriter.Read(t.Context(), w, "1", text)
	require.NoError(t, err)
	assert.Equal(t, "a", got)
}

func TestValuesOfAnotherTypeAreErrors(t *testing.T) {
	w := openLog(t, sqlitewriter.Options{})
	assert.Equal(t, 0, read(t, w))
	_, err := sqlitewriter.Read(t.Context(), w, "rows", func(context.Context, *sql.DB) (string, error) { return "", nil })
	assert.ErrorIs(t, err, sqlitewriter.ErrType)
	assert.EqualError(t, err, `sqlitewriter: "app.db": Read of key "rows": sqlitewriter: the value of the key is not a string`)
	for range 2 { // nil is a value of an interface
		r, err := sqlitewriter.Read(t.Context(), w, "reader", func(context.Context, *sql.DB) (io.Reader, error) { return nil, nil })
		assert.NoError(t, err)
		assert.Nil(t, r)
	}
}

// Capacity and TTL limit the values that Read keeps. A value expires even if it is used all the time.
func TestOptionsOfTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		w := openLog(t, sqlitewriter.Options{Capacity: 1, TTL: time.Second, Sink: sink})
		assert.Equal(t, 1, w.Stats().Cache.Capacity)
		raised := coretest.Watch(t, sink, "cache.*")
		for i := range 10 {
			assert.Equal(t, 0, read(t, w))
			execute(t, w, insert, i)
			time.Sleep(time.Second / 10)
		}
		assert.Equal(t, 10, read(t, w), "the value has expired")
		raised.Expect(lru.SignalMiss, lru.SignalHit, lru.SignalHot, lru.SignalExpired, lru.SignalMiss)
	})
}

// A transaction of DB needs no options. While it lasts, the log grows; later writes and Checkpoint make it small again.
func TestLogBesideALongReader(t *testing.T) {
	w := openLog(t, sqlitewriter.Options{})
	tx, err := w.DB().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	count := func() (n int) {
		require.NoError(t, tx.QueryRow("select count(*) from log").Scan(&n))
		return n
	}
	require.Zero(t, count())
	for i := range 12 {
		execute(t, w, insert, fmt.Sprint(strings.Repeat("x", 1e6), i)) // it is in the table and in an index
	}
	assert.Zero(t, count())
	require.Greater(t, w.Stats().Log, int64(20e6))
	whole, err := w.Checkpoint(t.Context())
	require.NoError(t, err)
	assert.False(t, whole, "the reader needs a part of it")
	require.NoError(t, tx.Rollback())
	for range 3 {
		execute(t, w, insert, rand.Text())
	}
	assert.LessOrEqual(t, w.Stats().Log, int64(16<<20))
	whole, err = w.Checkpoint(t.Context())
	require.NoError(t, err)
	assert.True(t, whole)
	assert.Zero(t, w.Stats().Log)
	execute(t, w, insert, "after it")
	require.NoError(t, w.Tx(t.Context(), func(ctx context.Context, tx *sqlitewriter.Tx) error {
		_, err := w.Checkpoint(ctx)
		assert.ErrorIs(t, err, core.ErrWouldDeadlock)
		return nil
	}))
	n, err := countRows(t.Context(), w.DB())
	require.NoError(t, err)
	assert.Equal(t, 16, n)
	w.Complete()
	_, err = w.Checkpoint(t.Context())
	assert.ErrorIs(t, err, core.ErrClosed)
}

// All names of a file give handles of one writer, and each handle is closed for itself.
func TestHandlesShareAFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "link")))
	first := openAt(t, filepath.Join(dir, "app.db"), sqlitewriter.Options{})
	require.NoError(t, os.Symlink("app.db", "soft.db"))
	execute(t, first, "create table log(id integer primary key, text text)")
	handles := []*sqlitewriter.Writer{first}
	for _, path := range []string{"app.db", "./x/../app.db", "link/link/app.db", "soft.db"} {
		handles = append(handles, openAt(t, path, sqlitewriter.Options{}))
	}
	for i, w := range handles {
		assert.Equal(t, first.Path(), w.Path())
		require.NoError(t, w.Close())
		_, err := w.Exec(t.Context(), insert, "late")
		assert.ErrorIs(t, err, core.ErrClosed)
		require.NoError(t, w.Close(), "once more, which ends no other handle")
		for _, other := range handles[i+1:] {
			execute(t, other, insert, "text")
		}
	}
	assert.Error(t, first.DB().Ping(), "the last handle has closed the file")
	assert.Len(t, texts(t, openAt(t, "app.db", sqlitewriter.Options{}).DB()), 10)
}

// Opening and closing at the same time leaks nothing, and gives nobody a closed file.
func TestOpenRaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 10 {
				w, err := sqlitewriter.Open(context.Background(), path, sqlitewriter.Options{})
				if !assert.NoError(t, err) {
					return
				}
				_, err = w.Exec(context.Background(), fmt.Sprintf("create table if not exists t%d(x)", i))
				assert.NoError(t, err)
				assert.NoError(t, w.Close())
			}
		})
	}
	all.Wait()
}

func TestOptionsOfLaterHandles(t *testing.T) {
	opts := sqlitewriter.Options{MaxGroup: 8, Sink: signals.NewSink(signals.SinkOptions{})}
	w := open(t, opts)
	openAt(t, w.Path(), sqlitewriter.Options{})
	openAt(t, w.Path(), opts)
	openAt(t, w.Path(), sqlitewriter.Options{MaxGroup: 8, Sink: opts.Sink, Name: "app.db"}) // a default
	for _, other := range []sqlitewriter.Options{{Name: "x"}, {Sink: opts.Sink}, {MaxQueued: 5}, {TTL: time.Second}} {
		_, err := sqlitewriter.Open(t.Context(), w.Path(), other)
		assert.ErrorContains(t, err, "is open with other Options: {Name:app.db")
	}
}

func TestInvalidOptions(t *testing.T) {
	for text, opts := range map[string]sqlitewriter.Options{
		"Options.MaxQueued": {MaxQueued: -1},
		"Options.Capacity":  {Capacity: -1},
	} {
		path := filepath.Join(t.TempDir(), "x.db")
		_, err := sqlitewriter.Open(t.Context(), path, opts)
		assert.ErrorContains(t, err, text)
		assert.NoFileExists(t, path)
	}
}

// A path is the name of a file. It may have any characters, and is no connection string.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a?mode=memory", "b;c", "d#e%41&f", "g 'h\" i", "ü?_pragma=synchronous(0)"} {
		w := openAt(t, name, sqlitewriter.Options{})
		execute(t, w, "create table t(x)")
		assert.FileExists(t, filepath.Join(dir, name))
		assert.NoError(t, w.DB().Ping())
		require.NoError(t, w.Close())
	}
	for path, text := range map[string]string{
		"": "must be that of a file", ":memory:": "must be that of a file", "file:x?mode=memory": "must be that of a file",
		"no/such/dir.db": "open " + filepath.Join(dir, "no/such/dir.db") + ": no such file", dir: "unable to open", "a\x00b": "invalid argument", "text": "not a database",
	} {
		require.NoError(t, os.WriteFile("text", bytes.Repeat([]byte("no database"), 100), 0o644))
		_, err := sqlitewriter.Open(t.Context(), path, sqlitewriter.Options{})
		assert.ErrorContains(t, err, text, "%q", path)
		assert.ErrorContains(t, err, "sqlitewriter: ")
	}
}
