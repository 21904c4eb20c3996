package slidingcache_test

import (
	"context"
	"errors"
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

// A value that is due is loaded again in the background, once, even if that takes longer
// than RefreshAfter. It has the values of the caller's context, and outlives it.
func TestRefreshAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		takes := 2 * time.Minute
		c := newCache(t, func(ctx context.Context, _ string) (int, error) {
			time.Sleep(takes)
			return ctx.Value(key{}).(int), ctx.Err()
		}, options{RefreshAfter: time.Minute})
		c.Set("a", 1)
		signals := coretest.Watch(t, c.Sink(), "cache.*")
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, 2))
		get := func(want int) {
			t.Helper()
			begun := time.Now()
			value, err := c.Get(ctx, "a")
			synctest.Wait()
			assert.Equal(t, []any{want, nil, time.Duration(0)}, []any{value, err, time.Since(begun)})
		}
		time.Sleep(time.Minute - 1)
		get(1)
		time.Sleep(time.Nanosecond)
		c.GetIfPresent("a")
		signals.None()
		for range 12 { // callers get the old value meanwhile
			get(1)
			time.Sleep(10 * time.Second)
		}
		cancel()
		synctest.Wait()
		signals.ExpectExactly(slidingcache.SignalRefreshing, slidingcache.SignalRefreshed)
		get(2)
		assert.Equal(t, uint64(1), c.Stats().Refreshes)
	})
}

// Refresh loads once for all its callers. During the load others get the old value. A value
// that was set meanwhile is not overwritten. The model covers failures.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{takes: time.Second}
		c := newCache(t, s.load, options{})
		var all sync.WaitGroup
		refresh := func(want int) {
			all.Go(func() {
				got, err := c.Refresh(t.Context(), "a")
				assert.Equal(t, []any{want, nil}, []any{got, err})
			})
			synctest.Wait()
		}
		c.Set("a", 10)
		refresh(1)
		refresh(1)
		wantGet(t, c, "a", 10)
		all.Wait()
		wantGet(t, c, "a", 1)

		refresh(2)
		c.Set("a", 11)
		all.Wait()
		wantGet(t, c, "a", 11)

		c.Remove("a")
		all.Go(func() { wantGet(t, c, "a", 3) })
		synctest.Wait()
		refresh(3)
		all.Wait()
		stats := c.Stats()
		assert.Equal(t, []uint64{3, 1, 0}, []uint64{stats.Hits, stats.Misses, stats.Shared})
	})
}

// A refresh does not overwrite a value that was set, nor bring back one that was removed.
// It is cancelled, because no caller waits for it.
func TestRefreshIsOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, overtake := range map[int]func(*cache){
			10: func(c *cache) { c.Set("a", 10) },
			11: func(c *cache) { c.Clear(); c.Set("a", 11) },
			0:  func(c *cache) { c.Remove("a") },
		} {
			var ended error
			c := newCache(t, func(ctx context.Context, key string) (int, error) {
				<-ctx.Done()
				ended = context.Cause(ctx)
				return 7, nil
			}, options{RefreshAfter: time.Minute})
			c.Set("a", 1)
			time.Sleep(time.Minute)
			wantGet(t, c, "a", 1)
			synctest.Wait()
			overtake(c)
			synctest.Wait()
			assert.ErrorIs(t, ended, core.ErrCancelled)
			value, ok := c.Peek("a")
			assert.Equal(t, []any{want, want > 0}, []any{value, ok})
			assert.Equal(t, uint64(1), c.Stats().Discarded)
		}
	})
}

// Callers that find the value expired wait for a refresh that runs. It goes on when they
// leave. If it fails, one load follows for all that wait, and only they get its error.
func TestGetWaitsForARefresh(t *testing.T) {
	errOwn := errors.New("own load failed on purpose")
	untilCancelled := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, context.Cause(ctx) }
	for name, run := range map[string]struct {
		refresh func() (int, error)
		own     func(ctx context.Context) (int, error) // nil: not called
		want    int
		err     error
	}{
		"succeeds":  {func() (int, error) { return 2, nil }, nil, 2, nil},
		"fails":     {func() (int, error) { return 0, errOnPurpose }, func(context.Context) (int, error) { return 3, nil }, 3, nil},
		"panics":    {func() (int, error) { panic("on purpose") }, func(context.Context) (int, error) { return 3, nil }, 3, nil},
		"both fail": {func() (int, error) { return 0, errOnPurpose }, func(context.Context) (int, error) { return 0, errOwn }, 0, errOwn},
		"all leave": {func() (int, error) { return 0, errOnPurpose }, untilCancelled, 0, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			c := newCache(t, func(ctx context.Context, key string) (int, error) {
				time.Sleep(20 * time.Second)
				if calls++; calls == 1 {
					return run.refresh()
				}
				return run.own(ctx)
			}, options{RefreshAfter: 50 * time.Second, Absolute: time.Minute, MaxConcurrency: 1})
			c.Set("a", 1)
			time.Sleep(50 * time.Second)
			wantGet(t, c, "a", 1)
			time.Sleep(10 * time.Second)
			impatient, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.Get(impatient, "a")
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					value, err := c.Get(ctx, "a")
					assert.Equal(t, []any{run.want, run.err}, []any{value, err}, name)
				})
			}
			all.Wait()
			synctest.Wait()
			s, failed := c.Stats(), uint64(0)
			if run.own != nil {
				failed = 1
			}
			assert.EqualValues(t, []uint64{1 + failed, 4, 1, failed}, []uint64{uint64(calls), s.Shared, s.Refreshes, s.RefreshFailures}, name)
			assert.Zero(t, s.Loads.Running+s.Loads.Pending)
			assert.Equal(t, run.err == nil, c.Contains("a"))
		})
	}
}

