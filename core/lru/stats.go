package lru

// Stats are the counters of a cache.
//
//	calls of Get and GetOrLoad = Hits + Misses
//
// All except Hits, Misses and Panics are read at one moment. Then Size is at most
// Capacity, Hot at most Size, and LoadFailures at most Loads. Hits and Misses are counted
// without a lock and read right after the others.
type Stats struct {
	Size     int `json:"size"`     // entries, including expired ones that are not removed yet
	Hot      int `json:"hot"`      // of these, entries with [Options.HotAfter] accesses or more
	Capacity int `json:"capacity"` // [Options.Capacity]

	Hits   uint64 `json:"hits"`
	Misses uint64 `json:"misses"`

	Loads        uint64 `json:"loads"`        // calls of load functions
	LoadFailures uint64 `json:"loadFailures"` // of these, how many returned an error or panicked

	Evictions     uint64 `json:"evictions"`     // entries that made room for others
	Expirations   uint64 `json:"expirations"`   // entries that have expired and are removed
	Invalidations uint64 `json:"invalidations"` // entries removed by Remove and Clear
	Panics        uint64 `json:"panics"`        // of OnRemoved
}
