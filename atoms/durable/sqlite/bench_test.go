package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
)

// The benchmarks show the time of one item, in batches of 50, beside the transactions that a
// program would write by hand: insert, and select and update, without order and limits.
const batch = 50

var payload = []byte(`{"id": 4711, "customer": "ada", "text": "some sixty bytes that are the same for all of them"}`)

func byHand(b *testing.B, w *sqlitewriter.Writer, query string, args ...any) {
	var stmts []sqlitewriter.Statement
	for range batch {
		stmts = append(stmts, sqlitewriter.Statement{SQL: query, Args: args})
	}
	_, err := w.Batch(b.Context(), stmts...)
	require.NoError(b, err)
}

func openBench(b *testing.B) (*sqlite.Store, *sqlitewriter.Writer) {
	s, w := open(b, filepath.Join(b.TempDir(), "work.db"), sqlite.Options{})
	_, err := w.Exec(b.Context(), "create table hand (id integer primary key, state integer not null default 0, data blob not null) strict; create index hand_state on hand (id) where state = 0")
	require.NoError(b, err)
	b.ReportAllocs()
	return s, w
}

// enqueue adds b.N items, of so many keys.
func enqueue(b *testing.B, s *sqlite.Store, keys int) {
	for n := 0; n < b.N; n += batch {
		var items []durable.Insert
		for i := range batch {
			items = append(items, durable.Insert{Key: fmt.Sprint((n + i) % keys), Data: payload})
		}
		_, err := s.Insert(b.Context(), q, items)
		require.NoError(b, err)
	}
}

func BenchmarkEnqueue(b *testing.B) {
	b.Run("by hand", func(b *testing.B) {
		_, w := openBench(b)
		for n := 0; n < b.N; n += batch {
			byHand(b, w, "insert into hand (data) values (?)", payload)
		}
	})
	b.Run("durable", func(b *testing.B) {
		s, _ := openBench(b)
		b.ResetTimer()
		enqueue(b, s, 1<<30)
	})
}

func BenchmarkRun(b *testing.B) {
	b.Run("by hand", func(b *testing.B) {
		_, w := openBench(b)
		for n := 0; n < b.N; n += batch {
			byHand(b, w, "insert into hand (data) values (?)", payload)
		}
		b.ResetTimer()
		for n := 0; n < b.N; n += batch {
			byHand(b, w, "update hand set state = 1 where id = (select id from hand where state = 0 order by id limit 1)")
			byHand(b, w, "update hand set state = 2 where id = ?", n)
		}
	})
	for name, keys := range map[string]int{"keys": 1 << 30, "hot key": 1} {
		b.Run(name, func(b *testing.B) {
			s, _ := openBench(b)
			enqueue(b, s, keys)
			node := join(b, s)
			b.ResetTimer()
			var ends []durable.End
			for left := b.N; left > 0; {
				turned, err := s.Turn(b.Context(), node, ends, durable.Want{Max: batch})
				require.NoError(b, err)
				left, ends = left-len(ends), ends[:0]
				for _, e := range turned.Ends {
					if e.Next != nil {
						turned.Items = append(turned.Items, *e.Next)
					}
				}
				for _, i := range turned.Items {
					ends = append(ends, durable.End{ID: i.ID, Key: i.Key, Token: i.Token, Kind: durable.EndDone, HandOver: true})
				}
			}
		})
	}
}
