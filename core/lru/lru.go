package lru

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"sync/atomic"
	"time"
)

// An LRU is a bounded cache from which entries go when they have not been used for
// a while, or when others need the place more. Make one with [New].
//
// All methods are safe for concurrent use, by OnRemoved, load functions and
// handlers of signals as well. A cache owns no goroutine but those that run load
// functions, and needs no closing.
type LRU[K comparable, V any] struct {
	opts   Options[K, V]
	tells  bool // somebody wants to know what leaves
	clock  clock
	seed   maphash.Seed
	heat   heat
	shift  int // of a hash, to get the shard
	shards []shard[K, V]

	_       cacheLine // what is above does not change
	panics  atomic.Uint64
	sampled atomic.Uint64
	tallies [16]tally
}

// tally counts without a lock. Keys are divided among several, so that not all
// readers write the same word.
type tally struct {
	hits, misses atomic.Uint64
	_            cacheLine
}

// Small shards cost hits, because not all of them get the same share of the keys.
const (
	entriesPerShard = 1024
	maxShardBits    = 6
)

// New makes a cache, or says what is wrong with the options. It starts nothing, and
// memory grows with what is stored.
func New[K comparable, V any](opts Options[K, V]) (*LRU[K, V], error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	shardBits := max(0, min(bits.Len(uint(opts.Capacity/entriesPerShard))-1, maxShardBits))
	c := &LRU[K, V]{
		opts:   opts,
		tells:  opts.Sink != nil || opts.OnRemoved != nil,
		clock:  newClock(),
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
		c.shards[i].init(capacity, c.heat)
	}
	return c, nil
}

// Get returns the value of key, if there is one. It counts as an access: the entry
// now expires after its TTL, or HotTTL, from now.
func (c *LRU[K, V]) Get(key K) (value V, ok bool) {
	hash, s := c.locate(key)
	e := c.get(s, hash, key)
	if e == nil {
		return value, false
	}
	return e.value, true
}

// Set stores the value of key, which expires after [Options.TTL].
func (c *LRU[K, V]) Set(key K, value V) { c.SetFor(key, value, 0) }

// SetFor stores the value of key, which expires after ttl without an access; 0
// means [Options.TTL], negative never. A load of the key that is under way does not
// overwrite it.
func (c *LRU[K, V]) SetFor(key K, value V, ttl time.Duration) {
	hash, s := c.locate(key)
	e, now := c.entry(hash, key, value, ttl)
	var removed removals[K, V]
	s.mu.Lock()
	s.forget(key)
	s.put(e, now, int64(c.opts.HotTTL), c.teller(&removed))
	s.mu.Unlock()
	c.tell(removed)
}

// Invalidate removes the value of key, and reports whether there was one. The
// result of a load that is under way will not be stored.
func (c *LRU[K, V]) Invalidate(key K) bool {
	hash, s := c.locate(key)
	now := c.clock.now()
	var removed removals[K, V]
	s.mu.Lock()
	found := s.invalidate(hash, key, now, c.teller(&removed))
	s.mu.Unlock()
	c.tell(removed)
	return found
}

// Clear removes everything. What is stored while it runs may stay. It raises
// [SignalClear] in place of a signal for each entry.
func (c *LRU[K, V]) Clear() {
	for i := range c.shards {
		s := &c.shards[i]
		now := c.clock.now()
		var removed removals[K, V]
		s.mu.Lock()
		s.clear(now, c.teller(&removed))
		s.mu.Unlock()
		for _, r := range removed {
			c.handOver(r)
		}
	}
	if c.opts.Sink != nil {
		c.opts.Sink.Raise(SignalClear)
	}
}

// Sweep removes all entries that have expired. Nobody has to call it: they are not
// served, and make room when there are others to store. But a cache that nobody
// uses holds on to them.
func (c *LRU[K, V]) Sweep() {
	for i := range c.shards {
		s := &c.shards[i]
		for bucket, more := 0, true; more; more = bucket != 0 {
			now := c.clock.now()
			var removed removals[K, V]
			s.mu.Lock()
			bucket = s.sweepFrom(bucket, now, c.teller(&removed))
			s.mu.Unlock()
			c.tell(removed)
		}
	}
}

