package retry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

var errOnPurpose = errors.New("failed on purpose")

func newRetrier(t testing.TB, opts retry.Options) *retry.Retrier {
	t.Helper()
	r, err := retry.New(opts)
	require.NoError(t, err)
	return r
}

// script is work that fails with its errors, one after the other, and then succeeds. It
// notes when it was called, from its making on, and with which number.
type script struct {
	errs    []error
	begun   time.Time
	at      []time.Duration
	numbers []int
}

func fails(errs ...error) *script { return &script{errs: errs, begun: time.Now()} }

func (s *script) work(ctx context.Context) error {
	s.at = append(s.at, time.Since(s.begun))
	s.numbers = append(s.numbers, retry.Attempt(ctx))
	if n := len(s.at); n <= len(s.errs) {
		return s.errs[n-1]
	}
	return nil
}

func times(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// Three attempts, the first at once, the others 50 ms and 100 ms after the one before.
func TestDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{})
		s := fails(times(3, errOnPurpose)...)
		err := r.Do(t.Context(), s.work)
		assert.ErrorIs(t, err, errOnPurpose)
		assert.ErrorIs(t, err, retry.ErrAttempts)
		assert.EqualError(t, err, "retry: gave up after 3 attempts: failed on purpose")
		assert.Equal(t, []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond}, s.at)
		assert.Equal(t, []int{1, 2, 3}, s.numbers)
		assert.Equal(t, "retry", r.Name())
		assert.NotNil(t, r.Sink())
		assert.Equal(t, retry.Stats{Failed: 1, Exhausted: 1, Retries: 2}, r.Stats())
	})
}

func TestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for attempts, want := range map[int]int{1: 1, 2: 2, 5: 5} {
			s := fails(times(100, errOnPurpose)...)
			r := newRetrier(t, retry.Options{Attempts: attempts})
			err := r.Do(t.Context(), s.work)
			assert.Len(t, s.at, want)
			var gaveUp *retry.Error
			require.ErrorAs(t, err, &gaveUp)
			assert.Equal(t, retry.Error{Attempts: want, Cause: retry.ErrAttempts, Err: errOnPurpose}, *gaveUp)
		}
		s := fails(times(100, errOnPurpose)...)
		assert.NoError(t, newRetrier(t, retry.Options{Attempts: -1}).Do(t.Context(), s.work), "no limit")
		assert.Len(t, s.at, 101)
		assert.EqualError(t, newRetrier(t, retry.Options{Attempts: 1}).Do(t.Context(), fails(errOnPurpose).work),
			"retry: gave up after 1 attempt: failed on purpose")
	})
}

// The backoff is asked between attempts only, with the number of the one just failed.
func TestBackoffIsAskedBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []int
		r := newRetrier(t, retry.Options{Attempts: 4, Backoff: func(attempt int) time.Duration {
			asked = append(asked, attempt)
			return 100 * time.Millisecond << attempt
		}})
		s := fails(times(4, errOnPurpose)...)
		assert.Error(t, r.Do(t.Context(), s.work))
		assert.Equal(t, []int{1, 2, 3}, asked)
		ms := time.Millisecond
		assert.Equal(t, []time.Duration{0, 200 * ms, 600 * ms, 1400 * ms}, s.at)
	})
}

func TestRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{})
		s := fails(errOnPurpose)
		assert.NoError(t, r.Do(t.Context(), s.work))
		assert.NoError(t, r.Do(t.Context(), s.work))
		assert.Equal(t, []time.Duration{0, 50 * time.Millisecond, 50 * time.Millisecond}, s.at)
		assert.Equal(t, retry.Stats{Succeeded: 2, Recovered: 1, Retries: 1}, r.Stats())
	})
}

