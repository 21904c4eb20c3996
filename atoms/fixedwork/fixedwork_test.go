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

func newPool(_ testing.TB, opts fixedwork.Options) *fixedwork.Pool[coretest.Body] {
	return core.Must(fixedwork.New(coretest.Run, opts))
}

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		pool := newPool(t, fixedwork.Options{MaxConcurrency: 1, MaxQueued: 2, MaxTracked: 1})
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
}

// Never more than N at once; items start in the order they came; completion order
// is free.
func TestFixedConcurrencyInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, fixedwork.Options{MaxConcurrency: 3})
		begun, ended := make(chan int, 9), make(chan int, 9)
		for i := range 9 {
			core.Must(pool.TryEnqueue(t.Context(), func(context.Context) error {
				begun <- i
				time.Sleep(time.Duration(3-i%3) * time.Second)
				ended <- i
				return nil
			}))
		}
		synctest.Wait()
		assert.Len(t, begun, 3)
		for range 3 {
			assert.Less(t, <-begun, 3)
		}
		require.NoError(t, pool.Drain(t.Context()))
		assert.Equal(t, 2, <-ended, "the third item is the shortest of the first three")
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
		id := core.Must(pool.TryEnqueue(t.Context(), func(ctx context.Context) error {
			core.OperationFrom(ctx).Raise("thumb.made")
			<-ctx.Done()
			return ctx.Err()
		}))
		assert.ErrorIs(t, pool.Wait(t.Context(), id), core.ErrTimeout)
		assert.Equal(t, []core.OperationID{id}, ended)
		assert.Equal(t, "thumbs", signals.ExpectExactly("thumb.made")[0].Source)
		for range 3 {
			require.NoError(t, pool.Do(t.Context(), func(context.Context) error { return nil }))
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
