package batching_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

var _ core.ResultWork[int, string] = (*batching.ResultBatcher[int, string])(nil).Do

// The return value of the function decides the results of two items.
func TestWhatAFlushReturns(t *testing.T) {
	for name, c := range map[string]struct {
		results []int
		err     error
		want    [2]string
	}{
		"results":             {[]int{1, 2}, nil, [2]string{"1", "2"}},
		"too many results":    {[]int{1, 2, 3}, nil, [2]string{0: wrongNumber(3), 1: wrongNumber(3)}},
		"an error":            {[]int{1, 2}, errOnPurpose, [2]string{errOnPurpose.Error(), errOnPurpose.Error()}},
		"nil ItemErrors":      {[]int{1, 2}, batching.ItemErrors(nil), [2]string{"1", "2"}},
		"ItemErrors":          {[]int{1, 2}, batching.ItemErrors{nil, errOnPurpose}, [2]string{"1", errOnPurpose.Error()}},
		"wrapped ItemErrors":  {[]int{1, 2}, fmt.Errorf("wrapped: %w", batching.ItemErrors{errOther, nil}), [2]string{errOther.Error(), "2"}},
		"ItemErrors, results": {nil, batching.ItemErrors{nil, errOnPurpose}, [2]string{wrongNumber(0), errOnPurpose.Error()}},
		"joined, and nil":     {[]int{1, 2}, errors.Join(errOnPurpose, batching.ItemErrors(nil)), [2]string{joined, joined}},
		"too few ItemErrors":  {nil, batching.ItemErrors{nil}, [2]string{tooFew, tooFew}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, err := batching.NewResultBatcher(func(_ context.Context, batch []int) ([]int, error) {
					slices.Reverse(batch) // the function owns the slice
					return c.results, c.err
				}, batching.Options[int]{Name: "rows", MaxSize: 2})
				require.NoError(t, err)
				var got [2]string
				var all sync.WaitGroup
				var failed atomic.Uint64
				for i := range got {
					all.Go(func() {
						n, err := b.Do(t.Context(), i)
						if got[i] = fmt.Sprint(n); err != nil {
							got[i] = err.Error()
							failed.Add(1)
						}
					})
					synctest.Wait()
				}
				all.Wait()
				require.NoError(t, b.Drain(t.Context()))
				assert.Equal(t, c.want, got)
				assert.Equal(t, failed.Load(), b.Counters().Failed)
				for op := range b.Operations(core.OperationQuery{}) {
					assert.Equal(t, failed.Load() > 0, op.Err != nil)
				}
			})
		})
	}
	assert.ErrorIs(t, batching.ItemErrors{nil, errOnPurpose}, errOnPurpose)
}

const (
	tooFew = `batching: the function of "rows" returned 1 ItemErrors for 2 items: batching: 0 of 1 items failed`
	joined = "batching: the function of \"rows\" returned 0 ItemErrors for 2 items: failed on purpose\nbatching: 0 of 0 items failed"
)

func wrongNumber(n int) string {
	return fmt.Sprintf(`batching: the function of "rows" returned %d results for 2 items`, n)
}

// However a flush fails, each caller gets an answer, and OnError gets the items for which
// no caller waits.
func TestAFailedFlushGivesItsItemsBack(t *testing.T) {
	isPanic := func(err error) bool { _, ok := errors.AsType[*core.PanicError](err); return ok }
	type row struct {
		fail func(batch []int) error
		want func(err error) bool
	}
	each(t, map[string]row{
		"error":  {func(batch []int) error { slices.Reverse(batch); return errOnPurpose }, func(err error) bool { return err == errOnPurpose }},
		"panic":  {func(batch []int) error { clear(batch); panic("on purpose") }, isPanic},
		"goexit": {func([]int) error { runtime.Goexit(); return nil }, isPanic},
	}, func(t *testing.T, c row) {
		j, l := newJournal(0), new(lost)
		j.fail = c.fail
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 4, OnError: l.onError})
		wait := begin(t.Context(), b, 1, 2)
		enqueue(t, b, 3, 4)
		errs := wait()
		synctest.Wait()
		assert.Equal(t, []int{3, 4}, l.items)
		require.Len(t, l.errs, 1)
		for _, err := range append(errs, l.errs...) {
			assert.True(t, c.want(err), "%v", err)
		}
		j.fail = nil
		assert.NoError(t, b.Do(t.Context(), 5), "it goes on")
		assert.Equal(t, uint64(4), drained(t, b).Failed)
	})
}

