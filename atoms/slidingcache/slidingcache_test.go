package slidingcache_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
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
)

var errOnPurpose = errors.New("failed on purpose")

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

// source is what caches load from in tests. Its fields are not to be touched while a
// load is at work on them.
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

// Its Get is what a coordinator of results works with.
var _ core.ResultWork[string, int] = new(cache).Get

func TestGetLoadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{})
		wantGet(t, c, "a", 1)
		wantGet(t, c, "a", 1)
		wantGet(t, c, "b", 2)
		value, ok := c.GetIfPresent("b")
		assert.True(t, ok)
		assert.Equal(t, 2, value)
		_, ok = c.GetIfPresent("c")
		assert.False(t, ok)
		assert.Equal(t, 2, s.calls)
		assert.Equal(t, 2, c.Len())
	})
}

func TestSlidingExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{Sliding: time.Minute, Absolute: -1})
		wantGet(t, c, "a", 1)
		for range 100 {
			time.Sleep(time.Minute - 1)
			wantGet(t, c, "a", 1, "each hit renews it")
		}
		time.Sleep(time.Minute - 1)
		_, ok := c.GetIfPresent("a")
		assert.True(t, ok, "just before, and renewed by this as well")
		time.Sleep(time.Minute - 1)
		wantGet(t, c, "a", 1)
		time.Sleep(time.Minute)
		_, ok = c.GetIfPresent("a")
		assert.False(t, ok, "at the end")
		wantGet(t, c, "a", 2)
	})
}

func TestAbsoluteExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{Sliding: time.Minute, Absolute: 90 * time.Second})
		wantGet(t, c, "a", 1)
		time.Sleep(59 * time.Second)
		wantGet(t, c, "a", 1)
		time.Sleep(31*time.Second - 1)
		wantGet(t, c, "a", 1, "just before")
		time.Sleep(time.Nanosecond)
		wantGet(t, c, "a", 2, "however often it was got")
	})
}

func TestDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{})
		assert.Equal(t, "slidingcache", c.Name())
		assert.Equal(t, 1000, c.Stats().MaxSize)
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
	})
}

func TestNoExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{Sliding: -1, Absolute: -1})
		wantGet(t, c, "a", 1)
		time.Sleep(math.MaxInt64 / 2)
		wantGet(t, c, "a", 1)
	})
}

// Weak point: max size and concurrency are not validated; zero or negative fails
// later.
func TestOptionsAreValidated(t *testing.T) {
	load := func(context.Context, string) (int, error) { return 0, nil }
	for want, opts := range map[string]options{
		"MaxSize is -1":                     {MaxSize: -1},
		"SampleEvery is -1":                 {SampleEvery: -1},
		"RefreshAfter is 1h0m0s":            {RefreshAfter: time.Hour},
		"RefreshAfter is 2s":                {RefreshAfter: 2 * time.Second, Absolute: time.Second},
		`InvalidateOn is "*"`:               {InvalidateOn: "*"},
		`InvalidateOn is "x, cache.invalid`: {InvalidateOn: "x, cache.invalidate"},
	} {
		c, err := slidingcache.New(load, opts)
		assert.Nil(t, c)
		assert.ErrorContains(t, err, "slidingcache: Options."+want)
	}
	_, err := slidingcache.New[string, int](nil, options{MaxSize: -1})
	assert.ErrorContains(t, err, "slidingcache: New needs a function")
	assert.ErrorContains(t, err, "MaxSize", "all that is wrong is said")

	ints := func(context.Context, int) (int, error) { return 0, nil }
	_, err = slidingcache.New(ints, slidingcache.Options[int]{InvalidateOn: "x"})
	assert.ErrorContains(t, err, "KeyOf is nil, but InvalidateOn needs it to make a int of a signal")
	_, err = slidingcache.New(ints, slidingcache.Options[int]{RefreshAfter: 100 * time.Hour, Absolute: -1, MaxConcurrency: -1, SampleEvery: 3})
	assert.NoError(t, err)
}

