package slidingcache

import (
	"context"
	"errors"
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/flight"
	"github.com/ephemeralgo/ephemeral/core/lru"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Cache loads values for keys with a function. It holds a value until the value expires or
// makes room for another one. Make one with [New].
//
// All methods are safe for concurrent use, also by load functions and handlers of signals. An
// idle cache owns no goroutine. A cache with [Options.InvalidateOn] must be closed: until
// then its sink keeps it alive. Other caches need no Close; Loads may keep one in memory for
// some minutes after its last load.
type Cache[K comparable, V any] struct {
	opts   Options[K]
	times  times
	base   time.Time // when it was made
	loader func(ctx context.Context, key K) (V, time.Duration, error)
	store  *lru.LRU[K, record[V]]

	// The lanes of one coordinator. An alias of this type would stop tools that use x/tools (v0.51): they panic.
	needed, loads, late *core.ResultCoordinator[*loading[K, V], struct{}]

	seed   maphash.Seed
	shards []shard[K, V] // their number is a power of two

	unsubscribe func() // nil: InvalidateOn is not set

	_ cacheLine // the fields above do not change

	sampled atomic.Uint64
	adjust  struct{ hits, misses, absences atomic.Int64 } // corrections of the store's counters
}

type cacheLine [64]byte

// shard has the loads of a part of the keys. Its lock orders loads and other changes of the
// stored values.
type shard[K comparable, V any] struct {
	mu     sync.Mutex
	loads  flight.Table[K, loading[K, V]] // loads whose result will be stored
	closed bool
	counts counts

	_ cacheLine
}

// More shards cost memory, fewer cost time.
const (
	keysPerShard = 128
	maxShardBits = 6
)

// New makes a cache that loads values with load. It returns an error if load is nil or an
// option is wrong. It starts no goroutine. Memory grows with the number of values.
func New[K comparable, V any](load func(ctx context.Context, key K) (V, error), opts Options[K]) (*Cache[K, V], error) {
	if load == nil {
		return NewWithLife[K, V](nil, opts)
	}
	return NewWithLife(func(ctx context.Context, key K) (value V, life time.Duration, err error) {
		value, err = load(ctx, key)
		return value, 0, err
	}, opts)
}

// NewWithLife is New with a load function that also returns the life of its value: how long
// the value is valid, as for tokens and addresses. The life begins at the end of the load. No
// access extends it. It replaces Sliding and Absolute of [Options] for this value. A life of 0
// means that Sliding and Absolute count, a negative one that the value never expires.
func NewWithLife[K comparable, V any](load func(ctx context.Context, key K) (V, time.Duration, error), opts Options[K]) (*Cache[K, V], error) {
	opts, t, err := opts.resolved()
	if load == nil {
		err = errors.Join(errors.New("slidingcache: New needs a function that loads values, not nil"), err)
	}
	if err != nil {
		return nil, err
	}
	c := &Cache[K, V]{opts: opts, times: t, base: time.Now(), loader: load, seed: maphash.MakeSeed()}
	c.shards = make([]shard[K, V], 1<<min(bits.Len(uint(opts.Capacity/keysPerShard)), maxShardBits))
	ttl, maxAge := t.forStore()
	c.store = core.Must(lru.New(lru.Options[K, record[V]]{Capacity: opts.Capacity, TTL: ttl, MaxAge: maxAge, HotTTL: -1})) // the options are valid
	textOf := func(f *loading[K, V]) string { return f.text }
	loads := core.Must(core.NewKeyedResultCoordinator(textOf, c.run, core.Options{
		Name:           opts.Name,
		Sink:           opts.Sink,
		MaxConcurrency: opts.MaxConcurrency,
		MaxPerKey:      math.MaxInt32, // the table of a shard has at most one load per key
		MaxQueued:      math.MaxInt32, // no limit is needed: a caller waits for each load, or it refreshes a stored value
		MaxSuspended:   math.MaxInt32, // no limit: the loads for which they wait must be able to begin
		// A load that other loads wait for goes first, so that few loads are under way at once.
		Lanes: []core.Lane{{Name: "needed"}, {Name: "loads"}, {Name: "refreshes"}},
	}))
	c.needed, c.loads, c.late = loads.Lane("needed"), loads.Lane("loads"), loads.Lane("refreshes")
	if opts.InvalidateOn != "" {
		c.unsubscribe = opts.Sink.Subscribe(opts.InvalidateOn, c.invalidate)
	}
	return c, nil
}

// Get returns the value of key from the cache, even if ctx has ended. If the cache has no
// value, Get loads and stores it. After Close, Get returns [core.ErrClosed]. Get is a
// [core.ResultWork], so middleware can wrap c.Get.
//
// All callers that want the same key share one load. The load's context has the values of the
// first caller's context, but not its deadline and not its cancellation. If the context of a
// caller ends, that caller gets the cause, and the load goes on for the others. If the
// contexts of all callers end, the load's context is cancelled with the cause of the last
// one, and the result is dropped. The next caller begins another load.
//
// If a load fails, all waiting callers get the error, and nothing is stored: for exceptions
// see [Options.StaleOnError] and [Options.NegativeTTL]. If a load panics or ends its
// goroutine, the error is a [core.PanicError]. If the key is set or removed, or the cache is
// cleared, while a load runs, the waiting callers get the result of the load, but it is not
// stored. If a value expires while its refresh runs (see [Options.RefreshAfter]), callers
// wait for the refresh. If the refresh fails, they wait for another load.
//
// A load function may use the cache with its own context, for example to get other keys.
// While it waits for another load, of this cache or another one, its operation is suspended:
// it gives up its slot of [Options.MaxConcurrency]. Get returns only after a slot is free
// again, even if the context has ended. So do not hold a mutex during such a Get if other
// loads lock it. If a load function waits for anything else that needs the cache, such as an
// operation of a coordinator, it must use [core.Operation.Suspend].
//
// A load gets [core.ErrWouldDeadlock] in three cases: it asks for its own key; it would wait
// for a load that waits for it, directly or through other keys and caches, those of
// [github.com/ephemeralgo/ephemeral/core/lru] included; or it would wait for another load of
// this cache with a context that is not the one given to the load.
func (c *Cache[K, V]) Get(ctx context.Context, key K) (V, error) {
	r, ok := c.store.Get(key)
	if ok && r.details == nil && c.opts.SampleEvery == 0 {
		return r.value, nil
	}
	return c.get(ctx, key, r, ok)
}

// get continues Get with the record that the store has.
func (c *Cache[K, V]) get(ctx context.Context, key K, r record[V], ok bool) (V, error) {
	if ok {
		now := c.now()
		v := c.times.check(r.details, now, c.times.sliding)
		if v == fresh && r.details != nil && r.details.due(now, c.times.refresh) {
			c.refresh(ctx, key, r.details)
		}
		if v == absent {
			c.recount(-1, 0, 1)
		}
		if v == fresh || v == absent {
			c.sample(lru.SignalHit, key)
			return r.value, r.err()
		}
		c.recount(-1, 1, 0)
	}
	c.sample(lru.SignalMiss, key)
	return c.obtain(ctx, key, false)
}

// GetIfPresent returns the value of key if it is in the cache. It loads nothing. It is an
// access, like Get: the value expires later.
func (c *Cache[K, V]) GetIfPresent(key K) (value V, ok bool) {
	r, ok := c.store.Get(key)
	if ok && r.details != nil && c.times.check(r.details, c.now(), c.times.sliding) != fresh {
		c.recount(-1, 1, 0)
		ok = false
	}
	if ok {
		c.sample(lru.SignalHit, key)
		return r.value, true
	}
	c.sample(lru.SignalMiss, key)
	return value, false
}

// Peek returns the value of key if it is in the cache. It loads nothing, counts nothing and
// raises no signal. It is not an access: the value does not expire later.
func (c *Cache[K, V]) Peek(key K) (value V, ok bool) {
	if r, v := c.peek(key); v == fresh {
		return r.value, true
	}
	return value, false
}

// Set stores the value of key like a load that ends now. A load of the key that has begun
// before does not overwrite the value. After Close, Set does nothing.
func (c *Cache[K, V]) Set(key K, value V) {
	s := c.shard(key)
	s.mu.Lock()
	var unwanted *loading[K, V]
	if !s.closed {
		unwanted = s.forget(key)
		c.put(key, value, 0)
	}
	s.mu.Unlock()
	c.drop(unwanted)
}

// put stores a value with its life; see NewWithLife. The shard's lock is held.
func (c *Cache[K, V]) put(key K, value V, life time.Duration) {
	r := record[V]{value: value}
	if c.times.needed() {
		r.details = c.times.detailsOf(c.now(), life)
	}
	if life > 0 {
		life = time.Duration(later(int64(life), c.times.stale))
	}
	c.store.SetWithLife(key, r, life)
}

// Remove removes the value of key and returns it, if there was one. If a load of the key is
// running, its result is not stored, and later callers begin another load.
func (c *Cache[K, V]) Remove(key K) (value V, ok bool) {
	s := c.shard(key)
	s.mu.Lock()
	unwanted := s.forget(key)
	_, v := c.peek(key)
	r, ok := c.store.Remove(key)
	if ok = ok && v == fresh; ok {
		value = r.value
		s.counts.invalidated++
	}
	s.mu.Unlock()
	c.drop(unwanted)
	if ok {
		c.opts.Sink.RaiseKey(lru.SignalInvalidated, c.text(key))
	}
	return value, ok
}

// Clear removes all values. The results of loads that are running are not stored. A value that
// is stored while Clear runs may stay.
func (c *Cache[K, V]) Clear() {
	for _, f := range c.forgetAll(false) {
		c.drop(f)
	}
	c.store.Clear()
	c.opts.Sink.Raise(lru.SignalCleared)
}

// forgetAll forgets all loads, and returns those for which no caller waits. If closing is
// true, no more loads begin.
func (c *Cache[K, V]) forgetAll(closing bool) (unwanted []*loading[K, V]) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.closed = s.closed || closing
		for key := range s.loads.Keys() {
			unwanted = append(unwanted, s.forget(key))
		}
		s.mu.Unlock()
	}
	return unwanted
}