// Weak point: every error is retried, also those that no attempt will mend.
func TestPermanentErrorsAreNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{})
		s := fails(retry.Permanent(errOnPurpose))
		assert.Same(t, errOnPurpose, r.Do(t.Context(), s.work), "the error itself")
		assert.Len(t, s.at, 1)

		wrapped := fmt.Errorf("reading: %w", retry.Permanent(errOnPurpose))
		s = fails(wrapped)
		assert.Same(t, wrapped, r.Do(t.Context(), s.work), "as it is")
		assert.ErrorIs(t, wrapped, errOnPurpose)
		assert.Len(t, s.at, 1)

		s = fails(errOnPurpose, retry.Permanent(fmt.Errorf("%w: %w", errOnPurpose, &core.PanicError{})))
		err := r.Do(t.Context(), s.work)
		assert.ErrorAs(t, err, new(*core.PanicError))
		assert.Len(t, s.at, 2)

		assert.NoError(t, retry.Permanent(nil))
		assert.EqualError(t, retry.Permanent(errOnPurpose), errOnPurpose.Error())
		assert.Equal(t, retry.Stats{Failed: 3, Permanent: 3, Retries: 1}, r.Stats())
	})
}

func TestRetryIf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := errors.New("another")
		r := newRetrier(t, retry.Options{RetryIf: func(err error) bool { return errors.Is(err, errOnPurpose) }})
		s := fails(errOnPurpose, other)
		assert.Same(t, other, r.Do(t.Context(), s.work))
		assert.Len(t, s.at, 2)
		s = fails(retry.Permanent(errOnPurpose))
		assert.Same(t, errOnPurpose, r.Do(t.Context(), s.work), "it is not asked")
		assert.Len(t, s.at, 1)
		assert.Equal(t, uint64(2), r.Stats().Permanent)
	})
}

// Weak point: cancellations raised by the body are retried.
func TestCancellationByTheBodyIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{})
		s := fails(fmt.Errorf("reading: %w", context.Canceled))
		assert.ErrorIs(t, r.Do(t.Context(), s.work), context.Canceled)
		assert.Len(t, s.at, 1)

		s = fails(fmt.Errorf("reading: %w", context.DeadlineExceeded))
		assert.NoError(t, r.Do(t.Context(), s.work), "somebody's deadline, not that of the call")
		assert.Len(t, s.at, 2)
	})
}

// Weak point: the context governs the wait in the queue only, never the attempts.
func TestEndOfTheContextIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		r := newRetrier(t, retry.Options{})
		for name, body := range map[string]struct {
			err  error
			want string
		}{
			"its own error": {errOnPurpose, "retry: gave up after 1 attempt: enough: failed on purpose"},
			"the cause":     {fmt.Errorf("reading: %w", why), "reading: enough"},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			calls := 0
			err := r.Do(ctx, func(context.Context) error { calls++; cancel(why); return body.err })
			assert.EqualError(t, err, body.want, name)
			assert.ErrorIs(t, err, why)
			assert.ErrorIs(t, err, body.err)
			assert.Equal(t, 1, calls)

			err = r.Do(ctx, func(context.Context) error { calls++; return nil })
			assert.NoError(t, err, "there is always a first attempt")
			assert.Equal(t, 2, calls)
		}
		assert.Equal(t, retry.Stats{Succeeded: 2, Failed: 2, Cancelled: 2}, r.Stats())
	})
}

// Cancellation during the backoff returns at that instant, keeps the last error, and is
// not another attempt.
func TestCancelledWhileBackingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		r := newRetrier(t, retry.Options{Backoff: retry.Constant(time.Hour)})
		signals := coretest.Watch(t, r.Sink(), "retry.*")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		s := fails(times(3, errOnPurpose)...)
		time.AfterFunc(time.Second-1, func() { assert.Equal(t, 1, r.Stats().Waiting) })
		err := r.Do(ctx, s.work)
		assert.Equal(t, time.Second, time.Since(s.begun))
		assert.ErrorIs(t, err, why)
		assert.ErrorIs(t, err, errOnPurpose)
		assert.EqualError(t, err, "retry: gave up after 1 attempt: enough: failed on purpose")
		assert.Len(t, s.at, 1)
		signals.ExpectExactly(retry.SignalBackoff)
		assert.Equal(t, retry.Stats{Failed: 1, Cancelled: 1}, r.Stats())
	})
}

