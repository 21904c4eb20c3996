package slidingcache

import (
	"iter"

	"github.com/ephemeralgo/ephemeral/core"
)

// Stats are the counters of a cache.
//
//	calls of Get and GetIfPresent = Hits + Absences + Misses
//
// Shared and Stale are each at most Misses. RefreshFailures is at most Refreshes, and Size
// at most [Options.Capacity]. The counters of Loads are read at one moment. Shared, Stale, Refreshes,
// RefreshFailures, Discarded and Invalidations are also read at one moment. The others are
// read one after the other.
type Stats struct {
	Size int `json:"size"` // keys, including expired ones that are not removed yet
	Hot  int `json:"hot"`  // keys with five recent accesses or more; they live no longer than others

	Hits     uint64 `json:"hits"`     // calls that found a value
	Absences uint64 `json:"absences"` // calls that found that the key has no value; see NegativeTTL
	Misses   uint64 `json:"misses"`   // calls that found nothing
	Shared   uint64 `json:"shared"`   // misses that waited for a load that had begun before
	Stale    uint64 `json:"stale"`    // misses that got an expired value because the load failed

	Loads           core.Stats `json:"loads"`           // loads, including refreshes; a load that finds no value has succeeded
	Refreshes       uint64     `json:"refreshes"`       // loads in the background, including those that have not begun
	RefreshFailures uint64     `json:"refreshFailures"` // refreshes that failed, or were cancelled before or after they began
	Discarded       uint64     `json:"discarded"`       // loads whose result was not stored: the key was set or removed, or all callers had left

	Evictions     uint64 `json:"evictions"`     // records that made room for others
	Expirations   uint64 `json:"expirations"`   // records that had expired and were removed
	Invalidations uint64 `json:"invalidations"` // values removed by Remove and InvalidateOn, one by one
}

// counts are the counters of a shard. Guarded by its lock.
type counts struct {
	shared, stale, refreshes, refreshFailures, discarded, invalidated uint64
}

// Name is [Options.Name], or its default.
func (c *Cache[K, V]) Name() string { return c.opts.Name }

// Stats returns the counters of the cache.
func (c *Cache[K, V]) Stats() Stats {
	s := Stats{Loads: c.loads.Stats()}
	for i := range c.shards {
		c.shards[i].mu.Lock()
	}
	for i := range c.shards {
		n := &c.shards[i].counts
		s.Shared += n.shared
		s.Stale += n.stale
		s.Refreshes += n.refreshes
		s.RefreshFailures += n.refreshFailures
		s.Discarded += n.discarded
		s.Invalidations += n.invalidated
	}
	for i := range c.shards {
		c.shards[i].mu.Unlock()
	}
	store := c.store.Stats()
	corrected := func(n uint64, by int64) uint64 { return uint64(max(0, int64(n)+by)) }
	s.Size, s.Hot = store.Size, store.Hot
	s.Hits = corrected(store.Hits, c.adjust.hits.Load())
	s.Misses = corrected(store.Misses, c.adjust.misses.Load())
	s.Absences = uint64(c.adjust.absences.Load())
	s.Evictions, s.Expirations = store.Evictions, store.Expirations
	return s
}

// Loads walks the loads that q selects, as operations, in the order in which callers asked for
// them. It shows loads that wait for their turn, run, wait for other loads, or ended not long
// ago. Key is the text of the cache's key. Lane is "needed" if another load has asked for the
// load, otherwise "loads" or "refreshes".
func (c *Cache[K, V]) Loads(q core.OperationQuery) iter.Seq[core.Snapshot] {
	return c.loads.Operations(q)
}

// Explain says why a load waits: for its turn, or, after it has begun, for another load.
func (c *Cache[K, V]) Explain(id core.OperationID) (core.Explanation, bool) {
	return c.loads.Explain(id)
}
