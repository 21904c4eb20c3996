package priorityprocessor

import "time"

// The signals that a Failover raises. The priority follows the name after a colon,
// so that it can be read by those who know only the sink: "processor.unhealthy:pri1".
// To match any priority, append ":*". The payload of all but SignalExhausted is a
// [Report].
const (
	// SignalStarted and SignalCompleted are raised around every attempt if
	// [Options.Verbose] says so; the second only if it succeeded. Like the
	// following three they are raised by the item's operation, with its key, or,
	// outside of one, on the sink.
	SignalStarted   = "processing.started"  // processing.started:pri1
	SignalCompleted = "processing.complete" // processing.complete:pri1
	// SignalFailed is raised when an attempt has failed.
	SignalFailed = "processing.failed" // processing.failed:pri1
	// SignalFailover is raised when an item goes from one that failed it to the
	// next, and SignalExhausted when there is no next; its payload is the
	// [*Error] that Do returns.
	SignalFailover  = "failover.requested" // failover.requested:pri1->pri2
	SignalExhausted = "failover.exhausted"

	// SignalUnhealthy and SignalHealthy are raised on the sink, with the name of
	// the processor as key, when its health changes.
	SignalUnhealthy = "processor.unhealthy" // processor.unhealthy:pri1
	SignalHealthy   = "processor.healthy"   // processor.healthy:pri1
	// SignalRoute is raised on the sink, with the name of the Failover as key,
	// when thereby the highest priority with a healthy processor changes, and
	// SignalRestored as well when that is again the highest there is.
	SignalRoute    = "route.assigned" // route.assigned:pri2, or route.assigned:none
	SignalRestored = "restore.primary"
	// SignalProbeStarting and one of the other two are raised on the sink, with
	// the name of the processor as key, for every call of a Probe function; only
	// the first if the health was changed meanwhile, or on Close.
	SignalProbeStarting = "probe.starting" // probe.starting:pri1
	SignalProbeSuccess  = "probe.success"  // probe.success:pri1
	SignalProbeFailed   = "probe.failed"   // probe.failed:pri1
)

// The signals that a Failover heeds, raised on its sink by others.
const (
	// CommandRoute and a priority, as in "route.priority.2": while such a fact is
	// on the sink, items start with that priority, go on to lower ones, and to
	// the higher ones last. Without a key it is for all items; with one, for
	// items whose operation has that key. Of several the newest counts; of
	// priorities that no processor has, none. Hold it, see [core.Sink.Hold]: a
	// raised one is pushed out of the window by other facts. While there are
	// such facts, each item costs a look at all of them.
	CommandRoute = "route.priority."
	// CommandUnhealthy and CommandHealthy do what [Failover.MarkUnhealthy] and
	// [Failover.Reset] do, to the processor whose name is their key. Without a
	// key they are for all processors, or, with a priority as in
	// "processor.mark.healthy:pri2", for all of that one.
	CommandUnhealthy = "processor.mark.unhealthy"
	CommandHealthy   = "processor.mark.healthy"
)

// A Report is the payload of a signal. Which fields are set depends on the signal.
type Report struct {
	Processor string // that it is about, or that failed the item; "" for SignalRoute and SignalRestored
	Priority  int    // its priority; for SignalRoute and SignalRestored the one before, 0 for none
	// To and ToPriority are who gets the item, for SignalFailover. For
	// SignalRoute and SignalRestored ToPriority is the new priority, 0 for none.
	To         string
	ToPriority int
	Failures   int           // SignalUnhealthy: failures in a row; 0 if it was marked from outside
	Next       time.Duration // SignalProbeFailed: when it is probed again, from then on
	Err        error         // SignalFailed, SignalFailover, SignalUnhealthy, SignalProbeFailed: what went wrong
}
