package hedge_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/hedge"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errOnPurpose = errors.New("on purpose")

func newHedger(t testing.TB, opts hedge.Options) *hedge.Hedger {
	t.Helper()
	h, err := hedge.New(opts)
	require.NoError(t, err)
	return h
}

// An attempt takes a time, and then returns an error or nil. It ends with its context.
type attempt struct {
	takes time.Duration
	err   error
}

func (a attempt) run(ctx context.Context) error {
	select {
	case <-time.After(a.takes):
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run makes a call with these attempts.
func run(ctx context.Context, h *hedge.Hedger, attempts ...attempt) (took time.Duration, err error) {
	begun := time.Now()
	err = h.Do(ctx, func(ctx context.Context) error { return attempts[hedge.Attempt(ctx)-1].run(ctx) })
	return time.Since(begun), err
}

// always hedges after 10 ms.
var always = hedge.Options{Delay: 10 * time.Millisecond, MaxExtra: -1, MaxErrors: -1}

// The first success counts, and an error counts only if there is no success.
func TestTheFirstSuccessCounts(t *testing.T) {
	const ms = time.Millisecond
	errSecond := errors.New("second")
	for name, c := range map[string]struct {
		first, second attempt
		took          time.Duration
		err           error
		hedged, won   uint64
	}{
		"first before the delay":  {attempt{10*ms - 1, nil}, attempt{}, 10*ms - 1, nil, 0, 0},
		"first after the delay":   {attempt{15 * ms, nil}, attempt{time.Hour, nil}, 15 * ms, nil, 1, 0},
		"second":                  {attempt{time.Hour, nil}, attempt{2 * ms, nil}, 12 * ms, nil, 1, 1},
		"error before the delay":  {attempt{5 * ms, errOnPurpose}, attempt{}, 5 * ms, errOnPurpose, 0, 0},
		"second fails":            {attempt{20 * ms, nil}, attempt{2 * ms, errSecond}, 20 * ms, nil, 1, 0},
		"first fails":             {attempt{15 * ms, errOnPurpose}, attempt{10 * ms, nil}, 20 * ms, nil, 1, 1},
		"both fail, first first":  {attempt{15 * ms, errOnPurpose}, attempt{10 * ms, errSecond}, 20 * ms, errOnPurpose, 1, 0},
		"both fail, second first": {attempt{20 * ms, errOnPurpose}, attempt{5 * ms, errSecond}, 20 * ms, errOnPurpose, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHedger(t, always)
				took, err := run(t.Context(), h, c.first, c.second)
				assert.Equal(t, c.err, err)
				assert.Equal(t, c.took, took)
				stats := h.Stats()
				assert.Equal(t, []uint64{c.hedged, c.won}, []uint64{stats.Hedged, stats.Won})
				assert.Equal(t, c.hedged == 1, h.Sink().Has(hedge.Started.Name()))
				assert.Equal(t, c.won == 1, h.Sink().Has(hedge.Succeeded.Name()))
			})
		})
	}
}

// Do returns the result of the successful attempt after both have returned. The context of the
// other one ends with a cause.
func TestTheSlowerAttemptIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, always)
		begun := time.Now()
		var cause error
		v, err := hedge.DoValue(t.Context(), h, func(ctx context.Context) (int, error) {
			if hedge.Attempt(ctx) == 1 {
				<-ctx.Done()
				cause = context.Cause(ctx)
				time.Sleep(time.Second) // cleans up
				return 0, cause
			}
			return 7, nil
		})
		assert.NoError(t, err)
		assert.Equal(t, 7, v)
		assert.ErrorIs(t, cause, hedge.ErrSlower)
		assert.Equal(t, time.Second+10*time.Millisecond, time.Since(begun))
	})
}

