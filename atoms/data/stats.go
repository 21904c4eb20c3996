package data

import (
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core"
)

// Stats are the counters of a store. Those of calls are read at the same moment, at which
//
//	Calls = Running + Succeeded + Failed
//
// A request by signal that has started counts as a call, too.
type Stats struct {
	Calls     uint64 `json:"calls"`     // of methods that use the engine, not counting those after Close
	Succeeded uint64 `json:"succeeded"` // returned without an error
	Failed    uint64 `json:"failed"`    // returned an error, or panicked in a function of their caller
	Running   int    `json:"running"`   // have not returned

	// Requests are those of the requests by signal. Rejected are those that were
	// dropped because MaxQueued requests were waiting, or the intake was closed.
	Requests core.Stats `json:"requests"`
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }
