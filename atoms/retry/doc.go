// Package retry calls a function again that has failed, after a delay and a bounded number
// of times, and raises signals about it.
//
//	r, err := retry.New(retry.Options{
//		Attempts: 4,
//		Backoff:  retry.Exponential(100*time.Millisecond, 2),
//		MaxDelay: 5 * time.Second,
//		Jitter:   retry.FullJitter,
//	})
//	...
//	err = r.Do(ctx, func(ctx context.Context) error { return send(ctx, order) })
//
// A [Retrier] is made once and shared by all calls of a kind. [Retrier.Do] retries a
// function, [DoValue] a function that has a result, and [Wrap] makes work that retries
// itself, for a coordinator or for anything else that takes such functions.
//
// # When it ends
//
// A call ends with success. It ends with an error that is not retried: an error marked
// [Permanent], an error that [Options.RetryIf] refuses, or a cancellation that the function
// itself reports. And it gives up when there are no attempts, no time or no budget left,
// when the backoff says stop, or when the context of the call has ended: the [Error] that
// it then returns matches the reason and the last error.
//
// # How long it waits
//
// Between two attempts a call gets the delay from [Options.Backoff], with the number of the
// attempt that has failed, cuts it to [Options.MaxDelay], and lets [Options.Jitter] change
// it. If a server has said how long to wait, an error can say so: see [After] and
// [ParseRetryAfter]. If the next attempt would begin later than [Options.MaxElapsed] or the
// deadline of the context allows, the call gives up at once. The end of the context ends
// the wait.
//
// # How much it retries
//
// Retries multiply the load on a service that fails under its load. A [Budget], shared by
// all its callers, limits retries to a part of the calls that succeed, and to a few when
// none succeed.
//
// # Where it waits
//
// Do waits on the goroutine of its caller: an operation of a coordinator keeps its slot
// meanwhile. In a [Queue] an item that backs off is suspended: it gives up its slot, and
// other items run.
//
// # Signals
//
// A first attempt that succeeds raises no signal, and costs next to nothing. Otherwise
// there are signals (see [SignalStarted] and the constants beside it). If the call is part
// of an operation, the operation raises them: its snapshot shows that it backs off, for how
// long, and after which error.
package retry
