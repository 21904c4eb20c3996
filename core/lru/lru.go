package lru

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"sync/atomic"
	"time"
)

// An LRU is a bounded cache. Entries leave when they have not been used for a while, or
// when others need the room. Make one with [New].
//
// All methods are safe for concurrent use, also by OnRemoved, load functions and handlers of
// signals. A cache owns goroutines only for its loads, and needs no Close.
type LRU[K comparable, V any] struct {
	opts   Options[K, V]
	clock  clock
	seed   maphash.Seed
	heat   heat
	shift  int // shift of a hash, to get its shard
	shards []shard[K, V]

	_       cacheLine // the fields above do not change
	panics  atomic.Uint64
	sampled atomic.Uint64
	tallies [16]tally
}

// tally counts without a lock. Keys are divided among several tallies, so that readers do
// not all write to one word.
type tally struct {
	hits, misses atomic.Uint64
	_            cacheLine
}

// Small shards cost hits, because keys are not divided evenly.
const (
	entriesPerShard = 1024
	maxShardBits    = 6
)

// New makes a cache, or returns an error that says what is wrong with the options. It starts
// no goroutine. Memory grows with what is stored.
func New[K comparable, V any](opts Options[K, V]) (*LRU[K, V], error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	shardBits := max(0, min(bits.Len(uint(opts.Capacity/entriesPerShard))-1, maxShardBits))
	c := &LRU[K, V]{
		opts:   opts,
		clock:  clock{time.Now()},
		seed:   maphash.MakeSeed(),
		heat:   newHeat(opts.HotAfter),
		shift:  64 - shardBits,
		shards: make([]shard[K, V], 1<<shardBits),
	}
	for i := range c.shards {
		capacity := opts.Capacity >> shardBits
		if i < opts.Capacity&(len(c.shards)-1) {
			capacity++
		}
		s := &c.shards[i]
		s.policy.init(capacity, c.heat)
		s.hotTTL = int64(opts.HotTTL)
		s.keepsRemoved = opts.Sink != nil || opts.OnRemoved != nil
	}
	return c, nil
}

// Get returns the value of key, if there is one. It is an access: the entry expires after
// its TTL, or HotTTL, from now.
func (c *LRU[K, V]) Get(key K) (value V, ok bool) {
	hash, s := c.locate(key)
	return c.get(s, hash, key).found()
}

// Peek returns the value of key, if there is one. It is not an access: it does not extend
// the entry's life, counts nothing and raises nothing.
func (c *LRU[K, V]) Peek(key K) (value V, ok bool) {
	hash, s := c.locate(key)
	e, sure := s.table.peek(hash, key)
	if !sure || e != nil && e.over(c.clock.now()) { // the key may have a new value meanwhile
		e = s.live(hash, key, c.clock)
	}
	return e.found()
}

// Set stores the value of key, which expires after [Options.TTL] without an access. A load of
// the key that is under way does not overwrite it.
func (c *LRU[K, V]) Set(key K, value V) { c.set(key, value, c.sliding()) }

// SetWithLife stores the value of key, which expires at the end of life, however often it is
// accessed. TTL, HotTTL and MaxAge of [Options] do not count for it. 0 means that they do,
// negative that the value never expires. A load of the key that is under way does not
// overwrite it.
func (c *LRU[K, V]) SetWithLife(key K, value V, life time.Duration) {
	c.set(key, value, c.fixed(life))
}

func (c *LRU[K, V]) set(key K, value V, life lifetime) {
	hash, s := c.locate(key)
	e, now := c.entry(hash, key, value, life)
	s.flights.Lock()
	s.flights.Delete(key)
	s.put(e, now)
	c.unlock(s)
}

// Remove removes the value of key and returns it, if there was one. The result of a load
// that is under way will not be stored.
func (c *LRU[K, V]) Remove(key K) (value V, ok bool) {
	hash, s := c.locate(key)
	now := c.clock.now()
	s.flights.Lock()
	e := s.invalidate(hash, key, now)
	c.unlock(s)
	return e.found()
}

// Clear removes everything. Values that are stored while it runs may stay. It raises one
// [SignalCleared], and no signals for the entries.
func (c *LRU[K, V]) Clear() {
	for i := range c.shards {
		s := &c.shards[i]
		now := c.clock.now()
		s.flights.Lock()
		s.clear(now)
		for _, r := range s.unlock() {
			c.onRemoved(r)
		}
	}
	if c.opts.Sink != nil {
		c.opts.Sink.Raise(SignalCleared)
	}
}

// Sweep removes all entries that have expired. There is no need to call it: expired entries
// are not returned, and are the first to make room. But an idle cache keeps them in memory.
func (c *LRU[K, V]) Sweep() {
	for i := range c.shards {
		s := &c.shards[i]
		now := c.clock.now()
		for more := true; more; {
			s.flights.Lock()
			more = s.sweep(now, sweepChunk)
			c.unlock(s)
		}
	}
}

