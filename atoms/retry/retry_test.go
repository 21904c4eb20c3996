package retry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errOnPurpose = errors.New("failed on purpose")

// script is work that fails with its errors, one after the other, and then succeeds. It
// records the time of each call since its creation, and the number of the attempt.
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

// There are three attempts: the first at once, the others 50 ms and 100 ms after the
// previous one.
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
		assert.NotNil(t, r.Sink())
		assert.Equal(t, retry.Stats{Failed: 1, Exhausted: 1, Retries: 2}, r.Stats())
	})
}

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
		assert.ErrorIs(t, retry.ErrDeadline, context.DeadlineExceeded)
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

type limited struct{ wait time.Duration }

func (e limited) Error() string             { return "slow down" }
func (e limited) RetryAfter() time.Duration { return e.wait }

type silent struct{ error }

func (silent) RetryAfter() time.Duration { return 0 }
func (e silent) Unwrap() error           { return e.error }

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

// The number belongs to the attempt, not to operations that it has started.
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

func TestMisusePanics(t *testing.T) {
	r := newRetrier(t, retry.Options{})
	nothing := func(context.Context) (int, error) { return 0, nil }
	assert.PanicsWithValue(t, "retry: Do needs a function", func() { r.Do(t.Context(), nil) })
	assert.PanicsWithValue(t, "retry: DoValue needs a Retrier and a function", func() { retry.DoValue[int](t.Context(), r, nil) })
	assert.PanicsWithValue(t, "retry: DoValue needs a Retrier and a function", func() { retry.DoValue(t.Context(), nil, nothing) })
	assert.PanicsWithValue(t, "retry: Wrap needs a Retrier and a function", func() { retry.Wrap[int](r, nil) })
	assert.PanicsWithValue(t, "retry: WrapResult needs a Retrier and a function", func() { retry.WrapResult[int, int](r, nil) })
	for _, multiplier := range []float64{-1, math.NaN()} {
		assert.Panics(t, func() { retry.Exponential(1, multiplier) })
	}
}

func TestNoAllocationsOnSuccess(t *testing.T) {
	if coretest.Race {
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
		assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = retry.DoValue(ctx, r, value) }), name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { _ = wrapped(ctx, "x") }), name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = result(ctx, "x") }), name)
		captured := 0
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			_ = r.Do(ctx, func(context.Context) error { captured++; return nil })
		}), name)
	}
}

// If RetryIf accepts an open breaker, the next attempt starts when the breaker allows calls.
func TestOpenBreakerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := core.Must(retry.New(retry.Options{Attempts: 2, RetryIf: func(error) bool { return true }}))
		start, errs := time.Now(), []error{&breaker.OpenError{Name: "api", Wait: 10 * time.Second}, nil}
		assert.NoError(t, r.Do(t.Context(), func(context.Context) (err error) { err, errs = errs[0], errs[1:]; return err }))
		assert.Equal(t, 10*time.Second, time.Since(start))
	})
}

// hopeless is an error of another package that says that retries are useless.
type hopeless struct{}

func (hopeless) Error() string   { return "hopeless" }
func (hopeless) Permanent() bool { return true }

