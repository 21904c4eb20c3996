package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/durabletest"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

func open(t testing.TB, path string, opts sqlite.Options) (*sqlite.Store, *sqlitewriter.Writer) {
	t.Helper()
	w, err := sqlitewriter.Open(context.Background(), path, sqlitewriter.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	s, err := sqlite.Open(context.Background(), w, opts)
	require.NoError(t, err)
	return s, w
}

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	run := durabletest.RunInBubble
	if os.Getenv("EPHEMERAL_LONG") != "" {
		run = durabletest.Run // time passes while SQLite works
	}
	run(t, func(t testing.TB) durable.Store { s, _ := open(t, path, sqlite.Options{}); return s })
}

// q is the queue of most tests.
const q = "q"

func insert(t testing.TB, s *sqlite.Store, keys ...string) (ids []durable.ItemID) {
	t.Helper()
	var items []durable.Insert
	for _, key := range keys {
		items = append(items, durable.Insert{Key: key})
	}
	done, err := s.Insert(t.Context(), q, items)
	require.NoError(t, err)
	for _, d := range done {
		ids = append(ids, d.ID)
	}
	return ids
}

func join(t testing.TB, s durable.Store) durable.Node {
	t.Helper()
	n := durable.Node{Queue: q, Name: "n", Lease: time.Hour, Lanes: []core.Lane{{}}}
	var err error
	n.ID, err = s.Join(t.Context(), n)
	require.NoError(t, err)
	return n
}

// Items, nodes and tokens have numbers that the file never had before, also when all others
// are deleted and the file was closed. Opening it again changes nothing, and a newer program may have
// added to the tables.
func TestNumbersAreNotReused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	var last [3]int64
	for range 3 {
		w, err := sqlitewriter.Open(t.Context(), path, sqlitewriter.Options{})
		require.NoError(t, err)
		s, err := sqlite.Open(t.Context(), w, sqlite.Options{})
		require.NoError(t, err)
		id, n := insert(t, s, "ada")[0], join(t, s)
		turned, err := s.Turn(t.Context(), n, nil, durable.Want{Max: 1})
		require.NoError(t, err)
		items := turned.Items
		now := [3]int64{int64(id), int64(n.ID), items[0].Token}
		for i := range now {
			require.Greater(t, now[i], last[i])
		}
		last = now
		_, err = s.Turn(t.Context(), n, []durable.End{{ID: id, Token: items[0].Token, Kind: durable.EndDone}}, durable.Want{})
		require.NoError(t, err)
		require.NoError(t, s.Leave(t.Context(), n))
		pruned, _, err := s.Prune(t.Context(), q, durable.Keep{}, 10)
		require.NoError(t, err)
		require.Equal(t, 1, pruned)
		_, err = w.Exec(t.Context(), "insert or ignore into durable_migration (step) values (99)")
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
}

// Wake reaches the functions of its queue at once. What another store of the file has changed,
// as another process would, reaches them within WakeEvery. The goroutine ends with cancel: otherwise
// the bubble does not end.
func TestWake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	synctest.Test(t, func(t *testing.T) {
		s, w := open(t, path, sqlite.Options{})
		other, _ := open(t, path, sqlite.Options{})
		polls, _ := open(t, path, sqlite.Options{WakeEvery: -1})
		var woken, never atomic.Int32
		cancel := s.OnWake(q, func() { woken.Add(1) })
		defer polls.OnWake(q, func() { never.Add(1) })()
		// wakes checks how often the function is called because of do.
		wakes := func(want int32, do func()) {
			t.Helper()
			time.Sleep(40 * time.Millisecond)
			before := woken.Load()
			do()
			time.Sleep(21 * time.Millisecond)
			require.Equal(t, want, woken.Load()-before)
		}
		var n durable.Node
		var items []durable.Item
		wakes(1, func() { insert(t, other, "ada") })
		wakes(0, func() { n = join(t, other) })
		wakes(0, func() {
			turned, err := other.Turn(t.Context(), n, nil, durable.Want{Max: 1})
			require.NoError(t, err)
			items = turned.Items
		})
		wakes(1, func() { // there may be a limit of the queue
			_, err := other.Turn(t.Context(), n, []durable.End{{ID: items[0].ID, Token: items[0].Token, Kind: durable.EndRetry}}, durable.Want{})
			require.NoError(t, err)
		})
		wakes(0, func() { require.NoError(t, other.Pause(t.Context(), "another queue", durable.Pause{}, true)) })
		wakes(1, func() { require.NoError(t, other.Pause(t.Context(), q, durable.Pause{}, true)) })
		wakes(1, func() { require.NoError(t, other.Leave(t.Context(), n)) })
		before := woken.Load()
		s.Wake("another queue")
		s.Wake(q)
		require.Equal(t, before+1, woken.Load(), "at once")
		polls.Wake(q)
		require.Equal(t, int32(1), never.Load())
		cancel()
		wakes(0, func() { insert(t, other, "ada"); s.Wake(q) })
		require.NoError(t, w.Close())
	})
}

// The file refuses the end of an item for ever. Run gives up, and the item runs again when the file takes it.
func TestEndIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	synctest.Test(t, func(t *testing.T) {
		s, w := open(t, path, sqlite.Options{})
		_, err := w.Exec(t.Context(), "create trigger refuse before update on durable_item when new.state = 32 and new.key = 'bad' begin select raise(abort, 'refused'); end")
		require.NoError(t, err)
		runs := 0
		run := func(span time.Duration) error {
			orders, err := durable.New(s, strings.Clone, func(_ context.Context, item string) error {
				if item == "bad" {
					runs++
				}
				return nil
			}, durable.Options{Name: q, Lease: 2 * time.Second})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), span)
			defer cancel()
			for _, key := range []string{"good", "bad", "good"}[:3-2*runs] {
				_, err = orders.Enqueue(t.Context(), key)
				require.NoError(t, err)
			}
			defer orders.Close()
			return orders.Run(ctx)
		}
		began := time.Now()
		require.ErrorContains(t, run(10*time.Second), "the end of item 2 could not be recorded for 2s, so the item may run again: sqlite: ")
		require.Less(t, time.Since(began), 13*time.Second)
		stats, err := s.Stats(t.Context(), q)
		require.NoError(t, err)
		require.Equal(t, []int{2, 1}, []int{stats.Done, stats.Ready})
		_, err = w.Exec(t.Context(), "drop trigger refuse")
		require.NoError(t, err)
		require.NoError(t, run(time.Second))
		require.Equal(t, 2, runs)
		require.NoError(t, w.Close())
	})
}

func TestErrors(t *testing.T) {
	s, w := open(t, filepath.Join(t.TempDir(), "work.db"), sqlite.Options{})
	_, err := sqlite.Open(t.Context(), nil, sqlite.Options{WakeEvery: 1})
	require.ErrorContains(t, err, "needs a Writer")
	require.ErrorContains(t, err, "Options.WakeEvery is 1ns")
	require.NoError(t, w.Close())
	_, err = s.Insert(t.Context(), q, nil)
	require.ErrorIs(t, err, core.ErrClosed)
	require.NotErrorIs(t, err, durable.ErrUndecided)
	_, err = sqlite.Open(t.Context(), w, sqlite.Options{})
	require.ErrorIs(t, err, core.ErrClosed)
}
