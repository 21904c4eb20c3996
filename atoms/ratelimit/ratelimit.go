package ratelimit

import (
	"context"
	"math"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// Unlimited is the rate that lets all requests pass. Rates are in tokens per second, and may be
// fractions. A rate is between [bucket.MinRate], one token per 32 years, and [bucket.MaxRate], one
// per nanosecond, or it is 0, which pauses, or Unlimited.
const Unlimited = bucket.Unlimited

// Every returns the rate of one token per d. Every(time.Minute) is one per minute, and
// Every(time.Hour/50) is 50 per hour. If d is at most 52 days, tokens come exactly d apart. If
// d is 0 or negative, the rate is [Unlimited]. If d is more than 31 years, the rate is below
// [bucket.MinRate].
func Every(d time.Duration) float64 {
	if d <= 0 {
		return Unlimited
	}
	rate := 1e9 / float64(d)
	if math.FMA(rate, float64(d), -1e9) < 0 { // the rate was rounded down: tokens would come late
		rate = math.Nextafter(rate, Unlimited)
	}
	return rate
}

// A Limiter limits the rate of requests, and allows a burst after a quiet time. Make one with
// [New], and close it. Until then, the sink refers to it. All methods are safe for concurrent
// use, also in handlers of signals.
//
// Allow reports whether a request may pass now. It is for servers, which refuse requests. Wait
// waits until a request may pass. It is for clients. Reserve does not wait: it returns a
// [Reservation], which knows the time to wait. Each takes one token. AllowN, WaitN and ReserveN
// take n tokens, and panic if n is negative.
//
// Name, Sink, Reset, PauseFor and Close are the same as in a Keyed: see [Keyed.Name],
// [Keyed.Sink], [Keyed.Reset], [Keyed.PauseFor] and [Keyed.Close].
//
// Allow costs a lock and a clock reading, and allocates nothing. If there is a token, the same
// is true of Wait.
type Limiter struct{ single }

// New makes a limiter with a full bucket. It returns an error if the rate (see [Unlimited] and
// [core.Rate]) or the options are not valid. It starts no goroutine. Without IgnoreCommands, it
// subscribes to commands on the sink.
func New(rate core.Rate, opts Options) (*Limiter, error) {
	rate, opts, err := opts.resolved(rate)
	if err != nil {
		return nil, err
	}
	l := &Limiter{}
	l.init(opts, Limit{opts.Name, rate})
	l.subscribe(opts, true)
	return l, nil
}

// Allow takes a token if there is one and the queue is empty, and reports whether it did.
func (l *Limiter) Allow() bool { return l.AllowN(1) }

// AllowN takes n tokens if there are n and the queue is empty, and reports whether it did.
func (l *Limiter) AllowN(n int) bool {
	cost := [1]int64{costOf("AllowN", n)}
	now, ok := l.takeFast(cost[0])
	if ok {
		return true
	}
	if l.limited.on && l.queue.requests.Len() == 0 && !l.shard.closed { // the same as allow, but faster
		l.limited.last = now
		l.shard.counts.Denied++
		l.shard.mu.Unlock()
		return false
	}
	return l.queue.allow(now, cost[:])
}

// takeFast is takeNow, but faster. It locks, and unlocks if it takes the tokens.
func (l *Limiter) takeFast(n int64) (now int64, ok bool) {
	now = l.now()
	if !l.shard.mu.TryLock() {
		l.shard.mu.lockSlow()
	}
	b := &l.queue.buckets[0]
	if l.queue.requests.Len() > 0 || l.shard.closed || !b.meter.Take(&b.mark, now, n) {
		return now, false
	}
	l.shard.counts.Allowed++
	l.shard.mu.Unlock()
	return now, true
}

// Wait waits for a token; see WaitN.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN waits until there are n tokens, and takes them. Callers are served in the order of
// their calls. A waiter holds no tokens. If ctx ends first, WaitN takes nothing and returns
// the cause of ctx, and the requests behind it move up at once.
//
// In these cases WaitN does not wait, takes nothing and returns
//
//   - the cause of ctx, if ctx has ended;
//   - an error that matches [ErrExceedsBurst], if n is more than the burst;
//   - [ErrTooLate], if the turn would not come before the deadline of ctx;
//   - an error that matches [core.ErrFull], if MaxQueued requests are queued;
//   - an error that matches [core.ErrClosed], after Close.
func (l *Limiter) WaitN(ctx context.Context, n int) error {
	cost := [1]int64{costOf("WaitN", n)}
	if ctx.Err() != nil {
		return l.shard.giveUp(ctx)
	}
	if _, ok := l.takeFast(cost[0]); ok {
		return nil
	}
	l.shard.mu.Unlock()
	r, deadline := newRequest(cost[:]), l.deadline(ctx)
	return l.queue.wait(ctx, l.shard.lock(), r, deadline)
}

// Reserve reserves a token; see ReserveN.
func (l *Limiter) Reserve() *Reservation { return l.ReserveN(1) }

// ReserveN reserves n tokens, and does not wait. The request takes them now if they are there;
// otherwise it is queued. If n is more than the burst, MaxQueued requests are queued, or the
// limiter is closed, OK of the reservation is false.
func (l *Limiter) ReserveN(n int) *Reservation {
	return l.queue.reserve([]int64{costOf("ReserveN", n)})
}

// Rate is the rate in tokens per second.
func (l *Limiter) Rate() float64 { return l.settings(0).Rate }

// Burst is how many tokens the bucket holds.
func (l *Limiter) Burst() int { return l.settings(0).Burst }

// SetRate changes the rate. The tokens in the bucket do not change. Queued requests keep their
// order, and from now on the new rate decides when they pass.
//
// With a rate of 0, no request passes, even if there are tokens, and waiters continue to wait.
// With [Unlimited], all queued requests pass and take no tokens. When the rate changes from
// Unlimited to another one, the bucket is full. If a rate is not valid (see [Unlimited]),
// SetRate returns an error. After Close, it does nothing.
func (l *Limiter) SetRate(rate float64) error { return l.setRate(0, rate) }

// SetBurst changes how many tokens the bucket holds. If burst is not from 1 to 2^40, it returns
// an error. It adds no tokens. Tokens that no longer fit are lost. Queued requests stay in the
// queue. If one of them needs more tokens than the bucket now holds, it passes when the bucket
// is full, and the number of tokens becomes negative.
func (l *Limiter) SetBurst(burst int) error { return l.setBurst(0, burst) }

// Tokens is the number of tokens in the bucket. It is negative if requests took more than there
// were; see [Reservation.Adjust]. Queued requests have not taken their tokens yet.
func (l *Limiter) Tokens() float64 { return l.Stats().Limits[0].Tokens }
