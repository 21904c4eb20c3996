// This file decides how reasons read.

package core

import (
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// An Explanation says why an operation waits. It has every reason. If a reason is another
// operation that waits itself, the reasons of that one follow. A pending operation waits
// to run. A running or suspended operation may wait in its body for other operations. A reason of the
// kind [ReasonShadow] only says that a running operation would still wait.
type Explanation struct {
	Operation OperationID `json:"operation"`
	Status    Status      `json:"status"`
	Time      time.Time   `json:"time"`              // when this was so
	Reasons   []Reason    `json:"reasons,omitempty"` // none if it does not wait, or is about to start
}

// A Reason is one reason why an operation waits. The kind decides which other fields are
// set.
type Reason struct {
	Kind      ReasonKind  `json:"kind"`
	Operation OperationID `json:"operation"` // the operation that waits

	Holder  OperationID    `json:"holder,omitempty"`  // the operation that it waits for; if there are several, the first that started; for ReasonPriority and ReasonOrder, the first of those that go first
	Of      string         `json:"of,omitempty"`      // name of the Holder's coordinator, if that may be another coordinator
	Key     string         `json:"key,omitempty"`     // the busy key; for ReasonOrder, the key within which others go first
	Lane    string         `json:"lane,omitempty"`    // for ReasonLane the full lane, for ReasonPriority the lane of the operation, for ReasonNested the lane without room
	Class   string         `json:"class,omitempty"`   // for ReasonClass the full class, for ReasonRate the class without tokens, for ReasonNested the class without room
	Running int            `json:"running,omitempty"` // how many run
	Limit   int            `json:"limit,omitempty"`   // how many may run
	Ahead   int            `json:"ahead,omitempty"`   // how many operations go first; for ReasonNested, how many it waits for
	What    string         `json:"what,omitempty"`    // the text of [Operation.WaitsFor] or Suspend, or why it is stuck; for ReasonRate, the option whose tokens come last, such as CostRate
	Signal  signals.Signal `json:"signal,omitzero"`   // the signal that refuses or defers it
	Since   time.Time      `json:"since,omitzero"`    // the start of this state
	Expires time.Time      `json:"expires,omitzero"`  // the end of the signal's lease or age, or of the wait; zero: no end is known
	Forced  time.Time      `json:"forced,omitzero"`   // the end of MaxDefer; zero: none, for example because the signal is held
}

// A ReasonKind says what a [Reason] is about.
type ReasonKind string

const (
	ReasonPaused   ReasonKind = "paused"   // the coordinator is paused
	ReasonLimit    ReasonKind = "limit"    // MaxConcurrency is reached; fields Running, Limit, Holder
	ReasonLane     ReasonKind = "lane"     // the Limit of its lane is reached: Lane, Running, Limit, Holder
	ReasonClass    ReasonKind = "class"    // the limit of its class is reached: Class, Running, Limit, Holder
	ReasonKey      ReasonKind = "key"      // MaxPerKey is reached for its key: Key, Running, Limit, Holder
	ReasonRefused  ReasonKind = "refused"  // it will not run because of CancelOn: Signal, Since, Expires
	ReasonDeferred ReasonKind = "deferred" // it waits because of DeferOn: Signal, Since, Expires, Forced
	ReasonPriority ReasonKind = "priority" // items of higher lanes go first: Lane, Ahead, Holder
	ReasonOrder    ReasonKind = "order"    // earlier items of its lane, class or key go first: Ahead, Holder, Key; not those of other keys, which take turns
	ReasonNested   ReasonKind = "nested"   // its body waits for one operation (field Holder), for several (their number is in Ahead), or for room (Lane, Class); Of names the coordinator
	ReasonStuck    ReasonKind = "stuck"    // its body does not return: What, Since; see [Options.StuckAfter]
	ReasonBody     ReasonKind = "body"     // its body says that it waits: What, Since, Expires

	ReasonRate  ReasonKind = "rate"  // its class or its key lacks tokens; fields Class or Key, What, and Expires: when its next item has its tokens
	ReasonTrial ReasonKind = "trial" // fewer items of its class may run because of TrialOn: Class, Limit, Signal, Since, Expires

	ReasonSuspended ReasonKind = "suspended" // suspended operations keep slots, because MaxSuspended is reached: Ahead, Limit
	ReasonShadow    ReasonKind = "shadow"    // it runs, but would still wait if a shadow were in force: Class, or "" for Options.Shadow, and Expires: when it would start at the earliest; see [Limits]

	ReasonResuming ReasonKind = "resuming" // it was suspended and needs a slot to go on; other reasons say why there is no slot
)

// String is the explanation in one line, the reasons separated by semicolons.
func (x Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "operation %d %s", x.Operation, x.Status.phrase())
	who := x.Operation
	for i, r := range x.Reasons {
		switch {
		case r.Operation != who:
			fmt.Fprintf(&b, "; operation %d: ", r.Operation)
		case i == 0:
			b.WriteString(": ")
		default:
			b.WriteString("; ")
		}
		who = r.Operation
		b.WriteString(r.text(x.Time))
	}
	return b.String()
}

// phrase returns the status as the end of a sentence.
func (s Status) phrase() string {
	switch s {
	case StatusSucceeded, StatusFailed:
		return "has " + s.String()
	case StatusCancelled, StatusRefused, StatusDropped:
		return "was " + s.String()
	}
	return "is " + s.String()
}

