package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
)

// A result is stored by Finish, with the transaction; if that is rolled back, with the end of the item. Another store in the file is woken when it is there.
func TestResult(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	var stores []*sqlite.Store
	var writers []*sqlitewriter.Writer
	for range 2 {
		w, err := sqlitewriter.Open(t.Context(), path, sqlitewriter.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, w.Close()) })
		s, err := sqlite.Open(t.Context(), w, sqlite.Options{})
		require.NoError(t, err)
		stores, writers = append(stores, s), append(writers, w)
	}
	opts := durable.Options{Name: "q", Poll: 20 * time.Second, Lease: time.Minute}
	run, err := durable.New[string, string](stores[0], nil, func(ctx context.Context, item string) error {
		if err := durable.Return(ctx, len(item)); err != nil {
			return err
		}
		err := writers[0].Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error {
			if err := sqlite.Finish(ctx, tx); err != nil || item == "finished" {
				return err
			}
			return errors.New("rolled back")
		})
		if item == "finished" {
			return err
		}
		return nil // it ends now, with its result
	}, opts)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, run.Run(ctx)) })
	other, err := durable.New[string, string](stores[1], nil, func(context.Context, string) error { return nil }, opts)
	require.NoError(t, err)
	for _, item := range []string{"finished", "not yet"} {
		id, err := other.Enqueue(t.Context(), item)
		require.NoError(t, err)
		began := time.Now()
		got, err := durable.Wait[int](t.Context(), other, id)
		require.NoError(t, err)
		assert.Equal(t, len(item), got)
		assert.Less(t, time.Since(began), 10*time.Second, "it was woken")
	}
	stop()
	running.Wait()
	require.NoError(t, run.Close())
	require.NoError(t, other.Close())
}
