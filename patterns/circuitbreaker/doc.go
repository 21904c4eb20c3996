// Package circuitbreaker refuses calls to a service while too many of them fail.
//
// A [Breaker] counts signals that say "failure", of a sink or of one coordinator. While there
// are [Options.Threshold] of them that are not older than [Options.Window], it is open. It
// closes as they age. Calls ask it first:
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
// [Wrap] does that for a function: it refuses while the breaker is open, and raises the
// failure itself. A function that raises it already needs Check only, or it counts twice.
//
// While the breaker is open, the fact "circuit.open.NAME" is held on the sink. So any
// coordinator waits for it (core.Options.DeferOn) or refuses items (core.Options.CancelOn),
// and Explain says which breaker it is.
//
// Beyond that, a breaker opens when a share of the calls fails ([Options.Rate]), and can let
// probes find out whether the service works again ([Options.HalfOpen]). Both need to know
// how calls end, so they look at the calls of Wrap and of [Breaker.Allow] only. With
// probes, a result that comes from before the last change of the state does not count.
//
// Signals are counted as they arrive. Other signals, however many, do not change the count,
// and neither do the capacity of the sink and the window of the coordinator.
//
// Package core/breaker has the same rules without signals, for code that has its own lock.
package circuitbreaker
