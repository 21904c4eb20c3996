package ratelimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
)

var errOnPurpose = errors.New("on purpose")

func newLimiter(t testing.TB, rate float64, opts ratelimit.Options) *ratelimit.Limiter {
	t.Helper()
	l, err := ratelimit.New(rate, opts)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// drain empties the bucket.
func drain(l *ratelimit.Limiter) (taken int) {
	for l.Allow() {
		taken++
	}
	return taken
}

// queue lets so many wait, one after the other, and returns where they say when they
// were served, in seconds after now.
func queue(t testing.TB, l *ratelimit.Limiter, n int, cost int) <-chan served {
	begin, out := time.Now(), make(chan served, n)
	for i := range n {
		go func() {
			err := l.WaitN(t.Context(), cost)
			out <- served{i, time.Since(begin), err}
		}()
		synctest.Wait()
	}
	return out
}

type served struct {
	who int
	at  time.Duration
	err error
}

func TestAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 10, ratelimit.Options{Burst: 5})
		assert.Equal(t, 5, drain(l), "a full bucket, and no more")
		time.Sleep(100*time.Millisecond - 1)
		assert.False(t, l.Allow(), "just before")
		time.Sleep(time.Nanosecond)
		assert.True(t, l.Allow(), "just at")
		assert.False(t, l.Allow())
		time.Sleep(time.Hour)
		assert.Equal(t, 5, drain(l), "a long quiet time gives a burst, and no more")
		assert.False(t, l.AllowN(6))
		assert.True(t, l.AllowN(0))
	})
}

func TestDefaults(t *testing.T) {
	l := newLimiter(t, 1, ratelimit.Options{})
	assert.Equal(t, 20, l.Burst())
	assert.Equal(t, 1.0, l.Rate())
	assert.Equal(t, "ratelimit", l.Name())
	assert.NotNil(t, l.Sink())
	assert.Equal(t, 20.0, l.Tokens())
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		rate float64
		opts ratelimit.Options
		want string
	}{
		"negative":  {-1, ratelimit.Options{}, "rate must be"},
		"NaN":       {math.NaN(), ratelimit.Options{}, "rate must be"},
		"minus inf": {math.Inf(-1), ratelimit.Options{}, "rate must be"},
		"too low":   {1e-10, ratelimit.Options{}, "rate must be"},
		"too high":  {1.1e9, ratelimit.Options{}, "rate must be"},
		"burst":     {1, ratelimit.Options{Burst: -1}, "Burst must be at least 1"},
		"waiting":   {1, ratelimit.Options{MaxWaiting: -1}, "MaxWaiting must be at least 1"},
	} {
		_, err := ratelimit.New(c.rate, c.opts)
		assert.ErrorContains(t, err, "ratelimit: ", name)
		assert.ErrorContains(t, err, c.want, name)
	}
	l := newLimiter(t, 5, ratelimit.Options{})
	for _, rate := range []float64{-1, math.NaN(), 1e10, 1e-10} {
		assert.Error(t, l.SetRate(rate))
	}
	assert.Error(t, l.SetBurst(0))
	assert.Equal(t, 5.0, l.Rate())
	assert.Panics(t, func() { l.AllowN(-1) })
	assert.Panics(t, func() { l.WaitN(t.Context(), -1) })
	assert.Panics(t, func() { l.ReserveN(-1) })
	assert.Panics(t, func() { ratelimit.Wrap[int](l, nil) })
	assert.Panics(t, func() { ratelimit.WrapResult[int, int](nil, nil) })
}

// Weak point: refill is a once-a-second lump.
func TestRefillIsContinuous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 10, ratelimit.Options{Burst: 10})
		drain(l)
		for range 50 {
			time.Sleep(100 * time.Millisecond)
			assert.Equal(t, 1, drain(l))
		}
		time.Sleep(25 * time.Millisecond)
		assert.Equal(t, 0.25, l.Tokens())
	})
}

