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
	"github.com/ephemeralgo/ephemeral/core/signals"
)

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
		"Options.Mode":      {Mode: 0o400},
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
