package sqlitewriter

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core/lru"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals that a writer raises on [Options.Sink]. The key is [Options.Name]. Names and keys of
// these signals contain no SQL.
const (
	// SignalWriting: writes wait, and the writer asks for the lock file.
	SignalWriting = "write.start"
	// SignalReopened: the writer's connection was broken, and is replaced.
	SignalReopened = "write.reopened"
)

// CommandInvalidate is the first part of a signal's name. The signal CommandInvalidate + ":" +
// key makes the next [Read] of the key load the value again. See [Options.InvalidateOn].
const CommandInvalidate = "cache.invalidate"

// Kinds of the signals with a payload.
var (
	// Written: at least one write of a group is committed.
	Written = signals.NewKind[Group]("write.done")
	// Failed: a write of a group failed. If no transaction can begin, because of the lock file,
	// [ErrBusy] or [ErrMoved], all writes that wait fail, and there is one signal. A write that was
	// dropped before its transaction raises nothing.
	Failed = signals.NewKind[error]("write.error")
)

// A Group describes writes that shared a transaction. If one of them failed, each had its
// own transaction. Writes that left before that do not count.
type Group struct {
	Writes   int           `json:"writes"`   // calls of Exec and Batch, or one Tx
	Failed   int           `json:"failed"`   // writes that returned an error
	Duration time.Duration `json:"duration"` // duration of the transactions; does not include the waits before the first, for the lock file and for other programs
}

// Stats are the counters of a handle and its file. A write is a call of Exec, Batch, Tx or Checkpoint. The
// counters of writes are read at the same moment. Then
//
//	Enqueued = Pending + Succeeded + Failed
type Stats struct {
	Enqueued  uint64 `json:"enqueued"`  // writes of the handle that were accepted
	Pending   int    `json:"pending"`   // writes that have not returned
	Succeeded uint64 `json:"succeeded"` // writes that are committed
	Failed    uint64 `json:"failed"`    // writes that have returned an error

	Groups uint64    `json:"groups"` // committed transactions of the file, by all handles
	Log    int64     `json:"log"`    // size of the file PATH-wal in bytes; see Checkpoint
	Cache  lru.Stats `json:"cache"`  // the values that Read keeps, of all handles
}