// Weak point: fractional rates are rounded, with a floor of 1.
func TestFractionalRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for rate, want := range map[float64]int{0.5: 50, 2.5: 250, 0.01: 1, 1.0 / 3: 33} {
			l := newLimiter(t, rate, ratelimit.Options{Burst: 5})
			assert.Equal(t, rate, l.Rate())
			drain(l)
			passed := 0
			for range 100 {
				time.Sleep(time.Second)
				passed += drain(l)
			}
			assert.Equal(t, want, passed, "%g per second", rate)
		}
	})
}

// Weak point: when burst < rate, throughput is limited to burst per second.
func TestBurstBelowRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1000, ratelimit.Options{Burst: 1})
		begin := time.Now()
		for range 5001 {
			require.NoError(t, l.Wait(t.Context()))
		}
		assert.Equal(t, 5*time.Second, time.Since(begin))
	})
}

// Weak point: each change builds a new full bucket, so that a feedback loop removes
// the limit.
func TestChangesGrantNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 10, ratelimit.Options{Burst: 10})
		drain(l)
		for i := range 1000 {
			require.NoError(t, l.SetRate(10+float64(i%2)))
			require.NoError(t, l.SetBurst(10+i%7))
			l.Sink().Raise(ratelimit.CommandSet + ":10")
			assert.Zero(t, l.Tokens())
			assert.False(t, l.Allow())
		}
		require.NoError(t, l.SetBurst(5))
		time.Sleep(time.Hour)
		require.NoError(t, l.SetBurst(50))
		assert.Equal(t, 5.0, l.Tokens(), "a larger bucket is not fuller")
		require.NoError(t, l.SetBurst(2))
		assert.Equal(t, 2.0, l.Tokens(), "a smaller one overflows")
		require.NoError(t, l.SetBurst(50))
		assert.Equal(t, 2.0, l.Tokens())
		require.NoError(t, l.SetRate(0))
		require.NoError(t, l.SetRate(ratelimit.Unlimited))
		time.Sleep(time.Hour)
		require.NoError(t, l.SetRate(10))
		assert.Equal(t, 2.0, l.Tokens(), "neither a pause nor a time without limit fills it")
	})
}

// Weak point: waiters in the old bucket are refused, or loop for ever; a caller racing
// the change sees "disposed".
func TestChangesKeepWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, ratelimit.Options{Burst: 1})
		drain(l)
		out := queue(t, l, 4, 1) // due after 1, 2, 3, 4 seconds
		time.Sleep(1500 * time.Millisecond)
		require.NoError(t, l.SetRate(10)) // half a token is missing: 50 ms
		time.Sleep(60 * time.Millisecond) // the bucket has a tenth
		require.NoError(t, l.SetRate(0.1))
		require.NoError(t, l.SetBurst(7))
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []time.Duration{1000, 1550, 1560 + 9000, 1560 + 19000}
		for i, at := range want {
			got := <-out
			assert.Equal(t, served{i, at * time.Millisecond, nil}, got)
		}
	})
}

// Weak point: no reservation: waiters wake together and race; no order, and
// starvation is possible.
func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, ratelimit.Options{Burst: 5})
		drain(l)
		begin, out := time.Now(), make(chan served, 3)
		for i, n := range []int{1, 5, 1} { // the large one is not overtaken
			go func() {
				err := l.WaitN(t.Context(), n)
				out <- served{i, time.Since(begin), err}
			}()
			synctest.Wait()
		}
		time.Sleep(5 * time.Second)
		assert.False(t, l.Allow(), "there are tokens, but not for those who come later")
		assert.Equal(t, 4.0, l.Tokens())
		time.Sleep(time.Minute)
		for i, at := range []time.Duration{1, 6, 7} {
			assert.Equal(t, served{i, at * time.Second, nil}, <-out)
		}
		assert.Equal(t, ratelimit.Stats{Allowed: 5 + 3, Denied: 2, Delayed: 3, Tokens: 5, Rate: 1, Burst: 5, Limited: false}, l.Stats())
	})
}

