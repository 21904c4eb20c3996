// This file decides what is counted.

package core

import (
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core/internal/logtext"
)

// Stats are a coordinator's counters, all read at the same moment. They always add up:
//
//	Enqueued = Pending + Running + Suspended + Succeeded + Failed + Cancelled + Refused + Dropped
type Stats struct {
	// Results of the accepted items.
	Enqueued  uint64 `json:"enqueued"`
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`
	Cancelled uint64 `json:"cancelled"`
	Refused   uint64 `json:"refused"`
	Dropped   uint64 `json:"dropped"`
	Pending   int    `json:"pending"`
	Running   int    `json:"running"`
	Suspended int    `json:"suspended"` // operations that wait in their bodies, most without a slot: see [Operation.Suspend]

	Rejected uint64 `json:"rejected"` // items that were never accepted
	Overflow uint64 `json:"overflow"` // items that operations enqueued beyond MaxQueued
	Limit    int    `json:"limit"`    // how many may run at once
	Stuck    int    `json:"stuck"`    // of those that run or are suspended: see [Options.StuckAfter]
	Tracked  int    `json:"tracked"`  // finished operations in the window
	Pinned   int    `json:"pinned"`   // operations that pins keep in the window

	Forced         uint64 `json:"forced"`         // operations that started although DeferOn matched: see MaxDefer
	SignalsDropped uint64 `json:"signalsDropped"` // signals beyond the 1,000 that one operation shows
	Panics         uint64 `json:"panics"`         // panics of callbacks, not of bodies

	Shadow ShadowStats `json:"shadow,omitzero"` // of Options.Shadow

	Paused bool `json:"paused"`
	Closed bool `json:"closed"` // takes no more items

	Lanes   []LaneStats  `json:"lanes,omitempty"`   // highest first
	Classes []ClassStats `json:"classes,omitempty"` // as in Options.Classes
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return StatsString(s) }

// StatsValue is the LogValue of a struct of counters, such as the Stats of a module: a
// group of its exported fields under their JSON names. It leaves out slices, maps,
// fields whose JSON name is "-", and fields that are zero and have omitzero. Fields of an embedded struct are part of the group.
func StatsValue(stats any) slog.Value {
	return logtext.StatsValue(stats)
}

// StatsString is the String of a struct of counters: its JSON form.
func StatsString(stats any) string {
	return logtext.StatsString(stats)
}
