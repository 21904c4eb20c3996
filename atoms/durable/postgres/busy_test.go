package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A transaction of a caller has added an item of a key, and is open for long. Another Enqueue for
// that key waits, and so does the end of its item. Items of other keys are added, run and end.
func TestTransactionHoldsUpItsKeyOnly(t *testing.T) {
	s := open(t)
	began, free := make(chan string, 20), make(chan struct{})
	q := queue(t, s, func(_ context.Context, item string) error {
		began <- item
		if item == "Ada" {
			<-free
		}
		return nil
	}, durable.Options{MaxConcurrency: 3, Poll: 10 * time.Millisecond})
	ended := make(chan string, 20)
	defer durable.ItemSucceeded.Subscribe(q.Sink(), func(_ signals.Signal, i durable.Item) { ended <- i.Key })()
	go q.Run(t.Context())
	_, err := q.Enqueue(t.Context(), "Ada")
	require.NoError(t, err)
	require.Equal(t, "Ada", <-began)

	tx, err := s.pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.Background())
	_, err = Enqueue(t.Context(), tx, q, "ada")
	require.NoError(t, err)
	added := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := q.Enqueue(t.Context(), "ADA")
			added <- err
		}()
	}
	require.True(t, untilBlocked(t, s, tx, nil))
	close(free) // its end meets the lock
	for _, item := range []string{"bob", "cat", "dan"} {
		_, err = q.Enqueue(t.Context(), item)
		require.NoError(t, err)
		require.Equal(t, item, <-began)
		require.Equal(t, item, <-ended)
	}
	assert.Empty(t, added)
	require.NoError(t, tx.Commit(t.Context()))
	for range 3 {
		require.NoError(t, <-added)
	}
	for range 5 {
		require.Equal(t, "ada", <-ended)
	}
}

// A transaction of a caller has added a Unique id, and is open for long. An Enqueue of it under other keys waits; others go on.
func TestTransactionHoldsUpItsUniqueIDOnly(t *testing.T) {
	s := open(t)
	q := queue(t, s, nothing, durable.Options{})
	unique := q.With(durable.ItemOptions{Unique: "order 1"})
	tx, err := s.pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.Background())
	stands, err := Enqueue(t.Context(), tx, unique, "ada")
	require.NoError(t, err)
	ids := make(chan durable.ItemID, 10)
	for _, key := range []string{"bob", "cat", "dan"} {
		go func() {
			id, err := unique.Enqueue(t.Context(), key)
			assert.NoError(t, err)
			ids <- id
		}()
	}
	require.True(t, untilBlocked(t, s, tx, nil))
	for range 3 {
		_, err = q.Enqueue(t.Context(), "eve")
		require.NoError(t, err)
	}
	assert.Empty(t, ids)
	require.NoError(t, tx.Commit(t.Context()))
	for range 3 {
		assert.Equal(t, stands, <-ids)
	}
}

// A transaction that adds items of very many keys gets an error before the server has no more room
// for locks, which would stop all others.
func TestTooManyKeys(t *testing.T) {
	s := open(t)
	q := queue(t, s, nothing, durable.Options{})
	tx, err := s.pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.Background())
	added := 0
	for ; err == nil && added < 2*MaxKeys; added++ {
		_, err = Enqueue(t.Context(), tx, q, fmt.Sprint(added))
	}
	require.ErrorIs(t, err, ErrTooManyKeys)
	assert.Greater(t, added, MaxKeys)
	insert(t, s, "ada")
}

// Stats has the age of a transaction elsewhere that keeps old versions of rows.
func TestOldestTransaction(t *testing.T) {
	s := open(t)
	tx, err := s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer tx.Rollback(context.Background())
	_, err = tx.Exec(t.Context(), s.sql("select from {s}.durable_item"))
	require.NoError(t, err)
	st, err := s.Stats(t.Context(), "q")
	require.NoError(t, err)
	assert.Positive(t, st.OldestTransaction)
	exec(t, s, "select pg_sleep(0.2)")
	later, err := s.Stats(t.Context(), "q")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, later.OldestTransaction, st.OldestTransaction+200*time.Millisecond)
}
