package postgres

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// BenchmarkSave shows the time of one item: the engine beside the statement that a program
// would run without it.
func BenchmarkSave(b *testing.B) {
	const value = `{"customer": {"city": "Berlin"}, "total": 12.5, "text": "some sixty bytes that are the same for all of them"}`
	const upsert = "insert into %s (key, value) values ($1, $2) on conflict (key) do update set value = excluded.value, updated_at = now()"
	var n atomic.Uint64
	key := func() string { return fmt.Sprintf("%08d", n.Add(1)*7919%100_000) }
	open := func(b *testing.B) *engine {
		b.ReportAllocs()
		return newFixture(b, func(c *pgxpool.Config) { c.MaxConns = 64 }).open()
	}
	kinds := map[string]func(e *engine) error{
		"engine": func(e *engine) error { return e.Save(context.Background(), pairs(key(), value)) },
		"plain": func(e *engine) error {
			_, err := e.pool.Exec(context.Background(), fmt.Sprintf(upsert, e.table), []byte(key()), []byte(value))
			return err
		},
	}
	for _, name := range []string{"plain", "engine"} {
		b.Run("1 saver/"+name, func(b *testing.B) {
			for e := open(b); b.Loop(); {
				require.NoError(b, kinds[name](e))
			}
		})
		b.Run("64 savers/"+name, func(b *testing.B) {
			e := open(b)
			b.SetParallelism(max(1, 64/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					require.NoError(b, kinds[name](e))
				}
			})
		})
	}
}
