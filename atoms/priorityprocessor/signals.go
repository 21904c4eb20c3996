package priorityprocessor

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The signals of a Failover. Most names end with a colon and the priority, as in
// "processor.unhealthy:pri1". To match all priorities, append ":*". The payload is a [Report]:
//
//	report, ok := signal.Payload().(priorityprocessor.Report)
//
// The first four, and [Exhausted], are raised by the operation of the item, with its key. If there is no
// operation, they are raised on the sink.
const (
	// SignalStarted and SignalCompleted are raised before each attempt, and after each
	// successful one, but only with [Options.Verbose].
	//
	//ephemeral:raises processing.started:*
	SignalStarted = "processing.started" // processing.started:pri1
	//ephemeral:raises processing.complete:*
	SignalCompleted = "processing.complete" // processing.complete:pri1
	// SignalFailed is raised when an attempt has failed.
	//
	//ephemeral:raises processing.failed:*
	SignalFailed = "processing.failed" // processing.failed:pri1
	// SignalFailover is raised after a failed attempt, when the item goes to the next
	// processor.
	//
	//ephemeral:raises failover.requested:*
	SignalFailover = "failover.requested" // failover.requested:pri1->pri2

	// SignalUnhealthy is raised when a processor becomes unhealthy. The key is its name.
	//
	//ephemeral:raises processor.unhealthy:*
	SignalUnhealthy = "processor.unhealthy" // processor.unhealthy:pri1
	// SignalHealthy is raised when a processor becomes healthy again. The key is its name.
	//
	//ephemeral:raises processor.healthy:*
	SignalHealthy = "processor.healthy" // processor.healthy:pri1
	// SignalRoute is raised when the highest priority that has a healthy processor changes.
	// The key is [Options.Name].
	//
	//ephemeral:raises route.changed:*
	SignalRoute = "route.changed" // route.changed:pri2, or route.changed:none
	// SignalProbeStarted is raised before each call of a Probe function, and SignalProbeSucceeded or
	// SignalProbeFailed after it. If the health changes during the call, or if Close cancels the
	// call, there is no signal after it. The key is the name of the processor.
	//
	//ephemeral:raises health.probe.started:*
	SignalProbeStarted = "health.probe.started" // health.probe.started:pri1
	//ephemeral:raises health.probe.succeeded:*
	SignalProbeSucceeded = "health.probe.succeeded" // health.probe.succeeded:pri1
	//ephemeral:raises health.probe.failed:*
	SignalProbeFailed = "health.probe.failed" // health.probe.failed:pri1: a call of a Probe function has failed
)

// The kinds of the signals whose names have no priority.
var (
	// Exhausted is raised after a failed attempt if there is no next processor, with the error that
	// Do returns.
	Exhausted = signals.NewKind[*Error]("failover.exhausted")
	// Restored follows [SignalRoute] if the route is now the highest priority of all.
	Restored = signals.NewKind[Report]("restore.primary")
)

// The signals that control a Failover. Other code raises them on its sink.
const (
	// CommandRoute with a priority, as in "route.priority.2", changes the route while the
	// signal is on the sink. Items start with this priority, continue with lower ones, and
	// try higher ones last. If the signal has a key, it applies to items whose operation
	// has this key. Otherwise it applies to all items. If there are several such signals,
	// the newest one counts. A priority that no processor has is ignored. Hold the signal
	// (see [signals.Sink.Hold]), because a raised signal is removed when it is too old or
	// when there are too many newer signals. While a route is there, each item costs a
	// search on the sink.
	CommandRoute = "route.priority."
	// CommandUnhealthy and CommandHealthy call [Failover.MarkUnhealthy] and
	// [Failover.MarkHealthy] for the processor whose name is their key. Without a key they
	// apply to all processors. With a priority, as in "processor.mark.healthy:pri2", they
	// apply only to processors of this priority.
	CommandUnhealthy = "processor.mark.unhealthy"
	CommandHealthy   = "processor.mark.healthy"
)

// A Report is the payload of all signals except Exhausted. The fields that are set depend
// on the signal.
type Report struct {
	Processor string // the processor; "" for SignalRoute and Restored
	Priority  int    // priority of the processor; SignalRoute and Restored: the new route, 0 for none
	To        string // SignalFailover: the processor that gets the item

	Next time.Duration // SignalProbeFailed: the time until the next probe
	Err  error         // SignalFailed, SignalFailover, SignalUnhealthy, SignalProbeFailed: the error
}
