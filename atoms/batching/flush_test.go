package batching_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/core"
)

// journal is a flush that takes some time and notes what it was given, and when.
type journal struct {
	takes time.Duration
	fail  func(batch []int) error

	mu      sync.Mutex
	begun   time.Time
	batches []string // "1s: 1 2 3"
	sizes   []int
	running int
	most    int
}

func newJournal() *journal { return &journal{begun: time.Now()} }

func (j *journal) flush(ctx context.Context, batch []int) error {
	j.mu.Lock()
	j.batches = append(j.batches, fmt.Sprintf("%v: %v", time.Since(j.begun), batch))
	j.sizes = append(j.sizes, len(batch))
	j.running++
	j.most = max(j.most, j.running)
	fail := j.fail
	j.mu.Unlock()
	defer func() { j.mu.Lock(); j.running--; j.mu.Unlock() }()
	if j.takes > 0 {
		select {
		case <-time.After(j.takes):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if fail != nil {
		return fail(batch)
	}
	return nil
}

func (j *journal) failWith(fail func(batch []int) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fail = fail
}

func (j *journal) got() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.batches)
}

// lost are the items that OnError is told of.
type lost struct {
	mu    sync.Mutex
	items []int
	errs  []error
}

func (l *lost) onError(items []int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, items...)
	l.errs = append(l.errs, err)
}

func newBatcher(t testing.TB, flush core.Work[[]int], opts batching.Options[int]) *batching.Batcher[int] {
	t.Helper()
	b, err := batching.New(flush, opts)
	require.NoError(t, err)
	return b
}

func enqueue(t testing.TB, b *batching.Batcher[int], items ...int) {
	t.Helper()
	for _, i := range items {
		require.NoError(t, b.TryEnqueue(i))
	}
}

func balanced(t testing.TB, s batching.Stats) {
	t.Helper()
	assert.Equal(t, s.Enqueued, uint64(s.Pending+s.Running)+s.Succeeded+s.Failed+s.Cancelled+s.Dropped, "%+v", s)
	assert.Equal(t, s.Batches, s.BySize+s.ByBytes+s.ByDelay+s.ByDeadline+s.ByRoom+s.ByFlush, "%+v", s)
}

func TestBySize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 3})
		enqueue(t, b, 1, 2, 3, 4, 5, 6, 7)
		synctest.Wait()
		assert.Equal(t, []string{"0s: [1 2 3]", "0s: [4 5 6]"}, j.got())
		assert.Equal(t, 1, b.Stats().Pending)
		require.NoError(t, b.Drain(t.Context()))
		assert.Equal(t, "0s: [7]", j.got()[2])
		s := b.Stats()
		balanced(t, s)
		assert.Equal(t, batching.Stats{Enqueued: 7, Succeeded: 7, Batches: 3, BySize: 2, ByFlush: 1, Calls: 3, Margin: time.Millisecond, Closed: true}, s)
	})
}

// Weak point: the interval is a timer that runs all the time, not one that starts
// with the first item.
func TestDelayCountsFromTheFirstItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		b := newBatcher(t, j.flush, batching.Options[int]{MaxDelay: time.Second})
		time.Sleep(700 * time.Millisecond)
		enqueue(t, b, 1)
		time.Sleep(900 * time.Millisecond)
		enqueue(t, b, 2)
		synctest.Wait()
		assert.Empty(t, j.got())
		time.Sleep(100*time.Millisecond - 1)
		synctest.Wait()
		assert.Empty(t, j.got(), "just before")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Equal(t, []string{"1.7s: [1 2]"}, j.got())
		time.Sleep(time.Minute)
		enqueue(t, b, 3)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, "1m2.7s: [3]", j.got()[1])
		assert.Equal(t, uint64(2), b.Stats().ByDelay)
	})
}

// Weak point: a flush runs, in part, while every producer is held up.
func TestAFlushHoldsUpNoProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.takes = time.Hour
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 2})
		begun := time.Now()
		enqueue(t, b, 1, 2, 3, 4, 5)
		assert.Zero(t, time.Since(begun))
		synctest.Wait()
		assert.Equal(t, []string{"0s: [1 2]"}, j.got())
		require.NoError(t, b.Close())
	})
}

