package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
	"github.com/ephemeralgo/ephemeral/core/outbox"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// maxSpan is the longest span of time in nanoseconds, 146 years.
const maxSpan = 1 << 62

// infinite is the delay of a request that will never pass.
const infinite = time.Duration(bucket.Never)

// An engine is the common part of a [Limiter], a [Group] and a [Keyed]: the shards, and the
// functions that change all of them.
type engine struct {
	name        string
	limits      []string // keys of commands and signals, one for each meter of a shard
	sink        *signals.Sink
	unsubscribe func()
	begin       time.Time
	maxQueued   int64
	shards      []*shard
	changes     sync.Mutex // locked while all shards are changed

	errClosed, errFull, errExceeds, errKeys, errCancelled error

	queued  atomic.Int64  // requests in all queues
	effects outbox.Outbox // signals to raise
}

// Name is [Options.Name], or its default.
func (e *engine) Name() string { return e.name }

// A shard is a lock and the data that it guards: meters, queues in front of buckets, and
// counters. A Limiter and a Group have one shard with one queue. A Keyed has many shards, with
// a queue for each key that has waiters or is paused.
type shard struct {
	engine *engine
	meters []*bucket.Meter
	queues map[int32]*queue
	forget func() // forgets all keys without a queue; nil if there are no keys
	counts Counts
	closed bool
	raises bool // unlock has effects to run

	_  cacheLine
	mu mutex
	_  cacheLine
}

// init makes the engine. It does not subscribe yet.
func (e *engine) init(opts Options, limits []string, shards ...*shard) {
	e.name, e.sink, e.limits, e.shards = opts.Name, opts.Sink, limits, shards
	e.begin, e.maxQueued, e.unsubscribe = time.Now(), int64(opts.MaxQueued), func() {}
	e.errClosed = &refusal{e.name, "is closed", core.ErrClosed}
	e.errFull = &refusal{e.name, "has MaxQueued requests in its queue", core.ErrFull}
	e.errExceeds = &refusal{e.name, "was asked for more tokens than its burst", ErrExceedsBurst}
	e.errKeys = &refusal{e.name, "has no room for the key: Capacity others are waited for or paused", core.ErrFull}
	e.errCancelled = &refusal{e.name, "has cancelled the reservation", core.ErrCancelled}
	for _, s := range shards {
		s.engine, s.queues = e, map[int32]*queue{}
	}
}

// addQueue adds the queue of the buckets.
func (s *shard) addQueue(q *queue, slot int32, buckets []tokenBucket) {
	q.shard, q.slot, q.buckets, q.alarm = s, slot, buckets, bucket.Never
	s.queues[slot] = q
}

func (e *engine) now() int64 { return int64(time.Since(e.begin)) }

// lock reads the clock, and then locks.
func (s *shard) lock() (now int64) {
	now = s.engine.now()
	if !s.mu.TryLock() { // does the same as Lock, but is inlined
		s.mu.lockSlow()
	}
	return now
}

// unlock unlocks and runs the effects.
func (s *shard) unlock() {
	raises := s.raises
	s.raises = false
	s.mu.Unlock()
	if raises {
		s.engine.effects.Run()
	}
}

// afterUnlock makes unlock run an effect.
func (s *shard) afterUnlock(effect func()) {
	s.engine.effects.Add(effect)
	s.raises = true
}

// giveUp counts a request whose context has ended before the call.
func (s *shard) giveUp(ctx context.Context) error {
	s.mu.Lock()
	s.counts.Cancelled++
	s.mu.Unlock()
	return context.Cause(ctx)
}

// check returns an error if the request can never pass.
func (s *shard) check(buckets []tokenBucket, costs []int64) error {
	if s.closed {
		return s.engine.errClosed
	}
	for i, cost := range costs {
		if m := buckets[i].meter; cost > m.Burst() && m.Rate() != Unlimited {
			return s.engine.errExceeds
		}
	}
	return nil
}

// read settles the queues and returns the counters.
func (s *shard) read(now int64) Counts {
	queued := 0
	for _, q := range s.queues {
		q.settle(now)
		q.schedule(now)
		queued += q.requests.Len()
	}
	return s.counts.plus(Counts{Queued: queued})
}

// deadline returns the deadline of ctx, or never if there is none. It uses the time that is
// left, because the wall clock may have been set since begin.
func (e *engine) deadline(ctx context.Context) int64 {
	at, ok := ctx.Deadline()
	if !ok {
		return bucket.Never
	}
	return e.now() + min(int64(time.Until(at)), maxSpan)
}

// tooLate returns an error if a request is not due before the deadline.
func (e *engine) tooLate(due, now, deadline int64) error {
	if due < deadline {
		return nil
	}
	err := &deadlineError{limiter: e.name, wait: infinite, left: time.Duration(deadline - now)}
	if due != bucket.Never {
		err.wait = time.Duration(due - now)
	}
	return err
}

// change calls fn for each shard that is not closed, one after the other, and then runs the
// effects. From then on, the new settings decide when queued requests are due. All shards get
// the same changes in the same order.
func (e *engine) change(fn func(s *shard, now int64)) {
	e.changes.Lock()
	for _, s := range e.shards {
		now := s.lock()
		if !s.closed {
			s.read(now)
			fn(s, now)
			for _, q := range s.queues {
				q.changed(now)
				q.schedule(now)
			}
		}
		s.unlock()
	}
	e.changes.Unlock()
	e.effects.Run()
}

