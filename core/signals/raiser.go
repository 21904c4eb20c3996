package signals

import (
	"cmp"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
)

// A Raiser is where a signal can be raised: a [Sink], an operation of a coordinator, or a view that
// Because or Scoped has made. Another implementation passes what it raises on to one of these,
// with RaiseNote, and makes its views with the functions [Because] and [Scoped]. All methods
// are safe for concurrent use.
type Raiser interface {
	// Raise records a signal with that name and the current time. It returns false, and
	// records nothing, for an empty name and beyond the limits of [Propagation].
	// Subscribed handlers run before Raise returns.
	//
	//ephemeral:raises {name}
	Raise(name string) bool
	// RaiseKey is Raise with a key: what the signal is about.
	//
	//ephemeral:raises {name}
	RaiseKey(name, key string) bool
	// Because is a view whose signals have the given cause, so that chains of
	// causes can be seen and bounded; see [Signal.Path] and [Propagation].
	//
	//ephemeral:is {recv}
	Because(cause Signal) Raiser
	// Scoped is a view that puts "sink.coordinator.atom." in front of every name. So a
	// pattern can select signals by where they were raised. The arguments are texts of your
	// choice, such as the names of a sink, a coordinator and an operation (here "atom"
	// means operation). By convention, "*" as an argument means all:
	// Scoped("shop", "*", "*") raises "ready" as "shop.*.*.ready". A "*" in a name is a
	// character like any other.
	//
	//ephemeral:is {recv}{sink}.{coordinator}.{atom}.
	Scoped(sink, coordinator, atom string) Raiser

	// RaiseNote is Raise with all that a raiser says.
	//
	//ephemeral:none
	RaiseNote(n Note) bool
}

// A Note is what a raiser says about a signal; the sink adds the rest of the [Signal].
type Note struct {
	//ephemeral:raises
	Name    string
	Key     string
	Payload any // see [Kind]; nil: none
	cause   *link
	copied  *Signal // the signal that it copies, or the start of a hold; nil: neither
}

// more returns the rest of the fact that the note becomes.
func (n *Note) more() *more {
	m := &more{payload: n.Payload, cause: n.cause}
	if from := n.copied; from != nil {
		m.held, m.operation, m.source, m.node = from.Held, from.Operation, from.Source, from.Node
	}
	return m
}

// view is a Raiser that adds a cause or a prefix to what passes through it.
type view struct {
	to     Raiser
	prefix string
	cause  *link
}

var _ Raiser = (*view)(nil)

func (v *view) Raise(name string) bool { return v.RaiseNote(Note{Name: name}) }

func (v *view) RaiseKey(name, key string) bool { return v.RaiseNote(Note{Name: name, Key: key}) }

func (v *view) Because(cause Signal) Raiser { return Because(v, cause) }

func (v *view) Scoped(sink, coordinator, atom string) Raiser {
	return Scoped(v, sink, coordinator, atom)
}

func (v *view) RaiseNote(n Note) bool {
	if n.Name == "" {
		return false
	}
	n.Name = v.prefix + n.Name
	if n.cause == nil { // the cause of the innermost view counts
		n.cause = v.cause
	}
	return v.to.RaiseNote(n)
}

// ownRaiser raises the signals of an owner.
type ownRaiser struct {
	scope *Scope
	owner *Owner
}

func (r ownRaiser) Raise(name string) bool { return r.RaiseNote(Note{Name: name}) }

func (r ownRaiser) RaiseKey(name, key string) bool { return r.RaiseNote(Note{Name: name, Key: key}) }

func (r ownRaiser) Because(cause Signal) Raiser { return Because(r, cause) }

func (r ownRaiser) Scoped(sink, coordinator, atom string) Raiser {
	return Scoped(r, sink, coordinator, atom)
}

func (r ownRaiser) RaiseNote(n Note) bool { return r.scope.raise(r.owner, &n) }

// Because returns a view of to. The signals that are raised on the view have the given cause,
// unless a view of the view names another. It is for implementations of [Raiser].
//
//ephemeral:is {to}
func Because(to Raiser, cause Signal) Raiser {
	return &view{to: to, cause: cause.linked()}
}

// Scoped returns a view of to that puts "sink.coordinator.atom." in front of every name. It is
// for implementations of [Raiser].
//
//ephemeral:is {to}{sink}.{coordinator}.{atom}.
func Scoped(to Raiser, sink, coordinator, atom string) Raiser {
	return &view{to: to, prefix: sink + "." + coordinator + "." + atom + "."}
}

// Propagation bounds chains of causes: see [Raiser].Because and [CausedBy]. Terminal and
// Leaf are patterns, see [Match]; "" matches nothing. Handlers of [Sink.Subscribe] that
// raise signals without naming the cause are bounded, too. If 64 calls of handlers are nested on
// one goroutine, this is an endless loop: the next signal that has a handler is not recorded, and
// OnBlocked gets BlockedDepth. Until the goroutine has returned from all of these calls, it
// raises no other signal that has a handler. A loop over several goroutines is not found.
type Propagation struct {
	// MaxDepth is the highest [Signal.Depth] that is recorded; 0 means 10, a
	// negative value no limit.
	MaxDepth int
	// AllowCycles permits a chain of causes that has the same name twice.
	AllowCycles bool
	// Terminal signals end a chain: signals that they cause are not recorded.
	//
	//ephemeral:pattern
	Terminal string
	// Leaf signals only report, like "logged". They are terminal, and [Sink.Forward] does
	// not forward them.
	//
	//ephemeral:pattern
	Leaf string
	// OnBlocked is called for each signal that was not recorded, on the goroutine that
	// raised it and with no lock held. The signal has a Name, a Key, an Operation and
	// causes, but no Time and no Seq. A panic is counted. Blocked signals that OnBlocked
	// itself raises are only counted.
	OnBlocked func(Signal, BlockReason)
}

// A BlockReason says why a signal was not recorded.
type BlockReason int

const (
	BlockedDepth    BlockReason = iota + 1 // the chain of causes is too long, or the nesting of handlers too deep
	BlockedCycle                           // the name is in the chain already
	BlockedTerminal                        // the cause is a terminal or a leaf signal: see Propagation
)

var blockReasons = [...]string{BlockedDepth: "chain too deep", BlockedCycle: "cycle", BlockedTerminal: "terminal cause"}

func (r BlockReason) String() string {
	if r < BlockedDepth || r > BlockedTerminal {
		return fmt.Sprintf("BlockReason(%d)", int(r))
	}
	return blockReasons[r]
}

// rules are the compiled Propagation of a sink.
type rules struct {
	maxDepth    int // < 0: no limit
	allowCycles bool
	ends, leaf  glob.Pattern
	onBlocked   func(Signal, BlockReason)
}

func (p Propagation) compile() rules {
	r := rules{maxDepth: cmp.Or(p.MaxDepth, 10), allowCycles: p.AllowCycles, onBlocked: p.OnBlocked}
	r.ends, r.leaf = glob.Compile(p.Terminal+","+p.Leaf), glob.Compile(p.Leaf)
	return r
}

// blocks says why a signal of that name must not follow from cause; 0 if it may.
func (r *rules) blocks(name string, cause *link) BlockReason {
	switch {
	case cause == nil:
		return 0
	case r.maxDepth >= 0 && cause.depth() > r.maxDepth:
		return BlockedDepth
	case !r.allowCycles && cause.contains(name):
		return BlockedCycle
	case r.ends.Matches(cause.Name):
		return BlockedTerminal
	}
	return 0
}