// Weak point: entry age starts before the factory runs; a compute longer than the
// sliding time is never cached.
func TestAgesCountFromTheEndOfTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, opts := range []options{
			{Sliding: time.Minute, Absolute: 2 * time.Minute},
			{Sliding: time.Minute, Absolute: 2 * time.Minute, StaleOnError: time.Second, RefreshAfter: 110 * time.Second},
		} {
			s := &source{takes: time.Hour}
			c := newCache(t, s.load, opts)
			wantGet(t, c, "a", 1)
			time.Sleep(time.Minute - 1)
			wantGet(t, c, "a", 1)
			time.Sleep(50 * time.Second)
			wantGet(t, c, "a", 1)
			time.Sleep(10 * time.Second)
			wantGet(t, c, "a", 1)
			time.Sleep(time.Nanosecond)
			wantGet(t, c, "a", 2)
		}
	})
}

// Weak point: insertion-time cleanup runs before the caller gets the value; if it
// fails, a successful compute becomes an error.
func TestFailingHandlerOfEvictionsDoesNotSpoilTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{MaxSize: 1, RaiseEvictions: true})
		defer c.Sink().Subscribe("cache.evict.*", func(core.Signal) { panic("on purpose") })()
		for i := range 5 {
			wantGet(t, c, fmt.Sprint(i), i+1)
		}
		assert.Equal(t, uint64(4), c.Sink().Stats().Panics)
		c.Set("x", 0)
		assert.Equal(t, uint64(5), c.Stats().Evictions)
	})
}

// Weak point: coldest-first by lifetime access count evicts the newest entry first
// once the rest are hot; counts never decay.
func TestNewKeysGetInAndOldFavouritesLeave(t *testing.T) {
	var s source
	c := newCache(t, s.load, options{MaxSize: 64})
	for range 100 {
		for i := range 64 {
			c.Get(t.Context(), fmt.Sprint("old ", i))
		}
	}
	for range 20 {
		for i := range 64 {
			c.Get(t.Context(), fmt.Sprint("new ", i))
		}
	}
	resident := 0
	for i := range 64 {
		if _, ok := c.GetIfPresent(fmt.Sprint("new ", i)); ok {
			resident++
		}
	}
	assert.Greater(t, resident, 48, "of 64 new ones")
	assert.Equal(t, 64, c.Len())
}

// Weak point: access count and last access are unsynchronised; full scans and sorts
// of the cache on each overflow. See core/lru for what eviction costs; here, that
// it never holds more than it may.
func TestNeverLargerThanMaxSize(t *testing.T) {
	var s source
	c := newCache(t, s.load, options{MaxSize: 10})
	for i := range 1000 {
		c.Set(fmt.Sprint(i), i)
		require.LessOrEqual(t, c.Len(), 10)
	}
	assert.Equal(t, uint64(990), c.Stats().Evictions)
}

// Weak point: keys are written into signal names: unbounded names, private data.
func TestKeysAreInTheKeyOfSignalsAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{})
		signals := coretest.Watch(t, c.Sink(), "cache.*")
		long := strings.Repeat("é", 100)
		wantGet(t, c, long, 1)
		for _, signal := range signals.ExpectExactly(slidingcache.SignalLoading, slidingcache.SignalLoaded) {
			assert.Equal(t, strings.Repeat("é", 64), signal.Key)
		}
		wantGet(t, c, "x"+long, 2)
		assert.Equal(t, "x"+strings.Repeat("é", 63), signals.Expect(slidingcache.SignalLoaded)[0].Key, "no half characters")

		secret := newCache(t, s.load, options{KeyText: func(key string) string { return fmt.Sprintf("%d bytes", len(key)) }})
		signals = coretest.Watch(t, secret.Sink(), "cache.*")
		secret.Get(t.Context(), "password")
		assert.Equal(t, "8 bytes", signals.Expect(slidingcache.SignalLoaded)[0].Key)
		for op := range secret.Loads(core.OperationQuery{}) {
			assert.Equal(t, "8 bytes", op.Key)
		}

		type point struct{ x, y int }
		points, err := slidingcache.New(func(context.Context, point) (int, error) { return 0, errOnPurpose }, slidingcache.Options[point]{})
		require.NoError(t, err)
		signals = coretest.Watch(t, points.Sink(), "cache.*")
		points.Get(t.Context(), point{1, 2})
		failed := signals.Expect(slidingcache.SignalError)[0]
		assert.Equal(t, "{1 2}", failed.Key)
		cause, ok := slidingcache.LoadFailed.From(failed)
		assert.True(t, ok)
		assert.Equal(t, errOnPurpose, cause)
	})
}

