package batching_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// begin calls Do with each of the items, in that order, and returns a function that
// waits for the errors.
func begin(ctx context.Context, b *batching.Batcher[int], items ...int) func() []error {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { errs[i] = b.Do(ctx, item) })
		synctest.Wait()
	}
	return func() []error { all.Wait(); return errs }
}

var (
	_ core.Work[int]               = (*batching.Batcher[int])(nil).Do
	_ core.ResultWork[int, string] = (*batching.ResultBatcher[int, string])(nil).Do
)

func TestDoWaitsForItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.takes = time.Second
		b := newBatcher(t, j.flush, batching.Options[int]{MaxDelay: time.Minute})
		assert.NoError(t, b.Do(t.Context(), 1))
		assert.Equal(t, 61*time.Second, time.Since(j.begun))
		j.failWith(func([]int) error { return errOnPurpose })
		assert.Equal(t, []error{errOnPurpose, errOnPurpose}, begin(t.Context(), b, 2, 3)())
		require.NoError(t, b.Close())
		assert.ErrorIs(t, b.Do(t.Context(), 4), core.ErrClosed)
	})
}

func TestResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := batching.NewResultBatcher(func(_ context.Context, batch []int) (names []string, err error) {
			for _, i := range batch {
				names = append(names, fmt.Sprint("item ", i))
			}
			slices.Reverse(batch) // its own to change
			return names, nil
		}, batching.Options[int]{MaxSize: 3})
		require.NoError(t, err)
		var all sync.WaitGroup
		for i := range 7 {
			all.Go(func() {
				name, err := b.Do(t.Context(), i)
				assert.NoError(t, err)
				assert.Equal(t, fmt.Sprint("item ", i), name)
			})
		}
		all.Wait()
		require.NoError(t, b.Enqueue(t.Context(), 8))
		require.NoError(t, b.Drain(t.Context()))
		assert.Equal(t, uint64(8), b.Stats().Succeeded)
	})
}

// A flush that returns the wrong number of results, or of errors, is told both numbers.
func TestWrongNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			results []int
			failure error
			calls   int
		)
		b, err := batching.NewResultBatcher(func(context.Context, []int) ([]int, error) {
			calls++
			return results, failure
		}, batching.Options[int]{MaxSize: 2, Bisect: true})
		require.NoError(t, err)
		do := func() (errs [2]error) {
			var all sync.WaitGroup
			for i := range 2 {
				all.Go(func() { _, errs[i] = b.Do(t.Context(), i) })
				synctest.Wait()
			}
			all.Wait()
			return errs
		}
		results = []int{1, 2, 3}
		for _, err := range do() {
			assert.EqualError(t, err, "batching: the flush returned 3 results for 2 items")
		}
		results, failure = nil, batching.ItemErrors{nil}
		for _, err := range do() {
			assert.ErrorContains(t, err, "batching: the flush returned 1 item errors for 2 items")
		}
		failure = batching.ItemErrors{nil, errOnPurpose}
		errs := do()
		assert.EqualError(t, errs[0], "batching: the flush returned 0 results for 2 items")
		assert.Equal(t, errOnPurpose, errs[1])
		assert.Equal(t, 3, calls, "nothing to bisect")
		assert.Equal(t, uint64(6), b.Stats().Failed)
		require.NoError(t, b.Drain(t.Context()))
	})
}

func TestItemErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(lost)
		j := newJournal()
		j.failWith(func(batch []int) error {
			errs := make(batching.ItemErrors, len(batch))
			for i, item := range batch {
				if item%2 == 1 {
					errs[i] = fmt.Errorf("%d is odd", item)
				}
			}
			return fmt.Errorf("wrapped: %w", errs)
		})
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 6, OnError: l.onError, Bisect: true})
		enqueue(t, b, 0, 1, 3)
		errs := begin(t.Context(), b, 4, 5, 6)()
		assert.NoError(t, errs[0])
		assert.EqualError(t, errs[1], "5 is odd")
		assert.NoError(t, errs[2])
		require.NoError(t, b.Drain(t.Context()))
		assert.Equal(t, []int{1, 3}, l.items)
		require.Len(t, l.errs, 1)
		assert.EqualError(t, l.errs[0], "batching: 2 of 2 items failed, the first because: 1 is odd")
		assert.Len(t, j.got(), 1, "there was nothing to find out by bisecting")
		s := b.Stats()
		balanced(t, s)
		assert.Equal(t, uint64(3), s.Failed)
		for op := range b.Operations(core.OperationQuery{Status: core.StatusFailed}) {
			assert.EqualError(t, op.Err, "wrapped: batching: 3 of 6 items failed, the first because: 1 is odd")
		}
		assert.ErrorIs(t, batching.ItemErrors{nil, errOnPurpose}, errOnPurpose)
	})
}

