package sqlite_test

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/durabletest"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

// A body that finishes its item in the transaction of its effect has the effect once, also if
// it fails and runs again.
func TestFinish(t *testing.T) {
	s, w := open(t, filepath.Join(t.TempDir(), "work.db"), sqlite.Options{})
	_, err := w.Exec(t.Context(), "create table effect (item text) strict")
	require.NoError(t, err)
	onPurpose, results := errors.New("on purpose"), make(chan error, 10)
	ship := func(ctx context.Context, item string) error {
		claim := durable.ClaimFrom(ctx)
		err := w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error {
			if _, err := tx.Exec(ctx, "insert into effect values (?)", item); err != nil {
				return err
			}
			if err := sqlite.Finish(ctx, tx); err != nil || claim.Attempt > 1 {
				return err
			}
			return onPurpose // so both are rolled back
		})
		results <- err
		if err == nil {
			err = onPurpose // after the commit, the item is still done
		}
		return err
	}
	orders, err := durable.New(s, func(string) string { return "ada" }, ship, durable.Options{Name: q, Backoff: time.Millisecond, MaxBackoff: time.Millisecond})
	require.NoError(t, err)
	ran := make(chan error)
	go func() { ran <- orders.Run(context.Background()) }()
	for _, item := range []string{"first", "second"} {
		_, err = orders.Enqueue(t.Context(), item)
		require.NoError(t, err)
	}
	for range 2 {
		require.ErrorIs(t, <-results, onPurpose)
		require.NoError(t, <-results)
	}
	require.NoError(t, orders.Close())
	require.NoError(t, <-ran)
	var effects int
	require.NoError(t, w.DB().QueryRow("select count(distinct item) * 100 + count(*) from effect").Scan(&effects))
	require.Equal(t, 202, effects)
	stats, err := s.Stats(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, 2, stats.Done, "%v", stats)
}

// A body whose claim is lost can neither finish nor commit the effect of a step.
func TestWithoutLease(t *testing.T) {
	s, w := open(t, filepath.Join(t.TempDir(), "work.db"), sqlite.Options{})
	_, err := w.Exec(t.Context(), "create table effect (item text) strict")
	require.NoError(t, err)
	effect := func(ctx context.Context, tx *sqlitewriter.Tx) error {
		_, err := tx.Exec(ctx, "insert into effect values ('x')")
		return err
	}
	for name, call := range map[string]func(ctx context.Context) error{
		"Finish": func(ctx context.Context) error {
			return w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error {
				return cmp.Or(effect(ctx, tx), sqlite.Finish(ctx, tx))
			})
		},
		"Step": func(ctx context.Context) error {
			return sqlite.Step(ctx, w, "effect", func(tx *sqlitewriter.Tx) error { return effect(ctx, tx) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := make(chan error, 100)
			flow := runFlow(t, s, func(ctx context.Context, item string) error {
				why, _, err := s.Explain(ctx, q, durable.ClaimFrom(ctx).ID)
				if err == nil {
					err = s.Leave(ctx, durable.Node{Queue: q, ID: why.Nodes[0].Node.ID})
				}
				if err == nil {
					err = call(ctx)
				}
				result <- err
				return durable.Permanent(err)
			})
			_, err := flow.Enqueue(t.Context(), "ada")
			require.NoError(t, err)
			require.ErrorIs(t, <-result, durable.ErrLeaseLost)
		})
	}
	require.Zero(t, effects(t, w))
	require.ErrorContains(t, w.Tx(t.Context(), sqlite.Finish), "is a <nil>, not a", "outside of a body")
	require.Error(t, sqlite.Step(t.Context(), w, "outside of a body", nil))
}

// An item that is added in a transaction of the caller is there if that is committed. Others
// then see it without a Wake.
func TestEnqueue(t *testing.T) {
	s, w := open(t, filepath.Join(t.TempDir(), "work.db"), sqlite.Options{})
	newQueue := func(s durable.Store) *durable.Queue[string] {
		orders, err := durable.New(s, func(string) string { return "" }, func(context.Context, string) error { return nil }, durable.Options{Name: q})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, orders.Close()) })
		return orders
	}
	orders, onPurpose := newQueue(s), errors.New("on purpose")
	enqueue := func(w *sqlitewriter.Writer, orders *durable.Queue[string], result error) (id durable.ItemID, err error) {
		err = w.Tx(t.Context(), func(ctx context.Context, tx *sqlitewriter.Tx) error {
			if id, err = sqlite.Enqueue(ctx, tx, orders, "a"); err != nil {
				return err
			}
			return result
		})
		return id, err
	}
	woken := make(chan struct{}, 10)
	defer s.OnWake(q, func() { woken <- struct{}{} })()
	<-woken // the first look
	_, err := enqueue(w, orders, onPurpose)
	require.ErrorIs(t, err, onPurpose)
	id, err := enqueue(w, orders, nil)
	require.NoError(t, err)
	<-woken
	page, err := s.Items(t.Context(), q, durable.Query{})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	require.Equal(t, id, page.Items[0].ID)

	_, other := open(t, filepath.Join(t.TempDir(), "other.db"), sqlite.Options{})
	_, err = enqueue(other, orders, nil)
	require.ErrorIs(t, err, sqlite.ErrOtherFile)
	_, err = enqueue(w, newQueue(durable.Memory()), nil)
	require.ErrorContains(t, err, "is a *durable.memory, not a *sqlite.Store")
	require.NoError(t, w.Tx(t.Context(), func(ctx context.Context, _ *sqlitewriter.Tx) error {
		_, insert := s.Insert(ctx, q, []durable.Insert{{}})
		_, here := orders.Enqueue(context.Background(), "it would wait for this transaction")
		aside := make(chan error)
		go func() { _, err := orders.EnqueueAll(ctx, []string{"it would, too"}); aside <- err }()
		for _, err := range []error{insert, here, <-aside} {
			require.ErrorIs(t, err, core.ErrWouldDeadlock)
		}
		return nil
	}))
	require.NoError(t, other.Tx(t.Context(), func(ctx context.Context, _ *sqlitewriter.Tx) error {
		_, err := orders.Enqueue(ctx, "this one waits for nothing")
		return err
	}))
}

func TestResult(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	here, w := open(t, path, sqlite.Options{})
	there, _ := open(t, path, sqlite.Options{})
	durabletest.Results(t, here, there, func(ctx context.Context, rollBack error) error {
		return w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error { return cmp.Or(sqlite.Finish(ctx, tx), rollBack) })
	})
}