// Errors that are not retried are returned unchanged: marked with Permanent, refused by
// RetryIf, or a cancellation that the function itself reports.
func TestErrorsThatAreNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := errors.New("another")
		wrapped := fmt.Errorf("reading: %w", retry.Permanent(errOnPurpose))
		cancelled := fmt.Errorf("reading: %w", context.Canceled)
		open := retry.After(fmt.Errorf("reading: %w", &breaker.OpenError{Name: "api"}), time.Minute)
		onlyOnPurpose := func(err error) bool { return errors.Is(err, errOnPurpose) }
		for name, c := range map[string]struct {
			retryIf func(error) bool
			errs    []error
			want    error
		}{
			"permanent":           {nil, []error{retry.Permanent(errOnPurpose)}, errOnPurpose},
			"permanent, wrapped":  {nil, []error{wrapped}, wrapped},
			"permanent elsewhere": {nil, []error{hopeless{}}, hopeless{}},
			"permanent, later":    {nil, []error{other, retry.Permanent(errOnPurpose)}, errOnPurpose},
			"cancelled":           {nil, []error{cancelled}, cancelled},
			"closed":              {nil, []error{other, core.ErrClosed}, core.ErrClosed},
			"would deadlock":      {nil, []error{core.ErrWouldDeadlock}, core.ErrWouldDeadlock},
			"open breaker":        {nil, []error{other, open}, open},
			"other's deadline":    {nil, []error{context.DeadlineExceeded}, nil},
			"RetryIf":             {onlyOnPurpose, []error{errOnPurpose, other}, other},
			"RetryIf, permanent":  {onlyOnPurpose, []error{retry.Permanent(errOnPurpose)}, errOnPurpose},
		} {
			r := newRetrier(t, retry.Options{RetryIf: c.retryIf})
			s := fails(c.errs...)
			err := r.Do(t.Context(), s.work)
			assert.True(t, err == c.want, "%s: %v", name, err)
			if c.want != nil {
				assert.Len(t, s.at, len(c.errs), name)
				assert.Equal(t, retry.Stats{Failed: 1, Permanent: 1, Retries: uint64(len(c.errs) - 1)}, r.Stats(), name)
			}
		}
		assert.NoError(t, retry.Permanent(nil))
		assert.ErrorIs(t, wrapped, errOnPurpose)
		assert.EqualError(t, retry.Permanent(errOnPurpose), errOnPurpose.Error())
	})
}

// A call whose context ends during the delay returns at that instant, keeps the last error,
// and makes no other attempt.
func TestCancelledWhileBackingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Backoff: retry.Constant(time.Hour)})
		facts := coretest.Watch(t, r.Sink(), "retry.*")
		for _, why := range []error{errors.New("enough"), errOnPurpose} { // a cause that the error also matches
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(why) })
			s := fails(times(3, errOnPurpose)...)
			time.AfterFunc(time.Second-1, func() { assert.Equal(t, 1, r.Stats().Waiting) })
			err := r.Do(ctx, s.work)
			assert.Equal(t, time.Second, time.Since(s.begun))
			assert.Equal(t, &retry.Error{Attempts: 1, Cause: why, Err: errOnPurpose}, err)
			assert.Len(t, s.at, 1)
			facts.ExpectExactly(retry.SignalDelayed)
		}
		assert.Equal(t, retry.Stats{Failed: 2, Cancelled: 2}, r.Stats())
		assert.JSONEq(t, `{"succeeded":0,"recovered":0,"failed":2,"permanent":0,"exhausted":0,"overBudget":0,"cancelled":2,"panicked":0,`+
			`"retries":0,"waiting":0}`, core.StatsString(r.Stats()))
	})
}

// The outermost error that asks for a delay counts. Of joined errors, the longest delay
// counts. An error that asks for no delay does not hide another one.
func TestErrorsThatAskForADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Backoff: retry.Constant(time.Second)})
		for name, c := range map[string]struct {
			err  error
			want time.Duration
		}{
			"marked":                  {retry.After(errOnPurpose, time.Minute), time.Minute},
			"marked twice":            {retry.After(retry.After(errOnPurpose, time.Hour), time.Minute), time.Minute},
			"marked, at once":         {retry.After(errOnPurpose, -time.Second), 0},
			"a method":                {fmt.Errorf("calling: %w", limited{time.Hour}), time.Hour},
			"a method, nothing asked": {limited{0}, time.Second},
			"the outermost":           {fmt.Errorf("calling: %w", retry.After(limited{time.Hour}, time.Minute)), time.Minute},
			"joined, one asks":        {errors.Join(limited{0}, retry.After(errOnPurpose, time.Minute)), time.Minute},
			"joined, the longest":     {errors.Join(retry.After(errOnPurpose, time.Minute), limited{time.Hour}), time.Hour},
			"joined, one at once":     {errors.Join(errOnPurpose, retry.After(errOnPurpose, 0)), 0},
			"hidden":                  {silent{limited{time.Minute}}, time.Minute},
			"of an inner Retrier":     {&retry.Error{Attempts: 1, Cause: retry.ErrMaxDelay, Err: limited{time.Hour}}, time.Hour},
		} {
			s := fails(c.err)
			assert.NoError(t, r.Do(t.Context(), s.work))
			assert.Equal(t, []time.Duration{0, c.want}, s.at, name)
		}
		assert.NoError(t, retry.After(nil, time.Minute))
		assert.EqualError(t, retry.After(limited{1}, time.Minute), "slow down")

		// The mark is for this Retrier and for an outer one; the caller sees the error.
		facts := coretest.Watch(t, r.Sink(), "retry.*")
		err := r.Do(t.Context(), fails(times(3, retry.After(errOnPurpose, time.Minute))...).work)
		assert.Same(t, errOnPurpose, err.(*retry.Error).Err)
		for _, s := range facts.Expect(retry.SignalDelayed, retry.SignalStarted, retry.SignalExhausted) {
			assert.Same(t, errOnPurpose, s.Payload().(retry.Event).Err, s.Name)
		}
		s := fails(err)
		assert.NoError(t, r.Do(t.Context(), s.work))
		assert.Equal(t, []time.Duration{0, time.Minute}, s.at)
	})
}