func TestAttemptTimeoutIsRetriedTheCallersIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{AttemptTimeout: time.Second, Backoff: retry.Constant(time.Second)})
		begun, calls := time.Now(), 0
		hangs := func(ctx context.Context) error {
			calls++
			<-ctx.Done()
			assert.Equal(t, context.DeadlineExceeded, ctx.Err())
			return context.Cause(ctx)
		}
		err := r.Do(t.Context(), hangs)
		assert.ErrorIs(t, err, retry.ErrAttemptTimeout)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 3, calls)
		assert.Equal(t, 5*time.Second, time.Since(begun))

		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		begun, calls = time.Now(), 0
		err = r.Do(ctx, hangs)
		assert.Equal(t, context.DeadlineExceeded, err)
		assert.Equal(t, 2, calls)
		assert.Equal(t, 2500*time.Millisecond, time.Since(begun))

		assert.NoError(t, r.Do(t.Context(), func(ctx context.Context) error {
			_, ok := ctx.Deadline()
			assert.True(t, ok)
			return nil
		}))
	})
}

// An error of before the wait is not why the call ends, though it may look like it.
func TestCancelledWhileBackingOffFromATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{AttemptTimeout: time.Second, Backoff: retry.Constant(time.Hour)})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(context.DeadlineExceeded) })
		err := r.Do(ctx, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		assert.Equal(t, &retry.Error{Attempts: 1, Cause: context.DeadlineExceeded, Err: retry.ErrAttemptTimeout}, err)
	})
}

// A retry that would begin when the context has ended is not waited for.
func TestDeadlineIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fails(times(3, errOnPurpose)...)
		r := newRetrier(t, retry.Options{Backoff: retry.Constant(time.Second)})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := r.Do(ctx, s.work)
		assert.Equal(t, &retry.Error{Attempts: 2, Cause: retry.ErrDeadline, Err: errOnPurpose}, err)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(s.begun))
		assert.Equal(t, retry.Stats{Failed: 1, Exhausted: 1, Retries: 1}, r.Stats())
	})
}

func TestMaxElapsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fails(times(100, errOnPurpose)...)
		r := newRetrier(t, retry.Options{Attempts: -1, Backoff: retry.Constant(time.Second), MaxElapsed: 3 * time.Second})
		err := r.Do(t.Context(), s.work)
		assert.ErrorIs(t, err, retry.ErrMaxElapsed)
		assert.ErrorIs(t, err, errOnPurpose)
		assert.EqualError(t, err, "retry: gave up after 4 attempts: no time left: failed on purpose")
		assert.Equal(t, 3*time.Second, time.Since(s.begun), "the fifth is not waited for")

		s = fails(times(100, errOnPurpose)...)
		r = newRetrier(t, retry.Options{Backoff: retry.Constant(time.Second + 1), MaxElapsed: time.Second})
		assert.ErrorIs(t, r.Do(t.Context(), s.work), retry.ErrMaxElapsed)
		assert.Zero(t, time.Since(s.begun))
		assert.Equal(t, uint64(1), r.Stats().Exhausted)

		s = fails(times(100, errOnPurpose)...)
		r = newRetrier(t, retry.Options{MaxElapsed: -1})
		assert.ErrorIs(t, r.Do(t.Context(), s.work), retry.ErrAttempts, "no limit")
	})
}

// Weak point: no maximum delay.
func TestMaxDelayCutsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fails(times(4, errOnPurpose)...)
		r := newRetrier(t, retry.Options{Attempts: 5, Backoff: retry.Exponential(time.Second, 10), MaxDelay: 15 * time.Second})
		assert.NoError(t, r.Do(t.Context(), s.work))
		assert.Equal(t, []time.Duration{0, 1 * time.Second, 11 * time.Second, 26 * time.Second, 41 * time.Second}, s.at)
	})
}

