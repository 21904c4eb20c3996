package slidingcache_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/ephemeralgo/ephemeral/core/signals"
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

func TestDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{})
		assert.Equal(t, "slidingcache", c.Name())
		assert.Equal(t, 1000, c.Stats().Capacity)
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
			raised := facts.ExpectExactly(slidingcache.SignalLoading, slidingcache.SignalFailed)
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
		c := newCache(t, s.load, options{Name: "users", Sink: sink, SampleEvery: 1, Capacity: 2, RaiseEvictions: true, Sliding: time.Minute})
		assert.Same(t, sink, c.Sink())
		facts := coretest.Watch(t, sink, "cache.*")
		wantGet(t, c, "a", 1)
		raised := facts.ExpectExactly(slidingcache.SignalMiss, slidingcache.SignalLoading, slidingcache.SignalLoaded)
		assert.Equal(t, "users", raised[2].Source)
		assert.NotZero(t, raised[2].Operation)
		assert.Equal(t, "a", raised[2].Key)
		wantGet(t, c, "a", 1)
		facts.ExpectExactly(slidingcache.SignalHit)
		c.GetIfPresent("a")
		facts.ExpectExactly(slidingcache.SignalPeeked)
		c.GetIfPresent("b")
		facts.ExpectExactly(slidingcache.SignalMiss)
		c.Set("b", 1)
		facts.None()
		c.Set("c", 1)
		facts.ExpectExactly(slidingcache.SignalCold)
		assert.Equal(t, uint64(1), c.Stats().Evictions)
		time.Sleep(time.Minute)
		c.GetIfPresent("c")
		facts.ExpectExactly(slidingcache.SignalMiss, slidingcache.SignalExpired)
		c.Set("c", 1)
		facts.Expect()
		assert.True(t, removed(c.Remove("c")))
		assert.Equal(t, "c", facts.Expect(slidingcache.SignalInvalidated)[0].Key)
		assert.False(t, removed(c.Remove("c")))
		facts.None()
		c.Clear()
		facts.Expect(slidingcache.SignalCleared) // the entries that have expired are not in it
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
		facts.ExpectExactly(slidingcache.SignalInvalidated)
		sink.RaiseKey("customer.changed", "2")
		assert.Equal(t, []bool{false, true}, []bool{c.Contains("1"), c.Contains("2")})
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
