package fixedwork_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/fixedwork"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func newPool(t testing.TB, opts fixedwork.Options) *fixedwork.Pool[coretest.Body] {
	t.Helper()
	pool, err := fixedwork.New(coretest.Run, opts)
	require.NoError(t, err)
	return pool
}

func enqueue(t testing.TB, pool *fixedwork.Pool[coretest.Body], body coretest.Body) core.OperationID {
	t.Helper()
	id, err := pool.TryEnqueue(context.Background(), body)
	require.NoError(t, err)
	return id
}

func quick(context.Context) error { return nil }

func TestLifecycle(t *testing.T) {
	for name, opts := range map[string]fixedwork.Options{
		"zero options": {},
		"one worker":   {MaxConcurrency: 1, MaxQueued: 2, MaxTracked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				pool := newPool(t, opts)
				return coretest.Subject{
					Lifecycle: pool,
					Submit: func(ctx context.Context, body coretest.Body) error {
						_, err := pool.Enqueue(ctx, body)
						return err
					},
					Sink:     pool.Sink(),
					Stats:    pool.Stats,
					WaitIdle: pool.WaitIdle,
				}
			})
		})
	}
}

// Never more than N at once; items start in the order they came; completion order
// is free.
func TestFixedConcurrencyInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, fixedwork.Options{MaxConcurrency: 3})
		finished := make(chan int, 9)
		for i := range 9 {
			enqueue(t, pool, func(context.Context) error {
				time.Sleep(time.Duration(3-i%3) * time.Second)
				finished <- i
				return nil
			})
		}
		synctest.Wait()
		s := pool.Stats()
		assert.Equal(t, 3, s.Running)
		assert.Equal(t, 6, s.Pending)
		var running []core.OperationID
		for op := range pool.Operations(core.OperationQuery{Status: core.StatusRunning}) {
			running = append(running, op.ID)
		}
		assert.IsIncreasing(t, running)
		require.NoError(t, pool.Drain(t.Context()))
		assert.Len(t, finished, 9)
		assert.Equal(t, 2, <-finished, "the third item is the shortest of the first three")
	})
}

// Every option reaches the coordinator.
func TestOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		signals := coretest.Watch(t, sink, "thumb.*")
		var ended []core.OperationID
		pool := newPool(t, fixedwork.Options{
			Name: "thumbs", Sink: sink, MaxTracked: 2, MaxAge: time.Minute, Timeout: time.Hour,
			OnDone: func(s core.Snapshot) { ended = append(ended, s.ID) },
		})
		id := enqueue(t, pool, func(ctx context.Context) error {
			core.OperationFrom(ctx).Raise("thumb.made")
			<-ctx.Done()
			return ctx.Err()
		})
		assert.ErrorIs(t, pool.Wait(t.Context(), id), core.ErrTimeout)
		assert.Equal(t, []core.OperationID{id}, ended)
		assert.Equal(t, "thumbs", signals.ExpectExactly("thumb.made")[0].Source)
		for range 3 {
			require.NoError(t, pool.Do(t.Context(), quick))
		}
		assert.Equal(t, 3, pool.Stats().Tracked, "two, and the one that failed")
		time.Sleep(time.Minute)
		assert.Zero(t, pool.Stats().Tracked)
	})
	pool := newPool(t, fixedwork.Options{})
	assert.Equal(t, "fixedwork", pool.Name())
	assert.Equal(t, runtime.GOMAXPROCS(0), pool.Stats().Limit)
	_, err := fixedwork.New(coretest.Run, fixedwork.Options{MaxConcurrency: -1})
	assert.ErrorContains(t, err, "fixedwork: ")
	_, err = fixedwork.New[int](nil, fixedwork.Options{})
	assert.ErrorContains(t, err, "fixedwork: ")
}
