package sqlitewriter

import (
	"log/slog"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// Signals that a writer raises on [Options.Sink]. The key is [Options.Name]. No signal has
// SQL in it.
const (
	// SignalWriting: writes wait, and their transaction begins when no other process writes.
	SignalWriting = "write.start"
	// SignalWritten: a transaction is committed. See [Written].
	SignalWritten = "write.done"
	// SignalFailed: a write failed. See [Failed].
	SignalFailed = "write.error"
	// SignalReopened: the connection of the writer was broken, and is opened again.
	SignalReopened = "write.reopened"

	// Signals of [Read]. Their key is that of the value.
	SignalHit         = lru.SignalHit         // the value was there
	SignalHot         = lru.SignalHot         // the value was there, and is used often
	SignalMiss        = lru.SignalMiss        // the value was not there
	SignalEvicted     = lru.SignalEvicted     // the value made room for another
	SignalExpired     = lru.SignalExpired     // the value has expired
	SignalInvalidated = lru.SignalInvalidated // by a write, Invalidate or InvalidateOn
	SignalCleared     = lru.SignalCleared     // InvalidateOn has removed all values; no key
)

// CommandInvalidate is the first part of a signal's name. The signal CommandInvalidate + ":" +
// key makes [Read] load the key again. See [Options.InvalidateOn].
const CommandInvalidate = "cache.invalidate"

// Kinds of the signals with a payload.
var (
	Written = core.NewKind[Group](SignalWritten)
	Failed  = core.NewKind[error](SignalFailed)
)

// A Group describes the writes of one transaction.
type Group struct {
	Writes   int           `json:"writes"`   // calls of Exec and Batch, or one Tx
	Failed   int           `json:"failed"`   // writes that are not in the transaction
	Duration time.Duration `json:"duration"` // of the transaction
}

// Stats are the counters of a handle and its file. A write is a call of Exec, Batch or Tx. The
// counters of writes are read at one moment, at which
//
//	Enqueued = Pending + Succeeded + Failed
type Stats struct {
	Enqueued  uint64 `json:"enqueued"`  // writes of the handle that were accepted
	Pending   int    `json:"pending"`   // writes that have not returned
	Succeeded uint64 `json:"succeeded"` // writes that are committed
	Failed    uint64 `json:"failed"`    // writes that have returned an error
	Closed    bool   `json:"closed"`    // the handle takes no more writes

	Groups uint64    `json:"groups"` // transactions of the file that were committed
	Cache  lru.Stats `json:"cache"`  // of the values of Read, of the file
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }
