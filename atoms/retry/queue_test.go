package retry_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func TestQueueLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		q := newQueue(t, newRetrier(t, retry.Options{}), retry.QueueOptions{MaxConcurrency: 2, MaxQueued: 2, MaxSuspended: -1})
		submit := func(ctx context.Context, body coretest.Body) error {
			_, err := q.Enqueue(ctx, body)
			return err
		}
		return coretest.Subject{Lifecycle: q, Submit: submit, Sink: q.Sink(), Stats: q.Stats, WaitIdle: q.WaitIdle}
	})
}

// Weak point of the original: an item that backs off gives up its slot, so that items that fail do not stop the queue.
func TestBackingOffItemsKeepNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Attempts: 2, Backoff: retry.Constant(time.Hour)})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 2})
		var failing core.OperationID
		for range 10 {
			failing = enqueue(t, q, func(context.Context) error { return errOnPurpose })
		}
		begun := time.Now()
		for range 10 {
			enqueue(t, q, func(context.Context) error { time.Sleep(time.Minute); return nil })
		}
		synctest.Wait()
		assert.Equal(t, core.Stats{Enqueued: 20, Pending: 8, Running: 2, Suspended: 10, Limit: 2}, q.Stats())
		op, _ := q.Lookup(failing)
		assert.True(t, op.Has(retry.SignalDelayed), "says why it waits")
		assert.Equal(t, core.StatusSuspended, op.Status)
		require.NoError(t, q.Drain(t.Context()))
		assert.Equal(t, time.Hour, time.Since(begun), "drain waits for the retries")
		assert.Equal(t, core.Stats{Enqueued: 20, Succeeded: 10, Failed: 10, Limit: 2, Tracked: 10, Closed: true}, q.Stats(),
			"an item counts once, whatever its attempts; those that succeeded are too old to be shown")
		assert.ErrorIs(t, q.Wait(t.Context(), failing), retry.ErrAttempts)
	})
}

// Items that back off count too: when there are too many, no other item starts, and the
// queue fills up.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Attempts: 2, Backoff: retry.Constant(time.Hour)})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 2, MaxQueued: 5, MaxSuspended: 3})
		fail := func(context.Context) error { return errOnPurpose }
		for range 10 {
			enqueue(t, q, fail)
			synctest.Wait()
		}
		_, err := q.TryEnqueue(context.Background(), fail)
		assert.ErrorIs(t, err, core.ErrFull)
		s := q.Stats()
		assert.Equal(t, []int{5, 5}, []int{s.Suspended, s.Pending}, "two that may run, and three besides")
		require.NoError(t, q.Drain(t.Context()))
	})
}

// Every option reaches the coordinator. Timeout bounds all attempts and the delays; a panic
// is not retried; an item is one operation, whatever its attempts.
func TestQueueOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []error
		r := newRetrier(t, retry.Options{Attempts: -1, Backoff: retry.Constant(time.Second)})
		q := newQueue(t, r, retry.QueueOptions{
			Timeout: 10 * time.Second, MaxTracked: 1, MaxAge: time.Minute, MaxConcurrency: 1,
			OnDone: func(s core.Snapshot) { ended = append(ended, s.Err) },
		})
		begun := time.Now()
		err := q.Do(t.Context(), func(context.Context) error { time.Sleep(time.Second); return errOnPurpose })
		assert.ErrorIs(t, err, retry.ErrDeadline)
		assert.ErrorIs(t, err, errOnPurpose)
		assert.Equal(t, 9*time.Second, time.Since(begun), "the next attempt would be too late")
		assert.Equal(t, []error{err}, ended)

		assert.Error(t, q.Do(t.Context(), func(ctx context.Context) error {
			if retry.Attempt(ctx) == 2 {
				panic("on purpose")
			}
			return errOnPurpose
		}))
		require.NoError(t, q.Do(t.Context(), fails(errOnPurpose).work))
		require.NoError(t, q.Do(t.Context(), fails().work))
		assert.Equal(t, core.Stats{Enqueued: 4, Failed: 2, Succeeded: 2, Limit: 1, Tracked: 3}, q.Stats())
		time.Sleep(time.Minute)
		assert.Zero(t, q.Stats().Tracked)
	})
	r := newRetrier(t, retry.Options{Name: "api"})
	q := newQueue(t, r, retry.QueueOptions{})
	assert.Equal(t, runtime.GOMAXPROCS(0), q.Stats().Limit)
	assert.Equal(t, "api", q.Name())
	assert.Same(t, r.Sink(), q.Sink())
	sink := core.NewSink(core.SinkOptions{})
	q = newQueue(t, r, retry.QueueOptions{Name: "calls", Sink: sink})
	assert.NoError(t, q.Do(t.Context(), fails(errOnPurpose).work))
	assert.Equal(t, 1, sink.Count(retry.SignalRecovered), "raised by the operation")
	assert.Equal(t, "calls", q.Name())
	_, err := retry.NewQueue(r, coretest.Run, retry.QueueOptions{MaxConcurrency: -1})
	assert.ErrorContains(t, err, "retry: ")
	_, err = retry.NewQueue[int](r, nil, retry.QueueOptions{})
	assert.ErrorContains(t, err, "retry: NewQueue needs")
	_, err = retry.NewQueue(nil, coretest.Run, retry.QueueOptions{})
	assert.ErrorContains(t, err, "retry: NewQueue needs")
}

func newQueue(_ testing.TB, r *retry.Retrier, opts retry.QueueOptions) *retry.Queue[coretest.Body] {
	return core.Must(retry.NewQueue(r, coretest.Run, opts))
}

func enqueue(_ testing.TB, q *retry.Queue[coretest.Body], body coretest.Body) core.OperationID {
	return core.Must(q.TryEnqueue(context.Background(), body))
}
