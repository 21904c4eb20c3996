package batching_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/core"
)

// However a batcher ends, each item is counted. OnError gets the items that were not
// flushed and for which no caller waits.
func TestWhatBecomesOfItemsAtTheEnd(t *testing.T) {
	type row struct {
		end   func(b *batching.Batcher[int], ctx context.Context) error
		takes time.Duration // until it returns
		late  error         // error of a call that waits for room
		do    error         // error of a call that waits for a result
		lost  []int
		runs  error // error of OnError for the running batch
		stats batching.Counters
	}
	each(t, map[string]row{
		"Drain": {
			end: (*batching.Batcher[int]).Drain, takes: 3 * time.Minute, late: core.ErrClosed,
			stats: batching.Counters{Enqueued: 6, Succeeded: 6, Rejected: 1, Batches: 3, Calls: 3, Closed: true},
		},
		"Stop": {
			end: (*batching.Batcher[int]).Stop, takes: time.Minute, late: core.ErrClosed, do: core.ErrStopped, lost: []int{3, 4, 5},
			stats: batching.Counters{Enqueued: 6, Succeeded: 2, Cancelled: 4, Rejected: 1, Batches: 1, Calls: 1, Closed: true},
		},
		"Close": {
			end:  func(b *batching.Batcher[int], _ context.Context) error { return b.Close() },
			late: core.ErrClosed, do: core.ErrClosed, lost: []int{3, 4, 5, 1, 2}, runs: core.ErrClosed,
			stats: batching.Counters{Enqueued: 6, Cancelled: 6, Rejected: 1, Batches: 1, Calls: 1, Closed: true},
		},
		"Abort": { // the intake stays open, and calls that wait for room get room
			end: func(b *batching.Batcher[int], ctx context.Context) error {
				b.Abort(errOnPurpose)
				return b.WaitIdle(ctx)
			},
			takes: time.Minute, do: errOnPurpose, lost: []int{3, 4, 5, 1, 2}, runs: errOnPurpose,
			stats: batching.Counters{Enqueued: 7, Succeeded: 1, Cancelled: 6, Batches: 2, Calls: 2},
		},
	}, func(t *testing.T, c row) {
		j, l := newJournal(time.Minute), new(lost)
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 2, MaxQueued: 4, OnError: l.onError})
		enqueue(t, b, 1, 2)
		synctest.Wait() // the items are being flushed
		enqueue(t, b, 3, 4, 5)
		wait := begin(t.Context(), b, 6)
		late := make(chan error, 1)
		go func() { late <- b.Enqueue(t.Context(), 7) }()
		synctest.Wait()
		require.NoError(t, c.end(b, t.Context()))
		assert.Equal(t, c.takes, time.Since(j.begun))
		assert.ErrorIs(t, <-late, c.late)
		errs := wait()
		require.Len(t, errs, 1)
		assert.ErrorIs(t, errs[0], c.do)
		assert.Equal(t, c.lost, l.items)
		for i, err := range l.errs {
			assert.ErrorIs(t, err, []error{c.do, c.runs}[i])
		}
		assert.Equal(t, c.stats, b.Counters())
	})
}

// No timer keeps a batcher in memory after its end.
func TestNoTimerIsLeftAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(*batching.Batcher[int]) error{
		"Complete": func(b *batching.Batcher[int]) error { b.Complete(); return b.Flush(context.Background()) },
		"Stop":     func(b *batching.Batcher[int]) error { return b.Stop(context.Background()) },
		"Close":    (*batching.Batcher[int]).Close,
	} {
		b := newBatcher(t, newJournal(0).flush, batching.Options[int]{MaxDelay: time.Hour})
		enqueue(t, b, 1)
		require.NoError(t, end(b))
		w := weak.Make(b)
		b = nil
		for i := 0; i < 100 && w.Value() != nil; i++ {
			runtime.GC()
		}
		assert.Nil(t, w.Value(), name)
	}
}

// A panic of Key, SizeOf or OnError reaches its caller, and changes nothing else.
func TestPanicsOfOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(time.Second)
		b := newBatcher(t, j.flush, batching.Options[int]{
			MaxSize: 1, MaxQueued: 1, DropOldest: true,
			SizeOf:  func(i int) int { return 10 / i },
			Key:     func(i int) string { return string("abc"[i]) },
			OnError: func([]int, error) { panic("on purpose") },
		})
		assert.Panics(t, func() { b.TryEnqueue(context.Background(), 0) })
		assert.Panics(t, func() { b.TryEnqueue(context.Background(), 3) })
		enqueue(t, b, 1)
		synctest.Wait()
		enqueue(t, b, 1)
		assert.Panics(t, func() { b.TryEnqueue(context.Background(), 2) }, "which dropped one")
		assert.Equal(t, 1, b.Counters().Running)
		assert.Panics(t, func() { b.Close() }, "which drops the other one")
		s := b.Counters()
		balanced(t, s)
		assert.Equal(t, []uint64{3, 2, 1}, []uint64{s.Enqueued, s.Cancelled, s.Dropped})
		assert.Zero(t, s.Running, "it is closed nevertheless")
	})
}

// Whatever is done to a batcher meanwhile, each accepted item is flushed or given back
// exactly once. The answers of callers agree with the counters.
func TestEachItemIsFlushedOrGivenBack(t *testing.T) {
	for name, end := range map[string]func(*batching.Batcher[int]) error{
		"Drain": func(b *batching.Batcher[int]) error { return b.Drain(context.Background()) },
		"Stop":  func(b *batching.Batcher[int]) error { return b.Stop(context.Background()) },
		"Close": (*batching.Batcher[int]).Close,
	} {
		for _, key := range []func(int) string{nil, func(i int) string { return string(rune('a' + i%3)) }} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var (
						mu       sync.Mutex
						ended    = map[int]int{} // how often each item has ended
						accepted atomic.Int64
						all      sync.WaitGroup
					)
					note := func(items ...int) {
						mu.Lock()
						defer mu.Unlock()
						for _, i := range items {
							ended[i]++
						}
					}
					j := newJournal(time.Millisecond)
					j.fail = func(batch []int) error {
						errs := make(batching.ItemErrors, len(batch))
						for i, item := range batch {
							if item%10 == 9 {
								errs[i] = errOther
							} else {
								note(item)
							}
						}
						return errs
					}
					b := newBatcher(t, j.flush, batching.Options[int]{
						MaxSize: 3, MaxQueued: 20, MaxDelay: 3 * time.Millisecond, Key: key,
						OnError: func(items []int, _ error) { note(items...) },
					})
					for g := range 10 {
						all.Go(func() {
							for i := range 100 {
								if b.Enqueue(t.Context(), 100*g+i+1) == nil {
									accepted.Add(1)
								}
							}
						})
					}
					for i := range 40 {
						time.Sleep(time.Millisecond)
						switch i % 5 {
						case 0:
							require.NoError(t, b.SetMaxConcurrency(1+i%3))
						case 1:
							b.Pause()
						case 2:
							b.Abort(errOther)
						case 3:
							b.Resume()
						case 4:
							for op := range b.Operations(core.OperationQuery{}) {
								b.Cancel(op.ID, errOther)
							}
						}
					}
					require.NoError(t, end(b))
					all.Wait()
					s := b.Counters()
					balanced(t, s)
					assert.Equal(t, uint64(10*100), s.Enqueued+s.Rejected)
					assert.NotZero(t, s.Cancelled*s.Succeeded)
					assert.Len(t, ended, int(accepted.Load()))
					for i, n := range ended {
						assert.Equal(t, 1, n, "item %d", i)
					}
				})
			})
		}
	}
}
