package sqlitewriter

import (
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// Stats are the counters of a file, which all of its handles in the process share. A write is a
// call of Exec, Batch or Tx. The counters of writes are read at the same moment, at which
//
//	Enqueued = Pending + Succeeded + Failed
type Stats struct {
	Enqueued  uint64 `json:"enqueued"`  // writes that were accepted
	Pending   int    `json:"pending"`   // of these, have not returned
	Succeeded uint64 `json:"succeeded"` // are committed
	Failed    uint64 `json:"failed"`    // have returned an error

	Groups uint64 `json:"groups"` // transactions that were committed
	Closed bool   `json:"closed"` // the handle that was asked takes no more writes

	Cache lru.Stats `json:"cache"` // of the values of Read
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }
