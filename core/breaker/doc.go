// Package breaker decides whether something that fails may be called: the state of a
// circuit breaker, as plain data. It has no lock, no clock and no goroutine, and calls
// nothing. The caller passes the time, and holds a lock if goroutines share the
// breaker.
//
//	b, err := breaker.New(breaker.Options{Threshold: 5, OpenFor: 30 * time.Second})
//	...
//	permit, ok := b.Allow(time.Now())
//	if !ok {
//		return fmt.Errorf("try again in %v", b.ClosesIn(time.Now()))
//	}
//	result := breaker.Success
//	if err = call(); err != nil {
//		result = breaker.Failure
//	}
//	b.Done(permit, time.Now(), result)
//
// A closed breaker allows every call. It opens when calls fail: [Options.Threshold] of
// them in a row, or that many within [Options.Window], or the share [Options.Rate] of
// the calls in Window. An open breaker allows no call for [Options.OpenFor]. Then it is
// half-open and allows [Options.Trials] calls at once. It closes when that many trials
// have succeeded, and opens again when one has failed.
//
// A result counts only if the call began in the present state of the breaker. So a slow
// call that began before the breaker opened neither closes it nor keeps it open. A call
// that was cancelled shows nothing: its result is [Neutral], and if it was a trial,
// another call may be a trial.
//
// Use this package to build something that guards calls. To keep the items of a
// coordinator waiting while something is down, hold a fact with signals.Sink.Hold and name
// it in core.Options.DeferOn.
package breaker
