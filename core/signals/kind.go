package signals

import (
	"cmp"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
)

// A Kind binds a signal name to the type of its payload, so that both ends
// agree on it at compile time:
//
//	var FileSaved = signals.NewKind[File]("file.saved")
//
// A Kind is an immutable value, usually a package variable, and safe for concurrent
// use. Its signals are ordinary signals: patterns, gates and monitors see them by name.
type Kind[P any] struct{ name string }

// NewKind makes the Kind of that name. It panics if name is empty, or has wildcards,
// commas, or blanks around it.
//
//ephemeral:is {name}
func NewKind[P any](name string) Kind[P] {
	if !glob.IsPlain(name) {
		panic(fmt.Sprintf("signals: NewKind needs a name without blanks around it, commas and wildcards, not %q", name))
	}
	return Kind[P]{name}
}

// Name is the name of its signals.
//
//ephemeral:is {recv}
func (k Kind[P]) Name() string { return k.name }

// Raise raises a signal of this kind on a [Raiser], such as a sink or an operation, and
// reports whether it was recorded. The payload is kept as long as the signal; treat it as
// immutable.
//
//ephemeral:raises {recv}
func (k Kind[P]) Raise(on Raiser, key string, payload P) bool {
	return on.RaiseNote(Note{Name: k.name, Key: key, Payload: payload})
}

// Hold is [Sink.Hold] with a payload: it raises a held signal of this kind. The payload is
// kept as long as the signal; treat it as immutable.
//
//ephemeral:raises {recv}
//ephemeral:release {lease}
func (k Kind[P]) Hold(on *Sink, key string, payload P, lease time.Duration) (release func()) {
	return on.holdSignal(Signal{Name: k.name, Key: key, payload: payload}, lease)
}

// From returns the payload of s if s is of this kind: if its payload has the type and its
// name is the name of the kind. A prefix that a [Raiser.Scoped] view has put before the
// name is allowed.
//
//ephemeral:pattern *{recv}
func (k Kind[P]) From(s Signal) (P, bool) {
	prefix, found := strings.CutSuffix(s.Name, k.name)
	p, ok := s.payload.(P)
	return p, ok && found && (prefix == "" || strings.HasSuffix(prefix, "."))
}

// Sense yields the signals of this kind that q selects, with their payloads, oldest
// first. With the pattern "", q selects the name of the kind.
//
//ephemeral:pattern {recv}
func (k Kind[P]) Sense(from Sensor, q Query) iter.Seq2[Signal, P] {
	q.Pattern = cmp.Or(q.Pattern, k.name)
	return sensed(from, q, k.From)
}

// Subscribe calls fn for every signal of this kind that is raised under its own
// name, without a prefix; see [Sink.Subscribe]. It panics if fn is nil.
//
//ephemeral:pattern {recv}
func (k Kind[P]) Subscribe(on *Sink, fn func(Signal, P)) (cancel func()) {
	return subscribed(on, k.name, k.From, fn)
}

// sensed yields the signals that q selects and from accepts.
func sensed[P any](on Sensor, q Query, from func(Signal) (P, bool)) iter.Seq2[Signal, P] {
	return func(yield func(Signal, P) bool) {
		for s := range on.Sense(q) {
			if p, ok := from(s); ok && !yield(s, p) {
				return
			}
		}
	}
}

// subscribed calls fn for the signals that match pattern and from accepts.
func subscribed[P any](on *Sink, pattern string, from func(Signal) (P, bool), fn func(Signal, P)) (cancel func()) {
	need(fn != nil, "Subscribe needs a function")
	return on.Subscribe(pattern, func(s Signal) {
		if p, ok := from(s); ok {
			fn(s, p)
		}
	})
}

// A Family is a [Kind] of many names: all its signals have the same type of payload, and
// their names match its pattern:
//
//	var Log = signals.NewFamily[Record]("log.*")
//
// It is an immutable value, usually a package variable, and safe for concurrent use.
type Family[P any] struct{ pattern glob.Pattern }

// NewFamily makes the Family of the names that match pattern. It panics if none do.
//
//ephemeral:is {pattern}
func NewFamily[P any](pattern string) Family[P] {
	p := glob.Compile(pattern)
	if len(p.Terms) == 0 {
		panic(fmt.Sprintf("signals: NewFamily needs a pattern that names can match, not %q", pattern))
	}
	return Family[P]{p}
}

// Pattern is the pattern that was passed to [NewFamily].
//
//ephemeral:is {recv}
func (f Family[P]) Pattern() string { return f.pattern.Text }

// Named returns the Kind of that name. It panics if the name does not match the pattern
// or [NewKind] does not accept it.
//
//ephemeral:is {name}
func (f Family[P]) Named(name string) Kind[P] {
	if !f.pattern.Matches(name) {
		panic(fmt.Sprintf("signals: Named needs a name that matches %q, not %q", f.pattern.Text, name))
	}
	return NewKind[P](name)
}

// From returns the payload of s if s is of this family: by its name and by the type of its
// payload.
//
//ephemeral:pattern {recv}
func (f Family[P]) From(s Signal) (P, bool) {
	p, ok := s.payload.(P)
	return p, ok && f.pattern.Matches(s.Name)
}

// Sense yields the signals of this family that q selects, with their payloads, oldest
// first. With the pattern "", q selects all names of the family.
//
//ephemeral:pattern {recv}
func (f Family[P]) Sense(from Sensor, q Query) iter.Seq2[Signal, P] {
	q.Pattern = cmp.Or(q.Pattern, f.pattern.Text)
	return sensed(from, q, f.From)
}

// Subscribe calls fn for every signal of this family; see [Sink.Subscribe]. It panics if fn
// is nil.
//
//ephemeral:pattern {recv}
func (f Family[P]) Subscribe(on *Sink, fn func(Signal, P)) (cancel func()) {
	return subscribed(on, f.pattern.Text, f.From, fn)
}