// Only what is bad fails, good items keep their order, and there are 2n-1 calls at most.
func TestBisect(t *testing.T) {
	for name, bad := range map[string][]int{
		"one":         {5},
		"first, last": {0, 7},
		"all":         {0, 1, 2, 3, 4, 5, 6, 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var good []int
				l := new(lost)
				b := newBatcher(t, func(_ context.Context, batch []int) error {
					for _, i := range batch {
						if slices.Contains(bad, i) {
							if i == 5 {
								panic(errOnPurpose)
							}
							return errOnPurpose
						}
					}
					good = append(good, batch...)
					return nil
				}, batching.Options[int]{MaxSize: 8, Bisect: true, OnError: l.onError})
				bisected := coretest.Watch(t, b.Sink(), "batch.*")
				wait := begin(t.Context(), b, 0, 1, 2, 3)
				enqueue(t, b, 4, 5, 6, 7)
				errs := wait()
				require.NoError(t, b.Drain(t.Context()))
				for i, err := range errs {
					if slices.Contains(bad, i) {
						assert.ErrorIs(t, err, errOnPurpose)
					} else {
						assert.NoError(t, err)
					}
				}
				assert.True(t, slices.IsSorted(good))
				assert.Len(t, good, 8-len(bad))
				var enqueuedBad []int
				for _, i := range bad {
					if i >= 4 {
						enqueuedBad = append(enqueuedBad, i)
					}
				}
				assert.Equal(t, enqueuedBad, l.items)
				s := b.Stats()
				balanced(t, s)
				assert.Equal(t, uint64(len(bad)), s.Failed)
				assert.LessOrEqual(t, s.Calls, uint64(15))
				if len(bad) == 1 {
					assert.Equal(t, uint64(7), s.Calls)
				}
				if len(bad) == 8 {
					assert.Equal(t, uint64(15), s.Calls)
				}
				assert.Equal(t, uint64(1), s.Bisected)
				assert.Equal(t, uint64(1), s.Batches)
				raised := bisected.ExpectExactly(batching.SignalBisected, batching.SignalFailed)
				told, _ := batching.Failed.From(raised[1])
				assert.Equal(t, len(bad), told.Failed)
				assert.Equal(t, int(s.Calls), told.Calls)
			})
		})
	}
}

// A batch that is cancelled is not split any further.
func TestBisectStopsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(lost)
		calls := 0
		b := newBatcher(t, func(ctx context.Context, batch []int) error {
			if calls++; calls == 2 {
				<-ctx.Done()
			}
			return errOnPurpose
		}, batching.Options[int]{MaxSize: 4, Bisect: true, OnError: l.onError})
		enqueue(t, b, 1, 2, 3, 4)
		synctest.Wait()
		require.NoError(t, b.Close())
		assert.Equal(t, 2, calls)
		assert.Equal(t, []int{1, 2, 3, 4}, l.items)
		require.Len(t, l.errs, 1)
		assert.Equal(t, batching.ItemErrors{errOnPurpose, errOnPurpose, core.ErrClosed, core.ErrClosed}, l.errs[0])
		s := b.Stats()
		balanced(t, s)
		assert.Equal(t, uint64(4), s.Cancelled)
	})
}

