package priorityprocessor

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// The signals that a Failover raises. The priority follows the name after a colon, as in
// "processor.unhealthy:pri1", so that others can read it from the sink alone. To match any
// priority, append ":*". Each signal has a payload, see [Report]:
//
//	report, ok := signal.Payload().(priorityprocessor.Report)
const (
	// SignalStarted and SignalCompleted are raised before and after every attempt if
	// [Options.Verbose] says so; the second only if the attempt succeeded. These two,
	// SignalFailed, SignalFailover and SignalExhausted are raised by the item's
	// operation, with its key, or on the sink if there is no operation.
	SignalStarted   = "processing.started"  // processing.started:pri1
	SignalCompleted = "processing.complete" // processing.complete:pri1
	// SignalFailed is raised when an attempt has failed.
	SignalFailed = "processing.failed" // processing.failed:pri1
	// SignalFailover is raised when an item goes from a processor that failed it to the
	// next one, and SignalExhausted when there is no next one.
	SignalFailover  = "failover.requested" // failover.requested:pri1->pri2
	SignalExhausted = "failover.exhausted" // the payload is the [*Error] that Do returns

	// SignalUnhealthy and SignalHealthy are raised on the sink, with the name of the
	// processor as key, when its health changes.
	SignalUnhealthy = "processor.unhealthy" // processor.unhealthy:pri1
	SignalHealthy   = "processor.healthy"   // processor.healthy:pri1
	// SignalRoute is raised on the sink, with the name of the Failover as key, when a
	// change of health changes the highest priority with a healthy processor.
	// SignalRestored follows it if that is again the highest priority there is.
	SignalRoute    = "route.assigned" // route.assigned:pri2, or route.assigned:none
	SignalRestored = "restore.primary"
	// SignalProbeStarting, and then one of the other two, are raised on the sink, with
	// the name of the processor as key, for every call of a Probe function. Only the
	// first is raised if the health is changed during the call, or on Close.
	SignalProbeStarting = "probe.starting" // probe.starting:pri1
	SignalProbeSuccess  = "probe.success"  // probe.success:pri1
	SignalProbeFailed   = "probe.failed"   // probe.failed:pri1
)

// The kinds of the signals whose names have no priority.
var (
	Exhausted = core.NewKind[*Error](SignalExhausted)
	Restored  = core.NewKind[Report](SignalRestored)
)

// The signals that control a Failover. Others raise them on its sink.
const (
	// CommandRoute followed by a priority, as in "route.priority.2": while such a fact is
	// on the sink, items start with that priority, go on to lower ones, and to higher
	// ones last. Without a key it applies to all items; with a key, to items whose
	// operation has that key. Of several the newest counts. One with a priority that no
	// processor has is ignored. Hold it, see [core.Sink.Hold]: later signals push a
	// raised one out of the window. While there are such facts, each item costs a search
	// for them.
	CommandRoute = "route.priority."
	// CommandUnhealthy and CommandHealthy are [Failover.MarkUnhealthy] and
	// [Failover.MarkHealthy] of the processor whose name is their key. Without a key they
	// apply to all processors. With a priority, as in "processor.mark.healthy:pri2", they
	// apply to those of that priority only.
	CommandUnhealthy = "processor.mark.unhealthy"
	CommandHealthy   = "processor.mark.healthy"
)

// A Report is the payload of all signals except SignalExhausted. Which fields are set
// depends on the signal.
type Report struct {
	Processor  string // the processor; "" for SignalRoute and SignalRestored
	Priority   int    // its priority; the previous one for SignalRoute and SignalRestored, 0 for none
	To         string // SignalFailover: the processor that gets the item
	ToPriority int    // SignalFailover: its priority; SignalRoute and SignalRestored: the new one, 0 for none

	Failures int           // SignalUnhealthy: failures in a row; 0 if it was marked from outside
	Next     time.Duration // SignalProbeFailed: how long until the next probe
	Err      error         // SignalFailed, SignalFailover, SignalUnhealthy, SignalProbeFailed: the error
}