func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fails(times(2, errOnPurpose)...)
		r := newRetrier(t, retry.Options{
			Backoff:  retry.Constant(time.Minute),
			MaxDelay: time.Second,
			Jitter: func(d time.Duration) time.Duration {
				assert.Equal(t, time.Second, d, "what is cut already")
				return 2 * d
			},
		})
		assert.NoError(t, r.Do(t.Context(), s.work))
		assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, s.at, "and it is cut again")

		s = fails(retry.After(errOnPurpose, time.Minute))
		r = newRetrier(t, retry.Options{Jitter: func(time.Duration) time.Duration { panic("not for this") }})
		assert.NoError(t, r.Do(t.Context(), s.work))
	})
}

// Weak point: a negative delay fails the item, and one of exactly -1 ms waits for ever.
func TestDelaysUpToZeroAreAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{0, -1, -time.Millisecond, math.MinInt64} {
			r := newRetrier(t, retry.Options{Backoff: retry.Constant(d), MaxElapsed: 1})
			signals := coretest.Watch(t, r.Sink(), "retry.*")
			s := fails(errOnPurpose)
			assert.NoError(t, r.Do(t.Context(), s.work))
			assert.Equal(t, []time.Duration{0, 0}, s.at)
			assert.Zero(t, signals.ExpectExactly(retry.SignalAttempt, retry.SignalRecovered)[0].Payload().(retry.Event).Delay)
		}
	})
}

type limited struct{ wait time.Duration }

func (e limited) Error() string             { return "slow down" }
func (e limited) RetryAfter() time.Duration { return e.wait }

func TestErrorsThatAskForADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Backoff: retry.Constant(time.Second), Attempts: 10})
		s := fails(
			retry.After(errOnPurpose, time.Minute),
			fmt.Errorf("calling: %w", limited{time.Hour}),
			limited{0}, // has nothing to say
			retry.After(errOnPurpose, 0),
			retry.After(errOnPurpose, -time.Second),
			fmt.Errorf("calling: %w", retry.After(limited{time.Hour}, time.Minute)), // the outermost says
		)
		assert.NoError(t, r.Do(t.Context(), s.work))
		m := time.Minute
		h := time.Hour + m
		assert.Equal(t, []time.Duration{0, m, h, h + time.Second, h + time.Second, h + time.Second, h + time.Second + m}, s.at)

		err := retry.After(limited{1}, time.Minute)
		assert.NoError(t, retry.After(nil, time.Minute))
		assert.EqualError(t, err, "slow down")
		assert.ErrorIs(t, err, limited{1})
	})
}

// Of what has been joined the longest counts, and what has nothing to say hides nothing.
func TestErrorsThatAskForADelayTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Backoff: retry.Constant(time.Second), Attempts: 10})
		for name, c := range map[string]struct {
			err  error
			want time.Duration
		}{
			"joined, the first has nothing to say":           {errors.Join(limited{0}, retry.After(errOnPurpose, time.Minute)), time.Minute},
			"joined, the longest":                            {errors.Join(retry.After(errOnPurpose, time.Minute), limited{time.Hour}), time.Hour},
			"joined, one at once":                            {errors.Join(errOnPurpose, retry.After(errOnPurpose, 0)), 0},
			"what has nothing to say wraps one that has":     {silent{limited{time.Minute}}, time.Minute},
			"an outer Retrier sees what an inner gave up on": {&retry.Error{Attempts: 1, Cause: retry.ErrMaxDelay, Err: limited{time.Hour}}, time.Hour},
		} {
			s := fails(c.err)
			assert.NoError(t, r.Do(t.Context(), s.work))
			assert.Equal(t, []time.Duration{0, c.want}, s.at, name)
		}
	})
}

type silent struct{ error }

func (silent) RetryAfter() time.Duration { return 0 }
func (e silent) Unwrap() error           { return e.error }

