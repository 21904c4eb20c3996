package postgres

import (
	"cmp"
	"context"
	"fmt"
	"os"
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

// While 100 workers run, 100,000 items are discarded, and the workers go on.
func TestDiscardBesideWork(t *testing.T) {
	many, span := 2_000, time.Second
	if os.Getenv("EPHEMERAL_LONG") != "" {
		many, span = 30_000, 3*time.Second
	}
	s := open(t, func(c *pgxpool.Config) { c.MaxConns = 16 })
	var done atomic.Int64
	q, err := durable.New(s, func(n int) string { return fmt.Sprint(n) }, func(context.Context, int) error { done.Add(1); return nil }, durable.Options{Name: "q", MaxConcurrency: 100})
	require.NoError(t, err)
	exec(t, s, `insert into {s}.durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, started, ended, data)
		select nextval('{s}.durable_item_id'), 'q', 'dead ' || n, '', 0, 64, '', now(), now(), now(), now() + n * interval '1 us', '1' from generate_series(1, $1) as n`, many)
	exec(t, s, `insert into {s}.durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, data)
		select nextval('{s}.durable_item_id'), 'q', 'key ' || n, '', 0, 2, '', now(), now(), '1' from generate_series(1, 10 * $1::bigint) as n`, many)
	exec(t, s, "vacuum analyze {s}.durable_item")
	ctx, stop := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { assert.NoError(t, q.Run(ctx)) })
	rate := func(span time.Duration) float64 {
		before, began := done.Load(), time.Now()
		time.Sleep(span)
		return float64(done.Load()-before) / time.Since(began).Seconds()
	}
	time.Sleep(span / 5)
	alone := rate(span)
	before, began := done.Load(), time.Now()
	p, err := q.DiscardAll(t.Context(), durable.Query{})
	took := time.Since(began)
	beside := float64(done.Load()-before) / took.Seconds()
	require.NoError(t, err)
	alone = min(alone, rate(span)) // the machine may have had more to do meanwhile
	assert.Equal(t, durable.Progress{Matched: many, Looked: many, Changed: many}, p)
	t.Logf("%.0f items a second alone, %.0f beside %d that are discarded in %v", alone, beside, many, took)
	if many == 30_000 {
		assert.Less(t, done.Load(), 10*int64(many), "there was work all the time")
		assert.Greater(t, beside, 0.7*alone)
	}
	stop()
	run.Wait()
	require.NoError(t, q.Close())
}