// A panic of the flush reaches every caller, as an error; so does the end of its
// goroutine. Nobody hangs.
func TestPanicReachesEveryCaller(t *testing.T) {
	for name, end := range map[string]func(){
		"panic":  func() { panic("on purpose") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				j.failWith(func([]int) error { end(); return nil })
				b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 3})
				for _, err := range begin(t.Context(), b, 1, 2, 3)() {
					assert.ErrorAs(t, err, new(*core.PanicError))
				}
				j.failWith(nil)
				assert.NoError(t, b.Do(t.Context(), 4), "it goes on")
				require.NoError(t, b.Close())
				balanced(t, b.Stats())
			})
		})
	}
}

// A caller that leaves before its batch is flushed takes its item along.
func TestWhoLeavesTakesTheItemAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.takes = time.Minute
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 2, FlushMargin: -1})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errOnPurpose)
		defer cancel()
		assert.ErrorIs(t, b.Do(ctx, 1), errOnPurpose)
		assert.ErrorIs(t, b.Do(ctx, 2), errOnPurpose, "too late to be accepted")
		enqueue(t, b, 3)
		time.Sleep(time.Second)
		synctest.Wait()

		// In a batch that waits for its turn too, also when that leaves none.
		ctx, cancel = context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		wait := begin(ctx, b, 4, 5, 6)
		enqueue(t, b, 7)
		assert.Equal(t, []error{errOnPurpose, errOnPurpose, errOnPurpose}, wait())
		require.NoError(t, b.Drain(t.Context()))
		assert.Equal(t, []string{"1.001s: [3]", "1m1.001s: [7]"}, j.got())
		s := b.Stats()
		balanced(t, s)
		assert.Equal(t, uint64(4), s.Cancelled)
		assert.Equal(t, uint64(1), s.Rejected)
		cancelled := 0
		for range b.Operations(core.OperationQuery{Status: core.StatusCancelled}) {
			cancelled++
		}
		assert.Equal(t, 1, cancelled, "the batch that became empty")
	})
}

// When all who wait for a batch have left, its flush is cancelled; not so if there is
// an item in it that nobody waits for.
func TestAnAbandonedFlushIsCancelled(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			j := newJournal()
			j.takes = time.Minute
			b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 3, FlushMargin: -1})
			var all sync.WaitGroup
			for i := range 2 {
				all.Go(func() {
					ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(i+1)*time.Second, errOnPurpose)
					defer cancel()
					assert.ErrorIs(t, b.Do(ctx, i), errOnPurpose)
				})
			}
			synctest.Wait()
			if mixed {
				enqueue(t, b, 2)
			} else {
				go b.Flush(t.Context())
			}
			all.Wait()
			assert.Equal(t, 2*time.Second, time.Since(j.begun))
			require.NoError(t, b.Drain(t.Context()))
			s := b.Stats()
			balanced(t, s)
			if mixed {
				assert.Equal(t, time.Minute, time.Since(j.begun))
				assert.Equal(t, uint64(3), s.Succeeded)
			} else {
				assert.Equal(t, 2*time.Second, time.Since(j.begun))
				assert.Equal(t, uint64(2), s.Cancelled)
			}
		})
	}
}

// Those who come and go leave no trail, in a batch that is never full.
func TestComingAndGoingLeavesNoTrail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		b := newBatcher(t, j.flush, batching.Options[int]{MaxDelay: -1, FlushMargin: -1})
		enqueue(t, b, 1)
		for i := range 1000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			assert.Error(t, b.Do(ctx, i))
			cancel()
		}
		require.NoError(t, b.Drain(t.Context()))
		assert.Equal(t, []string{"1s: [1]"}, j.got())
	})
}

// A batch is flushed early enough for the nearest deadline of who waits for it.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.takes = 100 * time.Millisecond
		b := newBatcher(t, j.flush, batching.Options[int]{MaxDelay: time.Minute})
		within := func(d time.Duration, item int) (took time.Duration, err error) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			begun := time.Now()
			err = b.Do(ctx, item)
			return time.Since(begun), err
		}
		took, err := within(time.Second, 1)
		assert.NoError(t, err)
		assert.Equal(t, 600*time.Millisecond, took, "half of the time, as nothing is known yet")
		assert.Equal(t, 300*time.Millisecond, b.Stats().Margin, "100ms + 4*50ms")
		took, err = within(time.Second, 2)
		assert.NoError(t, err)
		assert.Equal(t, 800*time.Millisecond, took)
		for range 50 {
			within(time.Second, 3)
		}
		assert.Less(t, b.Stats().Margin, 101*time.Millisecond)

		// The nearest deadline decides; who has left does not.
		go within(50*time.Second, 4)
		synctest.Wait()
		go within(20*time.Second, 5)
		synctest.Wait()
		ctx, leave := context.WithTimeout(t.Context(), 10*time.Second)
		gone := make(chan error)
		go func() { gone <- b.Do(ctx, 6) }()
		synctest.Wait()
		leave()
		<-gone
		begun, n := time.Now(), len(j.got())
		time.Sleep(19 * time.Second)
		synctest.Wait()
		assert.Len(t, j.got(), n)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Len(t, j.got(), n+1)
		assert.True(t, strings.HasSuffix(j.got()[n], "[4 5]"))
		assert.Equal(t, 20*time.Second, time.Since(begun))
		s := b.Stats()
		assert.Equal(t, s.Batches, s.ByDeadline)
		require.NoError(t, b.Drain(t.Context()))
	})
}

func TestFlushMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		b := newBatcher(t, j.flush, batching.Options[int]{MaxDelay: time.Minute, FlushMargin: 10 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.NoError(t, b.Do(ctx, 1))
		assert.NoError(t, b.Do(ctx, 2), "there is less left than the margin: at once")
		require.NoError(t, b.Close())
		b = newBatcher(t, j.flush, batching.Options[int]{MaxDelay: time.Minute, FlushMargin: -1})
		assert.ErrorIs(t, b.Do(ctx, 3), context.DeadlineExceeded)
		assert.Equal(t, []string{"990ms: [1]", "990ms: [2]"}, j.got())
		require.NoError(t, b.Close())
	})
}

// Called from a flush, what would wait for that flush says so.
func TestAFlushDoesNotWaitForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *batching.Batcher[int]
		asked := 0
		b = newBatcher(t, func(ctx context.Context, batch []int) error {
			if batch[0] != 0 {
				return nil
			}
			for _, ctx := range []context.Context{ctx, t.Context()} {
				asked++
				assert.ErrorIs(t, b.Do(ctx, 1), core.ErrWouldDeadlock)
				assert.ErrorIs(t, b.Flush(ctx), core.ErrWouldDeadlock)
				assert.ErrorIs(t, b.Drain(ctx), core.ErrWouldDeadlock)
				assert.NoError(t, b.Enqueue(ctx, 1))
			}
			assert.ErrorIs(t, b.Enqueue(t.Context(), 2), core.ErrWouldDeadlock, "there is no room")
			done := make(chan error)
			go func() { done <- b.Do(ctx, 1) }()
			assert.ErrorIs(t, <-done, core.ErrWouldDeadlock, "known by its context on another goroutine")
			return nil
		}, batching.Options[int]{MaxQueued: 2})
		require.NoError(t, b.Do(t.Context(), 0))
		require.NoError(t, b.Drain(t.Context()))
		assert.Equal(t, 2, asked)
		assert.Equal(t, uint64(3), b.Stats().Succeeded)
	})
}

// Whatever was not accepted is counted, also when Do would have waited for itself.
func TestADoThatWouldWaitForItselfIsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *batching.Batcher[int]
		b = newBatcher(t, func(ctx context.Context, _ []int) error { return b.Do(ctx, 1) }, batching.Options[int]{MaxSize: 1})
		assert.ErrorIs(t, b.Do(t.Context(), 0), core.ErrWouldDeadlock)
		assert.Equal(t, uint64(1), b.Stats().Rejected)
		require.NoError(t, b.Close())
	})
}

