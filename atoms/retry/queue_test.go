package retry_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
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
	for name, opts := range map[string]retry.QueueOptions{
		"zero options":      {},
		"one worker":        {MaxConcurrency: 1, MaxQueued: 2, MaxTracked: 1},
		"no room for waits": {MaxConcurrency: 2, MaxQueued: 2, MaxSuspended: -1},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				q := newQueue(t, newRetrier(t, retry.Options{}), opts)
				return coretest.Subject{
					Lifecycle: q,
					Submit: func(ctx context.Context, body coretest.Body) error {
						_, err := q.Enqueue(ctx, body)
						return err
					},
					Sink:  q.Sink(),
					Stats: q.Stats, WaitIdle: q.WaitIdle,
				}
			})
		})
	}
}

// An item that backs off gives up its slot, so that items that fail do not stop the queue.
func TestBackingOffItemsKeepNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Attempts: 2, Backoff: retry.Constant(time.Hour)})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 2})
		var failing []core.OperationID
		for range 10 {
			failing = append(failing, enqueue(t, q, func(context.Context) error { return errOnPurpose }))
		}
		begun := time.Now()
		for range 10 {
			enqueue(t, q, func(context.Context) error { time.Sleep(time.Minute); return nil })
		}
		synctest.Wait()
		assert.Equal(t, core.Stats{Enqueued: 20, Pending: 8, Running: 2, Suspended: 10, Limit: 2}, q.Stats())
		var shown []core.OperationID
		for op := range q.Operations(core.OperationQuery{Status: core.StatusSuspended}) {
			assert.True(t, op.Has(retry.SignalDelayed), "says why it waits")
			shown = append(shown, op.ID)
		}
		assert.Equal(t, failing, shown)
		op, ok := q.Lookup(failing[0])
		assert.True(t, ok)
		assert.Equal(t, core.StatusSuspended, op.Status)

		time.Sleep(5*time.Minute - 1)
		assert.Equal(t, uint64(8), q.Stats().Succeeded)
		require.NoError(t, q.Drain(t.Context()))
		assert.Equal(t, time.Hour, time.Since(begun), "drain waits for the retries")
		assert.Equal(t, core.Stats{Enqueued: 20, Succeeded: 10, Failed: 10, Limit: 2, Tracked: 10, Closed: true}, q.Stats(),
			"an item counts once, whatever its attempts; those that succeeded are too old to be shown")
		assert.ErrorIs(t, q.Wait(t.Context(), failing[9]), retry.ErrAttempts)
	})
}

// First attempts are in order. A retry that is due goes before them, and retries among
// each other in the order in which they are due.
func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Backoff: retry.Constant(1500 * time.Millisecond)})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 1})
		var seen []string
		begun := time.Now()
		for i := range 6 {
			enqueue(t, q, func(ctx context.Context) error {
				seen = append(seen, fmt.Sprintf("%d:%d@%v", i, retry.Attempt(ctx), time.Since(begun)))
				time.Sleep(time.Second)
				if i < 2 && retry.Attempt(ctx) == 1 {
					return errOnPurpose
				}
				return nil
			})
		}
		require.NoError(t, q.Drain(t.Context()))
		assert.Equal(t, []string{
			"0:1@0s", "1:1@1s", "2:1@2s",
			"0:2@3s", // was due at 2.5 s
			"1:2@4s", // at 3.5 s
			"3:1@5s", "4:1@6s", "5:1@7s",
		}, seen)
	})
}

// Items that back off count too: when there are too many, no other item starts, the queue
// fills up, and the producer waits.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Attempts: 2, Backoff: retry.Constant(time.Hour)})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 2, MaxQueued: 5, MaxSuspended: 3})
		var attempts atomic.Int64
		fail := func(context.Context) error { attempts.Add(1); return errOnPurpose }
		for range 5 {
			enqueue(t, q, fail)
			synctest.Wait()
		}
		assert.Equal(t, int64(5), attempts.Load(), "two that may run, and three besides")
		for range 5 {
			enqueue(t, q, fail)
			synctest.Wait()
		}
		assert.Equal(t, int64(5), attempts.Load())
		_, err := q.TryEnqueue(context.Background(), fail)
		assert.ErrorIs(t, err, core.ErrFull)
		s := q.Stats()
		assert.Equal(t, []int{5, 5}, []int{s.Suspended, s.Pending})

		begun := time.Now()
		_, err = q.Enqueue(t.Context(), fail)
		assert.NoError(t, err)
		assert.Equal(t, time.Hour, time.Since(begun))
		require.NoError(t, q.Drain(t.Context()))
		assert.Equal(t, 3*time.Hour, time.Since(begun))
		assert.Equal(t, int64(22), attempts.Load())
	})
}

