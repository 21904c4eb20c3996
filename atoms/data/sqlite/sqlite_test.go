package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/datatest"
	"github.com/ephemeralgo/ephemeral/atoms/data/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func openWriter(t testing.TB, path string, opts sqlitewriter.Options) *sqlitewriter.Writer {
	w := core.Must(sqlitewriter.Open(context.Background(), path, opts))
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	return w
}

func open[V any](t testing.TB, path string, opts data.Options[V]) data.Store[string, V] {
	store := core.Must(sqlite.Open[string](context.Background(), path, opts))
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	return store
}

func TestEngine(t *testing.T) {
	writers := map[data.Engine]*sqlitewriter.Writer{}
	open := func(t testing.TB, path string) data.Engine {
		w := openWriter(t, path, sqlitewriter.Options{})
		e := core.Must(sqlite.NewEngine(t.Context(), w, "data"))
		writers[e] = w
		return e
	}
	datatest.Run(t, func(t testing.TB) data.Engine { return open(t, filepath.Join(t.TempDir(), "data.db")) }, datatest.Options{
		Reopen: func(t testing.TB, closed data.Engine) data.Engine {
			require.NoError(t, writers[closed].Close()) // so that the file is closed
			return open(t, writers[closed].Path())
		},
	})
}

// Names of tables come from configuration. They are checked before use, and quoted, so that
// words of SQL can be names.
func TestNamesOfTablesAreCheckedAndQuoted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	for _, name := range []string{`x"; drop table users; --`, "a b", "a-b", "é", "1a", "main.x", strings.Repeat("a", 64), "a\x00"} {
		_, err := sqlite.Open[string](t.Context(), path, data.Options[int]{Name: name})
		require.ErrorContains(t, err, "Options.Name", name)
	}
	for _, name := range []string{"select", "table", "Order", "key", "value", "_", strings.Repeat("a", 63)} {
		require.NoError(t, open(t, path, data.Options[string]{Name: name}).Save(t.Context(), "k", name))
	}
	_, err := sqlite.Open[string](t.Context(), ":memory:", data.Options[int]{Name: "x"}) // the writer refuses it
	require.ErrorContains(t, err, `store "x"`)
	_, err = sqlite.Open[string](t.Context(), path, data.Options[int]{Name: "ORDER"})
	require.ErrorContains(t, err, `"Order"`, "SQLite takes them as one table, a store must not")
}

// Reads have their own connections: they do not wait for writes, and run at the same time.
func TestReadsDoNotWaitForWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	store, w := open(t, path, data.Options[int]{}), openWriter(t, path, sqlitewriter.Options{})
	require.NoError(t, store.Save(t.Context(), "k", 1))
	err := w.Tx(t.Context(), func(ctx context.Context, tx *sqlitewriter.Tx) error {
		if _, err := tx.Exec(ctx, "delete from data"); err != nil {
			return err
		}
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				value, _, err := store.Load(t.Context(), "k")
				assert.NoError(t, err)
				n, err := store.Len(t.Context())
				assert.NoError(t, err)
				assert.Equal(t, []int{1, 1}, []int{value, n})
			})
		}
		all.Wait()
		return nil
	})
	require.NoError(t, err)
	require.ErrorIs(t, w.Tx(t.Context(), func(ctx context.Context, _ *sqlitewriter.Tx) error {
		return store.Save(ctx, "k", 2)
	}), core.ErrWouldDeadlock)
}

// The body of a loop runs without a connection: there can be more loops than connections. A
// list is read by pages, which large values make short. Later pages show later states.
func TestListHoldsNoConnection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	openWriter(t, path, sqlitewriter.Options{MaxReaders: 1})
	store := open(t, path, data.Options[string]{})
	for _, c := range []struct{ n, size int }{{3, 700 << 10}, {257, 1}} { // all but the last of n keys are in one page
		last := fmt.Sprint(1000 + c.n - 1)
		require.NoError(t, store.SaveAll(t.Context(), func(yield func(string, string) bool) {
			for i := 0; i < c.n && yield(fmt.Sprint(1000+i), strings.Repeat("x", c.size)); i++ {
			}
		}))
		for outer, err := range store.All(t.Context(), "1") {
			require.NoError(t, err)
			for inner, err := range store.Keys(t.Context(), outer.Key) {
				require.NoError(t, err)
				require.Equal(t, outer.Key, inner)
			}
			if outer.Key == "1000" {
				require.NoError(t, store.Save(t.Context(), last, "new"))
			}
			require.Equal(t, outer.Key == last, outer.Value == "new", outer.Key)
		}
	}
}