// A call that ends its goroutine is one, too.
func TestGoexitIsACallThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lost
		b := newBatcher(t, func(_ context.Context, batch []int) error {
			if len(batch) < 4 {
				runtime.Goexit()
			}
			time.Sleep(time.Second)
			return errOnPurpose
		}, batching.Options[int]{MaxSize: 4, Bisect: true, OnError: l.onError})
		batches := core.NewKind[batching.Batch](batching.SignalFailed)
		var told batching.Batch
		batches.Subscribe(b.Sink(), func(_ core.Signal, b batching.Batch) { told = b })
		enqueue(t, b, 1, 2, 3, 4)
		require.NoError(t, b.Drain(t.Context()))
		assert.Equal(t, []int{1, 2, 3, 4}, l.items)
		assert.ErrorAs(t, l.errs[0], new(*core.PanicError))
		assert.Equal(t, 2, told.Calls)
		s := b.Stats()
		assert.Equal(t, uint64(2), s.Calls)
		assert.Equal(t, uint64(4), s.Failed)
		balanced(t, s)
	})
}

// No item is lost silently, not even if a handler ends the goroutine.
func TestOnErrorIsToldEvenIfAHandlerEndsTheGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lost
		b := newBatcher(t, func(context.Context, []int) error { return errOnPurpose },
			batching.Options[int]{MaxSize: 2, Bisect: true, OnError: l.onError})
		b.Sink().Subscribe("batch.*,atom.start", func(core.Signal) { runtime.Goexit() })
		enqueue(t, b, 1, 2)
		require.NoError(t, b.Drain(t.Context()))
		assert.Equal(t, []int{1, 2}, l.items)
		balanced(t, b.Stats())

		l = lost{}
		b = newBatcher(t, newJournal().flush, batching.Options[int]{MaxQueued: 1, DropOldest: true, OnError: l.onError})
		b.Sink().Subscribe(batching.SignalDropped, func(core.Signal) { runtime.Goexit() })
		enqueue(t, b, 1)
		var producer sync.WaitGroup
		producer.Go(func() { _ = b.TryEnqueue(2) })
		producer.Wait()
		assert.Equal(t, []int{1}, l.items)
		require.NoError(t, b.Drain(t.Context()))
		balanced(t, b.Stats())
	})
}

// A context of another make may have any deadline.
func TestADeadlineLongPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, margin := range []time.Duration{0, time.Hour, math.MaxInt64} {
			j := newJournal()
			b := newBatcher(t, j.flush, batching.Options[int]{MaxDelay: -1, FlushMargin: margin})
			time.Sleep(time.Second)
			assert.NoError(t, b.Do(longPast{t.Context()}, 1))
			assert.Equal(t, []string{"1s: [1]"}, j.got())
			require.NoError(t, b.Close())
		}
	})
}

type longPast struct{ context.Context }

func (longPast) Deadline() (time.Time, bool) { return time.Time{}, true }

// A coordinator may run Do: it is work like any other.
func TestDoIsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 4})
		c := core.Must(core.NewCoordinator(b.Do, core.Options{MaxConcurrency: 4}))
		for i := range 8 {
			_, err := c.Enqueue(t.Context(), i)
			require.NoError(t, err)
		}
		require.NoError(t, c.Drain(t.Context()))
		assert.Equal(t, []int{4, 4}, j.sizes)
		assert.Equal(t, uint64(8), c.Stats().Succeeded)
	})
}

type contextKey struct{}

func TestTheFlushHasTheValuesOfNoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatcher(t, func(ctx context.Context, _ []int) error {
			assert.Nil(t, ctx.Value(contextKey{}))
			assert.NotNil(t, core.OperationFrom(ctx))
			return nil
		}, batching.Options[int]{MaxSize: 1})
		assert.NoError(t, b.Do(context.WithValue(t.Context(), contextKey{}, 1), 1))
		require.NoError(t, b.Drain(t.Context()))
	})
}

