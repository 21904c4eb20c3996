package slidingcache_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{takes: time.Second}
		c := newCache(t, s.load, options{RefreshAfter: time.Minute})
		wantGet(t, c, "a", 1)
		signals := coretest.Watch(t, c.Sink(), "cache.*")
		time.Sleep(time.Minute - 1)
		wantGet(t, c, "a", 1)
		synctest.Wait()
		signals.None()
		time.Sleep(time.Nanosecond)
		c.GetIfPresent("a")
		synctest.Wait()
		signals.None()
		begun := time.Now()
		for range 10 {
			wantGet(t, c, "a", 1)
		}
		assert.Zero(t, time.Since(begun), "the old value is served meanwhile")
		synctest.Wait()
		signals.ExpectExactly(slidingcache.SignalRefreshing)
		time.Sleep(time.Second)
		synctest.Wait()
		signals.ExpectExactly(slidingcache.SignalRefreshed)
		wantGet(t, c, "a", 2)
		assert.Equal(t, 2, s.calls)
		assert.Equal(t, uint64(1), c.Stats().Refreshes)
	})
}

// One refresh at a time for a key, also if it takes longer than RefreshAfter.
func TestOneRefreshAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{}
		c := newCache(t, s.load, options{RefreshAfter: time.Second})
		wantGet(t, c, "a", 1)
		s.takes = time.Minute
		for range 60 {
			time.Sleep(time.Second)
			wantGet(t, c, "a", 1)
		}
		assert.Equal(t, 1, c.Stats().Loads.Running)
		assert.Equal(t, uint64(1), c.Stats().Refreshes)
	})
}

// A refresh that fails keeps the old value, and is tried again after another
// RefreshAfter.
func TestFailingRefreshKeepsTheOldValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{}
		c := newCache(t, s.load, options{RefreshAfter: time.Minute, Absolute: 3 * time.Minute})
		signals := coretest.Watch(t, c.Sink(), slidingcache.SignalError)
		wantGet(t, c, "a", 1)
		s.fails = errOnPurpose
		time.Sleep(time.Minute)
		for range 60 {
			wantGet(t, c, "a", 1)
			synctest.Wait()
			time.Sleep(time.Second)
		}
		signals.ExpectExactly(slidingcache.SignalError)
		wantGet(t, c, "a", 1)
		synctest.Wait()
		signals.ExpectExactly(slidingcache.SignalError)
		assert.Equal(t, uint64(2), c.Stats().RefreshFailures)
		time.Sleep(time.Minute)
		_, err := c.Get(t.Context(), "a")
		assert.ErrorIs(t, err, errOnPurpose, "until it expires")
	})
}

// That there is no value any more is an answer.
func TestRefreshThatFindsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, ttl := range []time.Duration{0, time.Minute} {
			s := source{}
			c := newCache(t, s.load, options{RefreshAfter: time.Minute, StaleOnError: time.Hour, NegativeTTL: ttl})
			wantGet(t, c, "a", 1)
			time.Sleep(time.Minute)
			s.fails = slidingcache.ErrNotFound
			wantGet(t, c, "a", 1)
			synctest.Wait()
			_, ok := c.GetIfPresent("a")
			assert.False(t, ok)
			assert.Equal(t, 1, c.Sink().Count(slidingcache.SignalNotFound))
			_, err := c.Get(t.Context(), "a")
			assert.ErrorIs(t, err, slidingcache.ErrNotFound)
			assert.Zero(t, c.Stats().RefreshFailures)
		}
	})
}

// What was set or invalidated during a refresh stays so, and the refresh is
// cancelled, as nobody wants its result.
func TestRefreshIsOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, overtake := range []func(*cache){
			func(c *cache) { c.Set("a", 10) },
			func(c *cache) { c.Invalidate("a"); c.Set("a", 10) },
			func(c *cache) { c.Clear(); c.Set("a", 10) },
		} {
			s := source{}
			var ended error
			c := newCache(t, func(ctx context.Context, key string) (int, error) {
				if s.calls > 0 {
					<-ctx.Done()
					ended = context.Cause(ctx)
				}
				return s.load(ctx, key)
			}, options{RefreshAfter: time.Minute})
			wantGet(t, c, "a", 1)
			time.Sleep(time.Minute)
			wantGet(t, c, "a", 1)
			synctest.Wait()
			overtake(c)
			synctest.Wait()
			assert.ErrorIs(t, ended, core.ErrCancelled)
			wantGet(t, c, "a", 10)
			assert.Equal(t, uint64(1), c.Stats().Discarded)
		}
	})
}

// A value that expires while it is refreshed is waited for, by those who ask then.
func TestGetWaitsForTheRefreshOfWhatHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{}
		c := newCache(t, s.load, options{RefreshAfter: time.Minute, Absolute: 2 * time.Minute})
		wantGet(t, c, "a", 1)
		s.takes = 2 * time.Minute
		time.Sleep(time.Minute)
		wantGet(t, c, "a", 1)
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Get(ctx, "a")
		assert.ErrorIs(t, err, context.DeadlineExceeded, "leaving does not end a refresh")
		wantGet(t, c, "a", 2)
		assert.Equal(t, 2, s.calls)
	})
}

