package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errOnPurpose = errors.New("on purpose")

func newLimiter(t testing.TB, rate core.Rate, opts ratelimit.Options) *ratelimit.Limiter {
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

// queue starts waiters, one after the other. It returns the channel on which each reports
// when it was served, as time since now.
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
	caller int
	at     time.Duration
	err    error
}

func TestDefaults(t *testing.T) {
	l := newLimiter(t, core.Rate{PerSecond: 1}, ratelimit.Options{})
	assert.NotNil(t, l.Sink())
	assert.Equal(t, ratelimit.LimitState{Name: "ratelimit", Tokens: 20, Rate: 1, Burst: 20}, l.Stats().Limits[0])
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		rate core.Rate
		opts ratelimit.Options
		want string
	}{
		"negative":  {core.Rate{PerSecond: -1}, ratelimit.Options{}, "rate is -1, but must be"},
		"NaN":       {core.Rate{PerSecond: math.NaN()}, ratelimit.Options{}, "rate is NaN, but must be"},
		"minus inf": {core.Rate{PerSecond: math.Inf(-1)}, ratelimit.Options{}, "rate is -Inf, but must be"},
		"infinite":  {core.Rate{PerSecond: math.Inf(1)}, ratelimit.Options{}, "ratelimit.Unlimited"},
		"too low":   {core.Rate{PerSecond: 1e-10}, ratelimit.Options{}, "rate is 1e-10, but must be"},
		"too high":  {core.Rate{PerSecond: 1.1e9}, ratelimit.Options{}, "rate is 1.1e+09, but must be"},
		"blank":     {core.Rate{PerSecond: 1}, ratelimit.Options{Name: " \t"}, `Name is " \t", it must not be blank`},
		"burst":     {core.Rate{PerSecond: 1, Burst: -1}, ratelimit.Options{}, "burst is -1, but must be at least 1"},
		"waiting":   {core.Rate{PerSecond: 1}, ratelimit.Options{MaxQueued: 1 << 21}, "MaxQueued must be at least 0 and at most 1048576"},
	} {
		_, err := ratelimit.New(c.rate, c.opts)
		assert.ErrorContains(t, err, "ratelimit: ", name)
		assert.ErrorContains(t, err, c.want, name)
	}
	l := newLimiter(t, core.Rate{PerSecond: 5}, ratelimit.Options{})
	for _, rate := range []float64{-1, math.NaN(), math.Inf(1), 1e10, 1e-10} {
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

// When Unlimited ends, all buckets are full.
func TestTheBucketIsFullAfterUnlimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newLimiter(t, core.Rate{PerSecond: 1, Burst: 5}, ratelimit.Options{})
		keyed := newKeyed[string](t, core.Rate{PerSecond: 1, Burst: 5}, ratelimit.Options{})
		group := newGroup(t, ratelimit.Options{}, ratelimit.Limit{Name: "a", Rate: core.Rate{PerSecond: 1, Burst: 5}}, ratelimit.Limit{Name: "b", Rate: core.Rate{PerSecond: 1, Burst: 5}})
		has := func(a, b float64) {
			t.Helper()
			assert.Equal(t, []float64{a, a, a, b}, []float64{one.Tokens(), keyed.Tokens("k"), group.Tokens("a"), group.Tokens("b")})
		}
		set := func(rate float64) {
			require.NoError(t, errors.Join(one.SetRate(rate), keyed.SetRate(rate), group.SetRate("a", rate)))
		}
		r := one.ReserveN(5)
		require.True(t, keyed.AllowN("k", 5))
		require.True(t, group.Allow(5, 5))
		has(0, 0)
		set(ratelimit.Unlimited)
		r.Adjust(1000)
		has(5, 0)
		require.NoError(t, errors.Join(one.SetBurst(9), keyed.SetBurst(9), group.SetBurst("a", 9)))
		for _, rate := range []float64{0, 1} {
			set(rate)
			has(9, 0)
		}
		assert.Equal(t, 9, drain(one))
		assert.Zero(t, keyed.Stats().Keys)
		set(2)
		assert.Zero(t, one.Tokens())
	})
}

// A change of rate or burst keeps the waiters and their order, and they are due by the new
// rate from then on.
func TestChangesKeepWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Rate{PerSecond: 1, Burst: 1}, ratelimit.Options{})
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
		assert.Equal(t, ratelimit.Counts{Allowed: 1 + 4, Denied: 1}, l.Stats().Counts)
	})
}