// A panic of the function, and the end of its goroutine, reach the caller, even from a
// handler. A call counts once.
func TestPanicAndGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{})
		for _, attempt := range []int{1, 2} {
			for _, end := range []func(){func() { panic("on purpose") }, runtime.Goexit} {
				go func() {
					defer func() { _ = recover() }()
					_ = r.Do(t.Context(), func(ctx context.Context) error {
						if retry.Attempt(ctx) == attempt {
							end()
						}
						return errOnPurpose
					})
				}()
			}
		}
		time.Sleep(time.Hour)
		assert.Equal(t, retry.Stats{Failed: 4, Panicked: 4, Retries: 2}, r.Stats())
		assert.PanicsWithValue(t, "on purpose", func() { _ = r.Do(t.Context(), func(context.Context) error { panic("on purpose") }) })
		r = newRetrier(t, retry.Options{Backoff: func(int) time.Duration { panic("on purpose") }})
		assert.Panics(t, func() { _ = r.Do(t.Context(), fails(errOnPurpose).work) })
		assert.Equal(t, retry.Stats{Failed: 1, Panicked: 1}, r.Stats())

		for _, signal := range []string{
			retry.SignalExhausted, retry.SignalRecovered, retry.SignalBudgetExhausted, retry.SignalDelayed, retry.SignalStarted,
		} {
			r := newRetrier(t, retry.Options{Attempts: 2, Budget: newBudget(t, retry.BudgetOptions{Burst: 1, PerSecond: -1, Ratio: -1})})
			defer r.Sink().Subscribe(signal, func(signals.Signal) { runtime.Goexit() })()
			for _, s := range []*script{fails(errOnPurpose), fails(errOnPurpose, errOnPurpose)} {
				go func() { _ = r.Do(t.Context(), s.work) }()
				time.Sleep(time.Hour)
			}
			s := r.Stats()
			assert.Equal(t, uint64(2), s.Succeeded+s.Failed, "%s: %+v", signal, s)
			assert.Zero(t, s.Waiting)
		}
	})
}

func newRetrier(_ testing.TB, opts retry.Options) *retry.Retrier { return core.Must(retry.New(opts)) }

func times(n int, err error) []error { return slices.Repeat([]error{err}, n) }

func TestDoValueAndWrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{})
		number := func(ctx context.Context) (int, error) {
			if n := retry.Attempt(ctx); n < 3 {
				return n, errOnPurpose
			}
			return 3, nil
		}
		v, err := retry.DoValue(t.Context(), newRetrier(t, retry.Options{Attempts: 2}), number)
		assert.ErrorIs(t, err, errOnPurpose)
		assert.Equal(t, 2, v, "the result of the last attempt")

		c := core.Must(core.NewCoordinator(retry.Wrap(r, func(ctx context.Context, _ string) error {
			_, err := number(ctx)
			return err
		}), core.Options{}))
		id := core.Must(c.TryEnqueue(context.Background(), "x"))
		synctest.Wait()
		x, _ := c.Explain(id)
		assert.Contains(t, x.String(), `is suspended: its body waits for attempt 2 after the error "failed on purpose", for 0s, for 50ms more at most`)
		assert.NoError(t, c.Wait(t.Context(), id))
		double := retry.WrapResult(r, func(ctx context.Context, n int) (int, error) { m, err := number(ctx); return n * m, err })
		n, err := core.Must(core.NewResultCoordinator(double, core.Options{})).Do(t.Context(), 14)
		assert.NoError(t, err)
		assert.Equal(t, 42, n)
	})
}

