package persistentwindow

import (
	"log/slog"
	"slices"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals that a window raises on its sink. The key is [Options.Name]. They are never stored.
const (
	SignalInitialized = "window.initialized" // the window is open
	SignalLoaded      = "window.load.done"   // see [Loaded]
	SignalFlushed     = "window.flush.done"  // see [Flushed]
	SignalFailed      = "window.flush.error" // a flush failed; see [Failed]
	SignalLost        = "window.lost"        // signals were dropped because too many wait; see [Lost]
)

// Kinds of the signals with a payload.
var (
	Loaded  = signals.NewKind[int](SignalLoaded)   // how many signals Open has restored
	Flushed = signals.NewKind[int](SignalFlushed)  // how many signals and retractions are on the disk now
	Failed  = signals.NewKind[error](SignalFailed) // the error of a flush; signals that are not written wait for the next one
	Lost    = signals.NewKind[int](SignalLost)     // how many signals and retractions were dropped since the previous flush
)

// ownSignals are the signals of windows and of sqlitewriter. If they were stored, each flush would
// cause another one.
var ownSignals = []string{
	SignalInitialized, SignalLoaded, SignalFlushed, SignalFailed, SignalLost,
	sqlitewriter.SignalWriting, sqlitewriter.SignalWritten, sqlitewriter.SignalFailed, sqlitewriter.SignalReopened,
}

func isStorable(s signals.Signal) bool { return !s.Held && !slices.Contains(ownSignals, s.Name) }

// Stats are the counters of a window. They are read at the same moment. Then
//
//	Noted = Pending + Running + Written + Lost
//
// Each of these five counts signals and retractions.
type Stats struct {
	Noted   uint64 `json:"noted"`   // all
	Written uint64 `json:"written"` // on the disk
	Lost    uint64 `json:"lost"`    // signals and retractions dropped, because more than MaxQueued waited
	Pending int    `json:"pending"` // signals and retractions that wait for a flush
	Running int    `json:"running"` // being written

	Restored int    `json:"restored"` // signals restored by Open
	Skipped  uint64 `json:"skipped"`  // signals left out because of SampleRate
	Failed   uint64 `json:"failed"`   // flushes that did not write everything
	Closed   bool   `json:"closed"`
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }
