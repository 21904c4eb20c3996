package ratelimit_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func newKeyed[K comparable](t testing.TB, rate core.Rate, opts ratelimit.Options) *ratelimit.Keyed[K] {
	t.Helper()
	k, err := ratelimit.NewKeyed[K](rate, opts)
	require.NoError(t, err)
	t.Cleanup(func() { k.Close() })
	return k
}

// A Keyed does for each key the same as a separate Limiter, even when rate and burst
// change.
func TestKeyedIsALimiterForEachKey(t *testing.T) {
	steps := 4000
	if ratelimit.Long {
		steps = 20_000
	}
	synctest.Test(t, func(t *testing.T) {
		for _, maxKeys := range []int{100, 1 << 14} {
			random := rand.New(rand.NewPCG(5, uint64(maxKeys)))
			k := newKeyed[int](t, core.Rate{PerSecond: 10, Burst: 5}, ratelimit.Options{Capacity: maxKeys})
			var twins []*ratelimit.Limiter
			for range 50 {
				twins = append(twins, newLimiter(t, core.Rate{PerSecond: 10, Burst: 5}, ratelimit.Options{}))
			}
			for range steps {
				time.Sleep(time.Duration(random.IntN(1e7)))
				key := random.IntN(len(twins))
				switch random.IntN(300) {
				case 0:
					rate := 1 + 20*random.Float64()
					require.NoError(t, k.SetRate(rate))
					for _, l := range twins {
						require.NoError(t, l.SetRate(rate))
					}
				case 1:
					burst := 1 + random.IntN(9)
					require.NoError(t, k.SetBurst(burst))
					for _, l := range twins {
						require.NoError(t, l.SetBurst(burst))
					}
				case 2:
					k.PauseFor(time.Second)
					for _, l := range twins {
						l.PauseFor(time.Second)
					}
				case 3, 4, 5:
					d := time.Duration(1 + random.IntN(2e9))
					require.NoError(t, k.PauseKeyFor(key, d))
					twins[key].PauseFor(d)
				default:
					n := random.IntN(3)
					require.Equal(t, twins[key].AllowN(n), k.AllowN(key, n))
					require.Equal(t, twins[key].Tokens(), k.Tokens(key))
				}
			}
			s := k.Stats()
			assert.Zero(t, s.Forgotten)
			var allowed, denied uint64
			for _, l := range twins {
				allowed += l.Stats().Allowed
				denied += l.Stats().Denied
			}
			assert.Equal(t, allowed, s.Allowed)
			assert.Equal(t, denied, s.Denied)
			assert.NotZero(t, denied)
		}
	})
}

// A key with a full bucket is like a new key, and its memory is used for the next one.
func TestKeyedDropsFullKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyed[string](t, core.Rate{PerSecond: 1, Burst: 10}, ratelimit.Options{Capacity: 1000})
		for i := range 10_000 { // 10 keys a second; each bucket is full again after a second
			assert.True(t, k.Allow(fmt.Sprint("client:", i)))
			time.Sleep(100 * time.Millisecond)
			s := k.Stats()
			require.LessOrEqual(t, s.Keys, 25)
		}
		assert.Zero(t, k.Stats().Forgotten)
		assert.True(t, k.AllowN("zero", 0))
	})
}

// When all keys are in use, a few keys are checked. The key with the fullest bucket is
// forgotten and counted.
func TestKeyedForgetsAtTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyed[int](t, core.Rate{PerSecond: 1, Burst: 10}, ratelimit.Options{Capacity: 100})
		for i := range 99 {
			assert.True(t, k.AllowN(i, 10))
		}
		for i := 99; i < 10_000; i++ {
			assert.True(t, k.Allow(i))
			s := k.Stats()
			require.LessOrEqual(t, s.Keys, 100)
			require.EqualValues(t, i+1, uint64(s.Keys)+s.Forgotten)
		}
		still := 0
		for i := range 99 {
			if k.Tokens(i) == 0 {
				still++
			}
		}
		assert.Greater(t, still, 85, "keys that used most are not forgotten first")
	})
}

func TestKeyedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyed[string](t, core.Rate{PerSecond: 1, Burst: 2}, ratelimit.Options{Capacity: 2, MaxQueued: 4})
		begin := time.Now()
		out := make(chan served, 8)
		wait := func(caller int, ctx context.Context, key string, n int) {
			go func() {
				err := k.WaitN(ctx, key, n)
				out <- served{caller, time.Since(begin), err}
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		wait(0, t.Context(), "a", 2)
		wait(1, ctx, "a", 2)
		wait(2, t.Context(), "a", 1)
		wait(3, t.Context(), "b", 2)
		wait(4, t.Context(), "b", 1)
		assert.False(t, k.Allow("a"), "a request is queued")
		assert.Equal(t, 3, k.Stats().Queued)
		cancel(errOnPurpose)
		wait(5, t.Context(), "b", 3)
		late, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		wait(6, late, "b", 1)
		time.Sleep(time.Minute)
		got := map[int]served{}
		for range 7 {
			s := <-out
			got[s.caller] = s
		}
		assert.Equal(t, served{0, 0, nil}, got[0])
		assert.ErrorIs(t, got[1].err, errOnPurpose)
		assert.Equal(t, served{2, time.Second, nil}, got[2])
		assert.Equal(t, served{3, 0, nil}, got[3])
		assert.Equal(t, served{4, time.Second, nil}, got[4])
		assert.ErrorIs(t, got[5].err, ratelimit.ErrExceedsBurst)
		assert.ErrorIs(t, got[6].err, context.DeadlineExceeded)
		assert.Equal(t, 2.0, k.Tokens("a"))
		assert.Zero(t, k.Stats().Queued)
	})
}

// Waiters of all keys are due by the new rate when it changes, and are ended by Close. Keys
// with waiters are not forgotten.
func TestKeyedWaitersAndChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		k := newKeyed[int](t, core.Rate{PerSecond: 1, Burst: 1}, ratelimit.Options{Name: "clients", Capacity: 3, Sink: sink})
		begin := time.Now()
		out := make(chan served, 10)
		wait := func(key int) {
			go func() {
				err := k.Wait(t.Context(), key)
				out <- served{key, time.Since(begin), err}
			}()
			synctest.Wait()
		}
		for key := range 3 {
			require.True(t, k.Allow(key))
			wait(key)
		}
		assert.False(t, k.Allow(3), "there is no room")
		assert.ErrorIs(t, k.Wait(t.Context(), 4), core.ErrFull)
		sink.RaiseKey(ratelimit.CommandSet+":0", "clients")
		time.Sleep(time.Hour)
		require.NoError(t, k.SetRate(10))
		assert.Equal(t, 10.0, k.Rate())
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		for range 3 {
			s := <-out
			assert.Equal(t, time.Hour+100*time.Millisecond, s.at)
			assert.NoError(t, s.err)
		}
		for key := range 3 {
			wait(key)
		}
		k.Reset()
		for range 3 {
			assert.NoError(t, (<-out).err)
		}
		for key := range 3 {
			wait(key)
		}
		k.Close()
		k.Close()
		for range 3 {
			assert.ErrorIs(t, (<-out).err, core.ErrClosed)
		}
		assert.False(t, k.Allow(77))
		assert.ErrorIs(t, k.Wait(t.Context(), 77), core.ErrClosed)
		s := k.Stats()
		assert.EqualValues(t, 3+6, s.Allowed)
		assert.EqualValues(t, 4, s.Denied)
		assert.EqualValues(t, 3, s.Cancelled)
	})
}

func TestKeyedOptions(t *testing.T) {
	_, err := ratelimit.NewKeyed[int](core.Rate{PerSecond: 1}, ratelimit.Options{Capacity: -1})
	assert.ErrorContains(t, err, "ratelimit: Capacity must be at least 1")
	k := newKeyed[any](t, core.Rate{PerSecond: 1}, ratelimit.Options{Name: "clients"})
	assert.Equal(t, 20, k.Burst())
	assert.Error(t, k.SetRate(-1))
	assert.Error(t, k.SetBurst(-1))
	assert.Panics(t, func() { k.Allow([]int{}) })
	assert.Panics(t, func() { k.AllowN(1, -1) })
	assert.Panics(t, func() { k.WaitN(t.Context(), 1, -1) })
	assert.True(t, k.Allow("still works"))
	nan := newKeyed[float64](t, core.Rate{PerSecond: 1, Burst: 1}, ratelimit.Options{})
	assert.True(t, nan.Allow(math.NaN()))
	assert.True(t, nan.Allow(math.NaN()), "a new key each time")
}

func TestKeyedEverythingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, maxKeys := range []int{10, 1 << 14} {
			k := newKeyed[int](t, core.Rate{PerSecond: 1000, Burst: 3}, ratelimit.Options{Capacity: maxKeys, MaxQueued: 30})
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					for j := range 50 {
						switch (i + j) % 3 {
						case 0:
							k.Allow(j)
						case 1:
							ctx, cancel := context.WithCancel(t.Context())
							time.AfterFunc(time.Duration(i)*time.Microsecond*100, cancel)
							k.WaitN(ctx, j%5, 2)
							cancel()
						case 2:
							k.Wait(t.Context(), j%7)
						}
					}
				})
			}
			all.Wait()
			time.Sleep(time.Second)
			s := k.Stats()
			assert.EqualValues(t, 20*50, s.Allowed+s.Denied+s.Cancelled)
			assert.Zero(t, s.Queued)
			for key := range 50 {
				assert.Equal(t, 3.0, k.Tokens(key))
			}
		}
	})
}

// A server can send Delay as Retry-After.
func TestKeyedDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyed[string](t, core.Rate{PerSecond: 0.1, Burst: 2}, ratelimit.Options{})
		assert.Zero(t, k.Delay("a"))
		assert.Zero(t, k.Stats().Keys, "asking makes no key")
		require.True(t, k.AllowN("a", 2))
		assert.Equal(t, 10*time.Second, k.Delay("a"))
		go k.WaitN(t.Context(), "a", 2)
		synctest.Wait()
		assert.Equal(t, 30*time.Second, k.Delay("a"), "behind the waiter")
		time.Sleep(25 * time.Second)
		assert.Equal(t, 5*time.Second, k.Delay("a"))
		k.PauseFor(time.Hour)
		assert.Equal(t, time.Hour, k.Delay("b"))
		require.NoError(t, k.SetRate(0))
		assert.Equal(t, time.Duration(bucket.Never), k.Delay("a"))
		require.NoError(t, k.SetRate(ratelimit.Unlimited))
		assert.Equal(t, time.Hour, k.Delay("a"))
		k.Close()
		assert.Equal(t, time.Duration(bucket.Never), k.Delay("a"))
	})
}

func TestPauseKeyFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{1, ratelimit.Unlimited} {
			k := newKeyed[string](t, core.Rate{PerSecond: rate, Burst: 3}, ratelimit.Options{Capacity: 2})
			require.NoError(t, k.PauseKeyFor("a", time.Minute))
			require.NoError(t, k.PauseKeyFor("a", time.Second))
			assert.False(t, k.Allow("a"))
			assert.True(t, k.Allow("b"), "another key")
			assert.Equal(t, time.Minute, k.Delay("a"))
			began, served := time.Now(), make(chan time.Duration, 1)
			go func() {
				k.Wait(t.Context(), "a")
				served <- time.Since(began)
			}()
			time.Sleep(time.Minute - 1)
			for _, other := range []string{"c", "d", "e"} {
				assert.True(t, k.AllowN(other, 3))
			}
			assert.False(t, k.Allow("a"), "it is not forgotten")
			assert.Equal(t, 3.0, k.Tokens("a"), "nothing comes in, and nothing goes")
			assert.Equal(t, time.Minute, <-served)
			assert.True(t, k.AllowN("a", 2))
			assert.Equal(t, rate == ratelimit.Unlimited, k.Allow("a"))

			require.NoError(t, k.PauseKeyFor("a", time.Hour))
			k.PauseFor(2 * time.Hour) // pauses all keys, and so this one
			time.Sleep(time.Hour)
			assert.False(t, k.Allow("a"))
			require.NoError(t, k.PauseKeyFor("a", 0))
			assert.False(t, k.Allow("a"), "all are paused")
			k.PauseFor(0)
			require.NoError(t, k.PauseKeyFor("a", time.Hour))
			require.NoError(t, k.PauseKeyFor("a", 0))
			require.NoError(t, k.PauseKeyFor("a", -1))
			time.Sleep(time.Second)
			assert.True(t, k.Allow("a"))

			require.NoError(t, k.PauseKeyFor("a", time.Hour))
			require.NoError(t, k.PauseKeyFor("b", time.Hour))
			assert.ErrorIs(t, k.PauseKeyFor("c", time.Hour), core.ErrFull)
			time.Sleep(time.Hour)
			synctest.Wait()
			assert.NoError(t, k.PauseKeyFor("c", time.Hour))
			k.Close()
			assert.ErrorIs(t, k.PauseKeyFor("c", 0), core.ErrClosed)
		}
	})
}

func newGroup(t testing.TB, opts ratelimit.Options, limits ...ratelimit.Limit) *ratelimit.Group {
	t.Helper()
	g, err := ratelimit.NewGroup(limits, opts)
	require.NoError(t, err)
	t.Cleanup(func() { g.Close() })
	return g
}

