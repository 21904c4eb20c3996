package slidingcache_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/lru"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errOnPurpose = errors.New("failed on purpose")

// long says that random tests take their long form.
var long = os.Getenv("EPHEMERAL_LONG") != ""

type (
	cache   = slidingcache.Cache[string, int]
	options = slidingcache.Options[string]
	loader  = func(ctx context.Context, key string) (int, error)
)

func newCache(t testing.TB, load loader, opts options) *cache {
	t.Helper()
	c, err := slidingcache.New(load, opts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// source has the values that caches load in tests. Do not touch its fields while a load
// uses them.
type source struct {
	mu    sync.Mutex
	calls int
	takes time.Duration
	fails error
}

// load returns how often it was called.
func (s *source) load(context.Context, string) (int, error) {
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.fails != nil {
		return 0, s.fails
	}
	return s.calls, nil
}

func wantGet(t testing.TB, c *cache, key string, want int, says ...any) {
	t.Helper()
	got, err := c.Get(t.Context(), key)
	assert.NoError(t, err, says...)
	assert.Equal(t, want, got, says...)
}

// Its Get can be the work of a ResultCoordinator.
var _ core.ResultWork[string, int] = new(cache).Get

func contains[K comparable](c *slidingcache.Cache[K, int], key K) bool {
	_, ok := c.Peek(key)
	return ok
}

func TestDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{})
		assert.Equal(t, 64, c.Stats().Loads.Limit)
		assert.NotNil(t, c.Sink())
		wantGet(t, c, "a", 1)
		time.Sleep(5*time.Minute - 1)
		wantGet(t, c, "a", 1)
		time.Sleep(5 * time.Minute)
		wantGet(t, c, "a", 2)
		for range 15 {
			time.Sleep(4 * time.Minute)
			c.GetIfPresent("a")
		}
		wantGet(t, c, "a", 3, "after an hour")
		for i := range 3000 {
			c.Set(fmt.Sprint(i), i)
		}
		assert.InDelta(t, 950, c.Len(), 50, "at most 1000")
	})
}

// The error of New names all wrong options.
func TestOptionsAreValidated(t *testing.T) {
	load := func(context.Context, string) (int, error) { return 0, nil }
	for want, opts := range map[string]options{
		"Capacity is -1":                    {Capacity: -1},
		"SampleEvery is -1":                 {SampleEvery: -1},
		"RefreshAfter is 1h0m0s":            {RefreshAfter: time.Hour},
		"RefreshAfter is 2s":                {RefreshAfter: 2 * time.Second, Absolute: time.Second},
		`InvalidateOn is "*"`:               {InvalidateOn: "*"},
		`InvalidateOn is "x, cache.invalid`: {InvalidateOn: "x, cache.invalidated"},
	} {
		c, err := slidingcache.New(load, opts)
		assert.Nil(t, c)
		assert.ErrorContains(t, err, "slidingcache: Options."+want)
	}
	_, err := slidingcache.New[string, int](nil, options{Capacity: -1})
	assert.ErrorContains(t, err, "slidingcache: New needs a function")
	assert.ErrorContains(t, err, "Capacity", "all that is wrong is said")

	ints := func(context.Context, int) (int, error) { return 0, nil }
	_, err = slidingcache.New(ints, slidingcache.Options[int]{InvalidateOn: "x"})
	assert.ErrorContains(t, err, "KeyOf is nil, but InvalidateOn needs it to make a int of a signal")
	_, err = slidingcache.New(ints, slidingcache.Options[int]{RefreshAfter: 100 * time.Hour, Absolute: -1, MaxConcurrency: -1, SampleEvery: 3})
	assert.NoError(t, err)
}

// A load that takes longer than Sliding and Absolute has a value with its full life.
func TestAgesCountFromTheEndOfTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, stale := range []time.Duration{0, time.Second} {
			s := &source{takes: time.Hour}
			c := newCache(t, s.load, options{Sliding: time.Minute, Absolute: 90 * time.Second, StaleOnError: stale})
			for range 2 {
				wantGet(t, c, "a", 1)
				time.Sleep(45 * time.Second)
			}
			wantGet(t, c, "a", 2)
		}
	})
}

