package retry_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func TestBudgetIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := newBudget(t, retry.BudgetOptions{Burst: 3, PerSecond: -1})
		sink := signals.NewSink(signals.SinkOptions{})
		facts := coretest.Watch(t, sink, "retry.*")
		one := newRetrier(t, retry.Options{Name: "one", Budget: budget, Sink: sink, Backoff: retry.Constant(0)})
		two := newRetrier(t, retry.Options{Name: "two", Budget: budget, Sink: sink, Backoff: retry.Constant(0)})
		fail := func(context.Context) error { return errOnPurpose }

		assert.ErrorIs(t, one.Do(t.Context(), fail), retry.ErrAttempts)
		facts.ExpectExactly(retry.SignalStarted, retry.SignalStarted, retry.SignalExhausted)
		err := two.Do(t.Context(), fail)
		assert.ErrorIs(t, err, retry.ErrBudget)
		assert.ErrorIs(t, err, errOnPurpose)
		assert.EqualError(t, err, "retry: gave up after 2 attempts: the budget is spent: failed on purpose")
		raised := facts.ExpectExactly(retry.SignalStarted, retry.SignalBudgetExhausted)
		assert.Equal(t, retry.Event{Attempt: 2, Err: errOnPurpose}, raised[1].Payload())
		assert.Equal(t, "two", raised[1].Key)
		assert.Zero(t, budget.Tokens())
		assert.Equal(t, retry.Stats{Failed: 1, OverBudget: 1, Retries: 1}, two.Stats())

		for range 5 { // five successful calls pay for one retry
			assert.NoError(t, two.Do(t.Context(), func(context.Context) error { return nil }))
		}
		assert.NoError(t, one.Do(t.Context(), fails(errOnPurpose).work))
		assert.Equal(t, 0.2, budget.Tokens(), "one that succeeds after a retry pays as well")
	})
}

// If a retry is not made, its token is put back once.
func TestCancelledRetryGivesItsTokenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := newBudget(t, retry.BudgetOptions{Burst: 5, PerSecond: -1, Ratio: -1})
		r := newRetrier(t, retry.Options{Budget: budget, Backoff: retry.Constant(time.Minute)})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, func() {
			assert.Equal(t, 4.0, budget.Tokens())
			cancel()
		})
		assert.ErrorIs(t, r.Do(ctx, fails(errOnPurpose).work), context.Canceled)
		assert.Equal(t, 5.0, budget.Tokens())
	})
}

func TestBudgetDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := newBudget(t, retry.BudgetOptions{})
		assert.Equal(t, 100.0, budget.Tokens())
		r := newRetrier(t, retry.Options{Budget: budget, Attempts: 101, Backoff: retry.Constant(0)})
		assert.ErrorIs(t, r.Do(t.Context(), func(context.Context) error { return errOnPurpose }), retry.ErrAttempts)
		assert.Zero(t, budget.Tokens())
		time.Sleep(time.Second)
		assert.Equal(t, 10.0, budget.Tokens())
		assert.NoError(t, r.Do(t.Context(), func(context.Context) error { return nil }))
		assert.Equal(t, 10.2, budget.Tokens())
	})
	for field, opts := range map[string]retry.BudgetOptions{
		"Ratio is NaN":       {Ratio: math.NaN()},
		"Ratio is +Inf":      {Ratio: math.Inf(1)},
		"PerSecond is 1e+09": {PerSecond: 1e9},
		"Burst is -1":        {Burst: -1},
		"Burst is 1000001":   {Burst: 1_000_001},
	} {
		b, err := retry.NewBudget(opts)
		assert.Nil(t, b)
		assert.ErrorContains(t, err, "retry: BudgetOptions."+field)
	}
}

// A simple model: tokens are a number, and time is added at each look.
func TestBudgetModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 1))
			opts := retry.BudgetOptions{Ratio: 0.01 + random.Float64(), PerSecond: 0.1 + 20*random.Float64(), Burst: 1 + random.IntN(20)}
			budget := newBudget(t, opts)
			r := newRetrier(t, retry.Options{Attempts: 2, Budget: budget, Backoff: retry.Constant(0)})
			tokens, granted, denied := float64(opts.Burst), uint64(0), uint64(0)
			for step := range 500 {
				pause := time.Duration(random.IntN(int(50 * time.Millisecond)))
				time.Sleep(pause)
				tokens = min(float64(opts.Burst), tokens+opts.PerSecond*pause.Seconds())
				if random.IntN(2) == 0 {
					require.NoError(t, r.Do(t.Context(), func(context.Context) error { return nil }))
					tokens = min(float64(opts.Burst), tokens+opts.Ratio)
				} else {
					got := budget.Tokens()
					_ = r.Do(t.Context(), func(context.Context) error { return errOnPurpose })
					if got >= 1 {
						granted, tokens = granted+1, tokens-1
					} else {
						denied++
					}
				}
				require.InDelta(t, tokens, budget.Tokens(), 1e-3, "seed %d, step %d", seed, step)
				require.Equal(t, [2]uint64{granted, denied}, [2]uint64{r.Stats().Retries, r.Stats().OverBudget}, "seed %d, step %d", seed, step)
			}
		}
	})
}

func TestBudgetGrantsNoMoreThanItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := newBudget(t, retry.BudgetOptions{Burst: 50, PerSecond: -1, Ratio: 0.5})
		r := newRetrier(t, retry.Options{Budget: budget, Attempts: 2})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range 20 {
					_ = r.Do(t.Context(), func(context.Context) error { return errOnPurpose })
				}
			})
			all.Go(func() {
				for range 5 {
					_ = r.Do(t.Context(), func(context.Context) error { return nil })
				}
			})
		}
		all.Wait()
		s := r.Stats()
		assert.Equal(t, uint64(200), s.Retries+s.OverBudget)
		assert.LessOrEqual(t, s.Retries, uint64(75))
		assert.GreaterOrEqual(t, budget.Tokens(), 0.0)
	})
}

func newBudget(_ testing.TB, opts retry.BudgetOptions) *retry.Budget {
	return core.Must(retry.NewBudget(opts))
}

// play is the documentation of a call as simple code: when its attempts begin, when it
// ends, and with which error.
func play(o retry.Options, deadline time.Duration, took []time.Duration, errs []error) (at []time.Duration, end time.Duration, cause, last error) {
	now := time.Duration(0)
	attempts := o.Attempts
	if attempts == 0 {
		attempts = 3
	}
	for n := 1; ; n++ {
		at = append(at, now)
		now += took[n-1]
		err := errs[n-1]
		if err == nil {
			return at, now, nil, nil
		}
		if errors.Is(err, errPermanent) {
			return at, now, nil, errPermanent
		}
		if now >= deadline {
			return at, now, context.DeadlineExceeded, err
		}
		if errors.Is(err, context.Canceled) {
			return at, now, nil, err
		}
		if n == attempts {
			return at, now, retry.ErrAttempts, err
		}
		delay := o.Backoff(n)
		stop := delay < 0
		if o.MaxDelay > 0 {
			delay = min(delay, o.MaxDelay)
		}
		var asks interface {
			error
			RetryAfter() time.Duration
		}
		if errors.As(err, &asks) {
			delay = asks.RetryAfter()
			if o.MaxDelay > 0 && delay > o.MaxDelay {
				return at, now, retry.ErrMaxDelay, err
			}
		} else if stop {
			return at, now, retry.ErrStopped, err
		}
		if o.MaxElapsed > 0 && now+delay > o.MaxElapsed {
			return at, now, retry.ErrMaxElapsed, err
		}
		if now+delay >= deadline {
			return at, now, retry.ErrDeadline, err
		}
		now += delay
	}
}

// unmarked is the error without the mark of After.
func unmarked(err error) error {
	if errors.Is(err, errOnPurpose) {
		return errOnPurpose
	}
	return err
}

var errPermanent = errors.New("permanent, on purpose")

func TestModel(t *testing.T) {
	seeds := uint64(300)
	if os.Getenv("EPHEMERAL_LONG") != "" {
		seeds = 3000
	}
	synctest.Test(t, func(t *testing.T) {
		for seed := range seeds {
			random := rand.New(rand.NewPCG(seed, 2))
			// Only the deadline falls on an odd nanosecond, so nothing else happens at that
			// time.
			some := func(most int) time.Duration { return time.Duration(random.IntN(most+1)) * 100 * time.Millisecond }
			perhaps := func(most int) time.Duration {
				if random.IntN(2) == 0 {
					return 0
				}
				return some(most)
			}
			o := retry.Options{Attempts: random.IntN(7) - 1, MaxDelay: perhaps(20), MaxElapsed: perhaps(60)}
			o.Backoff = []retry.Backoff{
				retry.Constant(some(10)), retry.Linear(some(10)), retry.Exponential(some(10), 2), retry.Constant(-some(10)),
			}[random.IntN(4)]
			deadline := time.Hour + 1
			if random.IntN(3) == 0 {
				deadline = some(40) + 1
			}
			var took []time.Duration
			var errs []error
			for range random.IntN(8) {
				took = append(took, perhaps(5))
				err := errOnPurpose
				switch random.IntN(10) {
				case 0:
					err = retry.Permanent(errPermanent)
				case 1:
					err = context.Canceled
				case 2, 3:
					err = retry.After(errOnPurpose, some(20))
				}
				errs = append(errs, err)
			}
			took, errs = append(took, 0), append(errs, nil)
			wantAt, wantEnd, cause, last := play(o, deadline, took, errs)

			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			r := newRetrier(t, o)
			begun := time.Now()
			var at []time.Duration
			err := r.Do(ctx, func(context.Context) error {
				at = append(at, time.Since(begun))
				n := len(at) - 1
				time.Sleep(took[n])
				return errs[n]
			})
			cancel()
			require.Equal(t, wantAt, at, "seed %d: %+v", seed, o)
			require.Equal(t, wantEnd, time.Since(begun), "seed %d: %+v", seed, o)
			if cause == nil {
				require.Equal(t, last, err, "seed %d: %+v", seed, o)
			} else {
				got, _ := errors.AsType[*retry.Error](err)
				require.Equal(t, []any{len(at), cause, unmarked(last)}, []any{got.Attempts, got.Cause, got.Err}, "seed %d: %+v", seed, o)
			}
			s := r.Stats()
			require.Equal(t, uint64(1), s.Succeeded+s.Failed)
			require.Equal(t, uint64(len(at)-1), s.Retries)
		}
	})
}
