package dynamicworkflow

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Signals about an item, raised by its operation, so that their key is the entity.
const (
	SignalPlaced    = "order.placed"    // its work begins
	SignalCompleted = "order.completed" // its work returned nil
	SignalFailed    = "order.failed"    // its work returned an error or panicked, and was not cancelled
)

// Decisions. All have one form: the name, a colon, what was decided, and a [Decision] as the
// payload. SignalAssigned is raised by the item's operation, the others on the sink, with the
// name of the workflow as key.
const (
	SignalAssigned      = "route.assigned"             // route.assigned:pri2: an item is routed
	SignalUnhealthy     = "processor.marked.unhealthy" // processor.marked.unhealthy:pri1
	SignalHealthy       = "processor.marked.healthy"   // processor.marked.healthy:pri1
	SignalProbeStarting = "probe.starting"             // probe.starting:pri1
	SignalProbeSuccess  = "probe.success"              // probe.success:pri1
	SignalProbeFailed   = "probe.failed"               // probe.failed:pri1
	SignalIncreased     = "concurrency.increased"      // concurrency.increased:to=6
	SignalDecreased     = "concurrency.decreased"      // concurrency.decreased:to=2
)

// Decisions are the kinds of all decisions. Its From reports false for signals of the same
// names that others raise.
var Decisions = core.NewFamily[Decision]("route.assigned:*,processor.marked.*,probe.*,concurrency.*")

// Decision is the payload of decisions. Which fields are set depends on the signal.
type Decision struct {
	Priority int           // of all but the concurrency
	From, To int           // concurrency: the limit before and after
	Reason   string        // concurrency: why, as in "high failure rate: 12.5%"
	Err      error         // SignalProbeFailed
	Next     time.Duration // SignalUnhealthy, SignalProbeFailed: how long until the next probe
}

// SignalMeasured is raised on the sink, with the name of the workflow as key, at the end of
// an interval, before the decision.
const SignalMeasured = "workflow.measured"

// Measured is the kind of [SignalMeasured].
var Measured = core.NewKind[Metrics](SignalMeasured)
