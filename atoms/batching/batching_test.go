package batching_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

var errOnPurpose = errors.New("failed on purpose")

// runAll is a flush that runs bodies one after the other.
func runAll(ctx context.Context, batch []coretest.Body) error {
	errs := make(batching.ItemErrors, len(batch))
	for i, body := range batch {
		errs[i] = body(ctx)
	}
	return errs
}

// books are the counters of a batcher in the form in which coretest checks them.
func books(s batching.Stats) core.Stats {
	return core.Stats{
		Enqueued: s.Enqueued, Succeeded: s.Succeeded, Failed: s.Failed, Cancelled: s.Cancelled, Dropped: s.Dropped,
		Pending: s.Pending, Running: s.Running, Closed: s.Closed,
	}
}

// Weak points of the common atom surface: drain twice fails; dispose returns while
// flushes run, and loses what waits. The suite covers them.
func TestLifecycle(t *testing.T) {
	for name, opts := range map[string]batching.Options[coretest.Body]{
		"zero options":  {},
		"one by one":    {MaxSize: 1, MaxQueued: 2},
		"small queue":   {MaxSize: 3, MaxQueued: 4, MaxTracked: -1},
		"side by side":  {MaxSize: 2, MaxConcurrency: 3, Bisect: true},
		"only if asked": {MaxDelay: 1 << 40, MaxQueued: 3},
		"keys": {MaxSize: 2, MaxConcurrency: 2, Key: func(b coretest.Body) string {
			if b == nil {
				return "none"
			}
			return "some"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, do := range []bool{false, true}[:1+len(name)%2] { // half of them with callers beside
				coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
					b, err := batching.New(runAll, opts)
					require.NoError(t, err)
					submit := b.Enqueue
					if do {
						submit = func(ctx context.Context, body coretest.Body) error {
							if err := b.Enqueue(ctx, body); err != nil {
								return err
							}
							go b.Do(ctx, func(context.Context) error { return nil })
							return nil
						}
					}
					return coretest.Subject{
						Lifecycle: b,
						Submit:    submit,
						Sink:      b.Sink(),
						Stats:     func() core.Stats { return books(b.Stats()) },
					}
				})
			}
		})
	}
}

func TestEveryBatchIsFinalizedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := batching.New(runAll, batching.Options[coretest.Body]{MaxSize: 2, MaxTracked: 1})
		require.NoError(t, err)
		var mu sync.Mutex
		var left []core.OperationID
		b.OnFinalized(func(op core.Snapshot) {
			mu.Lock()
			defer mu.Unlock()
			left = append(left, op.ID)
		})
		for range 5 {
			require.NoError(t, b.Enqueue(t.Context(), func(context.Context) error { return nil }))
		}
		require.NoError(t, b.Drain(t.Context()))
		require.NoError(t, b.Close())
		slices.Sort(left)
		require.Len(t, slices.Compact(left), 3)
	})
}