var requestsAndTokens = []ratelimit.Limit{{Name: "requests", Rate: core.Rate{PerSecond: 1, Burst: 5}}, {Name: "tokens", Rate: core.Rate{PerSecond: 100, Burst: 1000}}}

func TestGroupAllOrNothing(t *testing.T) {
	g := newGroup(t, ratelimit.Options{}, requestsAndTokens...)
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, ratelimit.Options{}, requestsAndTokens...)
		assert.True(t, g.Allow(1, 1000))
		assert.False(t, g.Allow(1, 1))
		assert.Equal(t, 4.0, g.Tokens("requests"), "nothing of one without the other")
		assert.True(t, g.Allow(4, 0))
		time.Sleep(time.Second)
		assert.False(t, g.Allow(2, 1))
		assert.Equal(t, 100.0, g.Tokens("tokens"))
		assert.False(t, g.Allow(6, 0))
		assert.ErrorIs(t, g.Wait(t.Context(), 1, 1001), ratelimit.ErrExceedsBurst)
	})
	assert.Panics(t, func() { g.Allow(1) })
	assert.Panics(t, func() { g.Wait(t.Context(), 1, 2, 3) })
	assert.Panics(t, func() { g.Reserve(1, -2) })
	assert.Panics(t, func() { g.Tokens("nothing") })
	for _, err := range []error{g.SetRate("nothing", 1), g.SetBurst("nothing", 1)} {
		assert.EqualError(t, err, `ratelimit: group "ratelimit" has no limit "nothing", only ["requests" "tokens"]`)
	}
}

func TestGroupControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		g := newGroup(t, ratelimit.Options{Name: "llm", Sink: sink}, requestsAndTokens...)
		sink.Raise(ratelimit.CommandSet + ":7")
		sink.RaiseKey(ratelimit.CommandSet+":7", "llm")
		sink.RaiseKey(ratelimit.CommandSet+":50", "tokens")
		sink.RaiseKey(ratelimit.CommandBurst+":3", "requests")
		require.NoError(t, g.SetRate("requests", 2))
		require.NoError(t, g.SetBurst("tokens", 900))
		assert.Error(t, g.SetBurst("tokens", 0))
		assert.Error(t, g.SetRate("tokens", math.NaN()))
		want := []ratelimit.LimitState{{"requests", 3, 2, 3}, {"tokens", 900, 50, 900}}
		assert.Equal(t, want, g.Stats().Limits)
		assert.Equal(t, 2, sink.Count(ratelimit.RateApplied.Name()))

		require.True(t, g.Allow(3, 900))
		done := make(chan error)
		go func() { done <- g.Wait(t.Context(), 1, 100) }()
		synctest.Wait()
		assert.Equal(t, 1, sink.Count(ratelimit.SignalLimited))
		require.NoError(t, g.SetRate("tokens", 0))
		time.Sleep(time.Hour)
		g.Reset()
		assert.ErrorContains(t, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			return g.Wait(ctx, 1, 1)
		}(), "paused")
		require.NoError(t, g.SetRate("tokens", ratelimit.Unlimited))
		assert.NoError(t, <-done)
		g.PauseFor(time.Minute)
		assert.False(t, g.Allow(1, 1))
		time.Sleep(time.Minute)
		assert.True(t, g.Allow(1, 1e6))
	})
}

func TestGroupOptions(t *testing.T) {
	ok := ratelimit.Limit{Name: "a", Rate: core.Rate{PerSecond: 1}}
	for name, limits := range map[string][]ratelimit.Limit{
		"none":     {},
		"no name":  {{Rate: core.Rate{PerSecond: 1}}},
		"blank":    {{Name: "\t ", Rate: core.Rate{PerSecond: 1}}},
		"twice":    {ok, ok},
		"rate":     {{Name: "a", Rate: core.Rate{PerSecond: -1}}},
		"burst":    {{Name: "a", Rate: core.Rate{PerSecond: 1, Burst: -1}}},
		"rate NaN": {ok, {Name: "b", Rate: core.Rate{PerSecond: math.NaN()}}},
	} {
		_, err := ratelimit.NewGroup(limits, ratelimit.Options{})
		assert.ErrorContains(t, err, "ratelimit: ", name)
	}
	_, err := ratelimit.NewGroup([]ratelimit.Limit{ok, {Name: "b"}}, ratelimit.Options{})
	assert.EqualError(t, err, `ratelimit: PerSecond must not be 0, which would pause the group until SetRate (limit 1, "b")`)
}