// Once it was overtaken, a refresh is a load like any other for those who wait for
// it: it goes on as long as they do.
func TestRefreshThatIsWaitedForAndOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, ended := 0, make(chan error, 1)
		c := newCache(t, func(ctx context.Context, key string) (int, error) {
			if calls++; calls > 1 {
				<-ctx.Done()
				ended <- context.Cause(ctx)
			}
			return calls, nil
		}, options{RefreshAfter: time.Minute, Absolute: 2 * time.Minute})
		wantGet(t, c, "a", 1)
		time.Sleep(time.Minute)
		wantGet(t, c, "a", 1)
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errOnPurpose)
		defer cancel()
		go func() {
			synctest.Wait()
			c.Set("a", 7)
			synctest.Wait()
			assert.Empty(t, ended)
		}()
		_, err := c.Get(ctx, "a")
		assert.ErrorIs(t, err, errOnPurpose)
		assert.ErrorIs(t, <-ended, errOnPurpose)
	})
}

func TestCloseEndsARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := newCache(t, func(ctx context.Context, key string) (int, error) {
			if calls++; calls > 1 {
				<-ctx.Done()
			}
			return calls, context.Cause(ctx)
		}, options{RefreshAfter: time.Minute, MaxConcurrency: 1})
		wantGet(t, c, "a", 1)
		c.Set("b", 1)
		time.Sleep(time.Minute)
		wantGet(t, c, "a", 1)
		wantGet(t, c, "b", 1) // waits for its turn
		synctest.Wait()
		require.NoError(t, c.Close())
		assert.Equal(t, 2, calls, "none begins while the cache closes")
		assert.Equal(t, uint64(2), c.Stats().Loads.Cancelled)
	})
}

func TestStaleOnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{}
		c := newCache(t, s.load, options{Sliding: time.Minute, StaleOnError: time.Hour})
		wantGet(t, c, "a", 1)
		s.fails = errOnPurpose
		_, err := c.Get(t.Context(), "b")
		assert.ErrorIs(t, err, errOnPurpose, "there is nothing to serve")
		time.Sleep(time.Minute)
		_, ok := c.GetIfPresent("a")
		assert.False(t, ok, "only if a load has failed")
		signals := coretest.Watch(t, c.Sink(), "cache.*")
		wantGet(t, c, "a", 1)
		assert.Equal(t, "a", signals.ExpectExactly(slidingcache.SignalLoading, slidingcache.SignalError, slidingcache.SignalStale)[2].Key)
		time.Sleep(time.Hour - 1)
		wantGet(t, c, "a", 1, "just before; what was served has no longer life for it")
		time.Sleep(time.Nanosecond)
		_, err = c.Get(t.Context(), "a")
		assert.ErrorIs(t, err, errOnPurpose)
		assert.Equal(t, uint64(2), c.Stats().Stale)
		s.fails = nil
		wantGet(t, c, "a", 6)
	})
}

// The time counts when the load has failed, not when it began.
func TestStaleOnErrorAfterASlowLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{}
		c := newCache(t, s.load, options{Sliding: time.Minute, StaleOnError: time.Minute})
		wantGet(t, c, "a", 1)
		s.fails, s.takes = errOnPurpose, time.Minute
		time.Sleep(time.Minute)
		_, err := c.Get(t.Context(), "a")
		assert.ErrorIs(t, err, errOnPurpose)
	})
}

// What was invalidated is not served, nor when the key has no value, nor by a cache
// that is closed, nor to those who have left.
func TestStaleOnErrorIsNotForEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *source
		setUp := func() *cache {
			s = new(source)
			c := newCache(t, s.load, options{Sliding: time.Minute, StaleOnError: time.Hour})
			wantGet(t, c, "a", 1)
			s.fails, s.takes = errOnPurpose, time.Second
			time.Sleep(time.Minute)
			return c
		}
		c := setUp()
		go func() {
			synctest.Wait()
			c.Invalidate("a")
		}()
		_, err := c.Get(t.Context(), "a")
		assert.ErrorIs(t, err, errOnPurpose, "invalidated")

		c = setUp()
		s.fails = slidingcache.ErrNotFound
		_, err = c.Get(t.Context(), "a")
		assert.ErrorIs(t, err, slidingcache.ErrNotFound)
		s.fails = errOnPurpose
		_, err = c.Get(t.Context(), "a")
		assert.ErrorIs(t, err, errOnPurpose, "it has no value any more")

		c = setUp()
		go func() {
			synctest.Wait()
			c.Close()
		}()
		_, err = c.Get(t.Context(), "a")
		assert.Error(t, err, "closed")

		c = setUp()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = c.Get(ctx, "a")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		assert.Zero(t, c.Stats().Stale)
	})
}

func TestNegativeTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{fails: slidingcache.ErrNotFound}
		c := newCache(t, s.load, options{NegativeTTL: time.Minute, SampleEvery: 1})
		signals := coretest.Watch(t, c.Sink(), "cache.*")
		for range 60 {
			_, err := c.Get(t.Context(), "a")
			assert.ErrorIs(t, err, slidingcache.ErrNotFound)
			time.Sleep(time.Second)
		}
		assert.Equal(t, 1, s.calls, "asking does not prolong it")
		signals.Expect(slidingcache.SignalMiss, slidingcache.SignalLoading, slidingcache.SignalNotFound, slidingcache.SignalHit)
		assert.Zero(t, c.Sink().Count(slidingcache.SignalError))
		s.fails = nil
		wantGet(t, c, "a", 2)
		assert.Equal(t, uint64(59), c.Stats().Absences)

		s.fails = slidingcache.ErrNotFound
		c.Get(t.Context(), "b")
		c.Set("b", 5)
		wantGet(t, c, "b", 5)
	})
}

func TestNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{fails: errOnPurpose, takes: time.Second}
		c := newCache(t, s.load, options{NegativeTTL: time.Minute, NotFound: func(err error) bool {
			if err == context.Canceled {
				panic("on purpose")
			}
			return err == errOnPurpose
		}})
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				for range 2 {
					_, err := c.Get(t.Context(), "a")
					assert.Equal(t, errOnPurpose, err)
				}
			})
		}
		all.Wait()
		assert.Equal(t, 1, s.calls)
		s.fails = slidingcache.ErrNotFound
		for range 2 {
			c.Get(t.Context(), "b")
		}
		assert.Equal(t, 3, s.calls, "it says what counts")
		s.fails = context.Canceled
		_, err := c.Get(t.Context(), "c")
		assert.ErrorAs(t, err, new(*core.PanicError))
	})
}

// Nothing foreign is called under a lock: whatever calls back finds the cache open.

func TestAbsenceIsRememberedLongerThanValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{fails: slidingcache.ErrNotFound}
		c := newCache(t, s.load, options{Absolute: time.Minute, NegativeTTL: time.Hour})
		c.Get(t.Context(), "a")
		time.Sleep(time.Hour - 1)
		c.Get(t.Context(), "a")
		assert.Equal(t, 1, s.calls)
		time.Sleep(time.Nanosecond)
		s.fails = nil
		wantGet(t, c, "a", 2)
		for range 59 {
			time.Sleep(time.Second)
			wantGet(t, c, "a", 2)
		}
		time.Sleep(time.Second)
		wantGet(t, c, "a", 3)
	})
}

func TestRefreshesThatNeverBeginAreFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{}
		c := newCache(t, s.load, options{RefreshAfter: time.Minute, MaxConcurrency: 1})
		for _, key := range []string{"a", "b", "c", "d"} {
			c.Set(key, 0)
		}
		time.Sleep(time.Minute)
		s.takes = time.Second
		for _, key := range []string{"a", "b", "c", "d"} {
			wantGet(t, c, key, 0)
		}
		synctest.Wait()
		c.Invalidate("b")
		c.Set("c", 1)
		c.Close()
		assert.EqualValues(t, 4, c.Stats().Refreshes)
		assert.EqualValues(t, 3, c.Stats().RefreshFailures)
	})
}

// What a load needs over a load of another cache, or in an operation of a coordinator,
// runs in its place as well, and tells so where its cache does.

func TestLoadsGoBeforeRefreshes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{}
		c := newCache(t, s.load, options{RefreshAfter: time.Minute, Sliding: time.Hour, MaxConcurrency: 1})
		for i := range 100 {
			c.Set(fmt.Sprint(i), 0)
		}
		time.Sleep(time.Minute)
		s.takes = time.Second
		for i := range 100 {
			c.Get(t.Context(), fmt.Sprint(i))
		}
		synctest.Wait()
		begun := time.Now()
		c.Get(t.Context(), "new")
		assert.LessOrEqual(t, time.Since(begun), 2*time.Second)
		c.Invalidate("99")
		begun = time.Now()
		c.Get(t.Context(), "99")
		assert.LessOrEqual(t, time.Since(begun), 2*time.Second)
	})
}

func TestWaitingForARefreshThatHasNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{}
		c := newCache(t, s.load, options{RefreshAfter: 30 * time.Second, Sliding: time.Minute, MaxConcurrency: 1})
		for i := range 200 {
			c.Set(fmt.Sprint(i), 0)
		}
		time.Sleep(50 * time.Second)
		s.takes = time.Second
		for i := range 200 {
			c.Get(t.Context(), fmt.Sprint(i))
		}
		time.Sleep(61 * time.Second)
		begun := time.Now()
		c.Get(t.Context(), "199")
		assert.LessOrEqual(t, time.Since(begun), 5*time.Second)
		before := c.Stats()
		assert.EqualValues(t, 1, before.RefreshFailures, "it was cancelled for a load")
	})
}