// Weak points: flushes overlap, and finish out of order; while one runs the batch
// grows beyond its maximum.
func TestOneFlushAtATimeInOrderOfExactSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.takes = 5 * time.Second
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 4, MaxDelay: time.Second})
		enqueue(t, b, 0)
		time.Sleep(2 * time.Second)
		for i := range 10 {
			enqueue(t, b, i+1)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"1s: [0]", "6s: [1 2 3 4]", "11s: [5 6 7 8]", "16s: [9 10]"}, j.got())
		assert.Equal(t, 1, j.most)
		require.NoError(t, b.Drain(t.Context()))
	})
}

// While a flush runs, a batch whose time has come goes on to be filled.
func TestSlowFlushesGetFullerBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.takes = 10 * time.Second
		b := newBatcher(t, j.flush, batching.Options[int]{MaxDelay: time.Second})
		for i := range 9 {
			enqueue(t, b, i)
			time.Sleep(2 * time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"1s: [0]", "11s: [1 2 3 4 5]", "21s: [6 7 8]"}, j.got())
		require.NoError(t, b.Drain(t.Context()))
	})
}

// Weak point: the buffer is unbounded.
func TestTheQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.takes = time.Minute
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 2, MaxQueued: 3})
		enqueue(t, b, 1, 2)
		synctest.Wait() // these are being flushed, and do not wait any more
		enqueue(t, b, 3, 4, 5)
		assert.ErrorIs(t, b.TryEnqueue(6), core.ErrFull)

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		assert.ErrorIs(t, b.Enqueue(ctx, 6), errOnPurpose, "gives up with its context")
		assert.ErrorIs(t, b.Do(ctx, 6), errOnPurpose)

		begun := time.Now()
		require.NoError(t, b.Enqueue(t.Context(), 7))
		assert.Equal(t, 59*time.Second, time.Since(begun), "waits until there is room")
		require.NoError(t, b.Drain(t.Context()))
		assert.Equal(t, []string{"0s: [1 2]", "1m0s: [3 4]", "2m0s: [5 7]"}, j.got())
		s := b.Stats()
		balanced(t, s)
		assert.Equal(t, uint64(3), s.Rejected)
	})
}

func TestWhoWaitsForRoomIsServedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.takes = time.Second
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 1, MaxQueued: 1})
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if i%2 == 0 {
					assert.NoError(t, b.Enqueue(t.Context(), i))
				} else {
					assert.NoError(t, b.Do(t.Context(), i))
				}
			})
			synctest.Wait()
		}
		all.Wait()
		require.NoError(t, b.Drain(t.Context()))
		for i, batch := range j.got() {
			assert.Equal(t, fmt.Sprintf("%v: [%d]", time.Duration(i)*time.Second, i), batch)
		}
	})
}

// A queue that is full of items whose batch has time makes room all the same.
func TestAFullQueueIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 10, MaxQueued: 2, MaxDelay: -1})
		for i := range 5 {
			require.NoError(t, b.Enqueue(t.Context(), i))
		}
		synctest.Wait()
		assert.Equal(t, []string{"0s: [0 1]", "0s: [2 3]"}, j.got())
		assert.Equal(t, uint64(2), b.Stats().ByRoom)
		enqueue(t, b, 5)
		assert.ErrorIs(t, b.TryEnqueue(6), core.ErrFull)
		synctest.Wait()
		enqueue(t, b, 6)
		require.NoError(t, b.Drain(t.Context()))
	})
}

func TestDropOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, l := newJournal(), new(lost)
		j.takes = time.Minute
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 2, MaxQueued: 3, DropOldest: true, OnError: l.onError})
		enqueue(t, b, 0, 1)
		synctest.Wait()
		done := make(chan error, 1)
		go func() { done <- b.Do(t.Context(), 2) }()
		synctest.Wait()
		enqueue(t, b, 3, 4, 5)
		assert.ErrorIs(t, <-done, core.ErrDropped)
		enqueue(t, b, 6, 7)
		assert.Equal(t, []int{3, 4}, l.items)
		assert.Equal(t, []error{core.ErrDropped, core.ErrDropped}, l.errs)
		require.NoError(t, b.Drain(t.Context()))
		assert.Equal(t, []string{"0s: [0 1]", "1m0s: [5]", "2m0s: [6 7]"}, j.got(), "what had become empty is not flushed")
		s := b.Stats()
		balanced(t, s)
		assert.Equal(t, uint64(3), s.Dropped)
	})
}

func TestByBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		b := newBatcher(t, j.flush, batching.Options[int]{MaxBytes: 10, SizeOf: func(i int) int { return i }})
		enqueue(t, b, 4, 5)
		synctest.Wait()
		assert.Empty(t, j.got())
		assert.Equal(t, 9, b.Stats().PendingBytes)
		enqueue(t, b, 2, -7, 8, 10, 1)
		synctest.Wait()
		assert.Equal(t, []string{"0s: [4 5]", "0s: [2 -7 8]", "0s: [10]"}, j.got())
		assert.Equal(t, uint64(3), b.Stats().ByBytes)
		err := b.TryEnqueue(11)
		assert.ErrorIs(t, err, batching.ErrTooLarge)
		assert.ErrorContains(t, err, "11 bytes, and 10 is the limit")
		assert.ErrorIs(t, b.Do(t.Context(), 12), batching.ErrTooLarge)
		require.NoError(t, b.Drain(t.Context()))
		s := b.Stats()
		assert.Zero(t, s.PendingBytes)
		assert.Equal(t, uint64(2), s.Rejected)
	})
}

func TestQueuedBytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.takes = time.Minute
		b := newBatcher(t, j.flush, batching.Options[int]{MaxDelay: -1, MaxQueuedBytes: 10, SizeOf: func(i int) int { return i }})
		enqueue(t, b, 6)
		assert.ErrorIs(t, b.TryEnqueue(5), core.ErrFull)
		enqueue(t, b, 4)
		synctest.Wait()
		assert.ErrorIs(t, b.TryEnqueue(11), batching.ErrTooLarge)
		require.NoError(t, b.Drain(t.Context()))
		assert.Equal(t, 10, 6+4)
	})
}

func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.takes = time.Second
		b := newBatcher(t, j.flush, batching.Options[int]{MaxDelay: time.Hour})
		require.NoError(t, b.Flush(t.Context()), "of nothing")
		enqueue(t, b, 1, 2)
		require.NoError(t, b.Flush(t.Context()))
		assert.Equal(t, []string{"0s: [1 2]"}, j.got())
		enqueue(t, b, 3)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errOnPurpose)
		defer cancel()
		assert.ErrorIs(t, b.Flush(ctx), errOnPurpose)
		assert.Equal(t, 1, b.Stats().Running, "the flush goes on")
		require.NoError(t, b.Drain(t.Context()))
		assert.ErrorIs(t, b.TryEnqueue(4), core.ErrClosed)
		assert.Equal(t, uint64(2), b.Stats().ByFlush)
	})
}

// Weak points: a failed flush loses its items, or ends the process.
func TestAFailedFlushGivesItsItemsBack(t *testing.T) {
	for name, trigger := range map[string]func(*batching.Batcher[int]){
		"by size":  func(b *batching.Batcher[int]) { b.TryEnqueue(3) },
		"by delay": func(*batching.Batcher[int]) { time.Sleep(time.Minute) },
		"by drain": func(b *batching.Batcher[int]) { b.Drain(context.Background()) },
	} {
		for how, fail := range map[string]func([]int) error{
			"error":  func(batch []int) error { slices.Reverse(batch); return errOnPurpose },
			"panic":  func(batch []int) error { clear(batch); panic(errOnPurpose) },
			"goexit": func(batch []int) error { runtime.Goexit(); return nil },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					j, l := newJournal(), new(lost)
					j.failWith(fail)
					b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 3, OnError: l.onError})
					enqueue(t, b, 1, 2)
					trigger(b)
					require.NoError(t, b.Drain(t.Context()))
					s := b.Stats()
					balanced(t, s)
					assert.Equal(t, []int{1, 2, 3}[:s.Enqueued], l.items, "whatever the flush did with its slice")
					require.Len(t, l.errs, 1)
					if how == "goexit" {
						assert.ErrorAs(t, l.errs[0], new(*core.PanicError))
					} else {
						assert.ErrorIs(t, l.errs[0], errOnPurpose)
					}
					assert.Equal(t, s.Enqueued, s.Failed)
					for op := range b.Operations(core.OperationQuery{}) {
						assert.Equal(t, core.StatusFailed, op.Status)
					}
				})
			})
		}
	}
}