// Once it was overtaken, a refresh is like any other load: it goes on as long as a caller
// waits for it.
func TestRefreshThatIsWaitedForAndOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		c := newCache(t, func(ctx context.Context, key string) (int, error) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return 0, nil
		}, options{RefreshAfter: time.Minute, Absolute: 2 * time.Minute})
		c.Set("a", 1)
		time.Sleep(time.Minute)
		wantGet(t, c, "a", 1)
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errOnPurpose)
		defer cancel()
		time.AfterFunc(time.Minute, func() { c.Set("a", 7) })
		_, err := c.Get(ctx, "a")
		assert.ErrorIs(t, err, errOnPurpose)
		assert.ErrorIs(t, <-ended, errOnPurpose)
	})
}

// Refreshes go after all loads, even when a caller needs the value of a refresh that has
// not begun. A refresh that never begins has failed.
func TestRefreshesThatHaveNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{takes: time.Second}
		c := newCache(t, s.load, options{RefreshAfter: 30 * time.Second, Sliding: time.Minute, MaxConcurrency: 1, Capacity: 4000})
		const n = 3000
		for i := range n {
			c.Set(fmt.Sprint(i), 0)
		}
		time.Sleep(50 * time.Second)
		for i := range n {
			wantGet(t, c, fmt.Sprint(i), 0) // and a refresh waits
		}
		soon := func(key string, most time.Duration) {
			time.Sleep(time.Second / 2) // while a refresh runs
			begun := time.Now()
			_, err := c.Get(t.Context(), key)
			assert.NoError(t, err)
			assert.LessOrEqual(t, time.Since(begun), most)
		}
		soon("new", 3*time.Second/2)
		c.Remove("100")
		soon("100", 3*time.Second/2)
		time.Sleep(time.Minute)
		soon("200", 5*time.Second) // has expired
		c.Set("300", 1)
		assert.EqualValues(t, 3, c.Stats().RefreshFailures)
		s.mu.Lock()
		loaded := s.calls
		s.mu.Unlock()
		require.NoError(t, c.Close())
		assert.LessOrEqual(t, s.calls, loaded+1, "none begins while the cache closes")
		got := c.Stats()
		assert.EqualValues(t, n, got.Refreshes)
		assert.EqualValues(t, n+3, int(got.RefreshFailures)+s.calls)
	})
}

// If a load fails, an expired value is returned, until StaleOnError is over. The time at
// the end of the load counts.
func TestStaleOnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{}
		c := newCache(t, s.load, options{Sliding: time.Minute, StaleOnError: time.Hour})
		c.Set("a", 1)
		s.fails = errOnPurpose
		time.Sleep(time.Minute)
		_, ok := c.GetIfPresent("a")
		assert.False(t, ok, "only if a load has failed")
		signals := coretest.Watch(t, c.Sink(), "cache.*")
		wantGet(t, c, "a", 1)
		assert.Equal(t, "a", signals.ExpectExactly(slidingcache.SignalLoading, slidingcache.SignalFailed, slidingcache.SignalStale)[2].Key)
		time.Sleep(time.Hour - 1)
		wantGet(t, c, "a", 1, "this did not prolong it")
		s.takes = 1
		_, err := c.Get(t.Context(), "a")
		assert.ErrorIs(t, err, errOnPurpose)
		assert.Equal(t, uint64(2), c.Stats().Stale)
	})
}

// A stale value is not returned when it was removed, when the key has no value, when the
// cache is closed, or to a caller that has left.
func TestStaleOnErrorIsNotForEverything(t *testing.T) {
	for name, run := range map[string]struct {
		source    *source
		meanwhile func(c *cache)
		want      error
	}{
		"removed":  {&source{takes: time.Second, fails: errOnPurpose}, func(c *cache) { c.Remove("a") }, errOnPurpose},
		"no value": {&source{takes: time.Second, fails: slidingcache.ErrNotFound}, func(*cache) {}, slidingcache.ErrNotFound},
		"closed":   {&source{takes: time.Second, fails: errOnPurpose}, func(c *cache) { c.Close() }, errOnPurpose},
		"left":     {&source{takes: time.Hour, fails: errOnPurpose}, func(*cache) {}, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCache(t, run.source.load, options{Sliding: time.Minute, StaleOnError: time.Hour})
			c.Set("a", 1)
			time.Sleep(time.Minute)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			time.AfterFunc(time.Millisecond, func() { run.meanwhile(c) })
			_, err := c.Get(ctx, "a")
			assert.ErrorIs(t, err, run.want, name)
			time.Sleep(2 * time.Hour)
			assert.Zero(t, c.Stats().Stale)
		})
	}
}

// NotFound says which errors mean that there is no value. The absence is remembered, and
// counts as a hit. The model says for how long. If NotFound panics, the load has failed.
func TestNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{fails: errOnPurpose}
		c := newCache(t, s.load, options{NegativeTTL: time.Minute, SampleEvery: 1, NotFound: func(err error) bool {
			if err == context.Canceled {
				panic("on purpose")
			}
			return err == errOnPurpose
		}})
		signals := coretest.Watch(t, c.Sink(), "cache.*")
		for range 2 {
			_, err := c.Get(t.Context(), "a")
			assert.Equal(t, errOnPurpose, err)
		}
		signals.ExpectExactly(slidingcache.SignalMiss, slidingcache.SignalLoading, slidingcache.SignalNotFound, slidingcache.SignalHit)
		s.fails = context.Canceled
		_, err := c.Get(t.Context(), "c")
		assert.ErrorAs(t, err, new(*core.PanicError))
	})
}
