package dynamicworkflow

import "github.com/ephemeralgo/ephemeral/core/signals"

// Names that workflow and work share. A Failover of atoms/priorityprocessor has the same names.
const (
	routeHeld         = "route.priority."
	failoverRequested = "failover.requested"
	workHealthy       = "processor.healthy"
	workUnhealthy     = "processor.unhealthy"
)

// Signals about an item. Its operation raises them, so their key is the entity.
const (
	//ephemeral:raises order.placed
	//ephemeral:raises route.priority.*
	SignalPlaced    = "order.placed"    // its work begins
	SignalCompleted = "order.completed" // its work returned nil
)

// Failed is the third of them: the work returned an error or panicked, and was not cancelled. The
// payload is the error.
var Failed = signals.NewKind[error]("order.failed")

// Decisions. The name of such a signal is one of these constants, a colon, and the decision.
// The payload is a [Decision]. The item's operation raises SignalAssigned. The others are
// raised on the sink, with the name of the workflow as key.
const (
	//ephemeral:raises route.assigned:*
	SignalAssigned = "route.assigned" // route.assigned:pri2: an item is routed
	//ephemeral:raises processor.marked.unhealthy:*
	SignalUnhealthy = "processor.marked.unhealthy" // processor.marked.unhealthy:pri1: only one item each 5 s is routed to the priority
	//ephemeral:raises processor.marked.healthy:*
	SignalHealthy = "processor.marked.healthy" // processor.marked.healthy:pri1: items are routed to it again
	//ephemeral:raises concurrency.increased:*
	SignalIncreased = "concurrency.increased" // concurrency.increased:to=6
	//ephemeral:raises concurrency.decreased:*
	SignalDecreased = "concurrency.decreased" // concurrency.decreased:to=2
)

// Decisions is the family of all decisions. For signals that other code raises under the same
// names, its method From returns false.
var Decisions = signals.NewFamily[Decision]("route.assigned:*,processor.marked.*,concurrency.*")

// Decision is the payload of decisions. Which fields are set depends on the signal.
type Decision struct {
	Priority int    // set in all signals except SignalIncreased and SignalDecreased
	From, To int    // SignalIncreased, SignalDecreased: the limit before and after
	Reason   string // SignalIncreased, SignalDecreased: the reason, such as "high failure rate: 12.5%"
}

// Measured is raised on the sink at the end of an interval, before the decision. The key is the
// name of the workflow.
var Measured = signals.NewKind[Metrics]("workflow.measured")