// Len is the number of entries, at most [Options.Capacity]. It includes entries that have
// expired and are not removed yet.
func (c *LRU[K, V]) Len() int {
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.flights.Lock()
		n += s.len()
		s.flights.Unlock()
	}
	return n
}

// All yields the entries in no particular order. It is not an access. A key that is there
// during the whole loop comes once, with a value that it had during the loop. No lock is
// held while the body of the loop runs.
func (c *LRU[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for i := range c.shards {
			s := &c.shards[i]
			s.flights.Lock()
			entries := s.entries()
			s.flights.Unlock()
			for _, e := range entries {
				if e.over(c.clock.now()) { // the key may have a new value meanwhile
					e = s.live(e.hash, e.key, c.clock)
				}
				if e != nil && !yield(e.key, e.value) {
					return
				}
			}
		}
	}
}

// Stats returns the counters of the cache.
func (c *LRU[K, V]) Stats() Stats {
	stats := Stats{Capacity: c.opts.Capacity, Panics: c.panics.Load()}
	for i := range c.shards {
		c.shards[i].flights.Lock()
		defer c.shards[i].flights.Unlock()
	}
	for i := range c.shards {
		s := &c.shards[i]
		stats.Size += s.len()
		stats.Hot += int(max(0, s.policy.hot.Load()))
		stats.Loads += s.loads
		stats.LoadFailures += s.loadFailures
		stats.Evictions += s.removals[ReasonEvicted]
		stats.Expirations += s.removals[ReasonExpired]
		stats.Invalidations += s.removals[ReasonInvalidated]
	}
	for i := range c.tallies {
		stats.Hits += c.tallies[i].hits.Load()
		stats.Misses += c.tallies[i].misses.Load()
	}
	return stats
}

// locate returns the hash of a key and the shard that the key belongs to.
func (c *LRU[K, V]) locate(key K) (uint64, *shard[K, V]) {
	hash := maphash.Comparable(c.seed, key)
	return hash, &c.shards[hash>>c.shift]
}

// lifetime is how long an entry lives: after an access, and in all.
type lifetime struct{ ttl, most int64 }

// sliding is the lifetime of a value that expires after TTL without an access.
func (c *LRU[K, V]) sliding() lifetime {
	ttl := c.opts.TTL
	if ttl < 0 {
		ttl = never
	}
	return lifetime{int64(ttl), int64(c.opts.MaxAge)}
}

// fixed is the lifetime of a value that no access extends.
func (c *LRU[K, V]) fixed(life time.Duration) lifetime {
	if life == 0 {
		return c.sliding()
	}
	if life < 0 {
		life = never
	}
	return lifetime{int64(life), int64(life)}
}

// entry makes an entry whose life begins now.
func (c *LRU[K, V]) entry(hash uint64, key K, value V, life lifetime) (e *entry[K, V], now int64) {
	now = c.clock.now()
	e = &entry[K, V]{hash: hash, key: key, value: value, ttl: life.ttl, latest: later(now, life.most)}
	e.expires.Store(min(later(now, e.ttl), e.latest))
	return e, now
}

// get returns the live entry of a key, or nil. It counts an access, and a hit or a miss.
func (c *LRU[K, V]) get(s *shard[K, V], hash uint64, key K) *entry[K, V] {
	e, sure := s.table.peek(hash, key)
	hot := false
	if e != nil {
		hot, sure = c.access(s, e)
	}
	if !sure {
		s.flights.Lock()
		e, hot = c.getLocked(s, hash, key)
		c.unlock(s)
	}
	if e == nil {
		c.miss(hash, key)
	} else {
		c.hit(hash, key, hot)
	}
	return e
}

// getLocked returns the live entry of a key, or nil, and counts an access. It takes the lock,
// so that no other goroutine removes the entry. It removes an expired entry.
func (c *LRU[K, V]) getLocked(s *shard[K, V], hash uint64, key K) (e *entry[K, V], hot bool) {
	e = s.table.find(hash, key)
	for e != nil {
		if hot, ok := c.access(s, e); ok {
			return e, hot
		}
		if e.lapse(c.clock.now()) {
			s.remove(e, ReasonExpired)
			break
		}
	}
	return nil, false
}

// access extends the life of e and counts the access, unless e has expired.
func (c *LRU[K, V]) access(s *shard[K, V], e *entry[K, V]) (hot, ok bool) {
	at := e.expires.Load()
	now := int64(gone)
	if at != never {
		now = c.clock.now()
	}
	if at <= now {
		return false, false
	}
	hot, warmed := c.heat.use(&e.uses)
	if warmed {
		s.policy.hot.Add(1)
	}
	if at != never {
		life := e.ttl
		if hot {
			life = max(life, int64(c.opts.HotTTL))
		}
		e.prolong(now, life)
	}
	return hot, true
}