// Weak point: a second dispose throws.
func TestCloseManyTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{})
		wantGet(t, c, "a", 1)
		for range 3 {
			go func() { assert.NoError(t, c.Close()) }()
		}
		synctest.Wait()
		assert.NoError(t, c.Close())
		_, err := c.Get(t.Context(), "a")
		assert.ErrorIs(t, err, core.ErrClosed)
		_, ok := c.GetIfPresent("a")
		assert.False(t, ok)
		c.Set("a", 1)
		assert.False(t, c.Invalidate("a"))
		c.Clear()
		c.Sweep()
		assert.Zero(t, c.Len())
		assert.Equal(t, 1, s.calls)
	})
}

// Weak point: the 30 s sweep is fixed. There is none, and no goroutine.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{Sliding: time.Minute, RaiseEvictions: true})
		c.Set("a", 1)
		c.Set("b", 2)
		time.Sleep(time.Minute)
		assert.Equal(t, 2, c.Len(), "nobody has met them")
		signals := coretest.Watch(t, c.Sink(), "cache.*")
		c.Sweep()
		signals.ExpectExactly(slidingcache.SignalExpired, slidingcache.SignalExpired)
		assert.Zero(t, c.Len())
		assert.Equal(t, uint64(2), c.Stats().Expirations)
	})
}

// Seed against code: the getters of signal history return nothing. A sink is asked.
func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		sink := core.NewSink(core.SinkOptions{})
		c := newCache(t, s.load, options{Name: "users", Sink: sink, SampleEvery: 1, MaxSize: 2, RaiseEvictions: true, Sliding: time.Minute})
		assert.Same(t, sink, c.Sink())
		signals := coretest.Watch(t, sink, "cache.*")
		wantGet(t, c, "a", 1)
		raised := signals.ExpectExactly(slidingcache.SignalMiss, slidingcache.SignalLoading, slidingcache.SignalLoaded)
		assert.Equal(t, "users", raised[2].Source)
		assert.NotZero(t, raised[2].Operation)
		assert.Equal(t, "a", raised[2].Key)
		wantGet(t, c, "a", 1)
		signals.ExpectExactly(slidingcache.SignalHit)
		c.GetIfPresent("a")
		signals.ExpectExactly(slidingcache.SignalPeek)
		c.GetIfPresent("b")
		signals.ExpectExactly(slidingcache.SignalMiss)
		c.Set("b", 1)
		signals.None()
		c.Set("c", 1)
		signals.ExpectExactly(slidingcache.SignalCold)
		time.Sleep(time.Minute)
		c.GetIfPresent("c")
		signals.ExpectExactly(slidingcache.SignalMiss, slidingcache.SignalExpired)
		c.Set("c", 1)
		signals.Expect()
		assert.True(t, c.Invalidate("c"))
		assert.Equal(t, "c", signals.Expect(slidingcache.SignalInvalidate)[0].Key)
		assert.False(t, c.Invalidate("c"))
		signals.None()
		c.Clear()
		signals.Expect(slidingcache.SignalClear) // after that of others, which had expired
		signals.None()
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
		var s source
		sink := core.NewSink(core.SinkOptions{})
		c := newCache(t, s.load, options{Sink: sink, InvalidateOn: "product.*, prices.changed"})
		fill := func() {
			c.Clear()
			c.Set("1", 1)
			c.Set("2", 2)
		}
		fill()
		signals := coretest.Watch(t, sink, "cache.*")
		sink.RaiseKey("product.changed", "1")
		signals.ExpectExactly(slidingcache.SignalInvalidate)
		_, ok := c.GetIfPresent("1")
		assert.False(t, ok)
		_, ok = c.GetIfPresent("2")
		assert.True(t, ok)
		assert.Equal(t, uint64(1), c.Stats().Invalidations)

		sink.RaiseKey("customer.changed", "2")
		assert.Equal(t, 1, c.Len(), "not its business")
		fill()
		sink.Raise("prices.changed")
		assert.Zero(t, c.Len(), "without a key it is about everything")

		require.NoError(t, c.Close())
		signals = coretest.Watch(t, sink, "cache.*")
		sink.RaiseKey("product.changed", "2")
		signals.None()
	})
}

func TestInvalidateOnWithKeyOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type id int
		changed := core.NewKind[id]("changed")
		sink := core.NewSink(core.SinkOptions{})
		c, err := slidingcache.New(func(context.Context, id) (int, error) { return 0, nil }, slidingcache.Options[id]{
			Sink:         sink,
			InvalidateOn: "changed",
			KeyOf: func(s core.Signal) (id, bool) {
				if s.Key == "panic" {
					panic("on purpose")
				}
				return changed.From(s)
			},
		})
		require.NoError(t, err)
		c.Set(1, 1)
		c.Set(2, 2)
		changed.Raise(sink, "", 1)
		assert.Equal(t, 1, c.Len())
		sink.RaiseKey("changed", "something else")
		assert.Equal(t, 1, c.Len(), "KeyOf does not know it")
		sink.RaiseKey("changed", "panic")
		assert.Equal(t, uint64(1), sink.Stats().Panics, "harms nobody else")
		sink.Raise("changed")
		assert.Zero(t, c.Len())
		require.NoError(t, c.Close())
	})
}

// A named type of string needs no KeyOf.
func TestInvalidateOnWithKeysOfAKindOfString(t *testing.T) {
	type id string
	sink := core.NewSink(core.SinkOptions{})
	c, err := slidingcache.New(func(context.Context, id) (int, error) { return 0, nil }, slidingcache.Options[id]{Sink: sink, InvalidateOn: "changed"})
	require.NoError(t, err)
	c.Set("a", 1)
	c.Set("b", 1)
	sink.RaiseKey("changed", "a")
	assert.Equal(t, 1, c.Len())
	require.NoError(t, c.Close())
}

func TestStatsAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{MaxSize: 2, NegativeTTL: time.Minute, StaleOnError: time.Minute, Sliding: time.Minute})
		wantGet(t, c, "a", 1)
		wantGet(t, c, "a", 1)
		s.fails = slidingcache.ErrNotFound
		for range 3 {
			_, err := c.Get(t.Context(), "b")
			assert.ErrorIs(t, err, slidingcache.ErrNotFound)
		}
		c.GetIfPresent("b")
		time.Sleep(time.Minute)
		s.fails = errOnPurpose
		wantGet(t, c, "a", 1, "stale")
		_, err := c.Get(t.Context(), "c")
		assert.ErrorIs(t, err, errOnPurpose)
		got := c.Stats()
		assert.NoError(t, coretest.CheckBooks(got.Loads))
		assert.Equal(t, uint64(2), got.Loads.Succeeded)
		assert.Equal(t, uint64(2), got.Loads.Failed)
		got.Loads = core.Stats{}
		assert.Equal(t, slidingcache.Stats{Size: 2, MaxSize: 2, Hits: 1, Absences: 2, Misses: 5, Stale: 1}, got)

		var back slidingcache.Stats
		require.NoError(t, json.Unmarshal([]byte(got.String()), &back))
		assert.Equal(t, got, back)
		assert.Equal(t, slog.KindGroup, got.LogValue().Kind())
		for range 5 {
			c.Set("hot", 1)
			c.GetIfPresent("hot")
		}
		assert.Equal(t, 1, c.Stats().Hot)
	})
}

func TestInvalidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{NegativeTTL: time.Minute, StaleOnError: time.Hour, Sliding: time.Minute})
		assert.False(t, c.Invalidate("a"))
		wantGet(t, c, "a", 1)
		assert.True(t, c.Invalidate("a"))
		wantGet(t, c, "a", 2)
		time.Sleep(time.Minute)
		assert.False(t, c.Invalidate("a"), "it has expired")
		s.fails = slidingcache.ErrNotFound
		c.Get(t.Context(), "a")
		assert.False(t, c.Invalidate("a"), "there is none")
		s.fails = nil
		wantGet(t, c, "a", 4, "but that is forgotten")
	})
}

func TestClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{MaxSize: 10_000})
		for i := range 1000 {
			c.Set(fmt.Sprint(i), i)
		}
		c.Clear()
		assert.Zero(t, c.Len())
		wantGet(t, c, "1", 1)
	})
}