// The last Close writes the log into the file, and instead of a version of the schema there is a check of the table.
func TestFileIsChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	store := open(t, path, data.Options[int]{})
	w := core.Must(sqlitewriter.Open(t.Context(), path, sqlitewriter.Options{}))
	for _, create := range []string{
		"table other(key text primary key, value text)", "table other(key blob not null primary key, value any not null)",
		"table other(key blob not null primary key, value any not null, more int) strict", "view other as select * from data",
	} {
		core.Must(w.Exec(t.Context(), "create "+create))
		_, err := sqlite.Open[string](t.Context(), path, data.Options[int]{Name: "other"})
		require.ErrorContains(t, err, "must be a strict table (key BLOB not null primary key, value ANY not null)", create)
		core.Must(w.Exec(t.Context(), "drop "+strings.Fields(create)[0]+" other"))
	}
	require.NoError(t, w.Close())
	require.FileExists(t, path+"-wal", "the store still has the file")
	require.NoError(t, store.Close())
	require.NoFileExists(t, path+"-wal")
}

// JSON can be read and written by SQLite's functions, and bytes of other codecs stay as
// they are. Update follows what others have written.
func TestValuesAreTextIfTheyCan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	w, store := openWriter(t, path, sqlitewriter.Options{}), open(t, path, data.Options[map[string]int]{Name: "json"})
	require.NoError(t, store.Save(t.Context(), "a", map[string]int{"n": 1}))
	for _, write := range []string{
		`update json set value = json_set(value, '$.n', 2) where key = cast('a' as blob)`,
		`update json set value = cast('{"n":2}' as blob)`,
	} {
		core.Must(w.Exec(t.Context(), write))
		require.NoError(t, store.Update(t.Context(), "a", func(old map[string]int, _ bool) (map[string]int, error) {
			return map[string]int{"n": old["n"] + 1}, nil
		}))
		var n int
		require.NoError(t, w.DB().QueryRow("select value ->> '$.n' from json").Scan(&n))
		require.Equal(t, 3, n)
	}
	raw := core.Must(sqlite.NewEngine(t.Context(), w, "raw"))
	defer raw.Close()
	for value, kind := range map[string]string{"": "text", "é": "text", "\x00": "blob", "\xff": "blob", `{"a":"\u0000"}`: "text"} {
		require.NoError(t, raw.Save(t.Context(), []data.Item{{Key: "k", Value: []byte(value)}}))
		var is string
		require.NoError(t, w.DB().QueryRow("select typeof(value) from raw").Scan(&is))
		require.Equal(t, kind, is, "%q", value)
	}
	_, err := w.Exec(t.Context(), "insert into raw(key, value) values('text', 'x')")
	require.Error(t, err, "a key that is no blob would not be found")
}

// The signal that a value is saved comes after the commit: another connection sees it.
func TestSavedComesAfterTheCommit(t *testing.T) {
	sink, path := signals.NewSink(signals.SinkOptions{}), filepath.Join(t.TempDir(), "data.db")
	store, other := open(t, path, data.Options[int]{Sink: sink}), openWriter(t, path, sqlitewriter.Options{})
	seen := 0
	defer sink.Subscribe(data.Saved("data").Name(), func(s signals.Signal) {
		assert.NoError(t, other.DB().QueryRow("select value from data where key = ?", []byte(s.Key)).Scan(&seen))
	})()
	require.NoError(t, store.Save(t.Context(), "k", 1))
	require.Equal(t, 1, seen)
}
