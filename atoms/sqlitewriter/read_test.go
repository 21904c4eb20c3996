package sqlitewriter_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

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
	raised.Expect(sqlitewriter.SignalHit)
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
		raised.Expect(sqlitewriter.SignalMiss, sqlitewriter.SignalHit, sqlitewriter.SignalHot, sqlitewriter.SignalExpired, sqlitewriter.SignalMiss)
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
	for range 30 {
		execute(t, w, "insert into log(text) values(hex(randomblob(500000)))")
	}
	assert.Zero(t, count())
	require.Greater(t, w.Stats().Log, int64(30e6))
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
	assert.Equal(t, 34, n)
	w.Complete()
	_, err = w.Checkpoint(t.Context())
	assert.ErrorIs(t, err, core.ErrClosed)
}