// OnError gets the errors of its items if they differ.
func TestOnErrorGetsItemErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(lost)
		b := newBatcher(t, func(context.Context, []int) error {
			return fmt.Errorf("wrapped: %w", batching.ItemErrors{nil, errOnPurpose, errOther, errOther})
		}, batching.Options[int]{MaxSize: 4, OnError: l.onError, Bisect: true})
		enqueue(t, b, 0, 1, 2)
		assert.ErrorIs(t, b.Do(t.Context(), 3), errOther)
		s := drained(t, b)
		assert.Equal(t, []int{1, 2}, l.items)
		assert.Equal(t, []error{batching.ItemErrors{errOnPurpose, errOther}}, l.errs)
		assert.EqualError(t, l.errs[0], "batching: 2 of 2 items failed, the first because: failed on purpose")
		assert.Equal(t, uint64(1), s.Calls, "there was nothing to find out by bisecting")
		for op := range b.Operations(core.OperationQuery{}) {
			assert.EqualError(t, op.Err, "wrapped: batching: 3 of 4 items failed, the first because: failed on purpose")
		}
	})
}

// Only bad items fail, good items keep their order, and there are 2n-1 calls at most.
func TestBisect(t *testing.T) {
	type row struct {
		bad   []int
		calls uint64
	}
	each(t, map[string]row{
		"one":         {[]int{5}, 7},
		"first, last": {[]int{0, 7}, 11},
		"all":         {[]int{0, 1, 2, 3, 4, 5, 6, 7}, 15},
	}, func(t *testing.T, c row) {
		var good []int
		l := new(lost)
		b := newBatcher(t, func(_ context.Context, batch []int) error {
			for _, i := range batch {
				switch {
				case i == 5 && slices.Contains(c.bad, i):
					panic(errOnPurpose)
				case slices.Contains(c.bad, i):
					return errOnPurpose
				}
			}
			good = append(good, batch...)
			return nil
		}, batching.Options[int]{MaxSize: 8, Bisect: true, OnError: l.onError})
		signals := coretest.Watch(t, b.Sink(), "batch.*")
		wait := begin(t.Context(), b, 0, 1, 2, 3)
		enqueue(t, b, 4, 5, 6, 7)
		isBad := func(i int) bool { return slices.Contains(c.bad, i) }
		for i, err := range wait() {
			assert.Equal(t, isBad(i), errors.Is(err, errOnPurpose))
		}
		s := drained(t, b)
		items := []int{0, 1, 2, 3, 4, 5, 6, 7}
		assert.Equal(t, slices.DeleteFunc(slices.Clone(items), isBad), append([]int{}, good...))
		assert.Equal(t, slices.DeleteFunc(items[4:], func(i int) bool { return !isBad(i) }), l.items)
		assert.Equal(t, batching.Counters{
			Enqueued: 8, Succeeded: uint64(len(good)), Failed: uint64(len(c.bad)), Batches: 1, Bisected: 1, Calls: c.calls, Closed: true,
		}, s)
		info, _ := batching.Batches.From(signals.ExpectExactly(batching.SignalBisected, batching.SignalFailed)[1])
		assert.Equal(t, len(c.bad), info.Failed)
		assert.Equal(t, int(c.calls), info.Calls)
	})
}

// A batch is not split further if it is cancelled, or if its function ends the goroutine.
func TestWhatEndsBisecting(t *testing.T) {
	bad, goexit := errOnPurpose, &core.PanicError{}
	closed := errors.New(`core: coordinator "batching" is closed`)
	type row struct {
		second func(ctx context.Context)
		want   batching.ItemErrors
	}
	each(t, map[string]row{
		"cancelled": {func(ctx context.Context) { <-ctx.Done() }, batching.ItemErrors{bad, bad, closed, closed}},
		"goexit":    {func(context.Context) { runtime.Goexit() }, batching.ItemErrors{goexit, goexit, goexit, goexit}},
	}, func(t *testing.T, c row) {
		l := new(lost)
		calls := 0
		b := newBatcher(t, func(ctx context.Context, _ []int) error {
			if calls++; calls == 2 {
				c.second(ctx)
			}
			return errOnPurpose
		}, batching.Options[int]{MaxSize: 4, Bisect: true, OnError: l.onError})
		enqueue(t, b, 1, 2, 3, 4)
		synctest.Wait()
		require.NoError(t, b.Close())
		assert.Equal(t, []int{1, 2, 3, 4}, l.items)
		require.Len(t, l.errs, 1)
		got := l.errs[0].(batching.ItemErrors)
		require.Len(t, got, len(c.want))
		for i, want := range c.want {
			assert.True(t, errors.Is(got[i], want) || got[i].Error() == want.Error(), "%v, not %v", got[i], want)
		}
		s := drained(t, b)
		assert.Equal(t, uint64(4), s.Cancelled+s.Failed)
		assert.Equal(t, uint64(2), s.Calls)
	})
}

// If a caller leaves before the flush of its batch, its item leaves, too.
func TestACallerThatLeavesTakesItsItemAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(time.Minute)
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 2})
		assert.ErrorIs(t, b.Do(leaveAfter(t, time.Millisecond), 1), errOnPurpose)
		play(t, b, "3 1s")

		// This also holds for batches that wait for their turn, even if no item is left.
		ctx := leaveAfter(t, time.Second)
		wait := begin(ctx, b, 4, 5, 6)
		enqueue(t, b, 7)
		assert.Equal(t, []error{errOnPurpose, errOnPurpose, errOnPurpose}, wait())
		assert.Equal(t, uint64(4), drained(t, b).Cancelled)
		assert.Equal(t, []string{"1.001s: [3]", "1m1.001s: [7]"}, j.got())
		cancelled := 0
		for range b.Operations(core.OperationQuery{Status: core.StatusCancelled}) {
			cancelled++
		}
		assert.Equal(t, 1, cancelled, "the batch that became empty")
	})
}

