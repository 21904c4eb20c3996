// Package molecules runs workflows that signals start. A [Blueprint] says which signals start
// a workflow, and what its steps are. If a step fails, the steps before it are undone. A
// [Runner] listens to the signals and runs the steps in the background:
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
// Each signal that matches starts a [Run]; the signal is the trigger of the run. The steps
// of a run are done one after the other. They share the run: its trigger, values, and
// methods that raise signals. A step can first wait for a signal with the same key; see
// [Step.Await].
//
// At most [Options.MaxConcurrency] runs go on at the same time. The others wait in a queue.
// [Options.Order] says which runs must not overlap. The goroutine that raises a signal never
// waits for the runs. When the queue is full, a signal starts no run: it counts as Rejected,
// and [SignalDropped] is raised.
//
// A run keeps its slot while a step waits for a signal. If that signal comes from another run,
// the other run needs a slot, and [Options.Order] must not make it wait for the first run.
// Otherwise the step fails with an [AwaitError] after its AwaitTimeout.
//
// # Failures
//
// When a step fails, panics or is cancelled, later steps are not done. The completed steps are
// undone by their Compensate functions, the last one first. If a Compensate function fails,
// the others are still called, and its error is joined to the error of the run. A cancelled
// run is compensated, too. So the context of Compensate is not cancelled with the run; its
// time limit is [Options.CompensateTimeout]. The step that failed is not compensated: it must
// leave nothing behind. To retry a step, wrap its function, which is a [core.Work] of a *Run.
//
// Runs are in memory only. They do not survive the process.
//
// # Signals
//
// A run raises signals about its progress, see [SignalStarted]. The last one is always one
// of [SignalCompleted], [SignalFailed] and [SignalCancelled]. Runs are also operations of
// the runner, which show the step that they have reached; see [State].
//
// The trigger is the cause of all signals that a run raises. If workflows start each other in
// a circle, the sink's rules of [core.Propagation] end the circle. By default, a signal is not
// recorded if its own name is among its causes, or if it has more than ten causes. This also
// applies to the signals about a run. For example, if a trigger was caused by molecule.failed,
// its run cannot raise molecule.failed.
//
// These signals start no run and no call, so that the pattern "*" does not react for ever:
//
//   - signals that any Runner raises about its runs; a Trigger does react to them,
//   - signals that a step raises with [core.OperationFrom] and without a cause, for the
//     same Runner or Trigger: use the methods of [Run] instead,
//   - [core.SignalStarted] and [core.SignalStopped].
//
// If a step raises a signal on the sink without a cause, the Runner does not know its origin.
// Such signals are not protected against loops.
package molecules
