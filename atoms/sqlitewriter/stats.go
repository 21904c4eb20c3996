package sqlitewriter

import (
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// Stats are the counters of a file, which all of its handles in the process share. The
// counters of writes are read at the same moment, at which
//
//	Enqueued = Pending + Running + Succeeded + Failed + Cancelled
//
// A write is a call of Exec, Batch or Tx.
type Stats struct {
	Enqueued  uint64 `json:"enqueued"`  // writes that were accepted
	Succeeded uint64 `json:"succeeded"` // are committed
	Failed    uint64 `json:"failed"`    // stored nothing
	Cancelled uint64 `json:"cancelled"` // the same, because their context ended, or Stop or Close came first
	Pending   int    `json:"pending"`   // wait for their transaction
	Running   int    `json:"running"`   // are in a transaction

	Rejected uint64 `json:"rejected"` // writes that were never accepted
	Groups   uint64 `json:"groups"`   // transactions that were committed
	Retried  uint64 `json:"retried"`  // transactions that were tried again because one of their writes failed
	Reopened uint64 `json:"reopened"` // connections of the writer that were replaced
	Handles  int    `json:"handles"`  // open handles of the file
	Closed   bool   `json:"closed"`   // the handle that was asked takes no more writes

	Cache lru.Stats `json:"cache"` // of the values of Read
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }
