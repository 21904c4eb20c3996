package lru

import "sync"

// shard is a part of the cache with a lock of its own. An entry is in the table, by
// which it is found, and in a queue of the policy.
type shard[K comparable, V any] struct {
	table table[K, V]

	mu      sync.Mutex
	policy  policy[K, V]
	sweeper sweeper
	flights map[K]*flight[V] // loads whose result will be stored

	loads, loadFailures                   uint64
	evictions, expirations, invalidations uint64

	_ cacheLine // and then the table of the next shard
}

// removal is an entry that has left, of which OnRemoved and the sink are to be told
// when the lock is released.
type removal[K comparable, V any] struct {
	*entry[K, V]
	reason Reason
}

// removals is nil if nobody wants to know.
type removals[K comparable, V any] []removal[K, V]

func (r *removals[K, V]) add(e *entry[K, V], reason Reason) {
	if r != nil {
		*r = append(*r, removal[K, V]{e, reason})
	}
}

func (s *shard[K, V]) init(capacity int, h heat) {
	s.policy.init(capacity, h)
	s.sweeper.first = never
}

// put stores e. A hot entry that it replaces passes its heat on.
func (s *shard[K, V]) put(e *entry[K, V], now, hotTTL int64, out *removals[K, V]) {
	old := s.table.find(e.hash, e.key)
	if old != nil && old.lapse(now) {
		s.remove(old, ReasonExpired, out)
		old = nil
	}
	if old == nil {
		s.insert(e, now, out)
		return
	}
	old.expires.Store(gone)
	uses := leave(&old.uses)
	e.uses.Store(uses | usedMark)
	if s.policy.heat.hot(uses) {
		e.prolong(now, hotTTL)
	}
	s.sweeper.expect(e.expires.Load())
	s.policy.replace(old, e)
	s.table.replace(old, e)
	out.add(old, ReasonReplaced)
}

// insert stores the entry of a key that has none.
func (s *shard[K, V]) insert(e *entry[K, V], now int64, out *removals[K, V]) {
	s.sweep(now, out)
	e.uses.Store(1)
	if s.policy.heat.hot(1) {
		s.policy.hot.Add(1)
	}
	s.sweeper.expect(e.expires.Load())
	if victim := s.policy.admit(e, now); victim != nil {
		reason := ReasonEvicted
		if victim.expires.Swap(gone) <= now {
			reason = ReasonExpired
		}
		s.left(victim, reason, out)
	}
	s.table.insert(e)
}

// remove takes out an entry whose life has ended.
func (s *shard[K, V]) remove(e *entry[K, V], reason Reason, out *removals[K, V]) {
	s.policy.remove(e)
	s.left(e, reason, out)
}

// left does the rest for an entry that is in no queue any more.
func (s *shard[K, V]) left(e *entry[K, V], reason Reason, out *removals[K, V]) {
	s.table.remove(e)
	if s.policy.heat.hot(leave(&e.uses)) {
		s.policy.hot.Add(-1)
	}
	switch reason {
	case ReasonEvicted:
		s.evictions++
	case ReasonExpired:
		s.expirations++
	case ReasonInvalidated:
		s.invalidations++
	}
	out.add(e, reason)
}

// invalidate removes the entry of a key, and reports whether there was one. A load
// that is under way will not be stored.
func (s *shard[K, V]) invalidate(hash uint64, key K, now int64, out *removals[K, V]) bool {
	s.forget(key)
	e := s.table.find(hash, key)
	switch {
	case e == nil:
		return false
	case e.expires.Swap(gone) <= now:
		s.remove(e, ReasonExpired, out)
		return false
	}
	s.remove(e, ReasonInvalidated, out)
	return true
}

// clear removes everything.
func (s *shard[K, V]) clear(now int64, out *removals[K, V]) {
	s.flights = nil
	defer s.table.clear()
	s.sweeper = sweeper{first: never}
	for _, q := range []*queue[K, V]{&s.policy.small, &s.policy.main} {
		for q.oldest != nil {
			e := q.oldest
			reason := ReasonInvalidated
			if e.expires.Swap(gone) <= now {
				reason = ReasonExpired
			}
			s.remove(e, reason, out)
		}
	}
}

// find is for those who do not hold the lock.
func (s *shard[K, V]) find(hash uint64, key K) *entry[K, V] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.find(hash, key)
}

// addTo adds the counters of the shard.
func (s *shard[K, V]) addTo(stats *Stats) {
	stats.Size += s.len()
	stats.Hot += int(max(0, s.policy.hot.Load()))
	stats.Loads += s.loads
	stats.LoadFailures += s.loadFailures
	stats.Evictions += s.evictions
	stats.Expirations += s.expirations
	stats.Invalidations += s.invalidations
}

// entries returns all that is stored.
func (s *shard[K, V]) entries() []*entry[K, V] {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*entry[K, V], 0, s.len())
	for _, q := range []*queue[K, V]{&s.policy.small, &s.policy.main} {
		for e := q.oldest; e != nil; e = e.newer {
			list = append(list, e)
		}
	}
	return list
}

func (s *shard[K, V]) len() int { return s.policy.small.n + s.policy.main.n }
