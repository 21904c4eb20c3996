// Package signalaware gates work by signals: while a signal says so, items are refused, or
// wait.
//
//	uploads, err := signalaware.New(upload, signalaware.Options{
//		Sink:     sink,
//		CancelOn: "shutdown, circuit-open",
//		DeferOn:  "backpressure.*",
//	})
//	...
//	defer uploads.Close()
//	sink.Raise("backpressure.downstream") // items wait
//	sink.Raise("shutdown")                // items are refused
//	sink.Retract("shutdown")              // items are accepted again
//
// While a signal matches CancelOn, [Gate.Enqueue] returns a [core.RefusedError] that
// names it, and items that wait are refused instead of being run. While one matches
// DeferOn, items are accepted and wait, all together, without delaying anything else and
// without polling: they go on as soon as the signals are retracted or released, have
// aged, or a newer signal matches ResumeOn. Signals that were raised make them wait for
// MaxDefer at most; then they run all the same, which is counted and raised as
// [core.SignalForced]. A signal that is held makes them wait as long as it is held. Where
// both CancelOn and DeferOn are matched, items are refused.
//
// The gate looks at all signals on the sink, raised or held, by other code or by the work
// itself through its operation. A condition with an end is better held than raised
// ([core.Sink.Hold]): a lease can end it, and nothing else overrides it. A raised signal
// ends after 5 minutes if the sink has default options; hold a condition that lasts
// longer. [Gate.Why] says which signals there are now, Explain what an item waits for.
//
// [Wrap] and [WrapResult] put any other function behind the same gate: the call
// waits, or returns the error, on the goroutine of its caller. [Gate.Do] has the
// shape of such a function itself, so that other middleware can be put around it.
package signalaware