// Retries raise signals, with the name as key; in an operation, the operation raises them,
// with its own key if it has one.
func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink, own := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
		r := newRetrier(t, retry.Options{Name: "api", Sink: own})
		require.Same(t, own, r.Sink())
		facts := coretest.Watch(t, own, "retry.*")
		assert.NoError(t, r.Do(t.Context(), fails().work))
		facts.None()

		other := errors.New("another")
		assert.NoError(t, r.Do(t.Context(), fails(errOnPurpose, other).work))
		raised := facts.ExpectExactly(retry.SignalDelayed, retry.SignalStarted, retry.SignalDelayed, retry.SignalStarted, retry.SignalRecovered)
		ms := time.Millisecond
		for i, want := range []retry.Event{
			{1, 50 * ms, errOnPurpose}, {2, 50 * ms, errOnPurpose}, {2, 100 * ms, other}, {3, 100 * ms, other}, {3, 0, other},
		} {
			assert.Equal(t, want, raised[i].Payload())
			assert.Equal(t, "api", raised[i].Key)
		}
		assert.Error(t, r.Do(t.Context(), fails(times(3, errOnPurpose)...).work))
		exhausted := facts.Expect(retry.SignalExhausted)[0]
		assert.Equal(t, retry.Event{Attempt: 3, Err: errOnPurpose}, exhausted.Payload())
		assert.Error(t, r.Do(t.Context(), fails(retry.Permanent(errOnPurpose)).work))
		facts.None()

		of := coretest.Watch(t, sink, "retry.*")
		work := retry.Wrap(r, func(ctx context.Context, key string) error {
			return fails(times(2-retry.Attempt(ctx), errOnPurpose)...).work(ctx)
		})
		c := core.Must(core.NewKeyedCoordinator(func(s string) string { return s }, work, core.Options{Name: "calls", Sink: sink}))
		for key, want := range map[string]string{"customer": "customer", "": "api"} {
			require.NoError(t, c.Do(t.Context(), key))
			for _, s := range of.ExpectExactly(retry.SignalDelayed, retry.SignalStarted, retry.SignalRecovered) {
				assert.Equal(t, []string{want, "calls"}, []string{s.Key, s.Source})
			}
		}
		facts.None()
	})
}

// later is no failure, like durable.Snooze.
type later struct{}

func (later) Error() string { return "later" }
func (later) Failed() bool  { return false }

func TestAnOutcomeThatIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, errs := range map[retry.Stats][]error{
			{Succeeded: 1}:                           {later{}},
			{Succeeded: 1, Recovered: 1, Retries: 1}: {errOnPurpose, later{}},
		} {
			r := newRetrier(t, retry.Options{})
			s := fails(errs...)
			assert.Equal(t, later{}, r.Do(t.Context(), s.work))
			assert.Len(t, s.at, len(errs))
			assert.Equal(t, want, r.Stats())
		}
	})
}

var someDay = time.Date(1994, time.November, 6, 8, 49, 7, 0, time.UTC)

func TestParseRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"120":                            2 * time.Minute,
		" 0 ":                            0,
		"007":                            7 * time.Second,
		"9223372036":                     9223372036 * time.Second,
		"9223372037":                     longest,
		"92233720370":                    longest,
		"99999999999999999999999999":     longest,
		"Sun, 06 Nov 1994 08:49:37 GMT":  30 * time.Second,
		"Sunday, 06-Nov-94 08:49:37 GMT": 30 * time.Second,
		"Sun Nov  6 08:49:37 1994":       30 * time.Second,
		"Sun, 06 Nov 1994 08:49:07 GMT":  0,
		"Sat, 05 Nov 1994 08:49:37 GMT":  0,
		"Tue, 01 Jan 9999 00:00:00 GMT":  longest,
		"rate-limit:5000ms":              5 * time.Second,
		"rate-limit: 5000MS ":            5 * time.Second,
	} {
		d, ok := retry.ParseRetryAfter(text, someDay)
		assert.True(t, ok, text)
		assert.Equal(t, want, d, text)
	}
	for _, text := range []string{
		"", " ", "-1", "+1", "1.5", "5s", "5000ms", "١٢", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 6 Nov 1994", "rate-limit:5s", "rate-limit:-5ms",
	} {
		_, ok := retry.ParseRetryAfter(text, someDay)
		assert.False(t, ok, text)
	}
}

