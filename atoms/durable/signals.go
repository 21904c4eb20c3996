package durable

import "github.com/ephemeralgo/ephemeral/core"

// Signals that a queue raises on its sink, with its name as key. Those about an item carry
// it, without its data, as it is after the end of its claim; see [ItemDone] and the others.
// They are raised in the process that had the claim.
const (
	SignalDone      = "durable.done"      // an item has ended well
	SignalRetried   = "durable.retried"   // an attempt failed; there will be another one
	SignalDead      = "durable.dead"      // an item will not be tried again; State may be Halted
	SignalSnoozed   = "durable.snoozed"   // an item asked to be run later
	SignalReturned  = "durable.returned"  // an item was given back, because the process stops
	SignalCancelled = "durable.cancelled" // an item was cancelled while it was claimed
	// SignalFenced: the end of an item was refused, or could not be recorded, because this
	// process has lost the claim. What the body did stands, and the item runs again.
	SignalFenced = "durable.fenced"
	// SignalLeaseLost: this process could not beat for its lease, and has cancelled its bodies.
	SignalLeaseLost = "durable.lease.lost"
	// SignalNodeLost: another process did not, and its items are free; see [NodeLost].
	SignalNodeLost = "durable.node.lost"
	// SignalUnreachable is held while calls of the store fail.
	SignalUnreachable = "durable.unreachable"
)

// Kinds of the signals that carry something.
var (
	ItemDone      = core.NewKind[Item](SignalDone)
	ItemRetried   = core.NewKind[Item](SignalRetried)
	ItemDead      = core.NewKind[Item](SignalDead)
	ItemSnoozed   = core.NewKind[Item](SignalSnoozed)
	ItemReturned  = core.NewKind[Item](SignalReturned)
	ItemCancelled = core.NewKind[Item](SignalCancelled)
	ItemFenced    = core.NewKind[Item](SignalFenced)
	NodeLost      = core.NewKind[Lost](SignalNodeLost)
)
