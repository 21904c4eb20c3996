package persistentwindow

import (
	"slices"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// SignalInitialized: the window is open. A window raises it and the next four on its sink, with
// [Options.Name] as key. They are never stored.
const SignalInitialized = "window.initialized"

// Signals with a payload.
var (
	Loaded  = signals.NewKind[int]("window.load.done")     // how many signals Open has restored
	Flushed = signals.NewKind[int]("window.flush.done")    // how many signals and retractions are on the disk now
	Failed  = signals.NewKind[error]("window.flush.error") // the error of a flush; signals that are not written wait for the next one
	Lost    = signals.NewKind[int]("window.lost")          // how many signals and retractions were dropped since the previous flush, because too many wait
)

// ownSignals are the signals of windows and of sqlitewriter. If they were stored, each flush would
// cause another one.
var ownSignals = []string{
	SignalInitialized, Loaded.Name(), Flushed.Name(), Failed.Name(), Lost.Name(),
	sqlitewriter.SignalWriting, sqlitewriter.Written.Name(), sqlitewriter.Failed.Name(), sqlitewriter.SignalReopened,
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
}
