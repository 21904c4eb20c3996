package core

import (
	"cmp"
	"fmt"
	"strings"
)

// A Raiser is where a signal can be raised: a [Sink], an [Operation], and the
// views of these that Because and Scoped make. The set is closed. All methods
// are safe for concurrent use.
type Raiser interface {
	// Raise records that name is so, now, and reports whether it did: not for
	// an empty name, nor beyond the limits of [Propagation]. Handlers that
	// subscribed to it run before Raise returns.
	Raise(name string) bool
	// RaiseKey is Raise with a key: what the signal is about.
	RaiseKey(name, key string) bool
	// Because is a view that raises signals caused by cause, so that chains of
	// causes can be seen and bounded; see [Signal.Path] and [Propagation].
	Because(cause Signal) Raiser
	// Scoped is a view that puts "sink.coordinator.atom." in front of every
	// name. Use "*" for a part that is meant for all.
	Scoped(sink, coordinator, atom string) Raiser

	raise(note) bool
}

// note is what a raiser says; the rest of a Signal is the recorder's to add.
type note struct {
	name, key string
	payload   any
	cause     *link
}

// view is a Raiser that adds a cause or a prefix to what passes through it.
type view struct {
	to     Raiser
	prefix string
	cause  *link
}

var _ Raiser = (*view)(nil)

func (v *view) Raise(name string) bool         { return v.raise(note{name: name}) }
func (v *view) RaiseKey(name, key string) bool { return v.raise(note{name: name, key: key}) }
func (v *view) Because(cause Signal) Raiser    { return because(v, cause) }
func (v *view) Scoped(sink, coordinator, atom string) Raiser {
	return scoped(v, sink, coordinator, atom)
}

func (v *view) raise(n note) bool {
	if n.name == "" {
		return false
	}
	n.name = v.prefix + n.name
	if n.cause == nil { // the innermost cause is the nearest one
		n.cause = v.cause
	}
	return v.to.raise(n)
}

func because(to Raiser, cause Signal) Raiser {
	return &view{to: to, cause: &link{name: cause.Name, up: cause.cause}}
}

func scoped(to Raiser, parts ...string) Raiser {
	return &view{to: to, prefix: strings.Join(parts, ".") + "."}
}

// Propagation bounds chains of causes, made with Because. Terminal and Leaf are
// patterns, see [Match]; "" is none. Handlers that raise
// signals without naming the cause are bounded too: a signal is not recorded that
// would be delivered 64 deliveries deep on one goroutine to a handler that is in
// all of them, or that was subscribed that deep, as it happens in an endless loop;
// the reason is BlockedDepth. Until that goroutine has returned from its
// deliveries no further signal of the loop is recorded from inside of them.
type Propagation struct {
	// MaxDepth is the highest [Signal.Depth] that is recorded; 0 means 10, a
	// negative value no limit.
	MaxDepth int
	// AllowCycles permits a signal to be caused, over any number of steps, by
	// one of its own name.
	AllowCycles bool
	// Terminal signals end a chain: nothing is recorded that they caused.
	Terminal string
	// Leaf signals report and conclude nothing, like "logged": nothing is
	// recorded that they caused either, and they stay on their sink; see
	// [Sink.Forward].
	Leaf string
	// OnBlocked is called for each signal that was not recorded, on the
	// goroutine that raised it and with no lock held. It has Name, Key,
	// Operation and its causes, but no Time and no Seq. A panic is counted.
	// What OnBlocked itself raises and is blocked is counted only.
	OnBlocked func(Signal, BlockReason)
}

// A BlockReason says why a signal was not recorded.
type BlockReason int

const (
	BlockedDepth    BlockReason = iota + 1 // the chain or nesting is as deep as it may be
	BlockedCycle                           // the name is in the chain already
	BlockedTerminal                        // the cause is terminal or a leaf
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
	ends, leaf  pattern
	onBlocked   func(Signal, BlockReason)
}

func (p Propagation) compile() rules {
	r := rules{maxDepth: cmp.Or(p.MaxDepth, 10), allowCycles: p.AllowCycles, onBlocked: p.OnBlocked}
	r.ends, r.leaf = compile(p.Terminal+","+p.Leaf), compile(p.Leaf)
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
	case r.ends.matches(cause.name):
		return BlockedTerminal
	}
	return 0
}
