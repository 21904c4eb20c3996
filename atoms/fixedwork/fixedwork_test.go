package fixedwork_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/atoms/fixedwork"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		pool := core.Must(fixedwork.New(coretest.Run, fixedwork.Options{MaxConcurrency: 1, MaxQueued: 2, MaxTracked: 1}))
		submit := func(ctx context.Context, body coretest.Body) error {
			_, err := pool.Enqueue(ctx, body)
			return err
		}
		return coretest.Subject{Lifecycle: pool, Submit: submit, Sink: pool.Sink(), Stats: pool.Stats, WaitIdle: pool.WaitIdle}
	})
}

// Every option reaches the coordinator. The weak point of the original: a tiny MaxTracked
// neither limits how many items are accepted nor hides operations that wait or run.
func TestOptionsAndTinyMaxTracked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink, ended := core.NewSink(core.SinkOptions{}), 0
		signals := coretest.Watch(t, sink, "thumb.*")
		pool := core.Must(fixedwork.New(coretest.Run, fixedwork.Options{
			Name: "thumbs", Sink: sink, MaxConcurrency: 1, MaxQueued: 3, MaxTracked: 1, MaxAge: time.Minute, Timeout: time.Hour,
			OnDone: func(core.Snapshot) { ended++ },
		}))
		body := func(ctx context.Context) error {
			core.OperationFrom(ctx).Raise("thumb.made")
			<-ctx.Done()
			return ctx.Err()
		}
		ids := make([]core.OperationID, 4)
		for i := range ids {
			ids[i] = core.Must(pool.TryEnqueue(t.Context(), body))
			synctest.Wait()
		}
		_, err := pool.TryEnqueue(t.Context(), body)
		assert.ErrorIs(t, err, core.ErrFull, "one runs, three wait")
		for _, id := range ids {
			_, shown := pool.Lookup(id)
			assert.True(t, shown)
		}
		assert.Equal(t, "thumbs", signals.ExpectExactly("thumb.made")[0].Source)
		assert.ErrorIs(t, pool.Wait(t.Context(), ids[3]), core.ErrTimeout)
		for range 2 {
			assert.NoError(t, pool.Do(t.Context(), func(context.Context) error { return nil }))
		}
		assert.Equal(t, 6, ended)
		assert.Equal(t, 2, pool.Stats().Tracked, "one, and the one that failed less than MaxAge ago")
		time.Sleep(time.Minute)
		assert.Zero(t, pool.Stats().Tracked)
	})
	pool := core.Must(fixedwork.New(coretest.Run, fixedwork.Options{}))
	assert.Equal(t, "fixedwork", pool.Name())
	_, err := fixedwork.New[int](nil, fixedwork.Options{})
	assert.ErrorContains(t, err, "fixedwork: ")
}
