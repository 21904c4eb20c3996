package retry_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
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

func newQueue(t testing.TB, r *retry.Retrier, opts retry.QueueOptions) *retry.Queue[coretest.Body] {
	t.Helper()
	q, err := retry.NewQueue(r, coretest.Run, opts)
	require.NoError(t, err)
	return q
}

func enqueue(t testing.TB, q *retry.Queue[coretest.Body], body coretest.Body) core.OperationID {
	t.Helper()
	id, err := q.TryEnqueue(body)
	require.NoError(t, err)
	return id
}

func TestQueueLifecycle(t *testing.T) {
	for name, opts := range map[string]retry.QueueOptions{
		"zero options":      {},
		"one worker":        {MaxConcurrency: 1, MaxQueued: 2, MaxTracked: 1},
		"no room for waits": {MaxConcurrency: 2, MaxQueued: 2, MaxBackingOff: -1},
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
					Stats: q.Stats,
				}
			})
		})
	}
}

// Weak point: the waiting item keeps its concurrency slot during backoff; a few failing
// items stop the pool.
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
		s := q.Stats()
		assert.Equal(t, core.Stats{Enqueued: 20, Pending: 18, Running: 2, Limit: 2}, s)
		assert.NoError(t, coretest.CheckBooks(s))
		op, ok := q.Lookup(failing[0])
		assert.True(t, ok)
		assert.Equal(t, core.StatusRunning, op.Status)
		assert.True(t, op.Has(retry.SignalBackoff), "says why it waits")

		time.Sleep(5*time.Minute - 1)
		assert.Equal(t, uint64(8), q.Stats().Succeeded)
		require.NoError(t, q.Drain(t.Context()))
		assert.Equal(t, time.Hour, time.Since(begun), "drain waits for the retries")
		assert.Equal(t, core.Stats{Enqueued: 20, Succeeded: 10, Failed: 10, Limit: 2, Tracked: 10, Closed: true}, q.Stats(),
			"an item counts once, whatever its attempts; those that succeeded are too old to be shown")
		assert.ErrorIs(t, q.Wait(t.Context(), failing[9]), retry.ErrAttempts)
	})
}

// The seed's example: 100 ms times two to the power of the attempt.
func TestQueueRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Backoff: func(attempt int) time.Duration { return 100 * time.Millisecond << attempt }})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 4})
		s := fails(times(2, errOnPurpose)...)
		require.NoError(t, q.Do(t.Context(), s.work))
		assert.Equal(t, []time.Duration{0, 200 * time.Millisecond, 600 * time.Millisecond}, s.at)
		assert.Equal(t, []int{1, 2, 3}, s.numbers)
		assert.Equal(t, uint64(1), q.Stats().Succeeded)
		assert.Equal(t, retry.Stats{Succeeded: 1, Recovered: 1, Retries: 2}, r.Stats())
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

// Weak point: nothing bounds what waits. Items that back off count too: when there are
// too many, no others begin, the queue fills up, and the producer waits.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Attempts: 2, Backoff: retry.Constant(time.Hour)})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 2, MaxQueued: 5, MaxBackingOff: 3})
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
		_, err := q.TryEnqueue(fail)
		assert.ErrorIs(t, err, core.ErrFull)
		assert.Equal(t, 10, q.Stats().Pending)

		begun := time.Now()
		_, err = q.Enqueue(t.Context(), fail)
		assert.NoError(t, err)
		assert.Equal(t, time.Hour, time.Since(begun))
		require.NoError(t, q.Drain(t.Context()))
		assert.Equal(t, 3*time.Hour, time.Since(begun))
		assert.Equal(t, int64(22), attempts.Load())
	})
}

func TestQueueWithoutBackingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Attempts: 2, Backoff: retry.Constant(time.Minute)})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 1, MaxBackingOff: -1})
		first, second := fails(errOnPurpose), fails()
		enqueue(t, q, first.work)
		enqueue(t, q, second.work)
		require.NoError(t, q.Drain(t.Context()))
		assert.Equal(t, []time.Duration{0, time.Minute}, first.at)
		assert.Equal(t, []time.Duration{time.Minute}, second.at)
	})
}

