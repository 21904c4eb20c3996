// Package signalaware refuses items, or lets them wait, while a signal is present on a sink.
//
//	uploads, err := signalaware.New(upload, core.Options{
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
// While a signal matches CancelOn, Enqueue returns a [core.RefusedError] with this
// signal, and items that wait are refused.
//
// While a signal matches DeferOn, items are accepted and wait. They do not poll, and other
// items are not delayed. They continue when the signals are gone, or when a newer signal matches
// ResumeOn. A raised signal lets an item wait for at most MaxDefer. Then the item runs, and
// [core.SignalForced] is raised. A held signal lets items wait until it is released. If signals
// match both CancelOn and DeferOn, items are refused.
//
// The gate looks at all signals on the sink, signals of the work itself included. A raised
// signal is gone after 5 minutes if the sink has the default options, or earlier if there are
// many newer signals. For a condition that lasts, use [signals.Sink.Hold]. [Gate.Why] lists the
// signals that are present now. Explain says what an item waits for.
//
// [Wrap] and [WrapResult] put another function behind the same gate. A call waits, or returns
// the error, on the goroutine of its caller. Do of a [Gate] has the form of such a function itself,
// so you can wrap it.
package signalaware