// Len is the number of entries, [Options.Capacity] at most. It includes those that
// have expired and that nobody has met since.
func (c *LRU[K, V]) Len() int {
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += s.len()
		s.mu.Unlock()
	}
	return n
}

// All walks the entries, in no particular order, which does not count as an access.
// Every key that is there all the time is met once, with a value that it had in the
// meantime. No lock is held while the loop's body runs.
func (c *LRU[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for i := range c.shards {
			s := &c.shards[i]
			for _, e := range s.entries() {
				if e.over(c.clock.now()) { // but the key may have another value
					e = s.find(e.hash, e.key)
				}
				if e != nil && !e.over(c.clock.now()) && !yield(e.key, e.value) {
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
		c.shards[i].mu.Lock()
	}
	for i := range c.shards {
		c.shards[i].addTo(&stats)
	}
	for i := range c.shards {
		c.shards[i].mu.Unlock()
	}
	for i := range c.tallies {
		stats.Hits += c.tallies[i].hits.Load()
		stats.Misses += c.tallies[i].misses.Load()
	}
	return stats
}

// teller returns r if somebody wants to know of removals.
func (c *LRU[K, V]) teller(r *removals[K, V]) *removals[K, V] {
	if !c.tells {
		return nil
	}
	return r
}

// locate returns the hash of a key and the shard that the key belongs to.
func (c *LRU[K, V]) locate(key K) (uint64, *shard[K, V]) {
	hash := maphash.Comparable(c.seed, key)
	return hash, &c.shards[hash>>c.shift]
}

// entry makes an entry whose time begins now.
func (c *LRU[K, V]) entry(hash uint64, key K, value V, ttl time.Duration) (e *entry[K, V], now int64) {
	switch {
	case ttl == 0:
		ttl = c.opts.TTL
	case ttl < 0:
		ttl = never
	}
	now = c.clock.now()
	e = &entry[K, V]{hash: hash, key: key, value: value, ttl: int64(ttl), latest: later(now, int64(c.opts.MaxAge))}
	e.expires.Store(min(later(now, e.ttl), e.latest))
	return e, now
}

// get finds the live entry of a key, or nil, accesses it, and counts a hit or a miss.
func (c *LRU[K, V]) get(s *shard[K, V], hash uint64, key K) *entry[K, V] {
	e, hot, sure := c.peek(s, hash, key)
	if !sure {
		var removed removals[K, V]
		s.mu.Lock()
		e, hot = c.getLocked(s, hash, key, c.teller(&removed))
		s.mu.Unlock()
		c.tell(removed)
	}
	if e == nil {
		c.miss(hash, key)
	} else {
		c.hit(hash, key, hot)
	}
	return e
}

// peek finds the live entry of a key, or nil, and accesses it, without the lock. If
// it is not sure, getLocked has to tell.
func (c *LRU[K, V]) peek(s *shard[K, V], hash uint64, key K) (e *entry[K, V], hot, sure bool) {
	e, sure = s.table.peek(hash, key)
	if e == nil {
		return nil, false, sure
	}
	if hot, ok := c.access(s, e); ok {
		return e, hot, true
	}
	return nil, false, false
}

// getLocked is the same with the lock, which keeps others from ending the life of
// the entry. It removes one that has expired.
func (c *LRU[K, V]) getLocked(s *shard[K, V], hash uint64, key K, out *removals[K, V]) (e *entry[K, V], hot bool) {
	e = s.table.find(hash, key)
	for e != nil {
		if hot, ok := c.access(s, e); ok {
			return e, hot
		}
		if e.lapse(c.clock.now()) {
			s.remove(e, ReasonExpired, out)
			break
		}
	}
	return nil, false
}

// access prolongs the life of e and counts, unless its life is over.
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
