package ratelimit

import (
	"context"
	"math"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Rates are in tokens per second, and may be fractions. Besides those between MinRate
// and MaxRate there are two more: 0 pauses, and Unlimited, or math.Inf(1), lets
// everything pass.
const (
	MinRate   = 1e-9 // one in 32 years
	MaxRate   = 1e9  // one in a nanosecond
	Unlimited = math.MaxFloat64
)

// maxBurst is the largest burst, and the most that one request can cost.
const maxBurst = int64(min(1<<40, math.MaxInt))

// Options configure a [Limiter]. The zero value is the default.
type Options struct {
	// Name tells limiters apart: it is the key of the signals that the limiter
	// raises, and of the commands that are for it alone. "" means "ratelimit".
	Name string
	// Burst is how many tokens the bucket holds, and so how many may be had at
	// once after a quiet time: at most 2^40; 0 means 20. It cannot be negative.
	Burst int
	// MaxWaiting is how many may stand in line, waits and reservations that are
	// not due yet; whoever comes then is refused. 0 means 10,000; at most 2^20.
	MaxWaiting int
	// NoControl makes the limiter deaf to commands on the sink.
	NoControl bool
	// Sink is where the limiter raises its signals and hears commands; nil means
	// one of its own.
	Sink *core.Sink
}

// A Limiter lets requests pass at a rate, and a burst of them after a quiet time.
// Make one with [New]. A sink that others have too holds on to it until it is closed.
// All methods are safe for concurrent use, from handlers of signals as well.
//
// Allow says at once whether a request may pass; it is for servers, which refuse what
// is too much. Wait waits until it may, which is for clients. Reserve says when it
// may, and leaves the waiting to the caller. Each takes a token; AllowN, WaitN and
// ReserveN take n, and panic if n is negative.
//
// Allow, and Wait when it does not have to wait, cost a lock and a look at the clock,
// and allocate nothing.
type Limiter struct {
	bucket [1]bucket
	meter  meter
	shell
}

// New makes a limiter of so many tokens per second, with a full bucket, or says
// what is wrong. It starts no goroutine; unless told not to, it subscribes to
// commands on the sink.
func New(rate float64, opts Options) (*Limiter, error) {
	rate, err := checkRate(rate)
	if err != nil {
		return nil, err
	}
	if opts.Name == "" {
		opts.Name = defaultName
	}
	if opts.Burst == 0 {
		opts.Burst = defaultBurst
	}
	if err := checkBurst("Burst", opts.Burst); err != nil {
		return nil, err
	}
	if err := checkMaxWaiting(&opts.MaxWaiting); err != nil {
		return nil, err
	}
	l := &Limiter{meter: newMeter(0, rate, int64(opts.Burst))}
	l.bucket[0] = bucket{&l.meter, lowest}
	l.open(opts.Name, opts.Sink, opts.MaxWaiting, l.bucket[:])
	if !opts.NoControl {
		l.unsubscribe = l.sink.Subscribe(commandPattern, func(s core.Signal) {
			if s.Key == "" || s.Key == l.name {
				heed(l.sink, l.part(), l.name, s)
			}
		})
	}
	return l, nil
}

func (l *Limiter) part() part { return part{&l.shell, l.name, &l.bucket[0]} }

// Allow takes a token if there is one and nobody waits for it, and reports whether
// it did.
func (l *Limiter) Allow() bool { return l.AllowN(1) }

// AllowN takes n tokens if there are as many and nobody waits, and reports whether it
// did.
func (l *Limiter) AllowN(n int) bool {
	if n < 0 {
		panic("ratelimit: AllowN needs a number of tokens that is not negative")
	}
	now := l.room.now()
	if !l.mu.TryLock() {
		l.mu.lockSlow()
	}
	if l.room.line.first == nil {
		switch v := l.meter.take(&l.bucket[0].mark, now, int64(n)); {
		case v == taken:
			l.counts.allowed++
			l.mu.Unlock()
			return true
		case v == short && l.condition.on:
			l.condition.last = now
			l.counts.denied++
			l.mu.Unlock()
			return false
		}
	}
	cost := [1]int64{int64(n)}
	return l.room.allow(now, cost[:])
}

// Wait waits for a token; see WaitN.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN takes n tokens, and waits until there are as many. Who comes first is served
// first, and holds nothing while it waits: when ctx ends, WaitN returns its cause, and
// those behind move up at once, as if it had never come.
//
// It returns at once, having taken nothing, with [ErrExceedsBurst] if there can never
// be as many; with a [*DeadlineError] if ctx has a deadline that is not later than its
// turn would be; with an error that is [core.ErrFull] if MaxWaiting stand in line
// already; and with the cause of ctx if that has ended.
func (l *Limiter) WaitN(ctx context.Context, n int) error {
	if n < 0 {
		panic("ratelimit: WaitN needs a number of tokens that is not negative")
	}
	if ctx.Err() != nil {
		l.room.giveUp()
		return context.Cause(ctx)
	}
	now := l.room.now()
	if !l.mu.TryLock() {
		l.mu.lockSlow()
	}
	if l.room.line.first == nil {
		v := l.meter.take(&l.bucket[0].mark, now, int64(n))
		if v == unclear && !l.room.closed {
			v = l.meter.takeSlow(&l.bucket[0].mark, now, int64(n))
		}
		if v == taken {
			l.counts.allowed++
			l.mu.Unlock()
			return nil
		}
	}
	l.mu.Unlock()
	return l.room.wait(ctx, newPlace(n))
}

// Reserve reserves a token; see ReserveN.
func (l *Limiter) Reserve() *Reservation { return l.ReserveN(1) }

// ReserveN takes a place in line for n tokens, and waits for nothing. Its OK is false
// if n is more than the burst, MaxWaiting stand in line, or the limiter is closed.
func (l *Limiter) ReserveN(n int) *Reservation {
	if n < 0 {
		panic("ratelimit: ReserveN needs a number of tokens that is not negative")
	}
	return l.reserve(n)
}

// Rate is the rate in tokens per second.
func (l *Limiter) Rate() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.meter.rate
}

