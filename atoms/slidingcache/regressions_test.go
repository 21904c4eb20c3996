package slidingcache_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core"
)

// What once went wrong in another cache is the cheapest test there is. These are the
// bug fixes of otter v2, by release and subject, and the tests here that would find
// the same.
//
//	2.0  times shorter than a second                              TestAgainstModel, which counts nanoseconds
//	2.1  a refresh ended with the context of who caused it        TestRefreshOutlivesTheContextOfItsCaller
//	2.2  results differ if a key is invalidated during its load   TestInvalidateDuringALoad
//	2.2  a panic of Get while all is invalidated                  TestClearWhileGetting
//	2.3  a panic in bubbles                                       all that run in one
//	2.3  the refresh of an expired entry is not a creation        TestValueStoredOverAnExpiredOneIsNotDue
//	2.4  loads and refreshes:
//	     a key loaded more than once                              TestTenConcurrentRequestsLoadOnce, TestEveryKeyIsLoadedOnce
//	     a load or refresh overwrites what was set meanwhile      TestSetDuringALoadWins, TestRefreshIsOvertaken
//	     a key refreshed twice                                    TestOneRefreshAtATime
//	     a read brings back what was invalidated                  TestRefreshDoesNotBringBackWhatWasInvalidated
//	     Get has the result of a refresh that was discarded       TestGetAfterInvalidateDoesNotWaitForTheRefresh
//	     stale reads fill the executor and wait for each other    TestRefreshesHoldUpNobody
//	     a refresh lost because the old entry was evicted         TestRefreshOutlivesTheEvictionOfItsKey
//	     eviction cancels loads                                   TestEvictionCancelsNoLoad
//	     joining one whose context has ended                      TestCallerLeavingDoesNotDisturbOthers
//	     nil loader or context: registered for ever               TestOptionsAreValidated, TestNilContextLeavesNothingBehind
//	2.4  expiration:
//	     the longest durations overflow                           TestLongestTimes
//	     expired entries revived, or taken for live by writes     TestInvalidate, TestAgainstModel; see core/lru
//	     a value set over an expired one is refreshed at once     TestValueStoredOverAnExpiredOneIsNotDue
//	     alive at the exact deadline                              TestSlidingExpiry, TestAbsoluteExpiry, TestStaleOnError
//	2.4  eviction:
//	     a key set twice can never be evicted                     TestKeySetTwiceIsOne
//	     an idle cache stays above its maximum                    TestNeverLargerThanMaxSize
//	     clearing skips keys that are replaced meanwhile          TestClearWhileGetting
//	2.4  statistics:
//	     expired entries counted as evicted, panics not at all    TestSweep, TestPanicGoesToAllAndIsNotCached, TestStatsAreExact
//	2.4  panics, Goexit, lifecycle:
//	     locks held, waiters hanging                              TestPanicGoesToAllAndIsNotCached, TestNestedLoadThatPanics,
//	                                                              TestPanickingKeyText, TestHandlersThatEndTheirGoroutine
//	     a cache that its callbacks refer to is never collected   TestForgottenCacheIsGarbage
//	     closing from inside hangs                                TestCloseFromALoadAndFromAHandler
//
// There is no test, because there is no such thing here, for: Compute, BulkGet,
// manual refreshes, times of single entries, weights, deletion listeners, clocks and
// executors of one's own, the timer wheel, write buffers that are replayed, the hill
// climber, iteration, resizing and persistence; a clock before 1970, as times count
// from New; wasm, for which CI builds; and testing in the binary, which the
// architecture test of the repository sees.

func TestRefreshOutlivesTheContextOfItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		c := newCache(t, func(ctx context.Context, _ string) (int, error) {
			time.Sleep(time.Second)
			who, _ := ctx.Value(key{}).(int)
			return who, ctx.Err()
		}, options{RefreshAfter: time.Minute})
		wantGet(t, c, "a", 0)
		time.Sleep(time.Minute)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, 7))
		value, err := c.Get(ctx, "a")
		assert.NoError(t, err)
		assert.Equal(t, 0, value)
		cancel()
		time.Sleep(time.Second)
		synctest.Wait()
		wantGet(t, c, "a", 7)
	})
}

