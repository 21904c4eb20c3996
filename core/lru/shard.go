package lru

import "github.com/ephemeralgo/ephemeral/core/flight"

// shard is a part of the cache with its own lock. An entry is in three places: the table
// finds it, a queue of the policy decides when it is evicted, and deadlines when it
// expires.
type shard[K comparable, V any] struct {
	table table[K, V]

	flights   flight.Group[K, V] // loads whose result will be stored; its lock guards the shard
	policy    policy[K, V]
	deadlines deadlines[K, V]

	hotTTL       int64
	keepsRemoved bool // keep removed entries for the sink or OnRemoved
	removed      []removal[K, V]

	loads, loadFailures uint64
	removals            [ReasonReplaced + 1]uint64 // by reason

	_ cacheLine // separates it from the next shard's table
}

// removal is an entry that was removed. The sink and OnRemoved get it after the lock is
// released.
type removal[K comparable, V any] struct {
	*entry[K, V]
	reason Reason
}

// put stores e. If e replaces an entry, e inherits the count of accesses.
func (s *shard[K, V]) put(e *entry[K, V], now int64) {
	old := s.table.find(e.hash, e.key)
	if old != nil && old.lapse(now) {
		s.remove(old, ReasonExpired)
		old = nil
	}
	if old == nil {
		s.insert(e, now)
		return
	}
	old.expires.Store(gone)
	uses := leave(&old.uses)
	e.uses.Store(uses | usedMark)
	if s.policy.heat.hot(uses) {
		e.prolong(now, s.hotTTL)
	}
	s.policy.in(old).replace(old, e)
	s.deadlines.replace(old, e)
	s.table.replace(old, e)
	s.note(old, ReasonReplaced)
}

// insert stores e, whose key has no entry.
func (s *shard[K, V]) insert(e *entry[K, V], now int64) {
	for s.sweep(now, sweepLooks) && s.policy.full() {
	}
	e.uses.Store(1)
	if s.policy.heat.hot(1) {
		s.policy.hot.Add(1)
	}
	if victim := s.policy.admit(e); victim != nil {
		s.left(victim, victim.end(now, ReasonEvicted))
	}
	s.deadlines.add(e)
	s.table.insert(e, s.len())
}

// remove takes out an entry that was set to gone.
func (s *shard[K, V]) remove(e *entry[K, V], reason Reason) {
	s.policy.in(e).remove(e)
	s.left(e, reason)
}

// left finishes the removal of an entry that has left its queue.
func (s *shard[K, V]) left(e *entry[K, V], reason Reason) {
	s.deadlines.remove(e)
	s.table.remove(e)
	if s.policy.heat.hot(leave(&e.uses)) {
		s.policy.hot.Add(-1)
	}
	s.note(e, reason)
}

// note counts a removal, and keeps it for unlock.
func (s *shard[K, V]) note(e *entry[K, V], reason Reason) {
	s.removals[reason]++
	if s.keepsRemoved {
		s.removed = append(s.removed, removal[K, V]{e, reason})
	}
}

// invalidate removes the entry of a key and returns it, or nil if there was none. The result
// of a load that is under way will not be stored.
func (s *shard[K, V]) invalidate(hash uint64, key K, now int64) *entry[K, V] {
	s.flights.Delete(key)
	e := s.table.find(hash, key)
	if e == nil {
		return nil
	}
	reason := e.end(now, ReasonInvalidated)
	s.remove(e, reason)
	if reason == ReasonExpired {
		return nil
	}
	return e
}

// clear removes everything.
func (s *shard[K, V]) clear(now int64) {
	s.flights.Table = flight.Table[K, flight.Call[V]]{}
	for _, e := range s.entries() {
		s.remove(e, e.end(now, ReasonInvalidated))
	}
	s.deadlines = nil
	s.table.clear()
}

// live returns the entry of a key, unless it has expired. It takes the lock, which keeps
// other goroutines from replacing the entry meanwhile.
func (s *shard[K, V]) live(hash uint64, key K, clock clock) *entry[K, V] {
	s.flights.Lock()
	defer s.flights.Unlock()
	e := s.table.find(hash, key)
	if e != nil && e.lapse(clock.now()) {
		return nil
	}
	return e
}

// entries returns all that is stored. The lock is held.
func (s *shard[K, V]) entries() []*entry[K, V] {
	list := make([]*entry[K, V], 0, s.len())
	for _, q := range []*queue[K, V]{&s.policy.small, &s.policy.main} {
		for e := q.oldest; e != nil; e = e.newer {
			list = append(list, e)
		}
	}
	return list
}

func (s *shard[K, V]) len() int { return len(s.deadlines) }

// unlock releases the lock and returns what was removed while it was held.
func (s *shard[K, V]) unlock() (removed []removal[K, V]) {
	removed, s.removed = s.removed, nil
	s.flights.Unlock()
	return removed
}