// Weak point: waits are 100 times too long where the clock runs at 1 GHz; acquire
// reports no delay.
func TestWaitTakesAsLongAsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 10, ratelimit.Options{Burst: 1})
		drain(l)
		r := l.Reserve()
		assert.Equal(t, 100*time.Millisecond, r.Delay())
		begin := time.Now()
		require.NoError(t, r.Wait(t.Context()))
		assert.Equal(t, 100*time.Millisecond, time.Since(begin))
		require.NoError(t, l.Wait(t.Context()))
		assert.Equal(t, 200*time.Millisecond, time.Since(begin))
		assert.EqualValues(t, 2, l.Stats().Delayed)
	})
}

// Weak point: rates above the clock's frequency are no limit at all; very low rates
// and large bursts overflow.
func TestExtremes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast := newLimiter(t, ratelimit.MaxRate, ratelimit.Options{Burst: 100})
		assert.Equal(t, 100, drain(fast))
		time.Sleep(time.Nanosecond)
		assert.Equal(t, 1, drain(fast))

		// 2^29 seconds, 17 years, for one.
		slow := newLimiter(t, 0x1p-29, ratelimit.Options{Burst: 1 << 30})
		assert.True(t, slow.AllowN(1<<30))
		assert.False(t, slow.Allow())
		r := slow.ReserveN(1)
		assert.Equal(t, time.Second<<29, r.Delay())
		assert.Equal(t, ratelimit.InfDuration, slow.ReserveN(1<<30).Delay())
		require.NoError(t, slow.SetRate(1<<10))
		assert.Equal(t, time.Second>>10+1, r.Delay())
	})
}

// Weak point: truncating the interval to whole ticks makes the rate too high.
func TestIntervalsAreNotTruncated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 3, ratelimit.Options{Burst: 1})
		drain(l)
		time.Sleep(333_333_333)
		assert.False(t, l.Allow(), "a third of a second is a little more")
		time.Sleep(time.Nanosecond)
		assert.True(t, l.Allow())
		begin := time.Now()
		drain(l)
		for range 3_000 {
			require.NoError(t, l.Wait(t.Context()))
		}
		assert.InDelta(t, 1000*time.Second, time.Since(begin), 1)
	})
}

// Weak point: acquire returns a flag to forget.
func TestWaitReturnsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, ratelimit.Options{Burst: 2, MaxWaiting: 1})
		assert.ErrorIs(t, l.WaitN(t.Context(), 3), ratelimit.ErrExceedsBurst)

		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errOnPurpose)
		assert.ErrorIs(t, l.Wait(ended), errOnPurpose)
		assert.Equal(t, 2.0, l.Tokens(), "nothing is taken")
		drain(l)

		// Too short a deadline is known at once.
		begin := time.Now()
		for _, left := range []time.Duration{time.Millisecond, time.Second} { // at the deadline is too late
			ctx, cancel := context.WithTimeout(t.Context(), left)
			err := l.Wait(ctx)
			cancel()
			var late *ratelimit.DeadlineError
			require.ErrorAs(t, err, &late)
			assert.Equal(t, ratelimit.DeadlineError{Wait: time.Second, Left: left}, *late)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}
		assert.Equal(t, begin, time.Now())

		// Not too short.
		ctx, cancelCtx := context.WithTimeout(t.Context(), time.Second+1)
		defer cancelCtx()
		go func() {
			synctest.Wait()
			err := l.Wait(t.Context())
			assert.ErrorIs(t, err, core.ErrFull, "one may wait")
		}()
		assert.NoError(t, l.Wait(ctx))
		assert.Equal(t, time.Second, time.Since(begin))
		s := l.Stats()
		assert.EqualValues(t, 2+1, s.Allowed)
		assert.EqualValues(t, 1+1+2+1, s.Denied)
	})
}

