package durable

import "github.com/ephemeralgo/ephemeral/core"

// Signals that a queue raises on its sink, with its name as key. Those about an item carry
// it, without its data, with its new State and Err; see [ItemSucceeded] and the others.
// They are raised in the process that had the claim.
const (
	SignalSucceeded = "durable.succeeded" // an item has ended well
	SignalRetried   = "durable.retried"   // an attempt failed; there will be another one
	SignalFailed    = "durable.failed"    // an item is dead: State is Dead or Halted
	SignalSnoozed   = "durable.snoozed"   // an item asked to be run later
	SignalReturned  = "durable.returned"  // an item was given back, because the process stops
	SignalCancelled = "durable.cancelled" // an item was cancelled while it was claimed
	// SignalFenced: the end of an item was refused, or could not be recorded, because this
	// process has lost the claim. What the body did stands, and the item runs again.
	SignalFenced = "durable.fenced"
	// SignalLeaseLost: this process could not beat for its lease, and has cancelled its bodies.
	SignalLeaseLost = "durable.lease.lost"
	// SignalNodeLost: another process did not beat for its lease, and its items are free; see
	// [NodeLost].
	SignalNodeLost = "durable.node.lost"
	// SignalStoreLost is held while calls of the store fail.
	SignalStoreLost = "durable.store.lost"
)

// Kinds of the signals that carry something.
var (
	ItemSucceeded = core.NewKind[Item](SignalSucceeded)
	ItemRetried   = core.NewKind[Item](SignalRetried)
	ItemFailed    = core.NewKind[Item](SignalFailed)
	ItemSnoozed   = core.NewKind[Item](SignalSnoozed)
	ItemReturned  = core.NewKind[Item](SignalReturned)
	ItemCancelled = core.NewKind[Item](SignalCancelled)
	ItemFenced    = core.NewKind[Item](SignalFenced)
	NodeLost      = core.NewKind[Lost](SignalNodeLost)
)