// A wait that cannot succeed returns an error at once, and takes nothing.
func TestWaitReturnsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Rate{PerSecond: 1, Burst: 2}, ratelimit.Options{MaxQueued: 1})
		assert.ErrorIs(t, l.WaitN(t.Context(), 3), ratelimit.ErrExceedsBurst)

		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errOnPurpose)
		assert.ErrorIs(t, l.Wait(ended), errOnPurpose)
		assert.Equal(t, 2.0, l.Tokens(), "nothing is taken")
		drain(l)

		// A deadline that is too short is refused at once.
		begin := time.Now()
		for _, left := range []time.Duration{time.Millisecond, time.Second} { // at the deadline is too late
			ctx, cancel := context.WithTimeout(t.Context(), left)
			err := l.Wait(ctx)
			cancel()
			assert.EqualError(t, err, fmt.Sprintf(`ratelimit: limiter "ratelimit": a wait of 1s would outlast the deadline, which is in %v`, left))
			assert.ErrorIs(t, err, ratelimit.ErrTooLate)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}
		assert.Equal(t, begin, time.Now())

		ctx, cancelCtx := context.WithTimeout(t.Context(), time.Second+1)
		defer cancelCtx()
		assert.NoError(t, l.Wait(ctx), "not too short")
		assert.Equal(t, time.Second, time.Since(begin))
		s := l.Stats()
		assert.EqualValues(t, 2+1, s.Allowed)
		assert.EqualValues(t, 1+2+1, s.Denied)
		assert.EqualValues(t, 1, s.Cancelled)
	})
}

// MaxQueued bounds the queue; negative means no queue.
func TestMaxQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Rate{PerSecond: 1, Burst: 1}, ratelimit.Options{MaxQueued: 3})
		drain(l)
		out := queue(t, l, 2, 1)
		r := l.Reserve()
		assert.True(t, r.OK())
		assert.Equal(t, 3, l.Stats().Queued)
		assert.False(t, l.Reserve().OK())
		assert.ErrorIs(t, l.Wait(t.Context()), core.ErrFull)
		r.Cancel()
		assert.True(t, l.Reserve().OK())
		time.Sleep(time.Minute)
		assert.NoError(t, (<-out).err)
		assert.True(t, l.Reserve().OK())

		none := newLimiter(t, core.Rate{PerSecond: 1, Burst: 1}, ratelimit.Options{MaxQueued: -1})
		assert.NoError(t, none.Wait(t.Context()))
		assert.EqualError(t, none.Wait(t.Context()), `ratelimit: limiter "ratelimit" has MaxQueued requests in its queue`)
	})
}

// A request that becomes due at the moment at which its context ends is granted.
func TestContextEndsAtTheMomentOfTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Rate{PerSecond: 1, Burst: 1}, ratelimit.Options{})
		for range 100 {
			drain(l)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			assert.NoError(t, l.Wait(ctx))
			assert.Zero(t, l.Tokens())
		}
	})
}

// A reservation that is cancelled before or at its turn gives back all its tokens, even if others
// were made after it. CancelAt of x/time/rate does not do this. After its turn, its tokens count
// as used, and Cancel does nothing.
func TestReservationCancelIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Rate{PerSecond: 1, Burst: 5}, ratelimit.Options{})
		drain(l)
		first, second, third := l.ReserveN(2), l.ReserveN(3), l.ReserveN(1)
		assert.Equal(t, []time.Duration{2e9, 5e9, 6e9}, []time.Duration{first.Delay(), second.Delay(), third.Delay()})
		second.Cancel()
		second.Cancel()
		assert.False(t, second.OK())
		assert.Equal(t, time.Duration(bucket.Never), second.Delay())
		assert.Error(t, second.Wait(t.Context()))
		assert.Equal(t, []time.Duration{2e9, 3e9}, []time.Duration{first.Delay(), third.Delay()}, "the request behind moves up")
		time.Sleep(2 * time.Second)
		assert.Zero(t, first.Delay())
		first.Cancel() // its turn is at this moment
		assert.Zero(t, third.Delay())
		third.Cancel()
		assert.Equal(t, 2.0, l.Tokens())
		assert.EqualValues(t, 3, l.Stats().Cancelled)

		l.Reset()
		passed, reserved := 0, []*ratelimit.Reservation{l.ReserveN(5), l.ReserveN(2)}
		time.Sleep(2*time.Second + 1)
		for _, r := range reserved {
			require.Zero(t, r.Delay())
			r.Cancel()
			assert.True(t, r.OK())
			assert.NoError(t, r.Wait(t.Context()))
		}
		for l.Allow() {
			passed++
		}
		assert.Zero(t, passed, "the tokens are used")
		assert.EqualValues(t, 3, l.Stats().Cancelled)
		reserved[0].Adjust(0) // says that the tokens were not used
		assert.InDelta(t, 5, l.Tokens(), 1e-8)
	})
}

func TestReservationWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Rate{PerSecond: 1, Burst: 1}, ratelimit.Options{})
		begin := time.Now()
		require.NoError(t, l.Reserve().Wait(t.Context()))
		assert.Equal(t, begin, time.Now())

		r := l.Reserve()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, r.Wait(ctx), ratelimit.ErrTooLate)
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

		// Two goroutines wait for one reservation.
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

// If fewer tokens were used, the rest goes back. If more were used, they become a debt.
func TestReservationAdjust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Rate{PerSecond: 1, Burst: 10}, ratelimit.Options{})
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

		drain(l)
		r = l.ReserveN(10)
		r.Cancel()
		r.Adjust(100)
		assert.Zero(t, l.Tokens())
		r = l.ReserveN(10)
		next := l.Reserve()
		r.Adjust(3) // queued
		assert.Equal(t, 3*time.Second, r.Delay())
		assert.Equal(t, 4*time.Second, next.Delay())
		assert.Panics(t, func() { r.Adjust(-1) })
		assert.Panics(t, func() { r.Adjust() })
	})
}

// A rate of 0 pauses: no request passes, whatever is in the bucket, and waiters go on
// waiting.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Rate{PerSecond: 0, Burst: 3}, ratelimit.Options{})
		assert.False(t, l.Allow())
		out := queue(t, l, 2, 2)
		assert.Equal(t, time.Duration(bucket.Never), l.Reserve().Delay())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		assert.ErrorContains(t, l.Wait(ctx), "paused")
		time.Sleep(time.Hour)
		require.NoError(t, l.SetRate(1))
		synctest.Wait()
		assert.Equal(t, served{0, time.Hour, nil}, <-out)
		time.Sleep(time.Minute)
		assert.Equal(t, served{1, time.Hour + time.Second, nil}, <-out)
	})
}

// An unlimited limiter lets all requests pass, waiters included, and takes no tokens.
func TestUnlimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Rate{PerSecond: ratelimit.Unlimited, Burst: 2}, ratelimit.Options{})
		assert.Equal(t, ratelimit.Unlimited, l.Rate())
		assert.True(t, l.AllowN(1000))
		assert.NoError(t, l.WaitN(t.Context(), 1000))
		assert.Equal(t, 2.0, l.Tokens())

		require.NoError(t, l.SetRate(1))
		drain(l)
		out := queue(t, l, 3, 2)
		r := l.ReserveN(2)
		require.NoError(t, l.SetRate(ratelimit.Unlimited))
		synctest.Wait()
		for range 3 {
			got := <-out
			assert.Equal(t, served{got.caller, 0, nil}, got)
		}
		assert.Zero(t, r.Delay())
		require.NoError(t, l.SetRate(1))
		assert.Equal(t, 2, drain(l))
		r.Cancel()
		assert.Zero(t, l.Tokens(), "it took nothing, so nothing comes back")
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		for _, rate := range []float64{1, 0, ratelimit.Unlimited} {
			l := newLimiter(t, core.Rate{PerSecond: rate, Burst: 2}, ratelimit.Options{Sink: sink})
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
			assert.Zero(t, s.Queued)
			assert.False(t, sink.Has(ratelimit.SignalLimited))
		}
	})
}

func TestWrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Rate{PerSecond: 1, Burst: 1}, ratelimit.Options{})
		begin, calls := time.Now(), 0
		work := ratelimit.Wrap(l, func(context.Context, int) error {
			calls++
			return errOnPurpose
		})
		twice := ratelimit.WrapResult(l, func(_ context.Context, n int) (int, error) { return 2 * n, nil })
		assert.ErrorIs(t, work(t.Context(), 1), errOnPurpose)
		n, err := twice(t.Context(), 21)
		assert.NoError(t, err)
		assert.Equal(t, 42, n)
		assert.Equal(t, time.Second, time.Since(begin))

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, work(ctx, 3), context.DeadlineExceeded)
		_, err = twice(ctx, 1)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 1, calls, "without a token the work is not done")
	})
}

