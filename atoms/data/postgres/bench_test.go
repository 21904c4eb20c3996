package postgres

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

const plainUpsert = `insert into %s (key, value) values ($1, $2)
	on conflict (key) do update set value = excluded.value, updated_at = now()`

// BenchmarkSave shows the time of one item: the engine beside the statement that a program
// would run without it, and beside batches of 64 written by hand.
func BenchmarkSave(b *testing.B) {
	value := []byte(`{"customer": {"city": "Berlin"}, "total": 12.5, "text": "some sixty bytes that are the same for all of them"}`)
	var n atomic.Uint64
	key := func() string { return fmt.Sprintf("%08d", n.Add(1)*7919%100_000) }
	ctx := context.Background()
	each := func(e *Engine) map[string]func() error {
		sql := fmt.Sprintf(plainUpsert, e.table)
		return map[string]func() error{
			"engine": func() error { return e.Save(ctx, []data.Item{{Key: key(), Value: value}}) },
			"plain": func() error {
				_, err := e.pool.Exec(ctx, sql, []byte(key()), value)
				return err
			},
		}
	}
	open := func(b *testing.B) *Engine {
		return newFixture(b, func(c *pgxpool.Config) { c.MaxConns = 64 }).open()
	}
	for _, kind := range []string{"plain", "engine"} {
		b.Run("1 saver/"+kind, func(b *testing.B) {
			save := each(open(b))[kind]
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, save())
			}
		})
		b.Run("64 savers/"+kind, func(b *testing.B) {
			save := each(open(b))[kind]
			b.ReportAllocs()
			b.SetParallelism(max(1, 64/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					require.NoError(b, save())
				}
			})
		})
	}
	b.Run("batches of 64", func(b *testing.B) {
		e := open(b)
		sql := fmt.Sprintf(`insert into %s (key, value) select * from unnest($1::bytea[], $2::jsonb[])
			on conflict (key) do update set value = excluded.value, updated_at = now()`, e.table)
		keys, values := make([][]byte, 64), make([][]byte, 64)
		for i := range values {
			values[i] = value
		}
		b.ReportAllocs()
		for rows := 0; b.Loop(); rows++ {
			if keys[rows%64] = []byte(key()); rows%64 == 63 {
				_, err := e.pool.Exec(ctx, sql, keys, values)
				require.NoError(b, err)
			}
		}
	})
}