// Weak points: closing does not wait for flushes that run, and an item that comes
// meanwhile is stranded.
func TestNothingIsStrandedByDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for round := range 50 {
			j := newJournal()
			j.takes = time.Duration(round%3) * time.Millisecond
			b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 3, MaxQueued: 4, MaxDelay: 2 * time.Millisecond})
			var (
				all      sync.WaitGroup
				mu       sync.Mutex
				accepted int
			)
			for range 5 {
				all.Go(func() {
					for i := range 20 {
						if err := b.Enqueue(t.Context(), i); err != nil {
							assert.ErrorIs(t, err, core.ErrClosed)
							return
						}
						mu.Lock()
						accepted++
						mu.Unlock()
					}
				})
			}
			time.Sleep(time.Duration(round%7) * time.Millisecond)
			require.NoError(t, b.Drain(t.Context()))
			all.Wait()
			s := b.Stats()
			balanced(t, s)
			assert.Equal(t, uint64(accepted), s.Succeeded)
			flushed := 0
			for _, n := range j.sizes {
				flushed += n
			}
			assert.Equal(t, accepted, flushed)
		}
	})
}

// After its end a batcher has no timer, which would keep it in memory.
func TestNoTimerIsLeftAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func(*batching.Batcher[int]) error{
			"Complete": func(b *batching.Batcher[int]) error { b.Complete(); return nil },
			"Drain":    func(b *batching.Batcher[int]) error { return b.Drain(t.Context()) },
			"Close":    (*batching.Batcher[int]).Close,
		} {
			b := newBatcher(t, newJournal().flush, batching.Options[int]{MaxDelay: time.Hour})
			enqueue(t, b, 1)
			require.NoError(t, end(b))
			assert.False(t, batching.StopTimer(b), name)
		}
	})
}

// Weak point: the flush gets a context that nothing ends.
func TestCloseCancelsFlushesAndGivesTheRestBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, l := newJournal(), new(lost)
		j.takes = time.Hour
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 2, OnError: l.onError})
		enqueue(t, b, 1, 2, 3, 4, 5)
		done := make(chan error, 1)
		go func() { done <- b.Do(t.Context(), 6) }()
		synctest.Wait()
		require.NoError(t, b.Close())
		assert.ErrorIs(t, <-done, core.ErrClosed)
		assert.Equal(t, []int{1, 2, 3, 4, 5}, l.items)
		assert.Equal(t, []error{core.ErrClosed, core.ErrClosed}, l.errs)
		assert.Len(t, j.got(), 1)
		s := b.Stats()
		balanced(t, s)
		assert.Equal(t, uint64(6), s.Cancelled)
	})
}

func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.takes = time.Second
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 1, MaxConcurrency: 3})
		enqueue(t, b, 1, 2, 3, 4, 5)
		require.NoError(t, b.Drain(t.Context()))
		assert.Equal(t, 3, j.most)
		assert.Equal(t, 2*time.Second, time.Since(j.begun))
	})
}

// Items of each key have batches of their own, one at a time; a slow one does not hold
// up the others.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		var keys []string
		b := newBatcher(t, func(ctx context.Context, batch []int) error {
			j.mu.Lock()
			keys = append(keys, core.OperationFrom(ctx).Key())
			j.mu.Unlock()
			if batch[0] < 10 {
				time.Sleep(10 * time.Second)
			}
			return j.flush(ctx, batch)
		}, batching.Options[int]{
			MaxSize:        2,
			MaxConcurrency: 2,
			Key:            func(i int) string { return string(rune('a' + i/10)) },
		})
		enqueue(t, b, 1, 11, 2, 21, 12, 3, 4, 5)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"0s: [11 12]", "1s: [21]"}, j.got())
		require.NoError(t, b.Drain(t.Context()))
		assert.Equal(t, []string{"10s: [1 2]", "20s: [3 4]", "30s: [5]"}, j.got()[2:])
		assert.ElementsMatch(t, []string{"a", "b"}, keys[:2], "at once")
		assert.Equal(t, []string{"c", "a", "a"}, keys[2:])
	})
}

func TestABatchCanBeSeenAndCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, l := newJournal(), new(lost)
		j.takes = time.Hour
		b := newBatcher(t, j.flush, batching.Options[int]{Name: "rows", MaxSize: 2, MaxQueued: 5, OnError: l.onError})
		assert.Equal(t, "rows", b.Name())
		enqueue(t, b, 1, 2)
		synctest.Wait()
		enqueue(t, b, 3, 4, 5, 6)
		var ids []core.OperationID
		for op := range b.Operations(core.OperationQuery{}) {
			ids = append(ids, op.ID)
		}
		require.Len(t, ids, 3)
		x, ok := b.Explain(ids[1])
		assert.True(t, ok)
		assert.Equal(t, core.ReasonLimit, x.Reasons[0].Kind)

		room := make(chan error, 1)
		enqueue(t, b, 7)
		go func() { room <- b.Enqueue(t.Context(), 8) }()
		synctest.Wait()
		assert.True(t, b.Cancel(ids[1], errOnPurpose), "one that waits")
		assert.NoError(t, <-room, "there is room again")
		assert.Equal(t, []int{3, 4}, l.items)
		assert.False(t, b.Cancel(ids[1], nil))
		op, ok := b.Lookup(ids[1])
		assert.True(t, ok)
		assert.Equal(t, core.StatusCancelled, op.Status)

		assert.True(t, b.Cancel(ids[0], nil), "one that runs")
		synctest.Wait()
		assert.Equal(t, []int{3, 4, 1, 2}, l.items)
		assert.Equal(t, []error{errOnPurpose, core.ErrCancelled}, l.errs)
		assert.Equal(t, []string{"0s: [1 2]", "0s: [5 6]"}, j.got())
		op, _ = b.Lookup(ids[0])
		batch, _ := core.Value[batching.Batch](op, batching.ValueBatch)
		assert.Equal(t, batching.ReasonSize, batch.Reason)
		assert.Equal(t, 2, batch.Failed)
		require.NoError(t, b.Close())
		assert.False(t, b.Cancel(ids[2], nil))
		balanced(t, b.Stats())
	})
}

// A caller of Key, SizeOf or OnError that panics gets its panic; nothing is lost.
func TestPanicsOfOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.takes = time.Second
		b := newBatcher(t, j.flush, batching.Options[int]{
			MaxSize: 1, MaxQueued: 1, DropOldest: true,
			SizeOf:  func(i int) int { return 10 / i },
			Key:     func(i int) string { return string("abc"[i]) },
			OnError: func([]int, error) { panic("on purpose") },
		})
		assert.Panics(t, func() { b.TryEnqueue(0) })
		assert.Panics(t, func() { b.TryEnqueue(3) })
		enqueue(t, b, 1)
		synctest.Wait()
		enqueue(t, b, 1)
		assert.Panics(t, func() { b.TryEnqueue(2) }, "which dropped one")
		require.NoError(t, b.Drain(t.Context()))
		s := b.Stats()
		balanced(t, s)
		assert.Equal(t, uint64(2), s.Succeeded)
		assert.Equal(t, uint64(1), s.Dropped)
	})
}

func TestOptions(t *testing.T) {
	b := newBatcher(t, func(context.Context, []int) error { return nil }, batching.Options[int]{})
	assert.Equal(t, "batching", b.Name())
	assert.NotNil(t, b.Sink())
	for want, opts := range map[string]batching.Options[int]{
		"Options.MaxSize is -1":                               {MaxSize: -1},
		"Options.MaxBytes is -1":                              {MaxBytes: -1},
		"Options.MaxQueued is -1":                             {MaxQueued: -1},
		"Options.MaxQueuedBytes is -1":                        {MaxQueuedBytes: -1},
		"Options.MaxConcurrency is -1":                        {MaxConcurrency: -1},
		"Options.MaxBytes is 1, but there is no SizeOf":       {MaxBytes: 1},
		"Options.MaxQueuedBytes is 1, but there is no SizeOf": {MaxQueuedBytes: 1},
		"must not be less than MaxBytes, which is 2":          {MaxBytes: 2, MaxQueuedBytes: 1, SizeOf: func(int) int { return 1 }},
	} {
		b, err := batching.New(func(context.Context, []int) error { return nil }, opts)
		assert.Nil(t, b)
		assert.ErrorContains(t, err, "batching: ")
		assert.ErrorContains(t, err, want)
	}
	_, err := batching.New[int](nil, batching.Options[int]{})
	assert.ErrorContains(t, err, "batching: ")
	_, err = batching.NewResultBatcher[int, int](nil, batching.Options[int]{})
	assert.ErrorContains(t, err, "batching: ")
}
