// Package ratelimit limits the rate of requests: a number of requests per second, and a
// burst of requests after a quiet time.
//
//	l, err := ratelimit.New(core.Rate{PerSecond: 100, Burst: 20}, ratelimit.Options{})
//	if err != nil {
//		return err
//	}
//	defer l.Close()
//
//	if !l.Allow() { ... }               // a server refuses a request
//	if err := l.Wait(ctx); err != nil { // a client waits for its turn
//		return err
//	}
//
// [Wrap] makes work wait for a token before it runs. So a coordinator whose work calls an API
// keeps the rate limit of that API:
//
//	core.NewCoordinator(ratelimit.Wrap(l, callAPI), core.Options{MaxConcurrency: 8})
//
// While an item waits in Wrap it keeps its slot. If it gave up its slot, the coordinator would
// start more items, until items of all lanes wait in the limiter's queue, which knows no lanes.
// If only one coordinator uses the rate, use [core.Class] instead: items wait for tokens in
// their lanes, without a slot, and Explain says when the next token comes. Use this package if
// several coordinators share a rate, or for code outside of coordinators.
//
// # Waiting
//
// Requests wait in a queue, first come, first served. No request goes before a queued one,
// neither a smaller request nor Allow. A queued request holds no tokens. If its context ends,
// it leaves the queue, and the requests behind it move up at once.
//
// Wait refuses a request at once if it needs more tokens than the bucket holds, or if its turn
// would come after the deadline of its context. The length of the queue is limited.
//
// [Limiter.Reserve] queues a request without waiting. If a [Reservation] is cancelled before its
// turn, the bucket is as if it had never been made. Its cost can be corrected afterwards.
//
// # Changes
//
// Rate and burst can change while requests wait, by [Limiter.SetRate] and
// [Limiter.SetBurst]. Code that has no limiter raises signals on the sink, such as [CommandSet]:
//
//	err := l.SetRate(50)                                   // this limiter
//	sink.Raise(ratelimit.CommandSet + ":50")               // all limiters on the sink
//	sink.RaiseKey(ratelimit.CommandIncrease+":2.5", "api") // the one called api
//
// A change adds no tokens. But if the rate was [Unlimited], the bucket is full after the
// change. A rate of 0 pauses. PauseFor pauses for a time, for example the time in
// a Retry-After header, and [Keyed.PauseKeyFor] pauses one key. If a command is not valid,
// the limiter raises [CommandRejected].
//
// # Token bucket and GCRA
//
// Both are the same rule. A bucket holds up to burst tokens. They come in continuously, at the
// rate. A request takes some of them. GCRA, the generic cell rate algorithm of ATM networks,
// keeps the theoretical arrival time (TAT) instead: the time at which the bucket is full
// again. A request for n tokens moves TAT n intervals of 1/rate into the future. It passes if
// TAT is then at most burst intervals away. The formula
//
//	tokens in the bucket = burst - (TAT - now) * rate
//
// shows that both let the same requests pass at the same moments. [Limiter.Tokens] is the view
// of a token bucket. The tests compare the implementation
// with an exact model of each, with rates and bursts that change. Package core/bucket has the
// arithmetic: nothing is rounded to whole nanoseconds.
//
// # Many limits
//
// A [Keyed] is a limiter for each key, such as a client, in bounded memory. A [Group] has
// several limits for each request, such as requests and bytes. A request takes tokens of all
// limits at once. While it waits, it holds none.
//
// # Observing it
//
// Stats counts each request exactly once. While requests are refused or queued,
// [SignalLimited] is held on the sink, so coordinators can defer or refuse items. When that
// ends, [SignalRecovered] is raised. There is no signal for a single request, because Allow
// should cost only a lock and a clock reading. There is no goroutine. There is a timer while
// requests are queued or [SignalLimited] is held.
package ratelimit
