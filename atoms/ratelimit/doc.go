// Package ratelimit lets requests pass at a rate: so many in a second, and a burst of
// them after a quiet time.
//
//	l, err := ratelimit.New(100, ratelimit.Options{Burst: 20})
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
// [Wrap] makes work wait before it is done, so a coordinator whose work calls somebody
// else's API keeps to what that allows:
//
//	core.NewCoordinator(ratelimit.Wrap(l, callAPI), core.Options{MaxConcurrency: 8})
//
// # Waiting
//
// Who comes first is served first, one that wants many tokens before those behind it
// that want few; Allow does not overtake who waits. Who waits holds nothing: when its
// context ends, it leaves, and those behind move up at once. A wait that would outlast
// the deadline of its context is refused at once, and so is one for more tokens than
// the bucket can hold. The line is bounded. [Limiter.Reserve] takes a place in line
// without waiting; a reservation gives back exactly what it took when it is cancelled,
// and can be told afterwards what was really used.
//
// # Changing it
//
// Rate and burst change while requests wait, by [Limiter.SetRate] and
// [Limiter.SetBurst], or by signals on the sink ([CommandSet] and others):
//
//	sink.Raise(ratelimit.CommandSet + ":50")               // all limiters on the sink
//	sink.RaiseKey(ratelimit.CommandIncrease+":2.5", "api") // the one called api
//
// A change grants nothing: what is in the bucket stays as it is, and so does what is
// owed. A rate of 0 pauses. [Limiter.PauseFor] does for a while, when a server says
// Retry-After. What cannot be heeded is said by [SignalRejected].
//
// # Token bucket and GCRA
//
// They are the same rule, told twice. A bucket holds up to burst tokens; they come in
// at the rate, continuously, and a request takes some. GCRA, the generic cell rate
// algorithm of ATM networks, keeps the theoretical arrival time (TAT) instead: the time
// at which the bucket is full again. A request of n moves it n intervals of 1/rate into
// the future, and passes if it is then not more than burst intervals away. With both
// in view,
//
//	tokens in the bucket = burst - (TAT - now) * rate
//
// so they let the same requests pass at the same moments, and there is one type for
// both: [Limiter.Tokens] is what those look at who think of buckets, and [Limiter.TAT]
// what those do who think of GCRA. The tests hold the engine against an exact model of
// either, with rates and bursts that change.
//
// Inside, time is counted in tokens instead of nanoseconds, in fixed point to 2^-64 of
// one. A changed rate is then only a clock that goes faster, and nothing is rounded to
// whole nanoseconds, which at 300 million a second would be 10 % wrong.
//
// # Many limits
//
// [Keyed] is a limiter for each key, such as a client, in bounded memory. [Group] is
// several limits for each request, such as requests and bytes: all or nothing, and
// nothing of one is held while it waits for another.
//
// # What is it doing?
//
// Stats counts every request exactly once. While requests are refused or wait,
// [SignalLimited] is held on the sink, where gates of coordinators and anybody else see
// it; its end is [SignalRecovered]. There is no signal for a single request, so that
// Allow stays as cheap as it is: a lock and a look at the clock. There is no goroutine
// either; a timer is set while somebody waits, or [SignalLimited] stands.
package ratelimit