// Keys are in the key of signals, not in their names: bounded text, or what KeyText returns.
func TestKeysAreInTheKeyOfSignalsAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("é", 100)
		for _, as := range []struct {
			keyText func(any) string
			key     any
			text    string
		}{
			{nil, "text", "text"},
			{nil, long, long[:128]},
			{nil, "x" + long, "x" + long[:126]}, // no half characters
			{nil, [2]int{1, 2}, "[1 2]"},
			{func(key any) string { return fmt.Sprint(len(key.(string)), " bytes") }, "password", "8 bytes"},
		} {
			load := func(context.Context, any) (int, error) { return 0, errOnPurpose }
			c := core.Must(slidingcache.New(load, slidingcache.Options[any]{KeyText: as.keyText}))
			facts := coretest.Watch(t, c.Sink(), "cache.*")
			c.Get(t.Context(), as.key)
			raised := facts.ExpectExactly(slidingcache.SignalLoading, slidingcache.LoadFailed.Name())
			cause, ok := slidingcache.LoadFailed.From(raised[1])
			assert.Equal(t, []any{as.text, as.text, errOnPurpose, true}, []any{raised[0].Key, raised[1].Key, cause, ok})
			for op := range c.Loads(core.OperationQuery{}) {
				assert.Equal(t, as.text, op.Key)
			}
			require.NoError(t, c.Close())
		}
	})
}

// All events can be sensed on the sink.
func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		sink := signals.NewSink(signals.SinkOptions{})
		c := newCache(t, s.load, options{Name: "users", Sink: sink, SampleEvery: 1, Capacity: 2, Sliding: time.Minute})
		assert.Same(t, sink, c.Sink())
		facts := coretest.Watch(t, sink, "cache.*")
		wantGet(t, c, "a", 1)
		raised := facts.ExpectExactly(lru.SignalMiss, slidingcache.SignalLoading, slidingcache.SignalLoaded)
		assert.Equal(t, "users", raised[2].Source)
		assert.NotZero(t, raised[2].Operation)
		assert.Equal(t, "a", raised[2].Key)
		wantGet(t, c, "a", 1)
		facts.ExpectExactly(lru.SignalHit)
		c.GetIfPresent("a")
		facts.ExpectExactly(lru.SignalHit)
		c.GetIfPresent("b")
		facts.ExpectExactly(lru.SignalMiss)
		c.Set("b", 1)
		facts.None()
		c.Set("c", 1)
		facts.None()
		assert.Equal(t, uint64(1), c.Stats().Evictions)
		time.Sleep(time.Minute)
		c.GetIfPresent("c")
		facts.ExpectExactly(lru.SignalMiss)
		c.Set("c", 1)
		facts.Expect()
		assert.True(t, removed(c.Remove("c")))
		assert.Equal(t, "c", facts.Expect(lru.SignalInvalidated)[0].Key)
		assert.False(t, removed(c.Remove("c")))
		facts.None()
		c.Clear()
		facts.Expect(lru.SignalCleared) // the entries that have expired are not in it
		facts.None()
		assert.Equal(t, 2, sink.Count("cache.compute.*"), "can be sensed afterwards")
	})
}

func TestSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		for every, want := range map[int]int{0: 0, 1: 100, 3: 33} {
			c := newCache(t, s.load, options{SampleEvery: every})
			c.Set("a", 1)
			for range 50 {
				c.Get(t.Context(), "a")
				c.GetIfPresent("b")
			}
			assert.Equal(t, want, c.Sink().Count("cache.*"))
			assert.Equal(t, uint64(50), c.Stats().Hits, "counted all the same")
			assert.Equal(t, uint64(50), c.Stats().Misses)
		}
	})
}

func TestInvalidateOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type id string // needs no KeyOf, because it is a string type
		sink := signals.NewSink(signals.SinkOptions{})
		load := func(context.Context, id) (int, error) { return 0, nil }
		c := core.Must(slidingcache.New(load, slidingcache.Options[id]{Sink: sink, InvalidateOn: "product.*, prices.changed"}))
		c.Set("1", 1)
		c.Set("2", 2)
		facts := coretest.Watch(t, sink, "cache.*")
		sink.RaiseKey("product.changed", "1")
		facts.ExpectExactly(lru.SignalInvalidated)
		sink.RaiseKey("customer.changed", "2")
		assert.Equal(t, []bool{false, true}, []bool{contains(c, "1"), contains(c, "2")})
		assert.Equal(t, uint64(1), c.Stats().Invalidations)
		sink.Raise("prices.changed")
		assert.Zero(t, c.Len(), "without a key it is about all keys")
		require.NoError(t, c.Close())
		facts = coretest.Watch(t, sink, "cache.*")
		sink.RaiseKey("product.changed", "2")
		facts.None()
	})
}

func TestInvalidateOnWithKeyOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := signals.NewKind[int]("changed")
		sink := signals.NewSink(signals.SinkOptions{})
		load := func(context.Context, int) (int, error) { return 0, nil }
		c := core.Must(slidingcache.New(load, slidingcache.Options[int]{Sink: sink, InvalidateOn: "changed", KeyOf: func(s signals.Signal) (int, bool) { return changed.From(s) }}))
		c.Set(1, 1)
		c.Set(2, 2)
		changed.Raise(sink, "", 1)
		sink.RaiseKey("changed", "a key that KeyOf does not know")
		assert.Equal(t, 1, c.Len())
		sink.Raise("changed")
		assert.Zero(t, c.Len())
		require.NoError(t, c.Close())
	})
}

// The longest durations, and none, are for ever.
func TestLongestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const longest = time.Duration(math.MaxInt64)
		for _, opts := range []options{
			{Sliding: -1, Absolute: -1},
			{Sliding: longest, Absolute: longest, StaleOnError: longest},
			{Sliding: longest, Absolute: longest, RefreshAfter: longest - 1, StaleOnError: 1, NegativeTTL: longest},
		} {
			s := new(source)
			c := newCache(t, s.load, opts)
			time.Sleep(time.Minute)
			wantGet(t, c, "a", 1)
			s.fails = slidingcache.ErrNotFound
			for range 3 {
				time.Sleep(20 * 365 * 24 * time.Hour)
				wantGet(t, c, "a", 1)
				if opts.NegativeTTL > 0 {
					c.Get(t.Context(), "absent")
				}
			}
			assert.Equal(t, min(s.calls, 2), s.calls)
		}
	})
}

func TestAllocations(t *testing.T) {
	if coretest.Race {
		t.Skip("the race detector allocates")
	}
	ctx := context.Background()
	load := func(_ context.Context, key string) (int, error) {
		if key == "absent" {
			return 0, slidingcache.ErrNotFound
		}
		return 1, nil
	}
	for name, opts := range map[string]options{
		"plain":        {NegativeTTL: time.Hour},
		"with details": {RefreshAfter: time.Minute, StaleOnError: time.Minute, NegativeTTL: time.Hour},
		"sampled":      {SampleEvery: 1, NegativeTTL: time.Hour},
	} {
		c := newCache(t, load, opts)
		c.Set("key", 1)
		c.Get(ctx, "absent")
		for what, hit := range map[string]func(){
			"Get":          func() { c.Get(ctx, "key") },
			"Get, absent":  func() { c.Get(ctx, "absent") },
			"GetIfPresent": func() { c.GetIfPresent("key") },
			"Peek":         func() { c.Peek("key") },
		} {
			assert.Zero(t, testing.AllocsPerRun(1000, hit), "%s, %s", what, name)
		}
	}
	c := newCache(t, load, options{})
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() { c.Set("key", 1) }), 1.0)
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() { c.Remove("key"); c.Get(ctx, "key") }), 13.0)
}

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
			assert.Equal(t, run.err == nil, contains(c, "a"))
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
		c := newCache(t, s.load, options{RefreshAfter: 30 * time.Second, Sliding: time.Minute, MaxConcurrency: 1, Capacity: 800})
		const n = 600
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
		assert.Equal(t, "a", signals.ExpectExactly(slidingcache.SignalLoading, slidingcache.LoadFailed.Name(), slidingcache.SignalStale)[2].Key)
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