// Weak point: the waiter queue is unlimited.
func TestLineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, ratelimit.Options{Burst: 1, MaxWaiting: 3})
		drain(l)
		out := queue(t, l, 2, 1)
		r := l.Reserve()
		assert.True(t, r.OK())
		assert.Equal(t, 3, l.Stats().Waiting)
		assert.False(t, l.Reserve().OK())
		assert.ErrorIs(t, l.Wait(t.Context()), core.ErrFull)
		r.Cancel()
		assert.True(t, l.Reserve().OK())
		time.Sleep(time.Minute)
		assert.NoError(t, (<-out).err)
		assert.True(t, l.Reserve().OK())
	})
}

// Who gives up gives back all it held, and those behind move up at once.
func TestCancelledWaiterLeavesNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, ratelimit.Options{Burst: 10})
		drain(l)
		ctx, cancel := context.WithCancelCause(t.Context())
		large := make(chan error, 1)
		go func() { large <- l.WaitN(ctx, 10) }()
		synctest.Wait()
		out := queue(t, l, 2, 2)
		time.Sleep(3 * time.Second)
		cancel(errOnPurpose)
		assert.ErrorIs(t, <-large, errOnPurpose)
		synctest.Wait()
		assert.Equal(t, served{0, 3 * time.Second, nil}, <-out)
		assert.Equal(t, served{1, 4 * time.Second, nil}, <-out)
		s := l.Stats()
		assert.EqualValues(t, 1, s.Cancelled)
		assert.EqualValues(t, 10+2, s.Allowed)
		assert.Zero(t, s.Tokens)
	})
}

// Granted at the very moment at which the context ends is one or the other, never both:
// the token comes back.
func TestCancelledAtTheMomentOfTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, ratelimit.Options{Burst: 1})
		for range 100 {
			drain(l)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			before := l.Stats()
			err := l.Wait(ctx)
			after := l.Stats()
			if err == nil {
				assert.Zero(t, after.Tokens)
				assert.Equal(t, before.Allowed+1, after.Allowed)
			} else {
				assert.Equal(t, 1.0, after.Tokens)
				assert.Equal(t, before.Cancelled+1, after.Cancelled)
			}
		}
	})
}

// The weak spots of CancelAt in x/time/rate: what was reserved after it is not given
// back; nothing is given back once its time has come; rounding loses tokens.
func TestReservationCancelIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, ratelimit.Options{Burst: 5})
		drain(l)
		first, second, third := l.ReserveN(2), l.ReserveN(3), l.ReserveN(1)
		assert.Equal(t, []time.Duration{2e9, 5e9, 6e9}, []time.Duration{first.Delay(), second.Delay(), third.Delay()})
		second.Cancel()
		second.Cancel()
		assert.False(t, second.OK())
		assert.Equal(t, ratelimit.InfDuration, second.Delay())
		assert.Error(t, second.Wait(t.Context()))
		assert.Equal(t, []time.Duration{2e9, 3e9}, []time.Duration{first.Delay(), third.Delay()}, "those behind move up")
		time.Sleep(2500 * time.Millisecond)
		assert.Zero(t, first.Delay())
		first.Cancel() // its time has come, but it has not acted
		assert.Zero(t, third.Delay())
		third.Cancel()
		assert.Equal(t, 2.5, l.Tokens())
		assert.EqualValues(t, 3, l.Stats().Cancelled)

		l.Reset()
		r := l.ReserveN(5)
		assert.Zero(t, r.Delay())
		time.Sleep(time.Second)
		r.Cancel()
		assert.Equal(t, 5.0, l.Tokens())

		sixty := newLimiter(t, 60, ratelimit.Options{Burst: 1})
		var all []*ratelimit.Reservation
		for range 300 {
			all = append(all, sixty.Reserve())
			time.Sleep(time.Millisecond / 3)
		}
		for i := range all {
			all[len(all)-1-i].Cancel()
		}
		assert.Equal(t, 1.0, sixty.Tokens())
	})
}

func TestReservationWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, ratelimit.Options{Burst: 1})
		begin := time.Now()
		require.NoError(t, l.Reserve().Wait(t.Context()))
		assert.Equal(t, begin, time.Now())

		r := l.Reserve()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorAs(t, r.Wait(ctx), new(*ratelimit.DeadlineError))
		assert.False(t, r.OK(), "it has given the reservation up")

		r = l.Reserve()
		next := l.Reserve()
		ctx, cancelCause := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second/2, func() { cancelCause(errOnPurpose) })
		assert.ErrorIs(t, r.Wait(ctx), errOnPurpose)
		assert.Equal(t, time.Second/2, next.Delay())
		assert.NoError(t, next.Wait(t.Context()))
		assert.Equal(t, time.Second, time.Since(begin))
		assert.ErrorIs(t, next.Wait(ctx), errOnPurpose)
		assert.Equal(t, 1.0, l.Tokens())

		// Two wait for the same one.
		drain(l)
		r = l.Reserve()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { assert.NoError(t, r.Wait(t.Context())) })
		}
		both.Wait()

		assert.ErrorIs(t, l.ReserveN(2).Wait(t.Context()), ratelimit.ErrExceedsBurst)
	})
}

// What was used less comes back, what was used more is owed.
func TestReservationAdjust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, ratelimit.Options{Burst: 10})
		r := l.ReserveN(5)
		r.Adjust(2)
		assert.Equal(t, 8.0, l.Tokens())
		r.Adjust(13)
		assert.Equal(t, -3.0, l.Tokens())
		out := queue(t, l, 1, 1)
		assert.Equal(t, 3*time.Second+time.Second, l.Reserve().Delay()-time.Second)
		r.Adjust(10)
		time.Sleep(time.Minute)
		assert.Equal(t, served{0, time.Second, nil}, <-out)
		r.Cancel()
		r.Adjust(100)
		assert.Equal(t, 10.0, l.Tokens())

		drain(l)
		r = l.ReserveN(10)
		next := l.Reserve()
		r.Adjust(3) // in line
		assert.Equal(t, 3*time.Second, r.Delay())
		assert.Equal(t, 4*time.Second, next.Delay())
		assert.Panics(t, func() { r.Adjust(-1) })
		assert.Panics(t, func() { r.Adjust() })
	})
}

// set:0 pauses: nothing passes, whatever is in the bucket, and who waits waits.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 0, ratelimit.Options{Burst: 3})
		assert.False(t, l.Allow())
		out := queue(t, l, 2, 2)
		assert.Equal(t, ratelimit.InfDuration, l.Reserve().Delay())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		assert.ErrorContains(t, l.Wait(ctx), "paused")
		assert.True(t, l.TAT().IsZero())
		time.Sleep(time.Hour)
		require.NoError(t, l.SetRate(1))
		synctest.Wait()
		assert.Equal(t, served{0, time.Hour, nil}, <-out)
		time.Sleep(time.Minute)
		assert.Equal(t, served{1, time.Hour + time.Second, nil}, <-out)
	})
}

func TestPauseFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{1, ratelimit.Unlimited} {
			l := newLimiter(t, rate, ratelimit.Options{Burst: 3})
			l.PauseFor(time.Minute)
			l.PauseFor(time.Second)
			assert.False(t, l.Allow())
			out := queue(t, l, 1, 1)
			time.Sleep(time.Minute - 1)
			assert.False(t, l.Allow())
			assert.Equal(t, 3.0, l.Tokens(), "nothing comes in, and nothing goes")
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			assert.Equal(t, served{0, time.Minute, nil}, <-out)
			assert.True(t, l.Allow())
			assert.True(t, l.Allow())
			assert.Equal(t, rate == ratelimit.Unlimited, l.Allow())
			l.PauseFor(time.Hour)
			l.PauseFor(0)
			time.Sleep(time.Second)
			assert.True(t, l.Allow())
		}
	})
}

