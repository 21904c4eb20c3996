package fixedwork_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
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
	id, err := pool.TryEnqueue(body)
	require.NoError(t, err)
	return id
}

func quick(context.Context) error { return nil }

var errOnPurpose = errors.New("failed on purpose")

// Weak points of the common atom surface: drain twice fails; dispose returns while
// bodies run, and loses what waits; enqueue after completion gives one of two
// errors. The suite covers them.
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
					Sink:  pool.Sink(),
					Stats: pool.Stats,
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

// Weak point: a tiny window throttles the intake, and erases running operations
// from the snapshot.
func TestTinyWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, fixedwork.Options{MaxConcurrency: 2, MaxTracked: 1})
		running := enqueue(t, pool, func(context.Context) error { time.Sleep(time.Hour); return nil })
		var last core.OperationID
		for range 500 { // without waiting
			last = enqueue(t, pool, quick)
		}
		synctest.Wait()
		var shown []core.OperationID
		for op := range pool.Operations(core.OperationQuery{}) {
			shown = append(shown, op.ID)
		}
		assert.Equal(t, []core.OperationID{running, last}, shown)
		require.NoError(t, pool.Drain(t.Context()))
	})
}

// Weak point: the age trim evicts what still runs, because age counts from the
// start.
func TestAgeCountsFromTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, fixedwork.Options{MaxAge: time.Minute})
		id := enqueue(t, pool, func(context.Context) error { time.Sleep(time.Hour); return nil })
		time.Sleep(time.Hour)
		synctest.Wait()
		time.Sleep(time.Minute - 1)
		op, ok := pool.Lookup(id)
		assert.True(t, ok, "just before")
		assert.Equal(t, core.StatusSucceeded, op.Status)
		time.Sleep(time.Nanosecond)
		_, ok = pool.Lookup(id)
		assert.False(t, ok, "just after")
		require.NoError(t, pool.Close())
	})
}

func TestBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, fixedwork.Options{MaxConcurrency: 1, MaxQueued: 2})
		for range 3 {
			_, err := pool.Enqueue(t.Context(), func(context.Context) error { time.Sleep(time.Minute); return nil })
			require.NoError(t, err)
			synctest.Wait()
		}
		_, err := pool.TryEnqueue(quick)
		assert.ErrorIs(t, err, core.ErrFull)

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		_, err = pool.Enqueue(ctx, quick)
		assert.ErrorIs(t, err, errOnPurpose, "gives up with its context")

		begun := time.Now()
		_, err = pool.Enqueue(t.Context(), quick)
		assert.NoError(t, err)
		assert.Equal(t, time.Minute-time.Second, time.Since(begun), "waits until a slot frees")
		require.NoError(t, pool.Drain(t.Context()))
		assert.Equal(t, uint64(2), pool.Stats().Rejected)
	})
}

// Weak point: a body that ends because it was cancelled is counted neither
// completed nor failed.
func TestEverythingIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, fixedwork.Options{MaxConcurrency: 1})
		assert.NoError(t, pool.Do(t.Context(), quick))
		assert.ErrorIs(t, pool.Do(t.Context(), func(context.Context) error { return errOnPurpose }), errOnPurpose)
		err := pool.Do(t.Context(), func(context.Context) error { panic("on purpose") })
		assert.ErrorAs(t, err, new(*core.PanicError))

		id := enqueue(t, pool, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		waiting := enqueue(t, pool, quick)
		synctest.Wait()
		assert.True(t, pool.Cancel(id, errOnPurpose))
		assert.ErrorIs(t, pool.Wait(t.Context(), id), errOnPurpose)
		assert.NoError(t, pool.Wait(t.Context(), waiting))
		assert.False(t, pool.Cancel(id, nil), "it is finished")

		enqueue(t, pool, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		enqueue(t, pool, quick)
		synctest.Wait()
		require.NoError(t, pool.Close())
		got := pool.Stats()
		assert.NoError(t, coretest.CheckBooks(got))
		want := core.Stats{Enqueued: 7, Succeeded: 2, Failed: 2, Cancelled: 3, Limit: 1, Closed: true}
		assert.Equal(t, want, got)
		assert.ErrorIs(t, pool.Wait(t.Context(), id), core.ErrUnknown, "a closed pool shows nothing")
	})
}

// Work says what it does through its operation: on the sink, under the pool's name.
func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		pool := newPool(t, fixedwork.Options{Name: "thumbs", Sink: sink})
		require.Same(t, sink, pool.Sink())
		signals := coretest.Watch(t, sink, "*")
		require.NoError(t, pool.Do(t.Context(), func(ctx context.Context) error {
			core.OperationFrom(ctx).Raise("thumb.made")
			return nil
		}))
		raised := signals.ExpectExactly(core.SignalStarted, "thumb.made", core.SignalStopped)
		assert.Equal(t, "thumbs", raised[1].Source)
		require.NoError(t, pool.Close())
		assert.Equal(t, "thumbs", signals.ExpectExactly(core.SignalClosed)[0].Key)
	})
}

func TestOptions(t *testing.T) {
	pool := newPool(t, fixedwork.Options{})
	assert.Equal(t, "fixedwork", pool.Name())
	assert.Equal(t, runtime.GOMAXPROCS(0), pool.Stats().Limit)
	assert.NotNil(t, pool.Sink())

	for field, opts := range map[string]fixedwork.Options{
		"MaxConcurrency": {MaxConcurrency: -1},
		"MaxQueued":      {MaxQueued: -1},
	} {
		pool, err := fixedwork.New(coretest.Run, opts)
		assert.Nil(t, pool)
		assert.ErrorContains(t, err, "fixedwork: ")
		assert.ErrorContains(t, err, field)
	}
	_, err := fixedwork.New[int](nil, fixedwork.Options{})
	assert.Error(t, err, "there must be work to do")
}

func TestNoWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, fixedwork.Options{MaxTracked: -1})
		require.NoError(t, pool.Do(t.Context(), quick))
		synctest.Wait()
		assert.Zero(t, pool.Stats().Tracked)
	})
}

func TestExplainSaysWhatHasTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, fixedwork.Options{MaxConcurrency: 1})
		running := enqueue(t, pool, func(context.Context) error { time.Sleep(time.Minute); return nil })
		waiting := enqueue(t, pool, quick)
		synctest.Wait()
		why, ok := pool.Explain(waiting)
		require.True(t, ok)
		require.NotEmpty(t, why.Reasons)
		assert.Equal(t, core.ReasonLimit, why.Reasons[0].Kind)
		assert.Equal(t, running, why.Reasons[0].Holder)
		require.NoError(t, pool.Drain(t.Context()))
		_, ok = pool.Explain(waiting + 1000)
		assert.False(t, ok)
	})
}

func TestEveryOperationIsFinalizedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, fixedwork.Options{MaxTracked: 1})
		var mu sync.Mutex
		var left []core.OperationID
		pool.OnFinalized(func(op core.Snapshot) {
			mu.Lock()
			defer mu.Unlock()
			left = append(left, op.ID)
		})
		first := enqueue(t, pool, quick)
		second := enqueue(t, pool, quick)
		require.NoError(t, pool.Drain(t.Context()))
		require.NoError(t, pool.Close())
		assert.ElementsMatch(t, []core.OperationID{first, second}, left)
	})
}
