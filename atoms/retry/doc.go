// Package retry calls a function again after it has failed, with a delay before each attempt
// and a limit of attempts. Signals report retries.
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
// Make one [Retrier] for all calls of a kind. [Retrier.Do] retries a function, and [DoValue]
// a function with a result. [Wrap] adds retries to the work of a coordinator.
//
// # How a call ends
//
//   - The function succeeds.
//   - Its error is not retried: it is marked [Permanent], or [Options.RetryIf] refuses it. An error
//     that stands for no failure (see guard.Failed of core/guard), such as durable.Snooze, is
//     returned at once, and the call counts as a success.
//     The call returns this error. By default, RetryIf refuses cancellations, among others.
//   - The call gives up: there is no attempt, no time or no budget left, the backoff says
//     stop, or the context has ended. The call returns an [Error], which matches the reason
//     and the last error.
//
// # How long it waits
//
// [Options.Backoff] sets the delay before the next attempt, [Options.MaxDelay] limits it, and
// [Options.Jitter] changes it at random. If a server says how long to wait, use [After] and
// [ParseRetryAfter]. If the next attempt would start after [Options.MaxElapsed] or after the
// deadline of the context, the call gives up at once. The wait ends when the context ends.
//
// # How much it retries
//
// Retries multiply the load on a service that fails because of load. A [Budget] limits the
// retries of all callers to a share of the successful calls, and to a few while none succeed.
//
// # Where it waits
//
// Do waits on the goroutine of its caller, so an operation of a coordinator keeps its slot.
// With [Wrap], an operation that waits for its next attempt gives up its slot, and other items
// run. It keeps its key, lane and class.
//
// # Signals
//
// If the first attempt succeeds, there is no signal. [SignalStarted] and the constants
// beside it list the signals. If the call is part of an operation, the operation raises
// them, and its snapshot shows what it waits for, for how long, and after which error.
package retry