// An absence is remembered, and counts as a hit. The model says for how long.
func TestNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{fails: fmt.Errorf("no row: %w", slidingcache.ErrNotFound)}
		c := newCache(t, s.load, options{NegativeTTL: time.Minute, SampleEvery: 1})
		signals := coretest.Watch(t, c.Sink(), "cache.*")
		for range 2 {
			_, err := c.Get(t.Context(), "a")
			assert.Equal(t, s.fails, err)
		}
		signals.ExpectExactly(lru.SignalMiss, slidingcache.SignalLoading, slidingcache.SignalNotFound, lru.SignalHit)
	})
}

// model is a cache without a capacity, in its simplest form. Loads take no time.
type model struct {
	opts    options
	world   map[string]outcome       // what loads find
	lives   map[string]time.Duration // lives that loads return
	entries map[string]*entry

	hits, absences, misses, stale, refreshes, failures, loads, invalidated uint64
}

// outcome is a value, or the reason why there is none.
type outcome struct {
	value int
	err   error
}

type entry struct {
	outcome
	stored, expires, refresh time.Time
	sliding, absolute        time.Duration
}

// peek returns the entry of a key that has not expired, or nil.
func (m *model) peek(key string) *entry {
	e := m.entries[key]
	if e == nil || !time.Now().Before(e.expires) {
		return nil
	}
	return e
}

// alive does the same as peek, as an access.
func (m *model) alive(key string) *entry {
	e := m.peek(key)
	if e != nil && e.err == nil {
		to := time.Now().Add(min(e.sliding, time.Until(e.stored.Add(e.absolute))))
		if to.After(e.expires) {
			e.expires = to
		}
	}
	return e
}

func (m *model) set(key string, value int, life time.Duration) {
	now := time.Now()
	sliding, absolute := m.opts.Sliding, m.opts.Absolute
	switch {
	case life < 0:
		sliding, absolute = time.Hour, time.Hour // steps take nanoseconds
	case life > 0:
		sliding, absolute = life, life
	}
	m.entries[key] = &entry{outcome{value: value}, now, now.Add(min(sliding, absolute)), now.Add(m.opts.RefreshAfter), sliding, absolute}
}

// load loads and stores a value, and reports whether the load has failed.
func (m *model) load(key string) (found outcome, failed bool) {
	m.loads++
	found = m.world[key]
	switch {
	case found.err == nil:
		m.set(key, found.value, m.lives[key])
	case found.err != slidingcache.ErrNotFound:
		return found, true
	case m.opts.NegativeTTL > 0:
		m.entries[key] = &entry{outcome: found, expires: time.Now().Add(m.opts.NegativeTTL)}
	default:
		delete(m.entries, key)
	}
	return found, false
}

func (m *model) get(key string) outcome {
	old := m.entries[key]
	switch e := m.alive(key); {
	case e == nil:
	case e.err != nil:
		m.absences++
		return e.outcome
	default:
		m.hits++
		if m.opts.RefreshAfter > 0 && !time.Now().Before(e.refresh) {
			e.refresh = time.Now().Add(m.opts.RefreshAfter)
			m.refreshes++
			if _, failed := m.load(key); failed {
				m.failures++
			}
		}
		return e.outcome
	}
	m.misses++
	found, failed := m.load(key)
	if failed && old != nil && old.err == nil && time.Now().Before(old.expires.Add(m.opts.StaleOnError)) {
		m.stale++
		return old.outcome
	}
	return found
}

func (m *model) getIfPresent(key string) (int, bool) {
	if e := m.alive(key); e != nil && e.err == nil {
		m.hits++
		return e.value, true
	}
	m.misses++
	return 0, false
}