// The delay is the 95th percentile of the last calls, from the start of the attempt: the queue of a
// coordinator does not count.
func TestTheDelayIsAQuantile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedge.Options{MaxExtra: -1})
		var takes [2]time.Duration
		c := core.Must(core.NewCoordinator(hedge.Wrap(h, func(ctx context.Context, _ int) error {
			return attempt{takes: takes[hedge.Attempt(ctx)-1]}.run(ctx)
		}), core.Options{MaxConcurrency: 1}))
		for i := 1; i <= 100; i++ {
			if i <= 20 {
				assert.Zero(t, h.Stats().Delay, "20 calls are needed")
			}
			takes = [2]time.Duration{time.Duration(i) * time.Second, time.Hour}
			require.NoError(t, c.Do(t.Context(), 0))
		}
		assert.Equal(t, 95*time.Second, h.Stats().Delay)
		before := h.Stats().Hedged
		takes = [2]time.Duration{95*time.Second - 1, 0}
		core.Must(c.Enqueue(t.Context(), 0))
		require.NoError(t, c.Do(t.Context(), 0))
		assert.Equal(t, before, h.Stats().Hedged, "two minutes in the queue are not slow")

		takes = [2]time.Duration{time.Hour, time.Second}
		require.NoError(t, c.Do(t.Context(), 0))
		assert.Equal(t, before+1, h.Stats().Hedged)

		fast := newHedger(t, hedge.Options{})
		for range 100 {
			_, err := run(t.Context(), fast, attempt{takes: time.Microsecond})
			require.NoError(t, err)
		}
		assert.Equal(t, time.Millisecond, fast.Stats().Delay)
		require.NoError(t, c.Close())
	})
}

// At most 5 % more calls are made, even if all calls are slow, and even after a long time without
// slow calls.
func TestMaxExtra(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, fast := attempt{takes: time.Second}, attempt{}
		h := newHedger(t, hedge.Options{Delay: time.Millisecond})
		for n := range uint64(200) {
			_, err := run(t.Context(), h, slow, slow)
			require.NoError(t, err)
			require.Equal(t, (n+1)/20, h.Stats().Hedged)
		}
		for range 1000 {
			_, err := run(t.Context(), h, fast)
			require.NoError(t, err)
		}
		before := h.Stats()
		for range 15 {
			_, err := run(t.Context(), h, slow, slow)
			require.NoError(t, err)
		}
		assert.Equal(t, before.Hedged+5, h.Stats().Hedged, "as many as for 100 calls")
		assert.Equal(t, before.Denied+10, h.Stats().Denied)
	})
}

// There are no second attempts while calls fail, and a signal says so.
func TestPausedWhileCallsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		h := newHedger(t, hedge.Options{Name: "shop", Delay: time.Millisecond, MaxExtra: 1, Sink: sink})
		fail := func(n int, err error) {
			for range n {
				_, got := run(t.Context(), h, attempt{err: err})
				require.Equal(t, err, got)
			}
		}
		hedged := func() bool {
			before := h.Stats().Hedged
			_, err := run(t.Context(), h, attempt{takes: time.Second}, attempt{})
			require.NoError(t, err)
			return h.Stats().Hedged > before
		}
		fail(10, errOnPurpose)
		assert.True(t, hedged(), "10 of 100")
		fail(1, errOnPurpose)
		for s := range sink.Sense(signals.Query{Pattern: hedge.SignalPaused}) {
			assert.Equal(t, "shop", s.Key)
		}
		assert.True(t, sink.Has(hedge.SignalPaused))
		assert.False(t, hedged(), "11 of 100")
		fail(92, nil) // six old errors are forgotten, and five are left
		assert.True(t, sink.Has(hedge.SignalPaused))
		fail(1, nil)
		assert.False(t, sink.Has(hedge.SignalPaused))
		assert.True(t, hedged())
	})
}

// In an operation, Explain shows the second attempt, and the operation raises the signals.
func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := always
		opts.Name = "shop"
		h := newHedger(t, opts)
		c := core.Must(core.NewKeyedCoordinator(func(k string) string { return k }, hedge.Wrap(h, func(ctx context.Context, k string) error {
			return attempt{takes: time.Second}.run(ctx)
		}), core.Options{}))
		id := core.Must(c.Enqueue(t.Context(), "Dune"))
		time.Sleep(10*time.Millisecond - 1)
		why, _ := c.Explain(id)
		assert.Empty(t, why.Reasons)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		why, _ = c.Explain(id)
		require.Len(t, why.Reasons, 1)
		assert.Equal(t, `the second attempt of hedge "shop"`, why.Reasons[0].What)
		require.NoError(t, c.Wait(t.Context(), id))
		snapshot, _ := c.Lookup(id)
		require.Len(t, snapshot.Signals, 1)
		assert.Equal(t, "Dune", snapshot.Signals[0].Key)
		assert.Zero(t, h.Sink().Count("*"))
		require.NoError(t, c.Close())
	})
}

// The end of the caller's context ends both attempts. A deadline is a failure of the call, a
// cancellation is not.
func TestTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, always)
		slow := attempt{takes: time.Hour}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errOnPurpose) })
		took, err := run(ctx, h, slow, slow)
		assert.Equal(t, errOnPurpose, err)
		assert.Equal(t, time.Second, took)
		assert.EqualValues(t, 1, h.Stats().Cancelled)

		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = run(ctx, h, slow, slow)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualValues(t, 1, h.Stats().Failed)
	})
}

// A panic of the first attempt passes through, when the second has ended. A panic of the second
// attempt is an error.
func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, always)
		ended := false
		panics := func(number int) func(context.Context) error {
			return func(ctx context.Context) error {
				time.Sleep(time.Second)
				if hedge.Attempt(ctx) == number {
					panic("on purpose")
				}
				if number == 1 {
					<-ctx.Done()
					ended = true
				}
				return errOnPurpose
			}
		}
		assert.PanicsWithValue(t, "on purpose", func() { _ = h.Do(t.Context(), panics(1)) })
		assert.True(t, ended)
		assert.Equal(t, errOnPurpose, h.Do(t.Context(), panics(2)))
		stats := h.Stats()
		assert.EqualValues(t, 2, stats.Failed)
		assert.Zero(t, stats.Running)

		c := core.Must(core.NewCoordinator(hedge.Wrap(h, func(ctx context.Context, _ int) error { return panics(2)(ctx) }), core.Options{}))
		assert.Equal(t, errOnPurpose, c.Do(t.Context(), 1))
		assert.Equal(t, 1, c.Count(core.SignalPanicked))
		require.NoError(t, c.Close())
	})
}

// An operation that a second attempt enqueues is no second attempt.
func TestAttemptOfAnotherOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, always)
		inner := core.Must(core.NewResultCoordinator(func(ctx context.Context, _ int) (int, error) { return hedge.Attempt(ctx), nil }, core.Options{}))
		got, err := hedge.DoValue(t.Context(), h, func(ctx context.Context) (int, error) {
			if hedge.Attempt(ctx) == 1 {
				<-ctx.Done()
				return 0, errOnPurpose
			}
			return inner.Do(ctx, 0)
		})
		assert.NoError(t, err)
		assert.Equal(t, 1, got)
		require.NoError(t, inner.Close())
	})
}

// Many calls at once: every call is counted once, and no attempt is left.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedge.Options{MaxExtra: 0.5, MaxErrors: -1})
		var all sync.WaitGroup
		for i := range 2000 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%100)*time.Millisecond)
				defer cancel()
				a := attempt{takes: time.Duration(i%7) * 5 * time.Millisecond}
				if i%11 == 0 {
					a.err = errOnPurpose
				}
				_, _ = run(ctx, h, a, attempt{takes: time.Duration(i%5) * time.Millisecond})
				s := h.Stats()
				assert.Equal(t, s.Calls, uint64(s.Running)+s.Succeeded+s.Failed+s.Cancelled)
				assert.LessOrEqual(t, s.Hedged, s.Calls/2)
			})
		}
		all.Wait()
		s := h.Stats()
		assert.Zero(t, s.Running)
		assert.NotZero(t, s.Hedged)
		assert.EqualValues(t, 2000, s.Calls)
	})
}

func TestOptions(t *testing.T) {
	for want, opts := range map[string]hedge.Options{
		"hedge: Delay must not be negative, but is -1ns": {Delay: -1},
		"hedge: MaxExtra must be at most 1, not 1.5":     {MaxExtra: 1.5},
		"hedge: MaxErrors must be at most 1, not NaN":    {MaxErrors: math.NaN()},
	} {
		_, err := hedge.New(opts)
		assert.EqualError(t, err, want)
	}
	h := newHedger(t, hedge.Options{})
	assert.Panics(t, func() { _ = h.Do(t.Context(), nil) })
	assert.Panics(t, func() { hedge.Wrap[int](nil, nil) })
	assert.Panics(t, func() { hedge.WrapResult[int, int](h, nil) })
}

// later is no failure, like durable.Snooze.
type later struct{}

func (later) Error() string { return "later" }
func (later) Failed() bool  { return false }

// An outcome that is no failure ends a call like a success, from either attempt.
func TestAnOutcomeThatIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, always)
		for _, attempts := range [][]attempt{
			{{takes: 20 * time.Millisecond, err: later{}}, {takes: time.Hour}},
			{{takes: time.Hour}, {takes: 10 * time.Millisecond, err: later{}}},
		} {
			took, err := run(t.Context(), h, attempts...)
			assert.Equal(t, later{}, err)
			assert.Equal(t, 20*time.Millisecond, took)
		}
		assert.Equal(t, uint64(2), h.Stats().Succeeded)
		assert.Zero(t, h.Stats().Failed)
	})
}