// It agrees with net/http on dates, with math/big on numbers, and with core on signals.
func FuzzParseRetryAfter(f *testing.F) {
	for _, s := range []string{"120", "99999999999999999999", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
		"Sun Nov  6 08:49:37 1994", "rate-limit:5000ms", "", " 1", "-1", "Sun, 06 Nov 1994 08:49:37.5 GMT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := retry.ParseRetryAfter(text, someDay)
		if got < 0 {
			t.Fatalf("%q: %v", text, got)
		}
		trimmed := strings.TrimSpace(text)
		if n, isNumber := new(big.Int).SetString(trimmed, 10); isNumber && strings.Trim(trimmed, "0123456789") == "" {
			want := longest
			if n.Mul(n, big.NewInt(int64(time.Second))); n.IsInt64() {
				want = time.Duration(n.Int64())
			}
			if !ok || got != want {
				t.Fatalf("%q: %v, %t, want %v", text, got, ok, want)
			}
			return
		}
		if at, err := http.ParseTime(trimmed); err == nil {
			if want := max(0, at.Sub(someDay)); ok && got != want {
				t.Fatalf("%q: %v, want %v", text, got, want)
			}
			return
		}
		want, isSignal := signals.ParseRetryAfter(trimmed)
		if ok != isSignal || got != want {
			t.Fatalf("%q: %v, %t, want %v, %t", text, got, ok, want, isSignal)
		}
	})
}

const longest = time.Duration(math.MaxInt64)

func TestBackoffs(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		backoff retry.Backoff
		want    map[int]time.Duration
	}{
		"constant":          {retry.Constant(s), map[int]time.Duration{1: s, 2: s, math.MaxInt: s}},
		"linear":            {retry.Linear(s), map[int]time.Duration{1: s, 2: 2 * s, 60: 60 * s}},
		"linear, too long":  {retry.Linear(10 * s), map[int]time.Duration{math.MaxInt: longest}}, // also if int has 32 bits
		"linear, huge":      {retry.Linear(longest), map[int]time.Duration{1: longest, 2: longest}},
		"linear, none":      {retry.Linear(0), map[int]time.Duration{1: 0, math.MaxInt: 0}},
		"linear, negative":  {retry.Linear(-longest), map[int]time.Duration{1: -longest, 3: -longest}},
		"doubling":          {retry.Exponential(s, 2), map[int]time.Duration{1: s, 2: 2 * s, 3: 4 * s, 10: 512 * s, 64: longest, math.MaxInt: longest}},
		"one and a half":    {retry.Exponential(s, 1.5), map[int]time.Duration{1: s, 2: 1500 * time.Millisecond, 3: 2250 * time.Millisecond}},
		"shrinking":         {retry.Exponential(s, 0.5), map[int]time.Duration{1: s, 2: s / 2, 3: s / 4, 100: 0}},
		"once":              {retry.Exponential(s, 0), map[int]time.Duration{1: s, 2: 0}},
		"endless":           {retry.Exponential(1, math.Inf(1)), map[int]time.Duration{1: 1, 2: longest}},
		"exponential, none": {retry.Exponential(0, 2), map[int]time.Duration{1: 0, math.MaxInt: 0}},
		"negative":          {retry.Exponential(-s, 2), map[int]time.Duration{1: -s, 2: -s}},
	} {
		for attempt, want := range c.want {
			assert.Equal(t, want, c.backoff(attempt), "%s: %d", name, attempt)
		}
	}
}

func TestJitters(t *testing.T) {
	for _, d := range []time.Duration{1, 2, 3, time.Second, longest} {
		least, most := d, time.Duration(0)
		for range 2000 {
			full := retry.FullJitter(d)
			assert.True(t, 0 <= full && full <= d)
			least, most = min(least, full), max(most, full)
			equal := retry.EqualJitter(d)
			assert.True(t, d/2 <= equal && equal <= d)
		}
		assert.LessOrEqual(t, least, d/100)
		assert.GreaterOrEqual(t, most, d-d/100)
	}
	for _, d := range []time.Duration{0, -1, math.MinInt64} {
		assert.LessOrEqual(t, retry.FullJitter(d), time.Duration(0))
		assert.LessOrEqual(t, retry.EqualJitter(d), time.Duration(0))
	}
}