// Burst is how many tokens the bucket holds.
func (l *Limiter) Burst() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.meter.burst)
}

// SetRate changes the rate. The tokens in the bucket, or owed, stay as they are, and
// those who wait keep their order and are due by the new rate from now on. A rate of 0
// pauses: nothing passes, whatever is in the bucket, and those who wait go on waiting.
// An unlimited one lets all pass that wait, and takes nothing for it. SetRate returns
// an error for other rates that are not between [MinRate] and [MaxRate], and does
// nothing once the limiter is closed.
func (l *Limiter) SetRate(rate float64) error { return l.part().setRate(rate) }

// SetBurst changes how many tokens the bucket holds: 1 to 2^40, or it returns an
// error. It does not put any in, and takes out what no longer fits. Those in line stay
// there: who asked for more than now fits has it when the bucket is full, and the rest
// is owed.
func (l *Limiter) SetBurst(burst int) error { return l.part().setBurst(burst) }

// Reset fills the bucket, and forgets what is owed. Those who wait are served from it
// first.
func (l *Limiter) Reset() { l.part().Reset() }

// Tokens is how many tokens are in the bucket, to 2^-64 of one; negative if more
// were used than there were, see [Reservation.Adjust]. Those who wait hold none.
func (l *Limiter) Tokens() float64 { return l.part().tokens() }

// TAT is the theoretical arrival time of GCRA: when the bucket will be full, if
// nothing more is taken than those in line want; now if it is. It is the zero time if
// the limiter is paused before. A request of n tokens passes at once if it is not
// later than burst-n intervals of 1/rate from now.
func (l *Limiter) TAT() time.Time {
	r := &l.room
	now := r.now()
	l.mu.Lock()
	done := r.settle(now)
	b := &l.bucket[0]
	at := now
	if b.meter.rate != Unlimited && (r.line.first != nil || b.meter.level(b.mark, now).whole < b.meter.burst) {
		at = r.line.dueBehind(r.line.owed, b.meter.burst, now)
	}
	r.unlock(now, done)
	if at == never {
		return time.Time{}
	}
	return r.begin.Add(time.Duration(at))
}

// Stats returns the counters of the limiter, read as one cut.
func (l *Limiter) Stats() Stats {
	now := l.room.now()
	l.mu.Lock()
	done := l.room.settle(now)
	s := l.stats()
	s.Rate, s.Burst = l.meter.rate, int(l.meter.burst)
	s.Tokens = l.meter.level(l.bucket[0].mark, now).float()
	l.room.unlock(now, done)
	return s
}
