package slidingcache

import (
	"encoding/json"
	"iter"
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core"
)

// Stats are the counters of a cache. Every Get and GetIfPresent is one of Hits,
// Absences and Misses. Loads is read as one cut, and so are the counters below it up
// to Discarded; the others are exact as well, but read one after the other.
type Stats struct {
	Size    int `json:"size"`    // keys, expired ones that nobody met included
	Hot     int `json:"hot"`     // of these, with five accesses or more, less what has cooled off
	MaxSize int `json:"maxSize"` // [Options.MaxSize]

	Hits     uint64 `json:"hits"`     // a value was there
	Absences uint64 `json:"absences"` // it was remembered that there is none
	Misses   uint64 `json:"misses"`   // neither
	Shared   uint64 `json:"shared"`   // of the misses, how many waited for a load that was under way
	Stale    uint64 `json:"stale"`    // of the misses, how many got an expired value because the load failed

	Loads           core.Stats `json:"loads"`           // what became of the loads, refreshes included; one that finds no value has succeeded
	Nested          uint64     `json:"nested"`          // loads that another load has run itself; those that waited for their turn until then are cancelled in Loads, others not in it
	Refreshes       uint64     `json:"refreshes"`       // of the loads, how many nobody waited for
	RefreshFailures uint64     `json:"refreshFailures"` // of these, how many returned an error, panicked or were cancelled, also before they began
	Discarded       uint64     `json:"discarded"`       // loads whose result was not stored, because the key was set or invalidated, or nobody waited any more

	Evictions     uint64 `json:"evictions"`     // records that left for others
	Expirations   uint64 `json:"expirations"`   // records removed because their time was over
	Invalidations uint64 `json:"invalidations"` // values removed by Invalidate and InvalidateOn, one by one
}

// counts are what a shard counts. Guarded by its lock.
type counts struct {
	shared, stale, nested, refreshes, refreshFailures, discarded, invalidated uint64
}

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
		s.Nested += n.nested
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
	s.Size, s.Hot, s.MaxSize = store.Size, store.Hot, store.Capacity
	s.Hits = corrected(store.Hits, c.adjust.hits.Load())
	s.Misses = corrected(store.Misses, c.adjust.misses.Load())
	s.Absences = uint64(c.adjust.absences.Load())
	s.Evictions, s.Expirations = store.Evictions, store.Expirations
	return s
}

// LogValue groups all counters.
func (s Stats) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("size", s.Size), slog.Int("hot", s.Hot), slog.Int("maxSize", s.MaxSize),
		slog.Uint64("hits", s.Hits), slog.Uint64("absences", s.Absences), slog.Uint64("misses", s.Misses),
		slog.Uint64("shared", s.Shared), slog.Uint64("stale", s.Stale),
		slog.Any("loads", s.Loads), slog.Uint64("nested", s.Nested),
		slog.Uint64("refreshes", s.Refreshes), slog.Uint64("refreshFailures", s.RefreshFailures),
		slog.Uint64("discarded", s.Discarded),
		slog.Uint64("evictions", s.Evictions), slog.Uint64("expirations", s.Expirations),
		slog.Uint64("invalidations", s.Invalidations),
	)
}

// String is the JSON form.
func (s Stats) String() string {
	text, _ := json.Marshal(s)
	return string(text)
}

// Loads walks the loads that q selects, as operations: those that wait for their
// turn, run, or have ended not long ago, in the order in which they were asked for.
// Their Key is the text of the cache's key, and their Lane "loads" or "refreshes". A
// load that another load has run itself is not among them.
func (c *Cache[K, V]) Loads(q core.OperationQuery) iter.Seq[core.Snapshot] {
	return c.loads.Operations(q)
}

// Lookup returns what is known of a load.
func (c *Cache[K, V]) Lookup(id core.OperationID) (core.Snapshot, bool) { return c.loads.Lookup(id) }

// Explain says why a load waits: for its turn, or, if it runs, for what else.
func (c *Cache[K, V]) Explain(id core.OperationID) (core.Explanation, bool) {
	return c.loads.Explain(id)
}
