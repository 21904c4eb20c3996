package slidingcache

import (
	"context"
	"errors"
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// A Cache remembers what a function has loaded for a key, until it has not been
// asked for a while, and loads what it does not have. Make one with [New].
//
// All methods are safe for concurrent use, by load functions and handlers of signals
// as well. An idle cache owns no goroutine and needs no closing, except that one with
// [Options.InvalidateOn] is kept alive by its sink until it is closed. One that is
// forgotten is garbage when its last loads are not shown any more, after some minutes.
type Cache[K comparable, V any] struct {
	opts  Options[K]
	spans spans
	clock clock
	load  core.ResultWork[K, V]
	store *lru.LRU[K, record[V]]
	loads *core.ResultCoordinator[*flight[K, V], struct{}]
	late  *core.ResultCoordinator[*flight[K, V], struct{}] // the same, for refreshes

	seed   maphash.Seed
	shards []shard[K, V] // as many as a power of two

	unsubscribe func()          // nil: InvalidateOn is not set
	closing     context.Context // ends with Close
	closeLoads  context.CancelCauseFunc

	_ cacheLine // what is above does not change

	removals removals[K]
	sampled  atomic.Uint64
	adjust   struct{ hits, misses, absences atomic.Int64 } // to what the store counts
}

type cacheLine [64]byte

// shard has the loads of a part of the keys, and orders them with what is stored
// otherwise.
type shard[K comparable, V any] struct {
	mu      sync.Mutex
	flights map[K]*flight[K, V] // loads whose result will be stored
	closed  bool
	counts  counts

	_ cacheLine
}

// Shards cost memory, and locks that are shared cost time.
const (
	keysPerShard = 128
	maxShardBits = 6
)

// Lanes of the coordinator: what somebody waits for goes first.
const (
	laneLoads     = "loads"
	laneRefreshes = "refreshes"
)

// New makes a cache that gets the values it does not have from load, or says what is
// wrong with the options. It starts nothing, and memory grows with what is stored.
func New[K comparable, V any](load func(ctx context.Context, key K) (V, error), opts Options[K]) (*Cache[K, V], error) {
	opts, t, err := opts.resolved()
	if load == nil {
		err = errors.Join(errors.New("slidingcache: New needs a function that loads values, not nil"), err)
	}
	if err != nil {
		return nil, err
	}
	c := &Cache[K, V]{opts: opts, spans: t, clock: newClock(), load: load, seed: maphash.MakeSeed()}
	c.shards = make([]shard[K, V], 1<<min(bits.Len(uint(opts.MaxSize/keysPerShard)), maxShardBits))
	c.closing, c.closeLoads = context.WithCancelCause(context.Background())
	ttl, maxAge := t.forStore()
	store := lru.Options[K, record[V]]{Capacity: opts.MaxSize, TTL: ttl, MaxAge: maxAge, HotTTL: -1}
	if opts.RaiseEvictions {
		store.OnRemoved = func(key K, _ record[V], reason lru.Reason) { c.removals.add(key, reason) }
	}
	c.store, err = lru.New(store)
	if err != nil {
		return nil, err
	}
	textOf := func(f *flight[K, V]) string { return f.text }
	loads, err := core.NewKeyedResultCoordinator(textOf, c.run, core.Options{
		Name:           opts.Name,
		Sink:           opts.Sink,
		MaxConcurrency: opts.MaxConcurrency,
		MaxPerKey:      math.MaxInt32, // that there is one at a time is not its business
		MaxQueued:      math.MaxInt32, // somebody waits for each, or it refreshes what is stored
		Lanes:          []core.Lane{{Name: laneLoads}, {Name: laneRefreshes}},
	})
	if err != nil {
		return nil, err
	}
	c.loads, c.late = loads.Lane(laneLoads), loads.Lane(laneRefreshes)
	if opts.InvalidateOn != "" {
		c.unsubscribe = opts.Sink.Subscribe(opts.InvalidateOn, c.heed)
	}
	return c, nil
}

// Get returns the value of key from the cache, even if ctx has ended, or else loads
// and stores it. It is a [core.ResultWork], so c.Get is what a coordinator of results
// works with, or what a middleware wraps.
//
// While a load of a key runs, others who want the key wait for the same one. It
// belongs to nobody in particular: its context has the values of the first caller's,
// but neither its deadline nor its cancellation. Who waits leaves with the cause of
// the own context when that ends, and the load goes on for the others. When nobody
// waits any more, the load's context is cancelled, with the cause of the last one's,
// and its result is dropped; who comes then begins another load.
//
// An error of the load goes to all who wait, and nothing is stored, except for what
// [Options.StaleOnError] and [Options.NegativeTTL] say. A load that panics or ends
// its goroutine fails with a [core.PanicError]. If the key is set or invalidated, or
// the cache cleared, while a load runs, those who wait get its result, but it is not
// stored.
//
// A load may use the cache, with the context that it was given, also to get other
// keys. What it gets that way and is not there is loaded at once, on the goroutine
// that asks, as part of its operation, so that it needs no place among
// [Options.MaxConcurrency]. The same goes for loads of other caches that would wait
// for a place as long as somebody waits for them. If a load asks for its own key, or
// would wait for a load that waits for it, over any number of keys and caches, or if
// it would wait without its context, Get returns [core.ErrWouldDeadlock].
//
// After Close, Get returns [core.ErrClosed].
func (c *Cache[K, V]) Get(ctx context.Context, key K) (V, error) {
	r, ok := c.store.Get(key)
	if ok && r.fate == nil && c.opts.SampleEvery == 0 {
		return r.value, nil
	}
	return c.get(ctx, key, r, ok)
}

// get goes on with what the store has.
func (c *Cache[K, V]) get(ctx context.Context, key K, r record[V], ok bool) (V, error) {
	var none V
	v := nothing
	switch {
	case !ok:
	case r.fate == nil:
		c.sample(SignalHit, key)
		return r.value, nil
	default:
		now := c.clock.now()
		if v = c.spans.judge(r.fate, now); v == fresh && r.fate.due(now, c.spans.refresh) {
			c.refresh(ctx, key, r.fate)
		}
	}
	switch v {
	case fresh:
		c.sample(SignalHit, key)
		return r.value, nil
	case absent:
		c.recount(-1, 0, 1)
		c.sample(SignalHit, key)
		return none, r.fate.absence
	}
	if ok {
		c.recount(-1, 1, 0)
	}
	c.sample(SignalMiss, key)
	c.tell()
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	return c.miss(ctx, key)
}

// GetIfPresent returns the value of key if it is in the cache, and loads nothing. It
// prolongs the value's life, as Get does.
func (c *Cache[K, V]) GetIfPresent(key K) (value V, ok bool) {
	r, ok := c.store.Get(key)
	if ok && r.fate != nil && c.spans.judge(r.fate, c.clock.now()) != fresh {
		c.recount(-1, 1, 0)
		ok = false
	}
	if ok {
		c.sample(SignalPeek, key)
		return r.value, true
	}
	c.sample(SignalMiss, key)
	c.tell()
	return value, false
}

// Set stores the value of key, as if it had just been loaded. A load of the key that
// is under way does not overwrite it. After Close it does nothing.
func (c *Cache[K, V]) Set(key K, value V) {
	s := c.shard(key)
	s.mu.Lock()
	var unwanted *flight[K, V]
	if !s.closed {
		unwanted = s.forget(key)
		c.put(key, value)
	}
	s.mu.Unlock()
	c.drop(unwanted)
	c.tell()
}

// put stores a value. The shard's lock is held.
func (c *Cache[K, V]) put(key K, value V) {
	r := record[V]{value: value}
	if c.spans.rich() {
		r.fate = c.spans.fateOf(c.clock.now())
	}
	c.store.Set(key, r)
}

// Invalidate removes the value of key, and reports whether there was one. The result
// of a load that is under way will not be stored, and who asks from now on does not
// wait for it.
func (c *Cache[K, V]) Invalidate(key K) bool {
	s := c.shard(key)
	s.mu.Lock()
	unwanted := s.forget(key)
	_, v := c.look(key)
	removed := c.store.Invalidate(key)
	if removed = removed && v == fresh; removed {
		s.counts.invalidated++
	}
	s.mu.Unlock()
	c.drop(unwanted)
	if removed {
		c.opts.Sink.RaiseKey(SignalInvalidate, c.text(key))
	}
	c.tell()
	return removed
}

// Clear removes everything. Results of loads that are under way will not be stored.
// What is stored while it runs may stay.
func (c *Cache[K, V]) Clear() {
	for _, f := range c.forgetAll(false) {
		c.drop(f)
	}
	c.store.Clear()
	c.tell()
	c.opts.Sink.Raise(SignalClear)
}

// forgetAll does not want any loads to be stored that are under way, and returns
// those that nobody wants any more. With closing there will be no others.
func (c *Cache[K, V]) forgetAll(closing bool) (unwanted []*flight[K, V]) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.closed = s.closed || closing
		for key := range s.flights {
			unwanted = append(unwanted, s.forget(key))
		}
		s.mu.Unlock()
	}
	return unwanted
}

