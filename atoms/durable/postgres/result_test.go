package postgres

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/durabletest"
)

func TestResult(t *testing.T) {
	here := open(t)
	durabletest.Results(t, here, openIn(t, here.opts.Schema), func(ctx context.Context, rollBack error) error {
		return pgx.BeginFunc(ctx, here.pool, func(tx pgx.Tx) error { return cmp.Or(Finish(ctx, tx), rollBack) })
	})
}

// While 100 workers run, dead items are discarded, and the workers go on.
func TestDiscardBesideWork(t *testing.T) {
	lots, many, span := 2, 400, 100*time.Millisecond // of a lot
	long := os.Getenv("EPHEMERAL_LONG") != ""
	if long {
		lots, many, span = 3, 2500, 500*time.Millisecond
	}
	s := open(t, func(c *pgxpool.Config) { c.MaxConns = 16 })
	var done atomic.Int64
	q, err := durable.New(s, func(n int) string { return fmt.Sprint(n) }, func(context.Context, int) error { done.Add(1); return nil }, durable.Options{Name: "q", MaxConcurrency: 100})
	require.NoError(t, err)
	exec(t, s, `insert into {s}.durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, data)
		select nextval('{s}.durable_item_id'), 'q', 'key ' || n, '', 0, 2, '', now(), now(), '1' from generate_series(1, $1) as n`, 15*lots*many)
	exec(t, s, "vacuum analyze {s}.durable_item")
	ctx, stop := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { assert.NoError(t, q.Run(ctx)) })
	var ratios []float64 // in turns, because the machine may have more to do at times
	for range lots {
		exec(t, s, `insert into {s}.durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, started, ended, data)
			select nextval('{s}.durable_item_id'), 'q', 'dead ' || n, '', 0, 64, '', now(), now(), now(), now() + n * interval '1 us', '1' from generate_series(1, $1) as n`, many)
		before, began := done.Load(), time.Now()
		time.Sleep(span)
		alone := float64(done.Load()-before) / time.Since(began).Seconds()
		before, began = done.Load(), time.Now()
		p, err := q.DiscardAll(t.Context(), durable.Query{})
		beside := float64(done.Load()-before) / time.Since(began).Seconds()
		require.NoError(t, err)
		assert.Equal(t, durable.Progress{Matched: many, Looked: many, Changed: many}, p)
		ratios = append(ratios, beside/alone)
	}
	slices.Sort(ratios)
	t.Logf("items a second beside %d that are discarded, to those alone: %.2f", many, ratios)
	if long {
		assert.Less(t, done.Load(), int64(15*lots*many), "there was work all the time")
		assert.Greater(t, ratios[lots/2], 0.7)
	}
	stop()
	run.Wait()
	require.NoError(t, q.Close())
}
