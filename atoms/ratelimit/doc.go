// Package ratelimit lets requests pass at a rate: so many in a second, and a burst of
// them after a quiet time.
//
//	l, err := ratelimit.New(100, ratelimit.Options{Burst: 20}) // or Every(10*time.Millisecond)
//	if err != nil {
//		return err
//	}
//	defer l.Close()
//
//	if !l.Allow() { ... }               // a server refuses what is too much
//	if err := l.Wait(ctx); err != nil { // a client waits for its turn
//		return err
//	}
//
// [Wrap] makes work wait for a token before it runs, so that a coordinator whose work calls
// a foreign API keeps to the rate of that API:
//
//	core.NewCoordinator(ratelimit.Wrap(l, callAPI), core.Options{MaxConcurrency: 8})
//
// # Waiting
//
// Requests wait in a queue. The first caller is served first: a request for many tokens is
// not overtaken by later ones for few, and not by Allow. A queued request holds no tokens.
// When its context ends, it leaves the queue, and the requests behind it move up at once. A
// wait that would outlast the deadline of its context is refused at once, and so is one for
// more tokens than the bucket holds. The queue is bounded. [Limiter.Reserve] queues a
// request without waiting. A [Reservation] that is cancelled gives back exactly what it took,
// and its cost can be corrected afterwards.
//
// # Changes
//
// Rate and burst can change while requests wait, by [Limiter.SetRate] and
// [Limiter.SetBurst], or by signals on the sink, such as [CommandSet]:
//
//	sink.Raise(ratelimit.CommandSet + ":50")               // all limiters on the sink
//	sink.RaiseKey(ratelimit.CommandIncrease+":2.5", "api") // the one called api
//
// A change grants no tokens: what is in the bucket stays, and so does what is owed. Only the
// end of [Unlimited] leaves a full bucket. A rate of 0 pauses. [Limiter.PauseFor] pauses for
// a while, when a server says Retry-After, and [Keyed.PauseKeyFor] does so for one of many
// servers. A command that cannot be obeyed is answered by [SignalRejected].
//
// # Token bucket and GCRA
//
// Both are the same rule. A bucket holds up to burst tokens. They come in at the rate,
// continuously, and a request takes some. GCRA, the generic cell rate algorithm of ATM
// networks, keeps the theoretical arrival time (TAT) instead: the time at which the bucket
// is full again. A request for n tokens moves it n intervals of 1/rate into the future, and
// passes if it is then not more than burst intervals away. Because of
//
//	tokens in the bucket = burst - (TAT - now) * rate
//
// both let the same requests pass at the same moments, so one type is both. [Limiter.Tokens]
// is the view of a token bucket, [Limiter.TAT] that of GCRA. The tests compare the
// implementation with an exact model of each, with rates and bursts that change.
//
// Inside, time is counted in tokens instead of nanoseconds, in fixed point to 2^-64 of a
// token. A changed rate is then a clock that goes faster. Nothing is rounded to whole
// nanoseconds, which would be 10 % wrong at 300 million a second.
//
// # Many limits
//
// A [Keyed] is a limiter for each key, such as a client, in bounded memory. A [Group] is
// several limits for each request, such as requests and bytes: all or nothing, and a request
// that waits for one limit holds nothing of another.
//
// # Observing it
//
// Stats counts every request exactly once. While requests are refused or queued,
// [SignalLimited] is held on the sink, where gates of coordinators see it. Its end is
// [SignalRecovered]. There is no signal for a single request, so that Allow costs only a
// lock and a look at the clock. There is no goroutine. A timer is set while requests are
// queued or [SignalLimited] is held.
package ratelimit