func (m *model) remove(key string) (int, bool) {
	e := m.peek(key)
	delete(m.entries, key)
	if e == nil || e.err != nil {
		return 0, false
	}
	m.invalidated++
	return e.value, true
}

// Random steps in fake time: the cache does what the model does.
func TestAgainstModel(t *testing.T) {
	steps := 3_000
	if long {
		steps = 60_000
	}
	for i, opts := range []options{
		{Sliding: 10, Absolute: 25},
		{Sliding: 10, Absolute: 25, NegativeTTL: 7},
		{Sliding: 10, Absolute: 25, NegativeTTL: 60},
		{Sliding: 10, Absolute: 25, RefreshAfter: 6},
		{Sliding: 10, Absolute: 25, StaleOnError: 8},
		{Sliding: 10, Absolute: 25, RefreshAfter: 6, StaleOnError: 8, NegativeTTL: 7},
		{Sliding: 30, Absolute: 20, RefreshAfter: 1, StaleOnError: 50, NegativeTTL: 40, SampleEvery: 2},
		{Sliding: 30, Absolute: 20, RefreshAfter: 5, NegativeTTL: 40},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRandom(uint64(i))
				m := &model{opts: opts, world: map[string]outcome{}, lives: map[string]time.Duration{}, entries: map[string]*entry{}}
				c, err := slidingcache.NewWithLife(func(_ context.Context, key string) (int, time.Duration, error) {
					return m.world[key].value, m.lives[key], m.world[key].err
				}, opts)
				require.NoError(t, err)
				defer c.Close()
				for step := range steps {
					key := fmt.Sprint(r.IntN(4))
					what := fmt.Sprintf("step %d, key %s", step, key)
					switch n := r.IntN(100); {
					case n < 20:
						time.Sleep(time.Duration(r.IntN(12)))
					case n < 30:
						m.world[key] = []outcome{{step, nil}, {step, nil}, {0, errOnPurpose}, {0, slidingcache.ErrNotFound}}[r.IntN(4)]
						m.lives[key] = []time.Duration{0, 0, -1, 7, 33}[r.IntN(5)]
					case n < 35:
						c.Set(key, step)
						m.set(key, step, 0)
					case n < 40:
						value, ok := c.Remove(key)
						wantValue, wantOK := m.remove(key)
						require.Equal(t, []any{wantValue, wantOK}, []any{value, ok}, what)
					case n == 40:
						c.Clear()
						clear(m.entries)
					case n == 41:
					case n < 45:
						value, ok := c.Peek(key)
						e := m.peek(key)
						require.Equal(t, e != nil && e.err == nil, ok, what)
						require.Equal(t, ok, contains(c, key), what)
						if ok {
							require.Equal(t, e.value, value, what)
						}
					case n < 50:
						value, err := c.Refresh(t.Context(), key)
						found, _ := m.load(key)
						require.Equal(t, found, outcome{value, err}, what)
					case n < 55:
						value, ok := c.GetIfPresent(key)
						wantValue, wantOK := m.getIfPresent(key)
						require.Equal(t, []any{wantValue, wantOK}, []any{value, ok}, what)
					default:
						value, err := c.Get(t.Context(), key)
						synctest.Wait() // for a refresh
						require.Equal(t, m.get(key), outcome{value, err}, what)
					}
				}
				got := c.Stats()
				want := slidingcache.Stats{
					Size: got.Size, Hot: got.Hot, Expirations: got.Expirations, Loads: got.Loads,
					Hits: m.hits, Absences: m.absences, Misses: m.misses, Stale: m.stale,
					Refreshes: m.refreshes, RefreshFailures: m.failures, Invalidations: m.invalidated,
				}
				require.Equal(t, want, got)
				require.Equal(t, m.loads, got.Loads.Enqueued)
				require.NotZero(t, got.Expirations)
			})
		})
	}
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// removed says whether Remove found a value.
func removed(_ int, ok bool) bool { return ok }
