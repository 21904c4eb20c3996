package sqlite_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/core"
)

var sample = Order{"2026-000001", 4200}

func benchKey(n int) string { return fmt.Sprintf("2026-%06d", n%10_000) }

// openPlain opens a file as a program without a writer does, with the same settings.
func openPlain(b *testing.B) *sql.DB {
	path := filepath.Join(b.TempDir(), "bench.db")
	db := core.Must(sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)"))
	b.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1) // more connections would wait for each other's locks
	core.Must(db.Exec("create table data(key blob not null primary key, value any not null) strict"))
	return db
}

// saveByHand saves b.N values in batches of that size.
func saveByHand(b *testing.B, db *sql.DB, size int) {
	for n := 0; n < b.N; n += size {
		tx := core.Must(db.Begin())
		insert := core.Must(tx.Prepare("insert into data(key, value) values(?, ?) on conflict(key) do update set value = excluded.value"))
		for i := n; i < min(n+size, b.N); i++ {
			core.Must(insert.Exec([]byte(benchKey(i)), string(core.Must(json.Marshal(sample)))))
		}
		require.NoError(b, tx.Commit())
	}
}

// An operation is one value that is saved. All commits are synced.
func BenchmarkSave(b *testing.B) {
	for _, savers := range []int{1, 64} {
		b.Run(fmt.Sprintf("store/savers=%d", savers), func(b *testing.B) {
			store := open(b, filepath.Join(b.TempDir(), "bench.db"), data.Options[Order]{})
			b.ReportAllocs()
			var all sync.WaitGroup
			for saver := range savers {
				all.Go(func() {
					for n := saver; n < b.N; n += savers {
						require.NoError(b, store.Save(b.Context(), benchKey(n), sample))
					}
				})
			}
			all.Wait()
		})
		b.Run(fmt.Sprintf("driver/batch=%d", savers), func(b *testing.B) {
			db := openPlain(b)
			b.ReportAllocs()
			b.ResetTimer()
			saveByHand(b, db, savers)
		})
	}
}

// An operation is one value that is read and decoded.
func BenchmarkLoad(b *testing.B) {
	db := openPlain(b)
	core.Must(db.Exec(`with recursive n(i) as (select 0 union all select i + 1 from n where i < 9999)
		insert into data select cast(format('2026-%06d', i) as blob), ? from n`, string(core.Must(json.Marshal(sample)))))
	var path string
	require.NoError(b, db.QueryRow("select file from pragma_database_list").Scan(&path))
	store, load := open(b, path, data.Options[Order]{}), core.Must(db.Prepare("select value from data where key = ?"))
	b.Run("store", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			_, _, err := store.Load(b.Context(), benchKey(n))
			require.NoError(b, err)
		}
	})
	b.Run("driver", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			var encoded []byte
			require.NoError(b, load.QueryRowContext(b.Context(), []byte(benchKey(n))).Scan(&encoded))
			core.Must(data.JSON[Order]{}.Decode(encoded))
		}
	})
}
