package sqlite_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

type order struct {
	ID     string            `json:"id"`
	Total  int               `json:"total"`
	Status string            `json:"status"`
	Tags   map[string]string `json:"tags"`
}

var sample = order{"2026-000001", 4200, "open", map[string]string{"country": "de", "shipping": "express"}}

const benchKeys = 10_000

func benchKey(n int) string { return fmt.Sprintf("2026-%06d", n%benchKeys) }

// openPlain opens a file as a program without a writer does, with the same settings, and
// returns a connection of it.
func openPlain(b *testing.B) *sql.DB {
	path := filepath.Join(b.TempDir(), "bench.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	require.NoError(b, err)
	b.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1) // more of them wait for each other's locks
	_, err = db.Exec("create table data(key blob not null primary key, value any not null) strict")
	require.NoError(b, err)
	return db
}

// saveBatches saves b.N values in batches of that size.
func saveBatches(b *testing.B, db *sql.DB, size int) {
	for n := 0; n < b.N; n += size {
		tx, err := db.Begin()
		require.NoError(b, err)
		insert, err := tx.Prepare("insert into data(key, value) values(?, ?) on conflict(key) do update set value = excluded.value")
		require.NoError(b, err)
		for i := n; i < min(n+size, b.N); i++ {
			encoded, _ := json.Marshal(sample)
			_, err = insert.Exec([]byte(benchKey(i)), string(encoded))
			require.NoError(b, err)
		}
		require.NoError(b, tx.Commit())
	}
}

// An operation is one value that is saved. All commits are synced.
func BenchmarkSave(b *testing.B) {
	for _, savers := range []int{1, 64} {
		b.Run(fmt.Sprintf("store/savers=%d", savers), func(b *testing.B) {
			store := open(b, filepath.Join(b.TempDir(), "bench.db"), data.Options[order]{})
			b.ReportAllocs()
			if savers == 1 {
				for n := range b.N {
					require.NoError(b, store.Save(b.Context(), benchKey(n), sample))
				}
				return
			}
			b.SetParallelism(savers / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for n := 0; pb.Next(); n++ {
					require.NoError(b, store.Save(b.Context(), benchKey(n), sample))
				}
			})
		})
		b.Run(fmt.Sprintf("driver/batch=%d", savers), func(b *testing.B) {
			db := openPlain(b)
			b.ReportAllocs()
			b.ResetTimer()
			saveBatches(b, db, savers)
		})
	}
}

// An operation is one value that is read and decoded.
func BenchmarkLoad(b *testing.B) {
	b.Run("store", func(b *testing.B) {
		store := open(b, filepath.Join(b.TempDir(), "bench.db"), data.Options[order]{})
		require.NoError(b, store.SaveAll(b.Context(), func(yield func(string, order) bool) {
			for n := 0; n < benchKeys && yield(benchKey(n), sample); n++ {
			}
		}))
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			if _, ok, err := store.Load(b.Context(), benchKey(n)); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
	b.Run("driver", func(b *testing.B) {
		db := openPlain(b)
		encoded, _ := json.Marshal(sample)
		_, err := db.Exec(`with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < ?)
			insert into data select cast(format('2026-%06d', i) as blob), ? from n`, benchKeys, string(encoded))
		require.NoError(b, err)
		load, err := db.Prepare("select value from data where key = ?")
		require.NoError(b, err)
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			var encoded []byte
			if err := load.QueryRowContext(b.Context(), []byte(benchKey(n))).Scan(&encoded); err != nil {
				b.Fatal(err)
			}
			var value order
			if err := json.Unmarshal(encoded, &value); err != nil {
				b.Fatal(err)
			}
		}
	})
}