// If the server wants more than is allowed, waiting is in vain.
func TestADelayThatIsTooLongIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fails(times(9, limited{time.Minute})...)
		r := newRetrier(t, retry.Options{MaxDelay: time.Minute - 1})
		err := r.Do(t.Context(), s.work)
		assert.ErrorIs(t, err, retry.ErrMaxDelay)
		assert.ErrorIs(t, err, limited{time.Minute})
		assert.EqualError(t, err, "retry: gave up after 1 attempt: the delay asked for is too long: slow down")

		r = newRetrier(t, retry.Options{MaxElapsed: time.Minute - 1})
		assert.ErrorIs(t, r.Do(t.Context(), s.work), retry.ErrMaxElapsed)
		assert.Zero(t, time.Since(s.begun))

		r = newRetrier(t, retry.Options{MaxDelay: time.Minute, MaxElapsed: time.Minute})
		assert.ErrorIs(t, r.Do(t.Context(), s.work), retry.ErrMaxElapsed)
		assert.Equal(t, time.Minute, time.Since(s.begun))
	})
}

// Weak point: the number of the attempt cannot be seen.
func TestAttemptNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := newRetrier(t, retry.Options{})
		inner := newRetrier(t, retry.Options{AttemptTimeout: time.Hour})
		assert.Equal(t, 1, retry.Attempt(t.Context()))
		var seen [][2]int
		err := outer.Do(t.Context(), func(ctx context.Context) error {
			return inner.Do(ctx, func(within context.Context) error {
				seen = append(seen, [2]int{retry.Attempt(ctx), retry.Attempt(within)})
				assert.Nil(t, within.Value("anything"))
				return errOnPurpose
			})
		})
		assert.ErrorIs(t, err, errOnPurpose)
		assert.Equal(t, [][2]int{{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {2, 3}, {3, 1}, {3, 2}, {3, 3}}, seen)
	})
}

// The number belongs to the attempt, not to what it has set going.
func TestAttemptNumberEndsWithTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{})
		inner := make(chan int, 2)
		c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
			inner <- retry.Attempt(ctx)
			return r.Do(ctx, func(ctx context.Context) error { inner <- retry.Attempt(ctx); return nil })
		}, core.Options{}))
		var kept context.Context
		assert.NoError(t, r.Do(t.Context(), func(ctx context.Context) error {
			kept = ctx
			if retry.Attempt(ctx) == 1 {
				return errOnPurpose
			}
			return c.Do(ctx, 0)
		}))
		assert.Equal(t, 1, <-inner, "an operation that an attempt has enqueued")
		assert.Equal(t, 1, <-inner)
		assert.Equal(t, 1, retry.Attempt(kept), "after its end")
	})
}

func TestValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{})
		s := fails(errOnPurpose)
		v, err := retry.Value(t.Context(), r, func(ctx context.Context) (int, error) { return retry.Attempt(ctx), s.work(ctx) })
		assert.NoError(t, err)
		assert.Equal(t, 2, v)
		v, err = retry.Value(t.Context(), r, func(ctx context.Context) (int, error) { return retry.Attempt(ctx), errOnPurpose })
		assert.ErrorIs(t, err, errOnPurpose)
		assert.Equal(t, 3, v, "what the last attempt returned")
	})
}

func TestWrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{})
		s := fails(errOnPurpose)
		work := retry.Wrap(r, func(ctx context.Context, item string) error { assert.Equal(t, "x", item); return s.work(ctx) })
		c := core.Must(core.NewCoordinator(work, core.Options{}))
		assert.NoError(t, c.Do(t.Context(), "x"))
		assert.Len(t, s.at, 2)

		s = fails(errOnPurpose)
		double := retry.WrapResult(r, func(ctx context.Context, n int) (int, error) { return 2 * n, s.work(ctx) })
		rc := core.Must(core.NewResultCoordinator(double, core.Options{}))
		n, err := rc.Do(t.Context(), 21)
		assert.NoError(t, err)
		assert.Equal(t, 42, n)
		assert.Len(t, s.at, 2)
	})
}

