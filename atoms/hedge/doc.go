// Package hedge makes slow calls faster: a call that takes unusually long is made a second time,
// and the first success counts. The other attempt is cancelled. Unusually long is longer than 95 %
// of the last calls.
//
//	h, err := hedge.New(hedge.Options{})
//	if err != nil {
//		return err
//	}
//	err = h.Do(ctx, func(ctx context.Context) error { return ask(ctx, order) })
//
// [Wrap] does this for the work of a coordinator. Hedge only calls that may be made twice at the
// same time, such as reads.
//
// # When a second attempt starts
//
// The delay is measured from the start of the attempt, so the time in a queue does not count. It is
// the 95th percentile of the last 100 calls. Until 20 of them have succeeded, nothing is hedged.
// With [Options.Delay], the delay is fixed.
//
// At most 5 % more calls are made, see [Options.MaxExtra]. If everything is slow, second calls for
// all would add to the load. For the same reason there are no second attempts while more than 10 %
// of the last calls have failed, see [Options.MaxErrors]. Meanwhile [SignalPaused] is held.
//
// If the first attempt fails before the delay, its error is returned at once: a second attempt after
// an error is the task of module retry. If one attempt fails while the other runs, Do waits for the
// other and returns its result. If both fail, Do returns the error of the first.
//
// # What the work must do
//
// Do returns when both attempts have returned, so no attempt is left behind. The attempt that is no
// longer needed is cancelled: its context ends, with the cause [ErrSlower]. If the work does not
// return then, Do is slow. The context of both attempts ends when Do returns: read a response
// inside of the work.
//
// The first attempt runs on the goroutine of the caller, a second attempt on a new goroutine. Both
// belong to the same operation, which has one slot. [Attempt] tells them apart, for example to ask
// another server. A second attempt charges the class of the operation with one call; see
// [core.Operation.Charge].
//
// With other wrappers, the hedge is the innermost: retry.Wrap(r, ratelimit.Wrap(l, hedge.Wrap(h,
// call))). Otherwise a wait for a token would count as a slow call.
//
// # Observing it
//
// Stats counts calls and second attempts. While a second attempt runs, Explain says that the
// operation waits for it, and [Started] has been raised. A Hedger has no goroutine between calls
// and needs no closing.
package hedge