// Cancel returns an item that backs off at that instant, and is not another attempt.
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
		assert.Equal(t, uint64(1), q.Stats().Cancelled)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, q.Do(ctx, fails(times(3, errOnPurpose)...).work), context.DeadlineExceeded)
		synctest.Wait()
		assert.Equal(t, core.Stats{Enqueued: 2, Cancelled: 2, Limit: 1, Tracked: 2}, q.Stats())
	})
}

// A retry that is due and waits for a slot can be cancelled as well, and leaves its
// place in the line.
func TestQueueCancelInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Backoff: retry.Constant(time.Second)})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 1})
		first, second := fails(times(3, errOnPurpose)...), fails(times(1, errOnPurpose)...)
		id := enqueue(t, q, first.work)
		enqueue(t, q, second.work)
		synctest.Wait()
		enqueue(t, q, func(context.Context) error { time.Sleep(time.Minute); return nil })
		time.Sleep(30 * time.Second)
		assert.Equal(t, 2, r.Stats().Waiting)
		assert.True(t, q.Cancel(id, nil))
		assert.ErrorIs(t, q.Wait(t.Context(), id), core.ErrCancelled)
		assert.Equal(t, 30*time.Second, time.Since(first.begun))
		require.NoError(t, q.Drain(t.Context()))
		assert.Equal(t, []time.Duration{0, time.Minute}, second.at)
		assert.Len(t, first.at, 1)
	})
}

func TestQueueClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Backoff: retry.Constant(time.Hour)})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 2})
		for range 20 {
			enqueue(t, q, func(context.Context) error { return errOnPurpose })
		}
		begun := time.Now()
		synctest.Wait()
		require.NoError(t, q.Close())
		assert.Zero(t, time.Since(begun))
		assert.Equal(t, core.Stats{Enqueued: 20, Cancelled: 20, Limit: 2, Closed: true}, q.Stats())
		assert.Equal(t, uint64(20), r.Stats().Cancelled)
	})
}

func TestQueuePanicsAreNotRetriedAndKeepNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Attempts: 2})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 1})
		for range 3 {
			err := q.Do(t.Context(), func(ctx context.Context) error {
				if retry.Attempt(ctx) == 2 {
					panic("on purpose")
				}
				return errOnPurpose
			})
			assert.ErrorAs(t, err, new(*core.PanicError))
			assert.Error(t, q.Do(t.Context(), func(ctx context.Context) error { runtime.Goexit(); return nil }))
		}
		assert.NoError(t, q.Do(t.Context(), func(ctx context.Context) error { return nil }))
		assert.Equal(t, core.Stats{Enqueued: 7, Failed: 6, Succeeded: 1, Limit: 1, Tracked: 7}, q.Stats())
		assert.Equal(t, retry.Stats{Succeeded: 1, Failed: 6, Panicked: 6, Retries: 3}, r.Stats())
	})
}

// Work that waits for another item of its queue, by way of another coordinator, waits for
// the place that it has itself; at the latest when a retry is due that waits for the same.
func TestQueueWorkThatWaitsForItselfIsRefusedBesideARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Attempts: 2, Backoff: retry.Constant(time.Minute)})
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 1})
		c := core.Must(core.NewCoordinator(coretest.Run, core.Options{}))
		retried := fails(errOnPurpose)
		enqueue(t, q, retried.work)
		synctest.Wait() // and so backs off
		enqueue(t, q, func(ctx context.Context) error {
			assert.ErrorIs(t, c.Do(ctx, func(ctx context.Context) error { return q.Do(ctx, fails().work) }), core.ErrWouldDeadlock)
			assert.Equal(t, time.Minute, time.Since(retried.begun))
			return nil
		})
		require.NoError(t, q.Flush(t.Context()))
		assert.Equal(t, []time.Duration{0, time.Minute}, retried.at)
	})
}

func TestQueueSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Name: "api"})
		q := newQueue(t, r, retry.QueueOptions{})
		assert.Equal(t, "api", q.Name())
		assert.Same(t, r.Sink(), q.Sink())
		signals := coretest.Watch(t, r.Sink(), "*")
		require.NoError(t, q.Do(t.Context(), fails(errOnPurpose).work))
		raised := signals.ExpectExactly(core.SignalStarted, retry.SignalBackoff, retry.SignalAttempt, retry.SignalRecovered, core.SignalStopped)
		assert.Equal(t, "api", raised[1].Source)
		assert.Equal(t, "api", raised[1].Key)

		sink := core.NewSink(core.SinkOptions{})
		q = newQueue(t, r, retry.QueueOptions{Name: "calls", Sink: sink})
		require.NoError(t, q.Do(t.Context(), fails(errOnPurpose).work))
		assert.Equal(t, 1, sink.Count(retry.SignalRecovered))
		for op := range q.Operations(core.OperationQuery{}) {
			assert.True(t, op.Has(retry.SignalAttempt))
		}
	})
}