// Fault avoided: items that back off stop all others. Here they give up their slots, up to MaxSuspended of them,
// unless the work calls Do itself. An item counts once, however many attempts it has.
func TestBackingOffItemsKeepNoSlot(t *testing.T) {
	for keep, want := range map[bool]core.Stats{
		false: {Enqueued: 20, Pending: 15, Suspended: 5, Limit: 2},
		true:  {Enqueued: 20, Pending: 18, Running: 2, Limit: 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRetrier(t, retry.Options{Attempts: 2, Backoff: retry.Constant(time.Hour)})
			work := retry.Wrap(r, coretest.Run)
			if keep {
				work = func(ctx context.Context, body coretest.Body) error { return r.Do(ctx, body) }
			}
			c := core.Must(core.NewCoordinator(work, core.Options{MaxConcurrency: 2, MaxSuspended: 3}))
			var id core.OperationID
			for range 20 {
				id = core.Must(c.Enqueue(t.Context(), func(context.Context) error { return errOnPurpose }))
				synctest.Wait()
			}
			assert.Equal(t, want, c.Stats())
			for op := range c.Operations(core.OperationQuery{Status: core.StatusSuspended}) {
				assert.Equal(t, []string{"attempt 2 after the error \"failed on purpose\""}, op.WaitsFor)
			}
			require.NoError(t, c.Drain(t.Context()), "waits for the retries")
			assert.ErrorIs(t, c.Wait(t.Context(), id), retry.ErrAttempts)
			assert.EqualValues(t, 20, c.Stats().Failed)
		})
	}
}

// A retry keeps its key. It comes back after interactive items and before pending items of its own lane.
// AttemptTimeout starts then.
func TestRetriesKeepTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Attempts: 2, Backoff: retry.Constant(time.Second), AttemptTimeout: 5 * time.Second})
		var order []string
		call := retry.WrapResult(r, func(ctx context.Context, item string) (string, error) {
			order = append(order, fmt.Sprint(item, " ", retry.Attempt(ctx)))
			if item == "a/failing" && retry.Attempt(ctx) == 1 {
				return "", errOnPurpose
			}
			time.Sleep(4 * time.Second)
			return item, ctx.Err()
		})
		c := core.Must(core.NewKeyedResultCoordinator(func(item string) string { return item[:1] }, call, core.Options{
			MaxConcurrency: 1, Lanes: core.Must(core.ParseLanes("interactive, batch")), Ageing: -1}))
		defer c.Close()
		for _, item := range []string{"a/failing", "a/second", "b/batch", "c/batch"} {
			core.Must(c.Lane("batch").Enqueue(t.Context(), item))
		}
		time.Sleep(2 * time.Second)
		for range 2 {
			core.Must(c.Lane("interactive").Enqueue(t.Context(), "d/interactive"))
		}
		require.NoError(t, c.Drain(t.Context()))
		assert.Equal(t, []string{"a/failing 1", "b/batch 1", "d/interactive 1", "d/interactive 1", "a/failing 2", "c/batch 1", "a/second 1"}, order)
		assert.EqualValues(t, 6, c.Stats().Succeeded)
	})
}

// A further attempt does not wait for a token of its class. It takes a token that is still to
// come.
func TestRetriesAreChargedToTheirClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Backoff: retry.Constant(time.Millisecond)})
		begun, calls := time.Now(), []time.Duration(nil)
		c := core.Must(core.NewCoordinator(retry.Wrap(r, func(ctx context.Context, _ int) error {
			if calls = append(calls, time.Since(begun)); len(calls) <= 2 {
				return errOnPurpose
			}
			return nil
		}), core.Options{Classes: []core.Class{{Name: "api", Rate: core.Rate{PerSecond: 1, Burst: 1}}}}))
		for item := range 2 {
			core.Must(c.Class("api").Enqueue(t.Context(), item))
		}
		require.NoError(t, c.Drain(t.Context()))
		assert.Equal(t, []time.Duration{0, time.Millisecond, 2 * time.Millisecond, 3 * time.Second}, calls)
	})
}
