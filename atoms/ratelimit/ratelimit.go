package ratelimit

import (
	"context"
	"math"
	"time"
)

// Rates are in tokens per second, and may be fractions. Besides the rates between MinRate
// and MaxRate there are two more: 0 pauses, and Unlimited, or math.Inf(1), lets everything
// pass.
const (
	MinRate   = 1e-9 // one in 32 years
	MaxRate   = 1e9  // one in a nanosecond
	Unlimited = math.MaxFloat64
)

// Every is the rate of one token each d: New(Every(time.Minute), ...) is one a minute, and
// Every(time.Hour/50) is 50 an hour. The next token is there exactly d after the one before,
// if d is at most 52 days. A d of 0 or less means [Unlimited]; a d of more than 31 years is
// below [MinRate].
func Every(d time.Duration) float64 {
	if d <= 0 {
		return Unlimited
	}
	rate := 1e9 / float64(d)
	if math.FMA(rate, float64(d), -1e9) < 0 { // rounded down, it would be late
		rate = math.Nextafter(rate, Unlimited)
	}
	return rate
}

// A Limiter lets requests pass at a rate, and a burst of them after a quiet time.
// Make one with [New]. The sink refers to it until Close. All methods are safe for
// concurrent use, from handlers of signals as well.
//
// Allow says at once whether a request may pass. It is for servers, which refuse what is
// too much. Wait waits until the request may pass, which is for clients. Reserve says when
// it may pass, and does not wait. Each takes one token. AllowN, WaitN and ReserveN take n
// tokens, and panic if n is negative.
//
// Allow, and Wait when it does not have to wait, cost a lock and a look at the clock, and
// allocate nothing.
type Limiter struct{ single }

// New makes a limiter of so many tokens per second, with a full bucket. It returns an error
// if the rate or the options are not valid. It starts no goroutine. It subscribes to
// commands on the sink, except with IgnoreCommands.
func New(rate float64, opts Options) (*Limiter, error) {
	rate, opts, err := opts.resolved(rate)
	if err != nil {
		return nil, err
	}
	l := &Limiter{}
	l.init(opts, Limit{opts.Name, rate, opts.Burst})
	l.subscribe(opts, true)
	return l, nil
}

// Allow takes a token if there is one and the queue is empty, and reports whether it did.
func (l *Limiter) Allow() bool { return l.AllowN(1) }

// AllowN takes n tokens if there are as many and the queue is empty, and reports whether it
// did.
func (l *Limiter) AllowN(n int) bool {
	cost := [1]int64{costOf("AllowN", n)}
	now, ok := l.takeFast(cost[0])
	if ok {
		return true
	}
	if l.limited.on && l.queue.requests.Len() == 0 && !l.shard.closed { // as allow does it, but faster
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
	if l.queue.requests.Len() > 0 || l.shard.closed || !b.meter.take(&b.mark, now, n) {
		return now, false
	}
	l.shard.counts.Allowed++
	l.shard.mu.Unlock()
	return now, true
}

// Wait waits for a token; see WaitN.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN takes n tokens, and waits until there are as many. The first caller is served
// first. A waiter holds no tokens. When ctx ends before the tokens are there, WaitN returns
// the cause of ctx, and the requests behind move up at once, as if it had never come.
//
// WaitN returns at once, and takes nothing, in these cases: with the cause of ctx if that
// has ended; with [ErrExceedsBurst] if n is more than the burst; with a [*DeadlineError] if
// the turn would not come before the deadline of ctx; with an error that is [core.ErrFull]
// if MaxQueued requests are queued; with an error that is [core.ErrClosed] after Close.
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

// ReserveN queues a request for n tokens, and does not wait. OK of the reservation is false
// if n is more than the burst, MaxQueued requests are queued, or the limiter is closed.
func (l *Limiter) ReserveN(n int) *Reservation {
	return l.queue.reserve([]int64{costOf("ReserveN", n)})
}

// Rate is the rate in tokens per second.
func (l *Limiter) Rate() float64 { return l.settings(0).Rate }

// Burst is how many tokens the bucket holds.
func (l *Limiter) Burst() int { return l.settings(0).Burst }

// SetRate changes the rate. The tokens in the bucket, or owed, stay as they are. Queued
// requests keep their order and are due by the new rate from now on. A rate of 0 pauses:
// nothing passes, whatever is in the bucket, and waiters go on waiting. The rate Unlimited
// lets all queued requests pass, and takes no tokens for them; the bucket is full when it
// ends. SetRate returns an error for other rates that are not between [MinRate] and
// [MaxRate], and does nothing after Close.
func (l *Limiter) SetRate(rate float64) error { return l.setRate(0, rate) }

// SetBurst changes how many tokens the bucket holds: 1 to 2^40, or it returns an error. It
// adds no tokens, and takes out those that no longer fit. Queued requests stay in the queue:
// one for more tokens than now fit gets them when the bucket is full, and the bucket owes
// the rest.
func (l *Limiter) SetBurst(burst int) error { return l.setBurst(0, burst) }

// Tokens is how many tokens are in the bucket, to 2^-64 of one. It is negative if more were
// used than there were, see [Reservation.Adjust]. Queued requests hold none.
func (l *Limiter) Tokens() float64 { return l.stats().Limits[0].Tokens }

// TAT is the theoretical arrival time of GCRA: when the bucket will be full, if nothing more
// is taken than by the queued requests; now if it is full. If that is never, because the
// rate is 0, TAT is the zero time. It is never later than 146 years after New. A request of
// n tokens passes at once if TAT is not later than burst-n intervals of 1/rate from now.
func (l *Limiter) TAT() time.Time {
	q := &l.queue
	now := l.shard.lock()
	defer q.unlock(now)
	q.settle(now)
	at := now
	b := q.buckets[0]
	if q.requests.Len() > 0 || b.meter.level(b.mark, now).whole < b.meter.burst {
		at = q.dueNext([]int64{b.meter.burst}, now)
	}
	if at == never && b.meter.rate == 0 {
		return time.Time{}
	}
	return l.begin.Add(time.Duration(min(at, maxSpan)))
}

// Stats returns the counters and the state of the limiter.
func (l *Limiter) Stats() Stats {
	all := l.stats()
	return Stats{all.Counts, all.Limits[0], all.Limited}
}