func TestQueueOptions(t *testing.T) {
	r := newRetrier(t, retry.Options{})
	assert.Equal(t, runtime.GOMAXPROCS(0), newQueue(t, r, retry.QueueOptions{}).Stats().Limit)
	for field, opts := range map[string]retry.QueueOptions{
		"MaxConcurrency": {MaxConcurrency: -1},
		"MaxQueued":      {MaxQueued: -1},
	} {
		q, err := retry.NewQueue(r, coretest.Run, opts)
		assert.Nil(t, q)
		assert.ErrorContains(t, err, "retry: ")
		assert.ErrorContains(t, err, field)
	}
	_, err := retry.NewQueue[int](r, nil, retry.QueueOptions{})
	assert.ErrorContains(t, err, "retry: ")
	_, err = retry.NewQueue(nil, coretest.Run, retry.QueueOptions{})
	assert.ErrorContains(t, err, "retry: ")
}

// Random items: never more at once than the limit; all are accounted for, at every
// instant; what does not fail begins in order; what fails has all its attempts, no
// earlier than it should.
func TestQueueRandom(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			limit := 1 + random.IntN(4)
			r := newRetrier(t, retry.Options{Attempts: 1 + random.IntN(4), Backoff: retry.Linear(time.Duration(random.IntN(30)) * time.Millisecond)})
			q := newQueue(t, r, retry.QueueOptions{
				MaxConcurrency: limit, MaxQueued: 1 + random.IntN(10), MaxBackingOff: random.IntN(10) - 1, MaxTracked: 1000,
			})
			var running atomic.Int64
			var mu sync.Mutex
			var started []int
			watch, stop := context.WithCancel(t.Context())
			var watching sync.WaitGroup
			watching.Go(func() {
				for watch.Err() == nil {
					s := q.Stats()
					assert.NoError(t, coretest.CheckBooks(s))
					assert.LessOrEqual(t, s.Running, limit)
					assert.Equal(t, limit, s.Limit)
					time.Sleep(time.Millisecond)
				}
			})
			accepted := 0
			for i := range 100 {
				fail, took := random.IntN(6), time.Duration(random.IntN(20))*time.Millisecond
				id, err := q.Enqueue(t.Context(), func(ctx context.Context) error {
					assert.LessOrEqual(t, running.Add(1), int64(limit))
					defer running.Add(-1)
					if retry.Attempt(ctx) == 1 {
						mu.Lock()
						started = append(started, i)
						mu.Unlock()
					}
					select {
					case <-time.After(took):
					case <-ctx.Done():
						return ctx.Err()
					}
					if retry.Attempt(ctx) <= fail {
						return errOnPurpose
					}
					return nil
				})
				require.NoError(t, err)
				accepted++
				if random.IntN(10) == 0 {
					time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
					q.Cancel(id, nil)
				}
			}
			if seed%4 == 3 {
				time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
				require.NoError(t, q.Close())
			} else {
				require.NoError(t, q.Drain(t.Context()))
				if limit == 1 {
					assert.True(t, slices.IsSorted(started), "%v", started)
				}
			}
			stop()
			watching.Wait()
			s := q.Stats()
			assert.Equal(t, uint64(accepted), s.Enqueued)
			assert.Zero(t, s.Pending)
			assert.Zero(t, s.Running)
			assert.NoError(t, coretest.CheckBooks(s))
			assert.Zero(t, r.Stats().Waiting)
		})
	}
}