func TestNoAllocations(t *testing.T) {
	if coretest.Race {
		t.Skip("the race detector allocates")
	}
	ctx := t.Context()
	free := newLimiter(t, core.Rate{PerSecond: bucket.MaxRate, Burst: 100}, ratelimit.Options{})
	assert.Zero(t, testing.AllocsPerRun(100, func() { free.Allow() }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { free.AllowN(3) }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { free.Wait(ctx) }))

	unlimited := newLimiter(t, core.Rate{PerSecond: ratelimit.Unlimited}, ratelimit.Options{})
	assert.Zero(t, testing.AllocsPerRun(100, func() { unlimited.Allow() }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { unlimited.Wait(ctx) }))

	spent := newLimiter(t, core.Rate{PerSecond: bucket.MinRate, Burst: 1}, ratelimit.Options{})
	drain(spent)
	assert.Zero(t, testing.AllocsPerRun(100, func() { spent.Allow() }))

	fast := core.Rate{PerSecond: 1e9, Burst: 100}
	group := newGroup(t, ratelimit.Options{}, ratelimit.Limit{Name: "a", Rate: fast}, ratelimit.Limit{Name: "b", Rate: fast})
	assert.Zero(t, testing.AllocsPerRun(100, func() { group.Allow(1, 2) }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { group.Wait(ctx, 1, 2) }))

	keyed := newKeyed[string](t, core.Rate{PerSecond: 1e9}, ratelimit.Options{})
	keyed.Allow("a")
	assert.Zero(t, testing.AllocsPerRun(100, func() { keyed.Allow("a") }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { keyed.Wait(ctx, "a") }))
}

// The next token is there d later: not a nanosecond earlier or later.
func TestEveryIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exact := func(d time.Duration) {
			l := newLimiter(t, core.Rate{PerSecond: ratelimit.Every(d), Burst: 1}, ratelimit.Options{})
			require.True(t, l.Allow())
			time.Sleep(d - 1)
			require.False(t, l.Allow(), "before %v", d)
			time.Sleep(time.Nanosecond)
			require.True(t, l.Allow(), "after %v", d)
		}
		for seconds := 1; seconds <= 3600; seconds++ {
			exact(time.Duration(seconds) * time.Second)
		}
		for _, d := range []time.Duration{1, 2, 3, 7, time.Millisecond, time.Hour / 7, 1<<52 - 1} {
			exact(d)
		}
	})
	assert.Equal(t, ratelimit.Unlimited, ratelimit.Every(0))
	assert.Equal(t, ratelimit.Unlimited, ratelimit.Every(-1))
}

// A century at a token per nanosecond, with the largest bucket.
func TestUptime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, century = int(min(1<<40, math.MaxInt)), 100 * 365 * 24 * time.Hour
		if math.MaxInt < int64(1)<<40 {
			t.Skip("there is no such burst")
		}
		for _, rate := range []float64{bucket.MaxRate, bucket.MinRate, 1} {
			l := newLimiter(t, core.Rate{PerSecond: rate, Burst: most}, ratelimit.Options{})
			require.True(t, l.AllowN(most))
			r := l.Reserve()
			r.Adjust(math.MaxInt) // more tokens than the bucket has
			require.NoError(t, l.SetRate(rate))
			l.Reset()
			assert.EqualValues(t, -1, l.Tokens(), "granted when it is full, and the rest is owed")
			time.Sleep(time.Second)
			assert.InDelta(t, rate-1, l.Tokens(), 1e-6)
			r.Adjust(0)
			assert.EqualValues(t, most, l.Tokens())
			require.True(t, l.AllowN(most))
			assert.False(t, l.AllowN(math.MaxInt))
			assert.False(t, l.ReserveN(math.MaxInt).OK())
		}
		l := newLimiter(t, core.Rate{PerSecond: bucket.MaxRate, Burst: most}, ratelimit.Options{})
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
		assert.Equal(t, time.Duration(bucket.Never) > l.Reserve().Delay(), true)
		l.PauseFor(math.MinInt64)
		assert.False(t, l.Allow(), "the reservation has it")
	})
}

// Many goroutines cancel, adjust and wait for one reservation at the same time. The tokens go
// back exactly once.
func TestReservationForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Rate{PerSecond: 100, Burst: 10}, ratelimit.Options{})
		var all sync.WaitGroup
		var reserved []*ratelimit.Reservation
		for i := range 100 {
			r := l.ReserveN(1 + i%10)
			reserved = append(reserved, r)
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
		used := 0
		for _, r := range reserved {
			if r.OK() { // it was cancelled after its turn
				used++
				r.Adjust(0)
			}
		}
		s := l.Stats()
		assert.Equal(t, 10.0, s.Limits[0].Tokens)
		assert.EqualValues(t, 100, s.Cancelled+s.Denied+s.Allowed)
		assert.EqualValues(t, used, s.Allowed)
		assert.Zero(t, s.Queued)
	})
}

// Explain names the limiter that an operation waits for.
func TestExplainNamesTheLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Rate{PerSecond: 1, Burst: 1}, ratelimit.Options{Name: "api"})
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