// heed does what a signal that matches InvalidateOn says.
func (c *Cache[K, V]) heed(signal core.Signal) {
	if key, ok := c.opts.KeyOf(signal); ok {
		c.Invalidate(key)
	} else if signal.Key == "" {
		c.Clear()
	}
}

// Len is the number of keys in the cache, [Options.MaxSize] at most. It includes
// those of which is remembered that they have no value, and those that have expired
// and that nobody has met since.
func (c *Cache[K, V]) Len() int { return c.store.Len() }

// Sweep removes what has expired and is not kept for [Options.StaleOnError]. Nobody
// has to call it: what has expired is not served, and makes room when there is
// something to store. But a cache that nobody uses holds on to it.
func (c *Cache[K, V]) Sweep() {
	c.store.Sweep()
	c.tell()
}

// Name is [Options.Name].
func (c *Cache[K, V]) Name() string { return c.opts.Name }

// Sink is where the cache raises its signals.
func (c *Cache[K, V]) Sink() *core.Sink { return c.opts.Sink }

// Close stops heeding signals, cancels the loads, with the cause [core.ErrClosed],
// which is what those get who wait for them, waits for the loads to return, and
// empties the cache. Called by a load, or by a handler, it does not wait. It may be
// called many times, and returns nil.
func (c *Cache[K, V]) Close() error {
	c.forgetAll(true)
	c.closeLoads(core.ErrClosed)
	err := c.loads.Close()
	if c.unsubscribe != nil { // not before: a handler may wait for a load
		c.unsubscribe()
	}
	c.store.Clear()
	return err
}

// shard returns the shard that a key belongs to.
func (c *Cache[K, V]) shard(key K) *shard[K, V] {
	return &c.shards[maphash.Comparable(c.seed, key)&uint64(len(c.shards)-1)]
}

// look returns what the store has for a key, without counting that. The shard's
// lock is held.
func (c *Cache[K, V]) look(key K) (record[V], verdict) {
	r, ok := c.store.Get(key)
	if !ok {
		c.recount(0, -1, 0)
		return r, nothing
	}
	c.recount(-1, 0, 0)
	return r, c.spans.judge(r.fate, c.clock.now())
}

// recount corrects what the store has counted.
func (c *Cache[K, V]) recount(hits, misses, absences int64) {
	if hits != 0 {
		c.adjust.hits.Add(hits)
	}
	if misses != 0 {
		c.adjust.misses.Add(misses)
	}
	if absences != 0 {
		c.adjust.absences.Add(absences)
	}
}
