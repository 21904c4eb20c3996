package signals

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/logtext"
)

// An OperationID identifies an operation within the process. Ids are positive
// and, in each coordinator, increase in the order in which items are accepted. The ids
// of a coordinator need not begin at 1. 0 means none.
type OperationID uint64

func (id OperationID) String() string { return strconv.FormatUint(uint64(id), 10) }

// A Signal is a fact: a name, a time, and who raised it. It is an immutable value, safe
// to copy and to keep. Seq orders the signals of a sink.
//
// By convention names are lower case, dotted from the general to the special
// ("payment.declined"), with a parameter after a colon ("rate-limit:5000ms"). Put ids
// into Key, not into the name.
type Signal struct {
	//ephemeral:raised
	Name      string      `json:"name"`
	Key       string      `json:"key,omitempty"`       // what it is about; by default, the operation's key
	Operation OperationID `json:"operation,omitempty"` // the operation that raised it; 0 if it was raised directly on a sink
	Source    string      `json:"source,omitempty"`    // name of that operation's coordinator; "" if it was raised directly
	Time      time.Time   `json:"time"`                // when it was recorded
	Seq       uint64      `json:"seq"`                 // position in its sink, from 1; later signals have higher numbers
	Held      bool        `json:"held,omitempty"`      // see [Sink.Hold]
	Node      string      `json:"node,omitempty"`      // the process it comes from; "" is this one: see [Sink.Import]

	payload any
	cause   *link
}

// A Cause is a signal that led to another one through Because or [CausedBy].
type Cause struct {
	Name      string
	Operation OperationID // that raised it; 0: none, or it was restored
}

// link is one step back in a chain of causes.
type link struct {
	Cause
	up *link
}

func (s Signal) linked() *link { return &link{Cause{s.Name, s.Operation}, s.cause} }

// Payload is the value a [Kind] attached, nil for a plain signal.
func (s Signal) Payload() any { return s.payload }

// Depth is the number of signals that led to this one through Because; 0 for one
// raised without a cause.
func (s Signal) Depth() int { return s.cause.depth() }

// Path lists the names that led to this signal, the first cause first and the
// signal's own name last.
func (s Signal) Path() []string {
	path := []string{s.Name}
	for l := s.cause; l != nil; l = l.up {
		path = append(path, l.Name)
	}
	slices.Reverse(path)
	return path
}

// Causes lists the signals that led to this one, the first cause first: Path without the last name.
func (s Signal) Causes() (all []Cause) {
	for l := s.cause; l != nil; l = l.up {
		all = append(all, l.Cause)
	}
	slices.Reverse(all)
	return all
}

// Arg is the text after the first colon of the name: "5000ms" in
// "rate-limit:5000ms".
func (s Signal) Arg() (arg string, ok bool) {
	_, arg, ok = strings.Cut(s.Name, ":")
	return arg, ok
}

// Matches reports whether the signal's name matches pattern; see [Match].
//
//ephemeral:pattern {pattern}
func (s Signal) Matches(pattern string) bool { return Match(pattern, s.Name) }

func (l *link) depth() int {
	n := 0
	for ; l != nil; l = l.up {
		n++
	}
	return n
}

func (l *link) contains(name string) bool {
	for ; l != nil; l = l.up {
		if l.Name == name {
			return true
		}
	}
	return false
}

// MarshalJSON writes everything but the payload.
func (s Signal) MarshalJSON() ([]byte, error) {
	type fields Signal // without this method
	path := s.Path()
	return json.Marshal(struct {
		fields
		Causes []string `json:"causes,omitempty"`
	}{fields(s), path[:len(path)-1]})
}

// UnmarshalJSON reads what MarshalJSON wrote, so that signals can be saved and given
// to [Sink.Restore].
func (s *Signal) UnmarshalJSON(data []byte) error {
	type fields Signal
	var j struct {
		fields
		Causes []string `json:"causes"`
	}
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*s = Signal(j.fields).With(nil, j.Causes...)
	return nil
}

// With returns s with that payload and with causes of these names, the first cause first. It
// replaces the payload and the causes that s has. It is for a signal that comes from
// somewhere else; see [Sink.Import].
//
//ephemeral:none
func (s Signal) With(payload any, causes ...string) Signal {
	s.payload, s.cause = payload, nil
	for _, name := range causes {
		s.cause = &link{Cause{Name: name}, s.cause}
	}
	return s
}

// LogValue groups the fields that are set.
func (s Signal) LogValue() slog.Value {
	var path []string
	if s.cause != nil {
		path = s.Path()
	}
	return logtext.Group([]slog.Attr{slog.String("name", s.Name)},
		slog.String("key", s.Key),
		slog.Uint64("operation", uint64(s.Operation)),
		slog.String("source", s.Source),
		slog.Time("time", s.Time),
		slog.Bool("held", s.Held),
		slog.String("node", s.Node),
		slog.Any("path", path))
}

// A Query selects signals. The zero Query selects everything. A signal must match all
// fields that are set.
type Query struct {
	//ephemeral:pattern
	Pattern   string        // names, see [Match]; "" = any
	Key       string        // "" = any
	Operation OperationID   // 0 = any
	Source    string        // name of a coordinator; "" = any
	Within    time.Duration // how old at most; 0 = any. For "since t", pass time.Since(t).
	AfterSeq  uint64        // only signals with a higher Seq
	Held      bool          // only held signals; a Sink does not look at others
}

// filter is a Query prepared for many tests. It does not test the age; the code with the
// clock does.
type filter struct {
	Query
	pattern glob.Pattern
}

func (q Query) compile() filter { return filter{Query: q, pattern: glob.Compile(q.Pattern)} }

func (f *filter) accepts(s *Signal) bool {
	return f.acceptsName(s.Name, s.Key, s.Seq) && (!f.Held || s.Held) && f.acceptsOrigin(s.Operation, s.Source)
}

func (f *filter) acceptsName(name, key string, seq uint64) bool {
	return seq > f.AfterSeq && (f.Key == "" || f.Key == key) && (f.Pattern == "" || f.pattern.Matches(name))
}

func (f *filter) acceptsOrigin(id OperationID, source string) bool {
	return (f.Operation == 0 || f.Operation == id) && (f.Source == "" || f.Source == source)
}

// cutoff is the earliest offset a query asks for, or the smallest int64.
func (q Query) cutoff(now int64) int64 {
	if q.Within <= 0 {
		return math.MinInt64
	}
	return now - int64(q.Within)
}

func asRaised(a, b Signal) int { return cmp.Compare(a.Seq, b.Seq) }

// Lifecycle signals of operations. A sink knows these two, because they are raised on need.
const (
	// An operation raises SignalStarted before its body and SignalStopped after it.
	// It does so only while a handler, a forward or a
	// monitor of the sink has a pattern that begins with "operation." and matches the signal,
	// such as "operation.*". The pattern "*" is not enough, so a handler of all signals makes
	// no operation more expensive. Gates ignore these signals. Operations of a
	// core.Dispatcher or a core.Processor do not raise them.
	SignalStarted = "operation.started"
	SignalStopped = "operation.stopped"
)

// orNothing returns a pattern for a Query. An empty pattern matches nothing, but an empty
// Query.Pattern selects everything.
func orNothing(pattern string) string {
	return cmp.Or(pattern, ",")
}

// Coordinators raise lifecycle signals about their operations, but only while some code
// listens: see [SignalStarted].
func isLifecycle(name string) bool { return name == SignalStarted || name == SignalStopped }
