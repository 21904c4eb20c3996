// Package signalaware gates work by signals: while one says so, items are refused,
// or wait.
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
//	sink.Retract("shutdown")              // and are not any more
//
// While a signal matches CancelOn, [Gate.Enqueue] returns a [core.RefusedError] that
// names it, and items that wait are refused instead of being run. While one matches
// DeferOn, items are accepted and wait, all together, without holding up anything
// else and without looking again and again: they go on as soon as the signals are
// retracted or released, have aged, or a newer one matches ResumeOn. After MaxDefer
// they run all the same, which is counted and raised as [core.SignalForced]. Where
// both kinds stand, refusing wins.
//
// What matters is what stands, wherever it comes from: facts and held facts on the
// sink, raised by whomever, or by the work itself through its operation. A condition
// with an end is better held than raised ([Gate.Hold]): it cannot be forgotten.
// [Gate.Why] says what stands now, [Gate.Explain] what an item waits for.
//
// [Wrap] and [WrapResult] put any other function behind the same gate: the call
// waits, or returns the error, on the goroutine that makes it. [Gate.Do] has the
// shape of such a function itself, so that other middleware can be put around it.
package signalaware