// An unlimited limiter lets all pass, also who waits, and takes nothing.
func TestUnlimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, math.Inf(1), ratelimit.Options{Burst: 2})
		assert.Equal(t, ratelimit.Unlimited, l.Rate())
		assert.True(t, l.AllowN(1000))
		assert.NoError(t, l.WaitN(t.Context(), 1000))
		assert.Equal(t, 2.0, l.Tokens())
		_, err := json.Marshal(l.Stats())
		assert.NoError(t, err)

		require.NoError(t, l.SetRate(1))
		drain(l)
		out := queue(t, l, 3, 2)
		r := l.ReserveN(2)
		require.NoError(t, l.SetRate(math.Inf(1)))
		synctest.Wait()
		for range 3 {
			got := <-out
			assert.Equal(t, served{got.who, 0, nil}, got)
		}
		assert.Zero(t, r.Delay())
		require.NoError(t, l.SetRate(1))
		assert.Zero(t, l.Tokens())
		r.Cancel()
		assert.Zero(t, l.Tokens(), "it took nothing, so nothing comes back")
	})
}

func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, ratelimit.Options{Burst: 3})
		l.ReserveN(3).Adjust(1000)
		out := queue(t, l, 2, 2)
		l.Reset()
		synctest.Wait()
		assert.Equal(t, served{0, 0, nil}, <-out)
		assert.Equal(t, 1.0, l.Tokens())
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, served{1, time.Second, nil}, <-out)
	})
}

// Both views of the same thing.
func TestTokensAndTAT(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 10, ratelimit.Options{Burst: 5})
		tat := func() time.Duration { return time.Until(l.TAT()) }
		assert.Zero(t, tat())
		time.Sleep(time.Hour)
		assert.Zero(t, tat())
		require.True(t, l.AllowN(2))
		assert.Equal(t, 3.0, l.Tokens())
		assert.Equal(t, 200*time.Millisecond, tat())
		time.Sleep(50 * time.Millisecond)
		assert.Equal(t, 3.5, l.Tokens())
		assert.Equal(t, 150*time.Millisecond, tat())
		require.NoError(t, l.SetRate(1))
		assert.Equal(t, 3.5, l.Tokens())
		assert.Equal(t, 1500*time.Millisecond, tat(), "what is owed is rescaled")
		l.ReserveN(5)
		assert.Equal(t, 6500*time.Millisecond, tat())
		require.NoError(t, l.SetRate(0))
		assert.True(t, l.TAT().IsZero())
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		for _, rate := range []float64{1, 0, ratelimit.Unlimited} {
			l := newLimiter(t, rate, ratelimit.Options{Burst: 2, Sink: sink})
			out := queue(t, l, 4, 1)
			r := l.Reserve()
			assert.NoError(t, l.Close())
			assert.NoError(t, l.Close())
			synctest.Wait()
			for range 4 {
				if err := (<-out).err; err != nil {
					assert.ErrorIs(t, err, core.ErrClosed)
				}
			}
			assert.False(t, l.Allow())
			assert.ErrorIs(t, l.Wait(t.Context()), core.ErrClosed)
			assert.False(t, l.Reserve().OK())
			r.Cancel()
			r.Adjust(1)
			require.NoError(t, l.SetRate(7))
			sink.Raise(ratelimit.CommandSet + ":5")
			assert.Equal(t, rate, l.Rate())
			assert.False(t, l.Allow())
			l.PauseFor(1)
			l.Reset()
			assert.False(t, l.Allow())
			s := l.Stats()
			assert.EqualValues(t, 4+1+5, s.Allowed+s.Denied+s.Cancelled)
			assert.Zero(t, s.Waiting)
			assert.False(t, sink.Has(ratelimit.SignalLimited))
		}
	})
}

func TestWrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, ratelimit.Options{Burst: 1})
		begin := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		work := ratelimit.Wrap(l, func(context.Context, int) error {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Since(begin))
			return errOnPurpose
		})
		twice := ratelimit.WrapResult(l, func(_ context.Context, n int) (int, error) { return 2 * n, nil })
		assert.ErrorIs(t, work(t.Context(), 1), errOnPurpose)
		assert.ErrorIs(t, work(t.Context(), 2), errOnPurpose)
		n, err := twice(t.Context(), 21)
		assert.NoError(t, err)
		assert.Equal(t, 42, n)
		assert.Equal(t, 2*time.Second, time.Since(begin))
		assert.Equal(t, []time.Duration{0, time.Second}, at)

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, work(ctx, 3), context.DeadlineExceeded)
		_, err = twice(ctx, 1)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Len(t, at, 2, "not done")

		// Wrapped work is work of a coordinator.
		c, err := core.NewCoordinator(work, core.Options{MaxConcurrency: 8})
		require.NoError(t, err)
		begin = time.Now()
		for i := range 5 {
			_, err := c.Enqueue(t.Context(), i)
			require.NoError(t, err)
		}
		require.NoError(t, c.Drain(t.Context()))
		assert.Equal(t, 5*time.Second, time.Since(begin))
	})
}