func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		j := newJournal()
		j.takes = time.Second
		b := newBatcher(t, j.flush, batching.Options[int]{
			Name: "rows", Sink: sink, MaxSize: 2, MaxQueued: 2, DropOldest: true,
			SizeOf: func(int) int { return 100 },
			Key:    func(int) string { return "table" },
		})
		require.Same(t, sink, b.Sink())
		signals := coretest.Watch(t, sink, "batch.*")
		enqueue(t, b, 1)
		time.Sleep(time.Minute)
		raised := signals.ExpectExactly(batching.SignalFlushed)
		assert.Equal(t, "rows", raised[0].Source)
		assert.Equal(t, "table", raised[0].Key)
		told, ok := batching.Flushed.From(raised[0])
		assert.True(t, ok)
		assert.Equal(t, batching.Batch{Items: 1, Bytes: 100, Reason: batching.ReasonDelay, Waited: time.Second, Duration: time.Second, Calls: 1}, told)

		j.failWith(func([]int) error { return errOnPurpose })
		enqueue(t, b, 2, 3)
		time.Sleep(time.Minute)
		raised = signals.ExpectExactly(batching.SignalFailed)
		told, _ = batching.Failed.From(raised[0])
		assert.Equal(t, batching.Batch{Items: 2, Bytes: 200, Reason: batching.ReasonSize, Duration: time.Second, Calls: 1, Failed: 2, Err: errOnPurpose}, told)

		enqueue(t, b, 1, 2)
		synctest.Wait()
		enqueue(t, b, 3, 4, 5, 6)
		assert.Equal(t, "rows", signals.ExpectExactly(batching.SignalDropped)[0].Key, "once, when it begins")
		j.failWith(func([]int) error { panic("on purpose") })
		panics := coretest.Watch(t, sink, core.SignalPanic)
		require.NoError(t, b.Drain(t.Context()))
		panics.Expect(core.SignalPanic)
		require.NoError(t, b.Close())
	})
}

var errOther = errors.New("failed on purpose, otherwise")

// Random callers, each of whom gets an answer that fits the counters.
func TestEverythingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(lost)
		j := newJournal()
		j.takes = time.Millisecond
		j.failWith(func(batch []int) error {
			for _, i := range batch {
				if i%10 == 9 {
					return errOther
				}
			}
			return nil
		})
		b := newBatcher(t, j.flush, batching.Options[int]{
			MaxSize: 5, MaxQueued: 20, MaxDelay: 3 * time.Millisecond, MaxConcurrency: 2, Bisect: true, OnError: l.onError,
			Key: func(i int) string { return string(rune('a' + i%3)) },
		})
		var (
			all                       sync.WaitGroup
			mu                        sync.Mutex
			done, failed, left, given int
		)
		for g := range 30 {
			all.Go(func() {
				for i := range 30 {
					if g%3 == 0 {
						require.NoError(t, b.Enqueue(t.Context(), i))
						mu.Lock()
						given++
						mu.Unlock()
						continue
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i*g)%12)*time.Millisecond)
					err := b.Do(ctx, i)
					cancel()
					mu.Lock()
					switch {
					case err == nil:
						done++
					case errors.Is(err, errOther):
						failed++
					default:
						assert.ErrorIs(t, err, context.DeadlineExceeded)
						left++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		require.NoError(t, b.Drain(t.Context()))
		s := b.Stats()
		balanced(t, s)
		assert.Equal(t, 30*30, done+failed+left+given)
		assert.LessOrEqual(t, uint64(done), s.Succeeded)
		assert.LessOrEqual(t, uint64(failed+len(l.items)), s.Failed)
		assert.Len(t, l.items, 10*3, "each bad item that nobody waited for, once")
		assert.Equal(t, uint64(30*30), s.Enqueued+s.Rejected)
		assert.LessOrEqual(t, slices.Max(j.sizes), 5)
		assert.LessOrEqual(t, j.most, 2)
	})
}

// An operation that waits for its item says so.
func TestExplainNamesTheBatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatcher(t, newJournal().flush, batching.Options[int]{Name: "rows", MaxDelay: time.Second})
		c := core.Must(core.NewCoordinator(b.Do, core.Options{}))
		id, err := c.Enqueue(t.Context(), 1)
		require.NoError(t, err)
		synctest.Wait()
		why, _ := c.Explain(id)
		assert.Contains(t, why.String(), `its body waits for a batch of "rows"`)
		require.NoError(t, c.Drain(t.Context()))
		require.NoError(t, b.Close())
	})
}
