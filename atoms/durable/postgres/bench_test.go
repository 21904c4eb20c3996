package postgres

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// The benchmarks show the time of one item beside a queue that a program would write by
// hand: insert, and select for update skip locked, without order, retries and limits.
const byHand = `create table {s}.hand (id bigserial primary key, state smallint not null default 0, run_at timestamptz not null default now(), data bytea not null);
	create index on {s}.hand (run_at, id) where state = 0`

var payload = []byte(`{"id": 4711, "customer": "ada", "text": "some sixty bytes that are the same for all of them"}`)

func openBench(b *testing.B) *Store {
	s := open(b, func(c *pgxpool.Config) { c.MaxConns = 16 })
	exec(b, s, byHand)
	return s
}

// parallel runs fn b.N times, by 8 goroutines.
func parallel(b *testing.B, fn func(n int64)) {
	var n atomic.Int64
	b.SetParallelism(max(1, 8/runtime.GOMAXPROCS(0)))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			fn(n.Add(1))
		}
	})
}

func BenchmarkEnqueue(b *testing.B) {
	b.Run("by hand", func(b *testing.B) {
		s := openBench(b)
		parallel(b, func(int64) {
			_, err := s.pool.Exec(context.Background(), s.sql("insert into {s}.hand (data) values ($1)"), payload)
			require.NoError(b, err)
		})
	})
	b.Run("durable", func(b *testing.B) {
		s := openBench(b)
		parallel(b, func(n int64) {
			_, err := s.Insert(context.Background(), "q", []durable.Insert{{Key: fmt.Sprint(n), Data: payload}})
			require.NoError(b, err)
		})
	})
}

// fill enqueues n items, of so many keys.
func fill(b *testing.B, s *Store, n, keys int) {
	for from := 0; from < n; from += durable.MaxBatch {
		var items []durable.Insert
		for i := from; i < min(n, from+durable.MaxBatch); i++ {
			items = append(items, durable.Insert{Key: fmt.Sprint(i % keys), Data: payload})
		}
		_, err := s.Insert(context.Background(), "q", items)
		require.NoError(b, err)
	}
	exec(b, s, "vacuum analyze {s}.durable_item")
}

const batch = 50

func BenchmarkRun(b *testing.B) {
	b.Run("by hand", func(b *testing.B) {
		s := openBench(b)
		exec(b, s, "insert into {s}.hand (data) select $1 from generate_series(1, $2)", payload, b.N)
		exec(b, s, "vacuum analyze {s}.hand")
		b.ResetTimer()
		for left := b.N; left > 0; left -= batch {
			err := pgx.BeginFunc(context.Background(), s.pool, func(tx pgx.Tx) error {
				rows, err := tx.Query(context.Background(), s.sql("update {s}.hand set state = 1 where id in (select id from {s}.hand where state = 0 and run_at <= now() order by run_at, id limit $1 for update skip locked) returning id, data"), batch)
				require.NoError(b, err)
				ids, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (id int64, err error) {
					var data []byte
					return id, row.Scan(&id, &data)
				})
				require.NoError(b, err)
				_, err = tx.Exec(context.Background(), s.sql("update {s}.hand set state = 2 where id = any($1)"), ids)
				return err
			})
			require.NoError(b, err)
		}
	})
	for name, keys := range map[string]int{"keys": 1 << 30, "hot key": 1} {
		b.Run(name, func(b *testing.B) {
			s := openBench(b)
			fill(b, s, b.N, keys)
			n := durable.Node{Queue: "q", Name: "n", Lease: time.Hour, Lanes: nodeLanes}
			var err error
			n.ID, err = s.Join(context.Background(), n)
			require.NoError(b, err)
			b.ResetTimer()
			var ends []durable.End
			for left := b.N; left > 0; {
				turned, err := s.Turn(context.Background(), n, ends, durable.Want{Max: batch})
				require.NoError(b, err)
				left, ends = left-len(ends), ends[:0]
				for _, d := range turned.Ends {
					if d.Next != nil {
						turned.Items = append(turned.Items, *d.Next)
					}
				}
				for _, i := range turned.Items {
					ends = append(ends, durable.End{ID: i.ID, Key: i.Key, Token: i.Token, Kind: durable.EndDone, HandOver: true})
				}
			}
		})
	}
}
