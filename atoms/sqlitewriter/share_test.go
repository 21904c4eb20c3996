package sqlitewriter_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

// All names of a file give handles of one writer, and each handle is closed for itself.
func TestHandlesShareAFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "link")))
	first := openAt(t, filepath.Join(dir, "app.db"), sqlitewriter.Options{})
	require.NoError(t, os.Link("app.db", "hard.db"))
	require.NoError(t, os.Symlink("app.db", "soft.db"))
	execute(t, first, "create table log(id integer primary key, text text)")
	handles := []*sqlitewriter.Writer{first}
	for _, path := range []string{"app.db", "./x/../app.db", "link/link/app.db", "hard.db", "soft.db"} {
		handles = append(handles, openAt(t, path, sqlitewriter.Options{}))
	}
	for i, w := range handles {
		assert.Equal(t, first.Path(), w.Path())
		assert.Equal(t, len(handles)-i, w.Stats().Handles)
		require.NoError(t, w.Close())
		_, err := w.Exec(t.Context(), insert, "late")
		assert.ErrorIs(t, err, core.ErrClosed)
		_, err = sqlitewriter.Read(t.Context(), w, "key", countRows)
		assert.ErrorIs(t, err, core.ErrClosed)
		require.NoError(t, w.Close(), "once more, which ends no other handle")
		for _, other := range handles[i+1:] {
			execute(t, other, insert, "text")
		}
	}
	assert.Error(t, first.DB().Ping(), "the last handle has closed the file")
	assert.Len(t, texts(t, openAt(t, "app.db", sqlitewriter.Options{}).DB()), 15)
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
	assert.Equal(t, 1, openAt(t, path, sqlitewriter.Options{}).Stats().Handles)
}

func TestOptionsOfLaterHandles(t *testing.T) {
	opts := sqlitewriter.Options{MaxGroup: 8, Sink: core.NewSink(core.SinkOptions{})}
	w := open(t, opts)
	openAt(t, w.Path(), sqlitewriter.Options{})
	openAt(t, w.Path(), opts)
	openAt(t, w.Path(), sqlitewriter.Options{MaxQueued: 1024, Name: "app.db"}) // the defaults
	for field, other := range map[string]sqlitewriter.Options{
		"Name app.db, not x":                   {Name: "x"},
		"Sink":                                 {Sink: core.NewSink(core.SinkOptions{})},
		"MaxQueued 1024, not 5":                {MaxQueued: 5},
		"MaxGroup 8, not 1":                    {MaxGroup: -1},
		"TxTimeout 30s, not 1s":                {TxTimeout: time.Second},
		"BusyTimeout 10s, not 0s":              {BusyTimeout: -1},
		"MaxReaders":                           {MaxReaders: 99},
		"Capacity 1000, not 5":                 {Capacity: 5},
		"TTL 5m0s, not 1s":                     {TTL: time.Second},
		"InvalidateOn cache.invalidate:*, not": {InvalidateOn: "x"},
		"SampleEvery 1, not 2":                 {SampleEvery: 2},
	} {
		_, err := sqlitewriter.Open(t.Context(), w.Path(), other)
		assert.ErrorContains(t, err, "is open with Options."+field)
	}
	assert.Equal(t, 4, w.Stats().Handles)
}

func TestInvalidOptions(t *testing.T) {
	for text, opts := range map[string]sqlitewriter.Options{
		"Options.MaxQueued is -1, but must not be negative":   {MaxQueued: -1},
		"Options.MaxReaders is -1, but must not be negative":  {MaxReaders: -1},
		"Options.Capacity is -1, but must not be negative":    {Capacity: -1},
		"Options.SampleEvery is -1, but must not be negative": {SampleEvery: -1},
		"must not match cache.hit":                            {InvalidateOn: "cache.*"},
	} {
		_, err := sqlitewriter.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), opts)
		assert.ErrorContains(t, err, text)
	}
}

// A path is the name of a file, whatever is in it. It is no connection string.
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
		"": "must be that of a file", ":memory:": "must be that of a file", "file:x?mode=memory": "must not be a connection string",
		"no/such/dir.db": "no such file", dir: "is not a regular file", "a\x00b": "invalid argument", "text": "not a database",
	} {
		require.NoError(t, os.WriteFile("text", bytes.Repeat([]byte("no database"), 100), 0o644))
		_, err := sqlitewriter.Open(t.Context(), path, sqlitewriter.Options{})
		assert.ErrorContains(t, err, text, "%q", path)
		assert.ErrorContains(t, err, "sqlitewriter: ")
	}
}