// Every operation that waits says why: for its first attempt, for the next, or for its
// turn to make that.
func TestQueueExplains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := core.Must(retry.New(retry.Options{Backoff: retry.Constant(3 * time.Second)}))
		q := newQueue(t, r, retry.QueueOptions{MaxConcurrency: 1, MaxBackingOff: 1})
		release := make(chan struct{})
		explain := func(id core.OperationID) string {
			synctest.Wait()
			x, ok := q.Explain(id)
			require.True(t, ok)
			return x.String()
		}
		failing := enqueue(t, q, func(ctx context.Context) error {
			if retry.Attempt(ctx) == 1 {
				return errOnPurpose
			}
			return nil
		})
		time.Sleep(time.Second)
		blocking := enqueue(t, q, func(context.Context) error { <-release; return nil })
		waiting := enqueue(t, q, func(context.Context) error { return nil })
		assert.Contains(t, explain(failing), "its body waits for attempt 2, for 1s, for 2s more at most")
		assert.Contains(t, explain(waiting), "slots are taken")
		assert.NotContains(t, explain(blocking), "waits")
		time.Sleep(3 * time.Second)
		assert.Contains(t, explain(failing), "its body waits for its turn to make attempt 2")
		close(release)
		require.NoError(t, q.Drain(t.Context()))
		assert.NotContains(t, explain(failing), "waits")
	})
}

// Whatever its attempts, an item is one operation.
func TestEveryQueuedItemIsFinalizedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := core.Must(retry.New(retry.Options{}))
		q := newQueue(t, r, retry.QueueOptions{MaxTracked: 1})
		var mu sync.Mutex
		var left []core.OperationID
		q.OnFinalized(func(op core.Snapshot) {
			mu.Lock()
			defer mu.Unlock()
			left = append(left, op.ID)
		})
		first := enqueue(t, q, func(ctx context.Context) error {
			if retry.Attempt(ctx) < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		second := enqueue(t, q, func(context.Context) error { return nil })
		require.NoError(t, q.Drain(t.Context()))
		require.NoError(t, q.Close())
		assert.ElementsMatch(t, []core.OperationID{first, second}, left)
	})
}

// However items end (by success, failure, panic, Goexit, Cancel, the end of the context of
// Do, while they wait, run, back off, or wait for their next place), afterwards as many run
// at once as before, and as many may back off besides.
func TestQueueLosesNoPlace(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 4))
			limit, spare := 1+random.IntN(3), random.IntN(4)
			options := retry.QueueOptions{MaxConcurrency: limit, MaxQueued: 100, MaxBackingOff: spare}
			if spare == 0 {
				options.MaxBackingOff = -1
			}
			var backoff atomic.Int64
			r := newRetrier(t, retry.Options{Attempts: 3, Backoff: func(int) time.Duration { return time.Duration(backoff.Load()) }})
			q := newQueue(t, r, options)
			var running atomic.Int64
			var all sync.WaitGroup
			for range 60 {
				how, took := random.IntN(6), time.Duration(random.IntN(4))
				backoff.Store(int64(random.IntN(3)))
				body := func(ctx context.Context) error {
					assert.LessOrEqual(t, running.Add(1), int64(limit))
					defer running.Add(-1)
					time.Sleep(took)
					switch {
					case how == 0 && retry.Attempt(ctx) == 2:
						panic("on purpose")
					case how == 1 && retry.Attempt(ctx) == 2:
						runtime.Goexit()
					case how == 2:
						return nil
					}
					return errOnPurpose
				}
				after := time.Duration(random.IntN(10))
				if random.IntN(2) == 0 {
					all.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), after)
						defer cancel()
						_ = q.Do(ctx, body)
					})
				} else {
					id := enqueue(t, q, body)
					all.Go(func() { time.Sleep(after); q.Cancel(id, nil) })
				}
				time.Sleep(time.Duration(random.IntN(3)))
				assert.NoError(t, coretest.CheckBooks(q.Stats()))
			}
			all.Wait()
			require.NoError(t, q.Flush(t.Context()))
			assert.Zero(t, q.Stats().Running)
			assert.Zero(t, r.Stats().Waiting)

			backoff.Store(int64(time.Hour))
			for range limit {
				enqueue(t, q, func(ctx context.Context) error { time.Sleep(time.Minute); return nil })
			}
			synctest.Wait()
			assert.Equal(t, limit, q.Stats().Running, "seed %d", seed)
			require.NoError(t, q.Flush(t.Context()))
			before := r.Stats()
			for range limit + spare + 1 {
				enqueue(t, q, fails(times(3, errOnPurpose)...).work)
			}
			synctest.Wait()
			assert.Equal(t, limit+spare, r.Stats().Waiting, "seed %d", seed)
			assert.Equal(t, before.Retries, r.Stats().Retries)
			require.NoError(t, q.Close())
		})
	}
}