// An item that is cancelled while it backs off makes no further attempt, and ends at that
// instant, or when a slot is free.
func TestQueueCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Backoff: retry.Constant(time.Hour)})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 1})
		s := fails(times(3, errOnPurpose)...)
		id := enqueue(t, q, s.work)
		synctest.Wait()
		why := errors.New("enough")
		assert.True(t, q.Cancel(id, why))
		err := q.Wait(t.Context(), id)
		assert.ErrorIs(t, err, why)
		assert.ErrorIs(t, err, errOnPurpose)
		assert.Zero(t, time.Since(s.begun))
		assert.Len(t, s.at, 1)
		assert.False(t, q.Cancel(id, nil))

		id = enqueue(t, q, s.work) // backs off as well
		synctest.Wait()
		enqueue(t, q, func(context.Context) error { time.Sleep(time.Minute); return nil })
		synctest.Wait()
		assert.True(t, q.Cancel(id, nil))
		assert.ErrorIs(t, q.Wait(t.Context(), id), core.ErrCancelled)
		assert.Equal(t, time.Minute, time.Since(s.begun))
		assert.Len(t, s.at, 2)

		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		assert.ErrorIs(t, q.Do(ctx, fails(times(3, errOnPurpose)...).work), why)
		synctest.Wait()
		assert.Equal(t, core.Stats{Enqueued: 4, Succeeded: 1, Cancelled: 3, Limit: 1, Tracked: 4}, q.Stats())
	})
}

// Work that waits for another item of its queue gives up its slot for it, also when as
// many back off as may. The item may back off as well.
func TestQueueWorkMayWaitForItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Attempts: 2, Backoff: retry.Constant(time.Minute)})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 1, MaxSuspended: 1})
		before, inner := fails(errOnPurpose), fails(errOnPurpose)
		enqueue(t, q, before.work)
		enqueue(t, q, func(ctx context.Context) error {
			return errors.Join(q.Do(ctx, fails().work), q.Do(ctx, inner.work))
		})
		require.NoError(t, q.Flush(t.Context()))
		assert.Equal(t, []time.Duration{0, time.Minute}, before.at)
		assert.Equal(t, []time.Duration{0, time.Minute}, inner.at)
		assert.Equal(t, uint64(4), q.Stats().Succeeded)
	})
}

// Random items, some of which are cancelled or closed: never more at once than the limit;
// the others have all the attempts that they need, none too early; in the end nothing waits.
func TestQueueRandom(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			upTo := func(most int) time.Duration { return time.Duration(random.IntN(most)) * time.Millisecond }
			limit, attempts, step := 1+random.IntN(4), 1+random.IntN(4), upTo(30)
			r := newRetrier(t, retry.Options{Attempts: attempts, Backoff: retry.Linear(step)})
			q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: limit, MaxQueued: 1 + random.IntN(10), MaxSuspended: random.IntN(10) - 1})
			var running atomic.Int64
			type item struct{ want, made int }
			var items []*item
			for range 100 {
				failing, took := random.IntN(6), upTo(20)
				it := &item{want: min(failing+1, attempts)}
				var due time.Time
				id, err := q.Enqueue(t.Context(), func(ctx context.Context) error {
					assert.LessOrEqual(t, running.Add(1), int64(limit))
					defer running.Add(-1)
					it.made++
					assert.Equal(t, it.made, retry.Attempt(ctx))
					assert.False(t, time.Now().Before(due))
					time.Sleep(took)
					due = time.Now().Add(time.Duration(it.made) * step)
					if it.made <= failing {
						return errOnPurpose
					}
					return nil
				})
				require.NoError(t, err)
				if random.IntN(10) == 0 {
					time.Sleep(upTo(50))
					q.Cancel(id, nil)
				} else {
					items = append(items, it)
				}
			}
			if seed%4 == 3 {
				time.Sleep(upTo(100))
				require.NoError(t, q.Close())
			} else {
				require.NoError(t, q.Drain(t.Context()))
				for _, it := range items {
					assert.Equal(t, it.want, it.made, "seed %d", seed)
				}
			}
			s := q.Stats()
			assert.Equal(t, uint64(100), s.Succeeded+s.Failed+s.Cancelled)
			assert.Zero(t, r.Stats().Waiting)
		})
	}
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

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, q.Do(ctx, func(context.Context) error { return errOnPurpose }), retry.ErrDeadline, "that of Do")

		for _, end := range []func(){func() { panic("on purpose") }, runtime.Goexit} {
			assert.Error(t, q.Do(t.Context(), func(ctx context.Context) error {
				if retry.Attempt(ctx) == 2 {
					end()
				}
				return errOnPurpose
			}))
		}
		require.NoError(t, q.Do(t.Context(), fails(errOnPurpose).work))
		require.NoError(t, q.Do(t.Context(), fails().work))
		assert.Equal(t, core.Stats{Enqueued: 6, Failed: 4, Succeeded: 2, Limit: 1, Tracked: 5}, q.Stats())
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
