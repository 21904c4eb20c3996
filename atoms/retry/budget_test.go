package retry_test

import (
	"context"
	"math"
	"math/rand/v2"
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
