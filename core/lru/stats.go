package lru

import (
	"encoding/json"
	"log/slog"
)

// Stats are the counters of a cache. What is stored, and what became of it, is read
// as one cut; hits and misses are counted without a lock and read right after it.
type Stats struct {
	Size     int `json:"size"`     // entries, expired ones that nobody met included
	Hot      int `json:"hot"`      // hot ones of them
	Capacity int `json:"capacity"` // [Options.Capacity]

	Hits   uint64 `json:"hits"`
	Misses uint64 `json:"misses"`

	Loads        uint64 `json:"loads"`        // calls of load functions
	LoadFailures uint64 `json:"loadFailures"` // of these, how many returned an error, panicked or were abandoned

	Evictions     uint64 `json:"evictions"`     // entries that left for others
	Expirations   uint64 `json:"expirations"`   // entries whose time was over
	Invalidations uint64 `json:"invalidations"` // entries removed by Invalidate and Clear
	Panics        uint64 `json:"panics"`        // of OnRemoved
}

// LogValue groups all counters.
func (s Stats) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("size", s.Size), slog.Int("hot", s.Hot), slog.Int("capacity", s.Capacity),
		slog.Uint64("hits", s.Hits), slog.Uint64("misses", s.Misses),
		slog.Uint64("loads", s.Loads), slog.Uint64("loadFailures", s.LoadFailures),
		slog.Uint64("evictions", s.Evictions), slog.Uint64("expirations", s.Expirations),
		slog.Uint64("invalidations", s.Invalidations), slog.Uint64("panics", s.Panics),
	)
}

// String is the JSON form.
func (s Stats) String() string {
	text, _ := json.Marshal(s)
	return string(text)
}