// String is the reason in words.
func (r Reason) String() string { return r.text(time.Time{}) }

// text is the reason in words. If now is set, it says how long things have lasted and will
// last.
func (r Reason) text(now time.Time) string {
	span := func(format string, t time.Time) string {
		if now.IsZero() || t.IsZero() {
			return ""
		}
		return fmt.Sprintf(format, t.Sub(now).Abs().Round(time.Millisecond))
	}
	taken := func(of string) string {
		all := fmt.Sprintf("all %d slots%s are taken", r.Limit, of)
		switch {
		case r.Running > r.Limit: // it was lowered
			all = fmt.Sprintf("%d of %d slots%s are taken", r.Running, r.Limit, of)
		case r.Limit == 1:
			return fmt.Sprintf("the only slot%s is taken by operation %d%s", of, r.Holder, span(", for %v", r.Since))
		}
		return fmt.Sprintf("%s, the longest by operation %d%s", all, r.Holder, span(", for %v", r.Since))
	}
	switch r.Kind {
	case ReasonPaused:
		return "the coordinator is paused"
	case ReasonLimit:
		return taken("")
	case ReasonLane:
		return taken(fmt.Sprintf(" of lane %q", r.Lane))
	case ReasonClass:
		return taken(fmt.Sprintf(" of class %q", r.Class))
	case ReasonKey:
		return taken(fmt.Sprintf(" of key %q", r.Key))
	case ReasonSuspended:
		switch {
		case r.Ahead == 1:
			return "1 operation is suspended, and does not lend its slot"
		case r.Limit == 1:
			return fmt.Sprintf("%d operations are suspended, and only 1 of them lends its slot", r.Ahead)
		}
		return fmt.Sprintf("%d operations are suspended, and only %d of them lend their slots", r.Ahead, r.Limit)
	case ReasonResuming:
		return "its wait is over and it waits for a slot"
	case ReasonRefused:
		return "will be refused because of " + r.signalText() + span(", which ends in %v", r.Expires)
	case ReasonDeferred:
		return "deferred" + span(" for %v at most", r.Forced) + " because of " + r.signalText() + span(", which ends in %v", r.Expires)
	case ReasonRate:
		of := fmt.Sprintf("class %q", r.Class)
		if r.Class == "" {
			of = fmt.Sprintf("key %q", r.Key)
		}
		if next := span("%v", r.Expires); next != "" {
			return fmt.Sprintf("%s has its next token of %s in %s", of, r.What, next)
		}
		return of + " lacks tokens of " + r.What
	case ReasonTrial:
		return fmt.Sprintf("at most %d of class %q run at once because of %s", r.Limit, r.Class, r.signalText()) + span(", which ends in %v", r.Expires)
	case ReasonShadow:
		return "with the shadow of " + r.ofClass() + " it would still wait" + span(" for %v", r.Expires)
	case ReasonPriority:
		return goFirst(r.Ahead, fmt.Sprintf("of lanes above %q", r.Lane))
	case ReasonOrder:
		return goFirst(r.Ahead, "before it")
	case ReasonNested:
		switch {
		case r.Ahead == 1:
			return fmt.Sprintf("its body waits for the last operation of %q", r.Of)
		case r.Ahead > 0:
			return fmt.Sprintf("its body waits for %d operations of %q", r.Ahead, r.Of)
		case r.Holder != 0:
			return fmt.Sprintf("its body waits for operation %d of %q", r.Holder, r.Of)
		case r.Lane != "" && r.Class != "":
			return fmt.Sprintf("its body waits for room for class %q in lane %q of %q", r.Class, r.Lane, r.Of)
		case r.Lane != "":
			return fmt.Sprintf("its body waits for room in lane %q of %q", r.Lane, r.Of)
		case r.Class != "":
			return fmt.Sprintf("its body waits for room for class %q in %q", r.Class, r.Of)
		}
		return fmt.Sprintf("its body waits for room in %q", r.Of)
	case ReasonStuck:
		return "stuck: " + r.What + span(", for %v", r.Since)
	case ReasonBody:
		return fmt.Sprintf("its body waits for %s%s%s", r.What, span(", for %v", r.Since), span(", for %v more at most", r.Expires))
	}
	return string(r.Kind)
}

// ofClass names the class, or all operations.
func (r Reason) ofClass() string {
	if r.Class == "" {
		return "all operations"
	}
	return fmt.Sprintf("class %q", r.Class)
}

func goFirst(n int, which string) string {
	if n == 1 {
		return "1 item " + which + " goes first"
	}
	return fmt.Sprintf("%d items %s go first", n, which)
}

func (r Reason) signalText() string {
	var b strings.Builder
	if r.Signal.Held {
		b.WriteString("held ")
	}
	fmt.Fprintf(&b, "signal %q", r.Signal.Name)
	if r.Signal.Key != "" {
		fmt.Fprintf(&b, " for %q", r.Signal.Key)
	}
	if r.Signal.Operation != 0 {
		fmt.Fprintf(&b, " by operation %d of %q", r.Signal.Operation, r.Signal.Source)
	}
	return b.String()
}

// maxExplained is how many signals an explanation names for one rule, and how many
// operations it follows: as many as a person can read quickly.
const maxExplained = 16
