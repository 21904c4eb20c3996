// Package molecules runs workflows that signals start, and undoes the steps before one that fails.
// A [Blueprint] says which signals start a workflow, and what its steps are. A [Runner] listens to
// the signals and runs the steps in the background:
//
//	order := molecules.Blueprint{
//		Name: "order",
//		On:   "order.placed",
//		Steps: []molecules.Step{
//			{Name: "reserve", Do: reserve, Compensate: release},
//			{Name: "pay", Do: pay, Compensate: refund},
//			{Name: "ship", Await: "payment.settled", Do: ship},
//		},
//	}
//	runner, err := molecules.New(sink, []molecules.Blueprint{order}, molecules.Options{})
//	...
//	defer runner.Close()
//	sink.RaiseKey("order.placed", "order-42")
//
// A [Trigger] is simpler: it calls one function, in the background, for each signal that
// matches a pattern.
//
// # Runs
//
// Each signal that matches starts a [Run]. This signal is the trigger of the run. The steps
// of a run are done one after the other. They share the run: its trigger, values, and
// methods that raise signals. A step can first wait for a signal with the key of the trigger;
// see [Step.Await].
//
// At most [Options.MaxConcurrency] runs go on at the same time. The others wait in a queue.
// [Options.Order] says which runs must not overlap. The goroutine that raises a signal never
// waits for the runs. If the queue is full, a signal starts no run: it counts as Rejected,
// and [SignalDropped] is raised.
//
// A run keeps its slot while a step waits for a signal. If another run raises that signal, the
// other run needs a slot too, and [Options.Order] must not make it wait for the first run.
// Otherwise the step fails after its AwaitTimeout.
//
// # Failures
//
// If a step fails, panics or is cancelled, later steps are not done. The Compensate functions of
// the completed steps are called, the last one first. If one of them fails, the others are still
// called, and the error joins the error of the run. The step that failed is not compensated: it
// must leave nothing behind. A cancelled run is compensated, too. So the context of Compensate does
// not end when the run is cancelled. [Options.CompensateTimeout] limits it. The function of a step
// is a [core.Work] for a *Run: to retry a step, wrap its function.
//
// Runs are in memory only. They do not survive the process.
//
// # Signals
//
// A run raises signals about its progress, see [SignalStarted]. The last one is always one
// of [SignalCompleted], [SignalFailed] and [SignalCancelled]. Each run is also an operation of
// the runner. The operation shows the step that the run has reached, in its value "molecule".
//
// The trigger is the cause of all signals that a run raises. If workflows start each other in
// a circle, the sink's rules of [signals.Propagation] end the circle. By default, a signal is not
// recorded if its own name is among its causes, or if it has more than ten causes. This also
// applies to the signals about a run. For example, if a trigger was caused by molecule.failed,
// its run cannot raise molecule.failed.
//
// Some signals start nothing, so that a pattern such as "*" causes no endless loop:
//
//   - Signals that a Runner raises about its runs start no run of any Runner. A [Trigger] does
//     react to them.
//   - Signals that a step raises with [core.OperationFrom], without a cause, start no run of the
//     same Runner. If they must start one, use the methods of [Run]. Such signals of a Trigger's
//     function start no call of the same Trigger.
//   - [signals.SignalStarted] and [signals.SignalStopped] start nothing.
//
// If a step raises a signal on the sink without a cause, the Runner does not know its origin. So
// it cannot prevent a loop of such signals.
package molecules
