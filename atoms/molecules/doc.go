// Package molecules runs workflows that are set off by signals. A [Blueprint] says
// which signals, and what is to be done, step by step, and how to undo a step when a
// later one fails. A [Runner] listens and does it, in the background:
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
// A [Trigger] is the smaller sibling: one pattern, one function, called in the
// background for each signal that matches.
//
// # Runs
//
// Each signal that matches sets off a [Run]. Its steps share it: the signal itself,
// values, and a way to raise signals. They are done one after the other, and a step
// may first wait for a signal with the same key ([Step.Await]). Different runs go
// side by side, so many at once; the others wait in a queue ([Options.Order] says
// which wait for each other). Whoever raised the signal never waits. When the queue
// is full too, the signal sets nothing off, which is counted and raised as
// [SignalDropped].
//
// A run waits in its slot for what a step awaits. If it can only go on when other
// runs have come their way, leave room for these, and do not put them in order
// behind it: it would end in an [AwaitError].
//
// # When something goes wrong
//
// When a step fails, panics or is cancelled, later steps are not done, and those
// that were are undone by their Compensate functions, the last first. A compensation
// that fails does not keep the others from being done; its error is joined to that of
// the run. A run that is cancelled is undone all the same, so the context of a
// compensation is not cancelled with the run; it has a time limit of its own
// ([Options.CompensateTimeout]). The step that failed is not compensated: it is its
// own business to leave nothing behind. To have a step tried again, wrap its
// function, which is a [core.Work] of a *Run.
//
// All of this is in memory. It does not outlive the process.
//
// # Signals
//
// A run says what becomes of it (see [SignalStarted]), to the very end, which is
// always one of [SignalCompleted], [SignalFailed] and [SignalCancelled]. What runs,
// waits, and has ended is on show as operations, with the step they have come to
// ([State]).
//
// What a run raises it raises because of its trigger. So when molecules set each
// other off in a circle, or one itself, the sink's rules of [core.Propagation] end
// it: by default, a signal that is among its own causes is not recorded, nor one ten
// causes deep. That goes for the signals about a run, too: one whose trigger has
// molecule.failed among its causes cannot raise molecule.failed again. So that even
// patterns like "*" come to rest, these set off nothing:
//
//   - the signals that any Runner raises about its runs (a Trigger reacts to them),
//   - what a step raises with [core.OperationFrom], not naming a cause, as far as the
//     same Runner or Trigger is concerned: use the methods of [Run] instead,
//   - [core.SignalStarted] and [core.SignalStopped].
//
// What a step raises on the sink without naming a cause cannot be told from what
// anybody else raises.
package molecules