// invalidate removes the key of a signal that matches [Options.InvalidateOn], or all keys.
func (c *Cache[K, V]) invalidate(signal signals.Signal) {
	if key, ok := c.opts.KeyOf(signal); ok {
		c.Remove(key)
	} else if signal.Key == "" {
		c.Clear()
	}
}

// Len returns the number of keys in the cache, at most [Options.Capacity]. It includes keys
// that are remembered as absent (see [Options.NegativeTTL]), and expired keys until they are
// removed.
func (c *Cache[K, V]) Len() int { return c.store.Len() }

// Sink returns the sink on which the cache raises its signals.
func (c *Cache[K, V]) Sink() *signals.Sink { return c.opts.Sink }

// Close cancels the loads with the cause [core.ErrClosed], waits until they have returned, and
// empties the cache. Their callers get ErrClosed. The cache no longer handles signals. If Close
// is called by a load or a handler, it does not wait. Further calls do nothing. Close returns
// nil.
func (c *Cache[K, V]) Close() error {
	c.forgetAll(true)
	err := c.loads.Close()
	if c.unsubscribe != nil { // not earlier, because a handler may wait for a load
		c.unsubscribe()
	}
	c.store.Clear()
	return err
}

// Stop begins no more loads, cancels the loads that have not begun with the cause
// [core.ErrStopped], and waits until the running loads have returned. Then it closes the cache.
// While Stop waits, callers get the values in the cache. If ctx ends first, Stop returns the
// cause; then call Close. If Stop is called by a load, it returns [core.ErrWouldDeadlock] and
// changes nothing.
func (c *Cache[K, V]) Stop(ctx context.Context) error {
	if err := c.loads.Stop(ctx); err != nil {
		return err
	}
	return c.Close()
}

// WaitIdle waits until no load and no refresh runs or waits for its turn. If ctx ends first,
// WaitIdle returns the cause. If it is called by a load, it returns [core.ErrWouldDeadlock].
func (c *Cache[K, V]) WaitIdle(ctx context.Context) error { return c.loads.WaitIdle(ctx) }

// shard returns the shard that a key belongs to.
func (c *Cache[K, V]) shard(key K) *shard[K, V] {
	return &c.shards[maphash.Comparable(c.seed, key)&uint64(len(c.shards)-1)]
}

// now is the time since the cache was made. The first reading may be 0.
func (c *Cache[K, V]) now() int64 { return int64(time.Since(c.base)) }

// peek returns the record of a key. It is no access and needs no lock.
func (c *Cache[K, V]) peek(key K) (record[V], status) {
	r, ok := c.store.Peek(key)
	if !ok {
		return r, nothing
	}
	return r, c.times.check(r.details, c.now(), 0)
}

// recount corrects the counters of the store.
func (c *Cache[K, V]) recount(hits, misses, absences int64) {
	c.adjust.hits.Add(hits)
	c.adjust.misses.Add(misses)
	c.adjust.absences.Add(absences)
}
