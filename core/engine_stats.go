package core

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
)

// Stats are a coordinator's counters, all read at the same moment. They always add up:
//
//	Enqueued = Pending + Running + Suspended + Succeeded + Failed + Cancelled + Refused + Dropped
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
	Suspended int    `json:"suspended"` // their bodies wait, without a slot if MaxSuspended allows it: see [Operation.Suspend]

	Rejected uint64 `json:"rejected"` // items that were never accepted
	Overflow uint64 `json:"overflow"` // items that operations enqueued beyond MaxQueued
	Limit    int    `json:"limit"`    // how many may run at once
	Tracked  int    `json:"tracked"`  // finished operations in the window
	Pinned   int    `json:"pinned"`   // operations that pins keep in the window

	Forced         uint64 `json:"forced"`         // started although DeferOn matched: see MaxDefer
	SignalsDropped uint64 `json:"signalsDropped"` // signals beyond the 1,000 that one operation shows
	Panics         uint64 `json:"panics"`         // of callbacks, not of bodies

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
// group of its exported fields under their JSON names. It leaves out slices, maps, and
// fields whose JSON name is "-". Fields of an embedded struct are part of the group.
func StatsValue(stats any) slog.Value {
	return slog.GroupValue(statsFields(nil, reflect.ValueOf(stats))...)
}

func statsFields(fields []slog.Attr, v reflect.Value) []slog.Attr {
	for field, value := range v.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && value.Kind() == reflect.Struct:
			fields = statsFields(fields, value)
			continue
		case !field.IsExported() || name == "-" || value.Kind() == reflect.Slice || value.Kind() == reflect.Map:
			continue
		case name == "":
			name = field.Name
		}
		fields = append(fields, slog.Any(name, value.Interface()))
	}
	return fields
}

// groupWith is a group of attributes, and of more whose values are not zero.
func groupWith(attrs []slog.Attr, more ...slog.Attr) slog.Value {
	for _, a := range more {
		if !reflect.ValueOf(a.Value.Any()).IsZero() {
			attrs = append(attrs, a)
		}
	}
	return slog.GroupValue(attrs...)
}

// StatsString is the String of a struct of counters: its JSON form.
func StatsString(stats any) string {
	text, err := json.Marshal(stats)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