// Everybody at once, and every request is counted exactly once. What passes is never
// more than rate and burst allow.
func TestEverythingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1000, ratelimit.Options{Burst: 10, MaxWaiting: 20})
		var all sync.WaitGroup
		const callers, rounds = 30, 50
		for i := range callers {
			all.Go(func() {
				for j := range rounds {
					switch (i + j) % 5 {
					case 0:
						l.Allow()
					case 1:
						l.Wait(t.Context())
					case 2:
						ctx, cancel := context.WithCancel(t.Context())
						time.AfterFunc(time.Duration(i+j)*time.Microsecond*100, cancel)
						l.WaitN(ctx, 3)
						cancel()
					case 3:
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(j)*time.Millisecond)
						l.WaitN(ctx, 2)
						cancel()
					case 4:
						r := l.ReserveN(4)
						time.Sleep(time.Duration(i) * time.Millisecond)
						r.Cancel()
					}
				}
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		s := l.Stats()
		assert.EqualValues(t, callers*rounds, s.Allowed+s.Denied+s.Cancelled)
		assert.Zero(t, s.Waiting)
		assert.Equal(t, 10.0, s.Tokens)
	})
}

// Under real time and the race detector.
func TestConcurrentSafe(t *testing.T) {
	l := newLimiter(t, 1e6, ratelimit.Options{Burst: 3})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 300 {
				switch i {
				case 0:
					l.SetRate(1e6)
					l.SetBurst(3)
				case 1:
					l.Sink().Raise(ratelimit.CommandIncrease + ":1")
					l.Stats()
				case 2:
					ctx, cancel := context.WithTimeout(t.Context(), 50*time.Microsecond)
					l.WaitN(ctx, 3)
					cancel()
				case 3:
					r := l.Reserve()
					r.Delay()
					r.Adjust(2)
					r.Cancel()
				case 4:
					l.Allow()
					l.PauseFor(time.Microsecond)
				default:
					assert.NoError(t, l.Wait(t.Context()))
				}
			}
		})
	}
	all.Wait()
	s := l.Stats()
	assert.EqualValues(t, 6*300, s.Allowed+s.Denied+s.Cancelled)
}

func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx := t.Context()
	free := newLimiter(t, ratelimit.MaxRate, ratelimit.Options{Burst: 100})
	assert.Zero(t, testing.AllocsPerRun(100, func() { free.Allow() }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { free.AllowN(3) }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { free.Wait(ctx) }))

	unlimited := newLimiter(t, ratelimit.Unlimited, ratelimit.Options{})
	assert.Zero(t, testing.AllocsPerRun(100, func() { unlimited.Allow() }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { unlimited.Wait(ctx) }))

	spent := newLimiter(t, ratelimit.MinRate, ratelimit.Options{Burst: 1})
	drain(spent)
	assert.Zero(t, testing.AllocsPerRun(100, func() { spent.Allow() }))

	group, err := ratelimit.NewGroup([]ratelimit.Limit{{Name: "a", Rate: 1e9, Burst: 100}, {Name: "b", Rate: 1e9, Burst: 100}}, ratelimit.GroupOptions{})
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(100, func() { group.Allow(1, 2) }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { group.Wait(ctx, 1, 2) }))

	keyed, err := ratelimit.NewKeyed[string](1e9, ratelimit.KeyedOptions{})
	require.NoError(t, err)
	keyed.Allow("a")
	assert.Zero(t, testing.AllocsPerRun(100, func() { keyed.Allow("a") }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { keyed.Wait(ctx, "a") }))
}

func TestTATAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, ratelimit.Options{Burst: 3})
		l.PauseFor(time.Minute)
		l.ReserveN(2)
		assert.Equal(t, time.Minute+2*time.Second, time.Until(l.TAT()))
		time.Sleep(time.Minute)
		assert.Equal(t, 2*time.Second, time.Until(l.TAT()))
	})
}

// A century at a token per nanosecond, with the largest bucket.
func TestUptime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, century = int(min(1<<40, math.MaxInt)), 100 * 365 * 24 * time.Hour
		if math.MaxInt < int64(1)<<40 {
			t.Skip("there is no such burst")
		}
		for _, rate := range []float64{ratelimit.MaxRate, ratelimit.MinRate, 1} {
			l := newLimiter(t, rate, ratelimit.Options{Burst: most})
			require.True(t, l.AllowN(most))
			r := l.Reserve()
			r.Adjust(math.MaxInt) // more than there is in the bucket
			require.NoError(t, l.SetRate(rate))
			l.Reset()
			assert.EqualValues(t, -1, l.Tokens(), "granted when it is full, and the rest is owed")
			time.Sleep(time.Second)
			assert.InDelta(t, rate-1, l.Tokens(), 1e-6)
			r.Cancel()
			assert.EqualValues(t, most, l.Tokens())
			require.True(t, l.AllowN(most))
			assert.False(t, l.AllowN(math.MaxInt))
			assert.False(t, l.ReserveN(math.MaxInt).OK())
		}
		l := newLimiter(t, ratelimit.MaxRate, ratelimit.Options{Burst: most})
		require.True(t, l.AllowN(most))
		time.Sleep(century)
		assert.EqualValues(t, most, l.Tokens())
		require.True(t, l.AllowN(most))
		assert.False(t, l.Allow())
		require.NoError(t, l.SetRate(1))
		time.Sleep(time.Second)
		assert.Equal(t, 1.0, l.Tokens())
		l.PauseFor(math.MaxInt64)
		assert.False(t, l.Allow())
		assert.Equal(t, ratelimit.InfDuration > l.Reserve().Delay(), true)
		l.PauseFor(math.MinInt64)
		assert.False(t, l.Allow(), "the reservation has it")
	})
}

// Cancelled, adjusted and waited for by many at the same time, a reservation gives back
// once what it took once.
func TestReservationForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 100, ratelimit.Options{Burst: 10})
		var all sync.WaitGroup
		for i := range 100 {
			r := l.ReserveN(1 + i%10)
			for j := range 5 {
				all.Go(func() {
					time.Sleep(time.Duration((i*7+j)%10) * time.Second / 20)
					switch j {
					case 0:
						r.Wait(t.Context())
					case 1:
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						time.AfterFunc(r.Delay(), cancel) // at the very moment
						r.Wait(ctx)
					case 2:
						r.Adjust(i % 17)
						r.Adjust(i % 3)
					default:
						r.Cancel()
					}
				})
			}
		}
		all.Wait()
		s := l.Stats()
		assert.Equal(t, 10.0, s.Tokens)
		assert.EqualValues(t, 100, s.Cancelled+s.Denied)
		assert.Zero(t, s.Allowed)
		assert.Zero(t, s.Waiting)
	})
}

// An operation that waits in line says for whom.
func TestExplainNamesTheLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, ratelimit.Options{Name: "api", Burst: 1})
		drain(l)
		c := core.Must(core.NewCoordinator(ratelimit.Wrap(l, func(context.Context, int) error { return nil }), core.Options{}))
		id, err := c.Enqueue(t.Context(), 1)
		require.NoError(t, err)
		synctest.Wait()
		why, _ := c.Explain(id)
		assert.Contains(t, why.String(), `its body waits for limiter "api"`)
		require.NoError(t, c.Drain(t.Context()))
		why, _ = c.Explain(id)
		assert.NotContains(t, why.String(), "waits")
	})
}
