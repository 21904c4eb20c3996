package sqlitewriter_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

const (
	benchTable = "create table kv(key text primary key, value blob) without rowid"
	benchSave  = "insert into kv values(?,?) on conflict do update set value=excluded.value"
)

var benchValue = make([]byte, 100)

// plain opens a file with the settings of the writer, but without a writer.
func plain(b *testing.B) *sql.Conn {
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(b.TempDir(), "plain.db"))}
	db := core.Must(sql.Open("sqlite", name.String()+"?_journal_mode=wal&_synchronous=full"))
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	c := core.Must(db.Conn(context.Background()))
	core.Must(c.ExecContext(context.Background(), benchTable))
	return c
}

// BenchmarkSave saves values of 100 bytes: each operation is one value.
func BenchmarkSave(b *testing.B) {
	ctx := context.Background()
	for _, batch := range []int{1, 64} { // by hand: one transaction for each value, or for 64
		b.Run(fmt.Sprintf("plain/batch=%d", batch), func(b *testing.B) {
			c := plain(b)
			var prepared []*sql.Stmt
			for _, query := range []string{"begin immediate", benchSave, "commit"} {
				prepared = append(prepared, core.Must(c.PrepareContext(ctx, query)))
			}
			run := func(i int, args ...any) { core.Must(prepared[i].ExecContext(ctx, args...)) }
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n%batch == 0 {
					run(0)
				}
				run(1, strconv.Itoa(n), benchValue)
				if n++; n%batch == 0 {
					run(2)
				}
			}
		})
	}
	for _, savers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("writer/savers=%d", savers), func(b *testing.B) {
			w := open(b, sqlitewriter.Options{})
			execute(b, w, benchTable)
			before := w.Stats().Groups
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			var n atomic.Int64
			for range savers {
				all.Go(func() {
					for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
						core.Must(w.Exec(ctx, benchSave, strconv.Itoa(int(i)), benchValue))
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/float64(w.Stats().Groups-before), "writes/commit")
		})
	}
}

// BenchmarkRead reads one row by its key: from the pool, and by Read from memory.
func BenchmarkRead(b *testing.B) {
	w := open(b, sqlitewriter.Options{})
	execute(b, w, benchTable)
	execute(b, w, benchSave, "key", benchValue)
	ctx := context.Background()
	load := func(ctx context.Context, db *sql.DB) (value []byte, err error) {
		err = db.QueryRowContext(ctx, "select value from kv where key=?", "key").Scan(&value)
		return value, err
	}
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			core.Must(load(ctx, w.DB()))
		}
	})
	b.Run("cached", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			core.Must(sqlitewriter.Read(ctx, w, "key", load))
		}
	})
}
