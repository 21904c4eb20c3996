// Package circuitbreaker refuses calls to a service while too many of them fail.
//
// A [Breaker] counts failure signals of a sink or of one coordinator. It is open while at
// least [Options.Threshold] of them are not older than [Options.Window]. It closes when they
// are older. Ask it before each call:
//
//	api, err := circuitbreaker.New(sink, circuitbreaker.Options{Name: "api", Failure: "api.failure"})
//	if err != nil {
//		return err
//	}
//	defer api.Close()
//	if err := api.Check(); err != nil {
//		return err // an OpenError: how many failures, and when to try again
//	}
//
// [Wrap] does that for a function. It also raises a failure signal if the function fails. If
// the function raises this signal itself, use Check instead: otherwise the failure counts
// twice.
//
// While the breaker is open, it holds the signal "circuit.open.NAME" on the sink. So any
// coordinator can defer items (DeferOn in core.Options) or refuse them (CancelOn), and
// Explain says which breaker is the reason. While the breaker is half-open, it holds
// "circuit.half_open.NAME". When it opens and closes, it raises [SignalOpened] and
// [SignalClosed], each with a [Change]: the reason, and for how long it was open.
//
// Two breakers on one sink need different names. Breakers with the same [Options.Failure]
// count each other's failures, and so open together.
//
// A breaker can also open when a share of the calls fails ([Options.Rate]). And it can make
// a few calls, the trials, before it closes ([Options.HalfOpen]). For both, only calls
// of Wrap and of [Breaker.Allow] count, because a signal does not report successes.
//
// The capacity of the sink and other signals do not change the count.
//
// Package core/breaker has the same rules without signals, for code that has its own lock.
package circuitbreaker
