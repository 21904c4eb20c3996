// This file decides what is seen of an operation.

package core

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/lists"
	"github.com/ephemeralgo/ephemeral/core/internal/logtext"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Status is where an operation is in its life:
//
//	enqueued -> pending -> running -> succeeded | failed | cancelled
//	              |          | ^
//	              |          v |
//	              |        suspended
//	              |
//	              +-> cancelled | refused | dropped
//
// Statuses may be or-ed in an [OperationQuery].
type Status uint8

const (
	StatusPending   Status = 1 << iota // accepted, waits to run
	StatusRunning                      // its body runs
	StatusSuspended                    // its body waits; its slot is given up, unless MaxSuspended does not allow that: see [Operation.Suspend]
	StatusSucceeded                    // the body returned nil
	StatusFailed                       // the body returned an error or panicked
	StatusCancelled                    // by Cancel, Stop, Close, Abort, or the end of the context of Do, of its group, or of ForEach or Map
	StatusRefused                      // kept from starting by a signal: see [RefusedError]
	StatusDropped                      // made room for a newer item: see [Options.DropOldest]

	StatusAlive    = StatusPending | StatusRunning | StatusSuspended
	StatusFinished = StatusSucceeded | StatusFailed | StatusCancelled | StatusRefused | StatusDropped
)

var statusNames = [...]string{"pending", "running", "suspended", "succeeded", "failed", "cancelled", "refused", "dropped"}

// String is the status in lower case; or-ed statuses are joined by "|".
func (s Status) String() string {
	var names []string
	for i, name := range statusNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf("Status(%d)", uint8(s))
	}
	return strings.Join(names, "|")
}

// bit is the number of the bit that is set.
func (s Status) bit() int { return bits.TrailingZeros8(uint8(s)) }

// MarshalText is String, for JSON.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote for a valid status, or for several.
func (s *Status) UnmarshalText(text []byte) error {
	var all Status
	for name := range strings.SplitSeq(string(text), "|") {
		i := slices.Index(statusNames[:], name)
		if i < 0 {
			return fmt.Errorf("core: status %q is none of %s", name, strings.Join(statusNames[:], ", "))
		}
		all |= 1 << i
	}
	*s = all
	return nil
}

// A Snapshot is the state of an operation at one moment. It does not change afterwards.
type Snapshot struct {
	ID       OperationID      `json:"id"`
	Parent   OperationID      `json:"parent,omitempty"` // the operation whose body enqueued it; 0 if none
	Item     any              `json:"-"`                // nil after success, except in OnDone; not in JSON and logs
	Key      string           `json:"key,omitempty"`
	Lane     string           `json:"lane,omitempty"`  // "" if the coordinator has no lanes
	Class    string           `json:"class,omitempty"` // "" if the operation has no class
	Status   Status           `json:"status"`
	Enqueued time.Time        `json:"enqueued"`
	Started  time.Time        `json:"started,omitzero"`  // zero while pending
	Finished time.Time        `json:"finished,omitzero"` // zero until it has ended
	Err      error            `json:"-"`                 // the body's error, or why the body did not run; in JSON "error", as text
	Pins     int              `json:"pins,omitempty"`
	WaitsFor []string         `json:"waitsFor,omitempty"` // texts of [Operation.Suspend] and WaitsFor
	Signals  []signals.Signal `json:"signals,omitempty"`  // oldest first
	Values   map[string]any   `json:"-"`                  // stored with Set; see [Value]; in JSON "values"
}

// Duration is how long the body ran; 0 if it has not started or has not ended.
func (s Snapshot) Duration() time.Duration {
	if s.Started.IsZero() || s.Finished.IsZero() {
		return 0
	}
	return s.Finished.Sub(s.Started)
}

// Has reports whether the operation has a signal matching pattern.
//
//ephemeral:pattern {pattern}
func (s Snapshot) Has(pattern string) bool {
	p := glob.Compile(pattern)
	return slices.ContainsFunc(s.Signals, func(s signals.Signal) bool { return p.Matches(s.Name) })
}

// Value returns a value that the operation stored under name, if it is of type V.
func Value[V any](s Snapshot, name string) (V, bool) {
	v, ok := s.Values[name].(V)
	return v, ok
}

// MarshalJSON writes the error as text, and a value that a channel has no JSON form as
// fmt prints it. Do not embed a Snapshot in a struct for JSON: the other fields would
// be missing. Make it a named field.
func (s Snapshot) MarshalJSON() ([]byte, error) {
	type fields Snapshot // without this method
	j := struct {
		fields
		Err    string                     `json:"error,omitempty"`
		Values map[string]json.RawMessage `json:"values,omitempty"`
	}{fields: fields(s), Err: guard.Text(s.Err)}
	for name, v := range s.Values {
		text, err := logtext.Marshal(v)
		if err != nil {
			text, _ = json.Marshal(fmt.Sprint(v))
		}
		lists.Put(&j.Values, name, json.RawMessage(text))
	}
	return json.Marshal(j)
}

// LogValue groups what is set, without the values.
func (s Snapshot) LogValue() slog.Value {
	var names []string
	for i := range s.Signals {
		names = append(names, s.Signals[i].Name)
	}
	return logtext.Group([]slog.Attr{slog.Uint64("id", uint64(s.ID)), slog.String("status", s.Status.String())},
		slog.Uint64("parent", uint64(s.Parent)),
		slog.String("key", s.Key),
		slog.String("lane", s.Lane),
		slog.String("class", s.Class),
		slog.Duration("duration", s.Duration()),
		slog.String("error", guard.Text(s.Err)),
		slog.Any("waitsFor", s.WaitsFor),
		slog.Any("signals", names))
}

// An OperationQuery selects operations. The zero OperationQuery selects all, the oldest
// first. An operation must match all fields that are set. For pages of 50, set Limit to
// 50, and After to the id of the last one shown.
type OperationQuery struct {
	Status Status // 0 = any; statuses may be or-ed
	//ephemeral:pattern
	Pattern string // has a signal that matches; "" = any
	Key     string // "" = any
	//ephemeral:lane
	Lane string // "" = any
	//ephemeral:class
	Class  string        // "" = any
	Within time.Duration // the last change of status is not older than this; 0 = any

	NewestFirst bool        // from the newest to the oldest
	After       OperationID // only operations that come after this id, which may have left the window; 0 = from the start
	Limit       int         // how many at most; 0 = all
}

// An Echo is a short record of an operation that has left the window. It is kept for a
// while.
type Echo struct {
	Operation OperationID
	Key       string
	Status    Status
	Err       error
	Signals   []signals.Signal // the signals that the operation showed when it left
	Time      time.Time        // when it left
}
