package sqlitewriter

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// Signals that a writer raises on [Options.Sink]. The key is [Options.Name]. No signal has
// SQL in it.
const (
	// SignalWriting: writes wait, and their transaction begins as soon as other processes allow it.
	SignalWriting = "write.start"
	// SignalWritten: a transaction is committed. See [Written].
	SignalWritten = "write.done"
	// SignalFailed: a write failed. See [Failed].
	SignalFailed = "write.error"
	// SignalReopened: the connection of the writer was broken, and is opened again.
	SignalReopened = "write.reopened"

	// Signals of [Read]. Their key is that of the value. The first three are sampled.
	SignalHit         = lru.SignalHit         // the value was there
	SignalHot         = lru.SignalHot         // the same, and it is used often
	SignalMiss        = lru.SignalMiss        // it was not
	SignalEvicted     = lru.SignalEvicted     // it made room for another
	SignalExpired     = lru.SignalExpired     // it has expired
	SignalInvalidated = lru.SignalInvalidated // by a write, Invalidate or InvalidateOn
	SignalCleared     = lru.SignalCleared     // all values were, by InvalidateOn; no key
)

// CommandInvalidate and ":" and a key is the name of the signal that makes [Read] load the
// key again. See [Options.InvalidateOn].
const CommandInvalidate = "cache.invalidate"

// signals lists those that are raised.
var signals = []string{
	SignalWriting, SignalWritten, SignalFailed, SignalReopened,
	SignalHit, SignalHot, SignalMiss, SignalEvicted, SignalExpired, SignalInvalidated, SignalCleared,
}

// Kinds of the signals that carry a payload.
var (
	Written = core.NewKind[Group](SignalWritten)
	Failed  = core.NewKind[error](SignalFailed)
)

// A Group describes the writes of one transaction.
type Group struct {
	Writes   int           `json:"writes"`   // calls of Exec and Batch, or one Tx
	Failed   int           `json:"failed"`   // of these, how many are not in the transaction
	Rows     int64         `json:"rows"`     // changed, as SQLite counts them
	Duration time.Duration `json:"duration"` // of the transaction
}
