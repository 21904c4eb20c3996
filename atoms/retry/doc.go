// Package retry calls again what has failed, after a while and a bounded number of
// times, and says so.
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
// function, [Value] one that has a result, and [Wrap] makes work that retries itself,
// for a coordinator or for anything else that takes such functions.
//
// # When it ends
//
// With success; with an error that no attempt will mend: one marked [Permanent], one
// that [Options.RetryIf] says no to, or a cancellation that the function itself
// reports; or by giving up, for want of attempts, time or budget, or because the
// context of the call has ended. What it gave up on is never lost: the [Error] that it
// returns matches the reason and the last error.
//
// # How long it waits
//
// Between two attempts it asks [Options.Backoff], with the number of the attempt that
// has failed, cuts the answer to [Options.MaxDelay], and lets [Options.Jitter] change
// it. An error knows better if a server has said how long to stay away: see [After] and
// [ParseRetryAfter]. Nothing is waited for in vain: a retry that would come later than
// [Options.MaxElapsed] or the deadline of the context allows is given up on at once,
// and the end of the context ends the wait.
//
// # How much it retries
//
// A service that fails under its load is not helped by three times as much. A [Budget],
// shared by all who call it, lets retries be a part of the calls that succeed, and few
// when none do.
//
// # Where it waits
//
// Do waits where it is called: inside an operation of a coordinator, that keeps its
// place there. A [Queue] is a coordinator where what backs off makes room for others.
//
// # What it says
//
// A first attempt that succeeds says nothing, and costs next to nothing. Otherwise there
// are signals (see [SignalAttempt] and those beside it), raised by the operation that the
// call is part of, if it is: so its snapshot shows that it backs off, for how long, and
// after which error.
package retry