// When all callers of a batch have left, its flush is cancelled, unless it has an item
// that came by Enqueue.
func TestAnAbandonedFlushIsCancelled(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			j := newJournal(time.Minute)
			b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 3})
			waits := []func() []error{begin(leaveAfter(t, time.Second), b, 0), begin(leaveAfter(t, 2*time.Second), b, 1)}
			if mixed {
				enqueue(t, b, 2)
			} else {
				go b.Flush(t.Context())
			}
			for i, wait := range waits {
				assert.Equal(t, []error{errOnPurpose}, wait())
				assert.Equal(t, time.Duration(1+i)*time.Second, time.Since(j.begun))
			}
			s := drained(t, b)
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

// A batch is flushed halfway to the deadline of the Do of one of its items.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(0)
		b := newBatcher(t, j.flush, batching.Options[int]{MaxDelay: time.Minute})
		within := func(d time.Duration, item int) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			return b.Do(ctx, item)
		}
		var all sync.WaitGroup
		for i, d := range []time.Duration{50 * time.Second, 20 * time.Second, 30 * time.Second} {
			all.Go(func() { assert.NoError(t, within(d, i)) })
			synctest.Wait()
		}
		all.Wait()
		require.NoError(t, within(time.Hour, 3), "has more time than the delay")
		j.takes = 6 * time.Second
		assert.ErrorIs(t, within(10*time.Second, 4), context.DeadlineExceeded)
		assert.NoError(t, b.Do(longPast{t.Context()}, 5))
		assert.Equal(t, []string{"10s: [0 1 2]", "1m10s: [3]", "1m15s: [4]", "1m20s: [5]"}, j.got())
		assert.Equal(t, []string{"deadline", "delay", "deadline", "deadline"}, reasons(b))
		drained(t, b)
	})
}

// longPast is a foreign context, which may have any deadline.
type longPast struct{ context.Context }

func (longPast) Deadline() (time.Time, bool) { return time.Time{}, true }

// Calls from a flush that would wait for that flush return an error, and are counted.
func TestAFlushDoesNotWaitForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *batching.Batcher[int]
		b = newBatcher(t, func(ctx context.Context, batch []int) error {
			if batch[0] != 0 {
				return nil
			}
			for _, ctx := range []context.Context{ctx, t.Context()} {
				assert.ErrorIs(t, b.Do(ctx, 1), core.ErrWouldDeadlock)
				assert.ErrorIs(t, b.Drain(ctx), core.ErrWouldDeadlock)
				assert.ErrorIs(t, b.Stop(ctx), core.ErrWouldDeadlock)
				assert.NoError(t, b.Enqueue(ctx, 1))
				assert.ErrorIs(t, b.Flush(ctx), core.ErrWouldDeadlock)
				assert.ErrorIs(t, b.WaitIdle(ctx), core.ErrWouldDeadlock)
			}
			assert.ErrorIs(t, b.Enqueue(t.Context(), 2), core.ErrWouldDeadlock, "there is no room")
			done := make(chan error)
			go func() { done <- b.Do(ctx, 1) }()
			assert.ErrorIs(t, <-done, core.ErrWouldDeadlock, "known by its context on another goroutine")
			return nil
		}, batching.Options[int]{MaxQueued: 2})
		require.NoError(t, b.Do(t.Context(), 0))
		s := drained(t, b)
		assert.Equal(t, uint64(3), s.Succeeded)
		assert.Equal(t, uint64(4), s.Rejected)
	})
}

type contextKey struct{}

// Do is work like any other: a coordinator can run it, and Explain says what it waits for.
// The context of the flush has no values of callers.
func TestDoIsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(0)
		b := newBatcher(t, func(ctx context.Context, batch []int) error {
			assert.Nil(t, ctx.Value(contextKey{}))
			return j.flush(ctx, batch)
		}, batching.Options[int]{Name: "rows", MaxSize: 4})
		c := core.Must(core.NewCoordinator(b.Do, core.Options{MaxConcurrency: 4}))
		var id core.OperationID
		for i := range 9 {
			var err error
			id, err = c.Enqueue(context.WithValue(t.Context(), contextKey{}, 1), i)
			require.NoError(t, err)
		}
		synctest.Wait()
		why, _ := c.Explain(id)
		assert.Contains(t, why.String(), `its body waits for a batch of "rows"`)
		require.NoError(t, c.Drain(t.Context()))
		assert.Len(t, j.got(), 3)
		assert.Equal(t, uint64(9), drained(t, b).Succeeded)
	})
}