func TestValueStoredOverAnExpiredOneIsNotDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, opts := range []options{
			{Sliding: time.Minute, RefreshAfter: 50 * time.Second},
			{Sliding: time.Minute, RefreshAfter: 50 * time.Second, StaleOnError: time.Hour},
		} {
			s := new(source)
			c := newCache(t, s.load, opts)
			wantGet(t, c, "a", 1)
			time.Sleep(2 * time.Minute)
			wantGet(t, c, "a", 2)
			time.Sleep(2 * time.Minute)
			c.Set("a", 5)
			for range 3 {
				wantGet(t, c, "a", 5)
			}
			synctest.Wait()
			assert.Equal(t, 2, s.calls)
			assert.Zero(t, c.Stats().Refreshes)
		}
	})
}

func TestEveryKeyIsLoadedOnce(t *testing.T) {
	const keys = 200
	var calls [keys]atomic.Int32
	c, err := slidingcache.New(func(_ context.Context, key int) (int, error) {
		calls[key].Add(1)
		runtime.Gosched()
		return key, nil
	}, slidingcache.Options[int]{})
	require.NoError(t, err)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range keys {
				key := (i + g/2) % keys
				value, err := c.Get(t.Context(), key)
				assert.NoError(t, err)
				assert.Equal(t, key, value)
			}
		})
	}
	all.Wait()
	for key := range calls {
		assert.EqualValues(t, 1, calls[key].Load())
	}
	got := c.Stats()
	assert.EqualValues(t, 8*keys, got.Hits+got.Misses)
	assert.EqualValues(t, keys, got.Misses-got.Shared)
	require.NoError(t, c.Close())
}

func TestRefreshDoesNotBringBackWhatWasInvalidated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{}
		c := newCache(t, s.load, options{RefreshAfter: time.Minute, StaleOnError: time.Hour})
		wantGet(t, c, "a", 1)
		s.takes = time.Second
		time.Sleep(time.Minute)
		wantGet(t, c, "a", 1)
		synctest.Wait()
		assert.True(t, c.Invalidate("a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		_, ok := c.GetIfPresent("a")
		assert.False(t, ok)
	})
}

func TestGetAfterInvalidateDoesNotWaitForTheRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{}
		c := newCache(t, s.load, options{RefreshAfter: time.Minute})
		wantGet(t, c, "a", 1)
		time.Sleep(time.Minute)
		s.takes = time.Hour / 2
		wantGet(t, c, "a", 1)
		synctest.Wait() // it has begun
		s.takes = time.Second
		c.Invalidate("a")
		begun := time.Now()
		wantGet(t, c, "a", 2)
		assert.Equal(t, time.Second, time.Since(begun))
		time.Sleep(30 * time.Second)
		wantGet(t, c, "a", 2)
	})
}

func TestRefreshesHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{}
		c := newCache(t, s.load, options{RefreshAfter: time.Minute, Sliding: -1, Absolute: -1, MaxConcurrency: 1, MaxSize: 4000})
		const n = 3000 // more than wait elsewhere
		for i := range n {
			c.Set(fmt.Sprint(i), -1)
		}
		time.Sleep(time.Minute)
		s.takes = time.Second
		begun := time.Now()
		for i := range n {
			for range 3 {
				_, err := c.Get(t.Context(), fmt.Sprint(i))
				assert.NoError(t, err)
			}
		}
		assert.Zero(t, time.Since(begun))
		synctest.Wait()
		assert.Equal(t, 1, c.Stats().Loads.Running)
		assert.Equal(t, n-1, c.Stats().Loads.Pending)
		time.Sleep(n * time.Second)
		synctest.Wait()
		assert.Equal(t, uint64(n), c.Stats().Loads.Succeeded)
	})
}

func TestRefreshOutlivesTheEvictionOfItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{}
		c := newCache(t, s.load, options{RefreshAfter: time.Minute, MaxSize: 4})
		wantGet(t, c, "a", 1)
		s.takes = time.Second
		time.Sleep(time.Minute)
		wantGet(t, c, "a", 1)
		for i := range 100 { // keys that are used more
			for range 10 {
				c.Set(fmt.Sprint(i%20), i)
				c.GetIfPresent(fmt.Sprint(i % 20))
			}
		}
		_, ok := c.GetIfPresent("a")
		require.False(t, ok)
		time.Sleep(time.Second)
		synctest.Wait()
		value, ok := c.GetIfPresent("a")
		assert.True(t, ok)
		assert.Equal(t, 2, value)
	})
}

func TestEvictionCancelsNoLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{takes: time.Minute}
		c := newCache(t, s.load, options{MaxSize: 2})
		go wantGet(t, c, "a", 1)
		synctest.Wait()
		for i := range 100 {
			c.Set(fmt.Sprint(i), i)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		wantGet(t, c, "a", 1)
	})
}

func TestNilContextLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{})
		var none context.Context
		assert.Panics(t, func() { c.Get(none, "a") })
		wantGet(t, c, "a", 1)
	})
}

func TestLongestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const longest = time.Duration(math.MaxInt64)
		for _, opts := range []options{
			{Sliding: longest, Absolute: longest},
			{Sliding: longest, Absolute: longest, StaleOnError: longest},
			{Sliding: longest, Absolute: longest, RefreshAfter: longest - 1, StaleOnError: 1},
			{Sliding: longest - 1, Absolute: longest - 1, StaleOnError: longest - 1, RefreshAfter: longest - 2, NegativeTTL: longest},
		} {
			s := new(source)
			time.Sleep(time.Minute)
			c := newCache(t, s.load, opts)
			time.Sleep(time.Minute)
			wantGet(t, c, "a", 1)
			time.Sleep(time.Hour)
			wantGet(t, c, "a", 1)
			s.fails = slidingcache.ErrNotFound
			c.Get(t.Context(), "b")
			time.Sleep(time.Hour)
			c.Get(t.Context(), "b")
			synctest.Wait()
			assert.Equal(t, 2+btoi(opts.NegativeTTL == 0), s.calls)
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestKeySetTwiceIsOne(t *testing.T) {
	var s source
	c := newCache(t, s.load, options{MaxSize: 8})
	for i := range 1000 {
		c.Set(fmt.Sprint(i), i)
		c.Set(fmt.Sprint(i), -i)
	}
	assert.Equal(t, 8, c.Len())
	c.Clear()
	c.Set("a", 1)
	c.Set("a", 2)
	assert.Equal(t, 1, c.Len())
}

// Whatever else goes on, after Clear nobody sees what was there before it.
func TestClearWhileGetting(t *testing.T) {
	rounds := int64(2000)
	if testing.Short() || raceEnabled {
		rounds = 200
	}
	var stored, floor atomic.Int64
	c, err := slidingcache.New(func(context.Context, int) (int, error) { return int(stored.Load()), nil }, slidingcache.Options[int]{MaxSize: 10_000})
	require.NoError(t, err)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := 0; floor.Load() < rounds-1; i++ {
				least := floor.Load()
				got, err := c.Get(t.Context(), i*(g+1)%100)
				if err != nil || int64(got) < least {
					t.Errorf("it is %d (%v), but had been %d", got, err, least)
					return
				}
			}
		})
	}
	for round := range rounds {
		stored.Store(round)
		c.Clear()
		floor.Store(round)
	}
	all.Wait()
	require.NoError(t, c.Close())
}

// A handler that ends its goroutine, which is that of a load, ends the load as a
// panic does; nobody hangs.
func TestHandlersThatEndTheirGoroutine(t *testing.T) {
	for _, name := range []string{slidingcache.SignalLoading, slidingcache.SignalLoaded, slidingcache.SignalError, slidingcache.SignalCold} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := source{takes: time.Second}
				c := newCache(t, s.load, options{MaxConcurrency: 1, MaxSize: 1, RaiseEvictions: true})
				c.Set("b", 1)
				var armed atomic.Bool
				armed.Store(true)
				c.Sink().Subscribe(name, func(core.Signal) {
					if armed.CompareAndSwap(true, false) {
						runtime.Goexit()
					}
				})
				value, err := c.Get(t.Context(), "a")
				if name == slidingcache.SignalLoading {
					assert.ErrorAs(t, err, new(*core.PanicError))
				} else {
					assert.NoError(t, err)
					assert.Equal(t, 1, value)
				}
				s.fails = errOnPurpose
				_, err = c.Get(t.Context(), "c")
				assert.ErrorIs(t, err, errOnPurpose)
				s.fails = nil
				_, err = c.Get(t.Context(), "d")
				assert.NoError(t, err)
			})
		})
	}
}

// It is garbage as soon as its loads are not shown any more, for which there is a
// timer.
func TestForgottenCacheIsGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forget := func() weak.Pointer[cache] {
			var c *cache
			c, err := slidingcache.New(func(ctx context.Context, key string) (int, error) {
				c.Set("other "+key, 2)
				return 1, nil
			}, options{RefreshAfter: time.Minute, StaleOnError: time.Hour})
			require.NoError(t, err)
			c.Sink().Subscribe("cache.*", func(core.Signal) { c.Len() })
			wantGet(t, c, "a", 1)
			return weak.Make(c)
		}
		gone := forget()
		time.Sleep(time.Hour)
		synctest.Wait()
		for range 3 {
			runtime.GC()
		}
		assert.Nil(t, gone.Value())
	})
}
