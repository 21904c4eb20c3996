package durable

import (
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals that a queue raises on its sink. The key is the queue's name. A signal about an item
// has the [Item] as payload, with its new State and Err and without its Data: see
// [ItemSucceeded] and the other kinds. It is raised in the process that had the claim. A queue also
// raises [core.SignalThrottled] and [core.SignalFree], as in core, with the name of the class as key:
// this process has found items that wait for tokens, or none any more. [core.SignalWouldThrottle] is the same for a [Class].Shadow.
const (
	SignalSucceeded = "durable.succeeded" // an item has ended well
	SignalRetried   = "durable.retried"   // an attempt failed; there will be another one
	SignalFailed    = "durable.failed"    // an item is dead: State is Dead or Halted
	SignalSnoozed   = "durable.snoozed"   // a body asked to be run later
	SignalReturned  = "durable.returned"  // an item was given back, mostly because the process stops
	SignalCancelled = "durable.cancelled" // an item was cancelled while it was claimed
	// SignalFenced: the end of an item was refused or not recorded, because this process had
	// lost the claim, or because Run has given up. The effects of the body remain, and the item runs again.
	SignalFenced = "durable.fenced"
	// SignalLeaseLost: this process sent no heartbeat in time, and has cancelled its bodies. The
	// payload says why; see [LeaseLost].
	SignalLeaseLost = "durable.lease.lost"
	// SignalNodeLost: another process sent no heartbeat in time, and its items are free; see
	// [NodeLost].
	SignalNodeLost = "durable.node.lost"
	// SignalLaneUnserved: items wait in a lane that no process has in its Options. This process
	// claims them after those of its own lanes; see [LaneUnserved].
	SignalLaneUnserved = "durable.lane.unserved"
	// SignalStoreLost is held on the sink while calls of the store fail, also if only the end of
	// one item is refused. Its payload is the
	// first error; see [StoreLost].
	SignalStoreLost = "durable.store.lost"
	// SignalUnserved: this process has given back a flow that a program with a higher Options.Version has begun. The Note of the item says so.
	SignalUnserved = "flow.unserved"
	// SignalStray: a flow has ended well, and its body has not asked for steps that are kept, for example because they have other names now.
	SignalStray = "flow.stray"
)

// Kinds of the signals with a payload.
var (
	ItemSucceeded = signals.NewKind[Item](SignalSucceeded)
	ItemRetried   = signals.NewKind[Item](SignalRetried)
	ItemFailed    = signals.NewKind[Item](SignalFailed)
	ItemSnoozed   = signals.NewKind[Item](SignalSnoozed)
	ItemReturned  = signals.NewKind[Item](SignalReturned)
	ItemCancelled = signals.NewKind[Item](SignalCancelled)
	ItemFenced    = signals.NewKind[Item](SignalFenced)
	LeaseLost     = signals.NewKind[error](SignalLeaseLost)
	NodeLost      = signals.NewKind[Lost](SignalNodeLost)
	StoreLost     = signals.NewKind[error](SignalStoreLost)
	FlowUnserved  = signals.NewKind[Item](SignalUnserved)
	FlowStray     = signals.NewKind[Stray](SignalStray)
	LaneUnserved  = signals.NewKind[string](SignalLaneUnserved) // the name of the lane
)

// Stray is the payload of [SignalStray].
type Stray struct {
	Item  ItemID   `json:"item"`
	Key   string   `json:"key,omitempty"`
	Steps []string `json:"steps"` // their names
}