func TestMisusePanics(t *testing.T) {
	r := newRetrier(t, retry.Options{})
	nothing := func(context.Context) (int, error) { return 0, nil }
	assert.PanicsWithValue(t, "retry: Do needs a function", func() { r.Do(t.Context(), nil) })
	assert.PanicsWithValue(t, "retry: Value needs a Retrier and a function", func() { retry.Value[int](t.Context(), r, nil) })
	assert.PanicsWithValue(t, "retry: Value needs a Retrier and a function", func() { retry.Value(t.Context(), nil, nothing) })
	assert.PanicsWithValue(t, "retry: Wrap needs a Retrier and a function", func() { retry.Wrap[int](r, nil) })
	assert.PanicsWithValue(t, "retry: WrapResult needs a Retrier and a function", func() { retry.WrapResult[int, int](r, nil) })
	for _, multiplier := range []float64{-1, math.NaN()} {
		assert.Panics(t, func() { retry.Exponential(1, multiplier) })
	}
}

// A panic is the caller's, and so is the end of its goroutine; the books are right.
func TestPanicAndGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{})
		assert.PanicsWithValue(t, "on purpose", func() { r.Do(t.Context(), func(context.Context) error { panic("on purpose") }) })
		assert.Panics(t, func() {
			r.Do(t.Context(), func(ctx context.Context) error {
				if retry.Attempt(ctx) == 2 {
					panic("on purpose")
				}
				return errOnPurpose
			})
		})
		go r.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
		synctest.Wait()
		assert.Equal(t, retry.Stats{Failed: 3, Panicked: 3, Retries: 1}, r.Stats())

		r = newRetrier(t, retry.Options{Backoff: func(int) time.Duration { panic("on purpose") }})
		assert.Panics(t, func() { r.Do(t.Context(), fails(errOnPurpose).work) })
		assert.Equal(t, retry.Stats{Failed: 1, Panicked: 1}, r.Stats())
	})
}

// A call counts once, also if a handler of its last signal ends its goroutine.
func TestGoexitInAHandlerCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, signal := range []string{retry.SignalExhausted, retry.SignalRecovered, retry.SignalBudgetExhausted, retry.SignalBackoff, retry.SignalAttempt} {
			r := newRetrier(t, retry.Options{Attempts: 2, Budget: newBudget(t, retry.BudgetOptions{Burst: 1, PerSecond: -1, Ratio: -1})})
			defer r.Sink().Subscribe(signal, func(core.Signal) { runtime.Goexit() })()
			for _, s := range []*script{fails(errOnPurpose), fails(errOnPurpose, errOnPurpose)} {
				go r.Do(t.Context(), s.work)
				time.Sleep(time.Hour)
			}
			s := r.Stats()
			assert.Equal(t, uint64(2), s.Succeeded+s.Failed, "%s: %+v", signal, s)
			assert.Zero(t, s.Waiting)
		}
	})
}

// A signal per retry, so that retries are visible.
func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		signals := coretest.Watch(t, sink, "retry.*")
		r := newRetrier(t, retry.Options{Name: "api", Sink: sink})
		require.Same(t, sink, r.Sink())

		assert.NoError(t, r.Do(t.Context(), fails().work))
		signals.None()

		other := errors.New("another")
		assert.NoError(t, r.Do(t.Context(), fails(errOnPurpose, other).work))
		raised := signals.ExpectExactly(retry.SignalBackoff, retry.SignalAttempt, retry.SignalBackoff, retry.SignalAttempt, retry.SignalRecovered)
		ms := time.Millisecond
		for i, want := range []retry.Event{
			{1, 50 * ms, errOnPurpose},
			{2, 50 * ms, errOnPurpose},
			{2, 100 * ms, other},
			{3, 100 * ms, other},
			{3, 0, other},
		} {
			assert.Equal(t, want, raised[i].Payload())
			assert.Equal(t, "api", raised[i].Key)
		}
		e, ok := core.NewKind[retry.Event](retry.SignalAttempt).From(raised[1])
		assert.True(t, ok)
		assert.Equal(t, 2, e.Attempt)

		assert.Error(t, r.Do(t.Context(), fails(times(3, errOnPurpose)...).work))
		raised = signals.ExpectExactly(retry.SignalBackoff, retry.SignalAttempt, retry.SignalBackoff, retry.SignalAttempt, retry.SignalExhausted)
		assert.Equal(t, retry.Event{Attempt: 3, Err: errOnPurpose}, raised[4].Payload())

		assert.Error(t, r.Do(t.Context(), fails(retry.Permanent(errOnPurpose)).work))
		signals.None()
	})
}

