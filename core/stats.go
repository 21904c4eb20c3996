package core

import (
	"encoding/json"
	"log/slog"
)

// Stats are a coordinator's counters, read as one cut, so that at every instant
//
//	Enqueued = Pending + Running + Succeeded + Failed + Cancelled + Refused + Dropped
type Stats struct {
	// What became of the items that were accepted.
	Enqueued  uint64 `json:"enqueued"`
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`
	Cancelled uint64 `json:"cancelled"`
	Refused   uint64 `json:"refused"`
	Dropped   uint64 `json:"dropped"`
	Pending   int    `json:"pending"`
	Running   int    `json:"running"`

	Rejected uint64 `json:"rejected"` // items that were never accepted
	Limit    int    `json:"limit"`    // how many may run at once
	Tracked  int    `json:"tracked"`  // finished operations in the window
	Pinned   int    `json:"pinned"`   // operations somebody keeps there

	Forced         uint64 `json:"forced"`         // run in spite of DeferOn: see MaxDefer
	SignalsDropped uint64 `json:"signalsDropped"` // beyond what one operation shows
	Panics         uint64 `json:"panics"`         // of callbacks, not of bodies

	Paused bool `json:"paused"`
	Closed bool `json:"closed"` // takes no more items

	Lanes []LaneStats `json:"lanes,omitempty"` // highest first
}

// LogValue groups all counters.
func (s Stats) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Uint64("enqueued", s.Enqueued), slog.Int("pending", s.Pending), slog.Int("running", s.Running),
		slog.Uint64("succeeded", s.Succeeded), slog.Uint64("failed", s.Failed),
		slog.Uint64("cancelled", s.Cancelled), slog.Uint64("refused", s.Refused),
		slog.Uint64("dropped", s.Dropped), slog.Uint64("rejected", s.Rejected), slog.Int("limit", s.Limit),
	)
}

// String is the JSON form.
func (s Stats) String() string {
	text, _ := json.Marshal(s)
	return string(text)
}
