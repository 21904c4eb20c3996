package bench

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/file"
	"github.com/ephemeralgo/ephemeral/atoms/data/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/persistentwindow"
)

const (
	durably = "a save of ours is on the disk when it returns"
	shared  = durably + "; saves at the same time share a transaction"
)

// originalStores write to a directory for temporary files.
var originalStores = []Original{
	{"persistentwindow, raise", 20_000, windowed(false), "", -1},
	{"persistentwindow, raise and flush", 20_000, windowed(true), durably, -1},
	{"singlewriter write, one by one", 5000, written(1, 1), durably, -1},
	{"singlewriter write, together", 20_000, written(64, 1), shared, -1},
	{"singlewriter write, batch of 1000", 20_000, written(1, 1000), durably, -1},
	{"singlewriter read, cached", 20_000, reading("the row"), "", -1},
	{"singlewriter query", 20_000, reading(""), "", -1},
	{"data.file save", 2000, stored(openFile, true), durably, -1},
	{"data.file load", 2000, stored(openFile, false), "", -1},
	{"data.sqlite save", 2000, stored(openSQLite, true), durably, -1},
	{"data.sqlite load", 2000, stored(openSQLite, false), "", -1},
}

// inDirectory gives a body a directory of its own, and removes it at the end.
func inDirectory(maker func(dir string) Body) func() Body {
	return func() Body {
		dir := core.Must(os.MkdirTemp("", "ephemeral-bench"))
		body := maker(dir)
		end := body.Close
		body.Close = func() { end(); check(os.RemoveAll(dir)) }
		return body
	}
}

func openWriter(dir string) *sqlitewriter.Writer {
	w := core.Must(sqlitewriter.Open(context.Background(), filepath.Join(dir, "d.db"), sqlitewriter.Options{}))
	core.Must(w.Exec(context.Background(), "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)"))
	return w
}

func windowed(flush bool) func() Body {
	return inDirectory(func(dir string) Body {
		ctx, s, w := context.Background(), signals.NewSink(signals.SinkOptions{}), openWriter(dir)
		window := core.Must(persistentwindow.Open(ctx, w, s, persistentwindow.Options{MaxQueued: room}))
		written := func(int) { check(window.Flush(ctx)) }
		return Body{Ready: written, Run: func(n int) {
			for range n {
				s.Raise("order.placed")
			}
			if flush {
				written(n)
			}
		}, Close: func() { check(errors.Join(window.Close(), w.Close())) }}
	})
}

// written inserts rows, so many in each call, from several goroutines.
func written(writers, batch int) func() Body {
	return inDirectory(func(dir string) Body {
		ctx, w := context.Background(), openWriter(dir)
		insert := make([]sqlitewriter.Statement, batch)
		for i := range insert {
			insert[i] = sqlitewriter.Statement{SQL: "INSERT INTO t(name) VALUES(?)", Args: []any{"name"}}
		}
		return Body{Run: func(n int) {
			spread(writers, (n+batch-1)/batch, func(n int) {
				for range n {
					core.Must(w.Batch(ctx, insert...))
				}
			})
		}, Close: func() { check(w.Close()) }}
	})
}

// reading reads a row, which a key keeps in memory.
func reading(key string) func() Body {
	return inDirectory(func(dir string) Body {
		ctx, w := context.Background(), openWriter(dir)
		core.Must(w.Exec(ctx, "INSERT INTO t(id, name) VALUES(1, 'name')"))
		load := func(ctx context.Context, db *sql.DB) (name string, err error) {
			err = db.QueryRowContext(ctx, "SELECT name FROM t WHERE id=?", 1).Scan(&name)
			return name, err
		}
		return Body{Run: func(n int) {
			for range n {
				if key == "" {
					core.Must(load(ctx, w.DB()))
				} else {
					core.Must(sqlitewriter.Read(ctx, w, key, load))
				}
			}
		}, Close: func() { check(w.Close()) }}
	})
}

type document struct {
	ID   int
	Name string
}

type documents = data.Store[string, document]

func openFile(dir string) documents {
	return core.Must(file.Open[string](context.Background(), dir, data.Options[document]{Name: "docs"}))
}

func openSQLite(dir string) documents {
	return core.Must(sqlite.Open[string](context.Background(), filepath.Join(dir, "d.db"), data.Options[document]{Name: "docs"}))
}

// stored saves or loads 100 documents in turns, one after the other.
func stored(open func(dir string) documents, save bool) func() Body {
	return inDirectory(func(dir string) Body {
		ctx, docs := context.Background(), open(dir)
		put := func(i int) { check(docs.Save(ctx, strconv.Itoa(i%100), document{i, "name"})) }
		for i := range 100 {
			put(i)
		}
		return Body{Run: func(n int) {
			for i := range n {
				if save {
					put(i)
					continue
				}
				_, _, err := docs.Load(ctx, strconv.Itoa(i%100))
				check(err)
			}
		}, Close: func() { check(docs.Close()) }}
	})
}