// In an operation, it is the operation that says what happens.
func TestSignalsOfAnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Name: "api"})
		own := coretest.Watch(t, r.Sink(), "*")
		sink := core.NewSink(core.SinkOptions{})
		signals := coretest.Watch(t, sink, "retry.*")
		work := retry.Wrap(r, func(ctx context.Context, key string) error {
			if retry.Attempt(ctx) == 1 {
				return errOnPurpose
			}
			return nil
		})
		c := core.Must(core.NewKeyedCoordinator(func(s string) string { return s }, work, core.Options{Name: "calls", Sink: sink}))
		for key, want := range map[string]string{"customer": "customer", "": "api"} {
			require.NoError(t, c.Do(t.Context(), key))
			for _, s := range signals.ExpectExactly(retry.SignalBackoff, retry.SignalAttempt, retry.SignalRecovered) {
				assert.Equal(t, want, s.Key)
				assert.Equal(t, "calls", s.Source)
				assert.NotZero(t, s.Operation)
			}
		}
		own.None()
	})
}

func TestConcurrentCallsAreCountedExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{})
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				s := fails(times(i%5, errOnPurpose)...)
				_ = r.Do(t.Context(), s.work)
			})
		}
		synctest.Wait()
		assert.Equal(t, 80, r.Stats().Waiting)
		all.Wait()
		assert.Equal(t, retry.Stats{Succeeded: 60, Recovered: 40, Failed: 40, Exhausted: 40, Retries: 20 + 3*40}, r.Stats())
	})
}

func TestNoAllocationsOnSuccess(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	budget, err := retry.NewBudget(retry.BudgetOptions{})
	require.NoError(t, err)
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, 1))
	defer cancel()
	for name, opts := range map[string]retry.Options{
		"defaults":     {},
		"with a limit": {MaxElapsed: time.Minute, Budget: budget, MaxDelay: time.Second, Jitter: retry.FullJitter},
	} {
		r := newRetrier(t, opts)
		work := func(context.Context) error { return nil }
		value := func(context.Context) (int, error) { return 1, nil }
		wrapped := retry.Wrap(r, func(_ context.Context, item string) error { return nil })
		result := retry.WrapResult(r, func(_ context.Context, item string) (string, error) { return item, nil })
		assert.Zero(t, testing.AllocsPerRun(100, func() { _ = r.Do(ctx, work) }), name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = retry.Value(ctx, r, value) }), name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { _ = wrapped(ctx, "x") }), name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = result(ctx, "x") }), name)
		captured := 0
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			_ = r.Do(ctx, func(context.Context) error { captured++; return nil })
		}), name)
	}
}

// An operation whose work is wrapped costs no more allocations than one whose is not.
func TestNoAllocationsInAnOperation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	nothing := func(context.Context, int) error { return nil }
	r := newRetrier(t, retry.Options{})
	cost := func(work core.Work[int]) float64 {
		c := core.Must(core.NewCoordinator(work, core.Options{MaxConcurrency: 1}))
		defer c.Close()
		return testing.AllocsPerRun(2000, func() {
			if err := c.Do(context.Background(), 1); err != nil {
				t.Error(err)
			}
		})
	}
	assert.LessOrEqual(t, cost(retry.Wrap(r, nothing)), cost(nothing))
}