// eachMeter calls fn with the meter of a limit, and with the meters of paused keys.
func (s *shard) eachMeter(limit int, fn func(m *bucket.Meter)) {
	shared := s.meters[limit]
	fn(shared)
	for _, q := range s.queues {
		if own := q.buckets[limit].meter; own != shared {
			fn(own)
		}
	}
}

// fill fills the buckets of a limit.
func (s *shard) fill(limit int, now int64) {
	if s.forget != nil {
		s.forget()
	}
	s.meters[limit].Fill(now)
	for _, q := range s.queues {
		b := &q.buckets[limit]
		b.mark = b.meter.Fill(now)
	}
}

// settings returns the rate and the burst of a limit.
func (e *engine) settings(limit int) Change {
	s := e.shards[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings(limit)
}

func (s *shard) settings(limit int) Change {
	return Change{s.meters[limit].Rate(), int(s.meters[limit].Burst())}
}

// update sets a limit to the settings that next returns, and raises applied. If next returns a
// rule, update changes nothing and returns this rule.
func (e *engine) update(on signals.Raiser, limit int, applied signals.Kind[Change], next func(old Change) (Change, string)) (rule string) {
	var to Change
	e.change(func(s *shard, now int64) {
		if s == e.shards[0] {
			to, rule = next(s.settings(limit))
		}
		if rule != "" {
			return
		}
		s.apply(limit, to, now)
		if s == e.shards[len(e.shards)-1] {
			e.effects.Add(func() { applied.Raise(on, e.limits[limit], to) })
		}
	})
	return rule
}

// apply changes the rate and the burst of a limit.
func (s *shard) apply(limit int, to Change, now int64) {
	fill := false
	s.eachMeter(limit, func(m *bucket.Meter) {
		if m.Rate() != to.Rate {
			fill = m.SetRate(now, to.Rate)
		}
		m.SetBurst(now, int64(to.Burst))
	})
	if fill {
		s.fill(limit, now)
	}
}

func (e *engine) setRate(limit int, rate float64) error {
	to, err := checkRate(core.Rate{PerSecond: rate})
	if err == nil {
		e.update(e.sink, limit, RateApplied, func(old Change) (Change, string) { return Change{to.PerSecond, old.Burst}, "" })
	}
	return err
}

func (e *engine) setBurst(limit int, burst int) error {
	err := checkRange("SetBurst", burst, 1, int(bucket.MaxBurst))
	if err == nil {
		e.update(e.sink, limit, BurstApplied, func(old Change) (Change, string) { return Change{old.Rate, burst}, "" })
	}
	return err
}

// reset fills the buckets of the limits from first to end-1.
func (e *engine) reset(first, end int) {
	e.change(func(s *shard, now int64) {
		for limit := first; limit < end; limit++ {
			s.fill(limit, now)
		}
	})
}

// Sink is [Options.Sink], or the sink that was made in its place.
func (e *engine) Sink() *signals.Sink { return e.sink }

// Reset fills the buckets, even if Tokens is negative. Queued requests are served first.
func (e *engine) Reset() { e.reset(0, len(e.limits)) }

// PauseFor pauses for the time d, for example because a server said Retry-After. Meanwhile no
// request passes, no tokens come in, and waiters continue to wait. If there are several pauses,
// the one that ends last counts. If d is 0 or negative, PauseFor ends all pauses.
func (e *engine) PauseFor(d time.Duration) {
	e.change(func(s *shard, now int64) {
		for limit := range e.limits {
			s.eachMeter(limit, func(m *bucket.Meter) { m.PauseFor(now, d) })
		}
	})
}

// Close ends the subscription to commands. After that, Allow returns false, and Wait
// returns an error that matches [core.ErrClosed], even in calls that wait already. Close
// may be called several times. It returns nil.
func (e *engine) Close() error {
	e.unsubscribe()
	e.change(func(s *shard, now int64) {
		s.closed = true
		for _, q := range s.queues {
			q.close(now)
		}
	})
	return nil
}

// A single is an engine with one shard and one queue: a [Limiter] or a [Group].
type single struct {
	limited condition
	queue   queue
	shard   shard
	engine
}

// init makes a single with full buckets. It does not subscribe yet.
func (s *single) init(opts Options, limits ...Limit) {
	var names []string
	buckets := make([]tokenBucket, len(limits))
	for i, limit := range limits {
		m := bucket.Start(0, limit.Rate.PerSecond, int64(limit.Rate.Burst))
		s.shard.meters = append(s.shard.meters, &m)
		buckets[i] = tokenBucket{meter: &m}
		names = append(names, limit.Name)
	}
	s.engine.init(opts, names, &s.shard)
	s.queue.limited = &s.limited
	s.shard.addQueue(&s.queue, 0, buckets)
}

// Stats returns the counters and the state, read together.
func (s *single) Stats() Stats {
	now := s.shard.lock()
	defer s.shard.mu.Unlock()
	st := Stats{Counts: s.shard.read(now)}
	for i, name := range s.limits {
		st.Limits = append(st.Limits, s.queue.buckets[i].state(name, now))
	}
	return st
}
