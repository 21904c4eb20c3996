package ratelimit

import (
	"context"
	"hash/maphash"
	"math/bits"
	"runtime"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// A Keyed is a limiter for each key, such as a client. All keys have the same rate and burst.
// Make one with [NewKeyed], and close it. All methods are safe for concurrent use. A method with
// the name of a method of [Limiter] does the same, for one key.
//
// A Keyed remembers at most Capacity keys. A key costs its own size and about 50 bytes. If the
// bucket of a key is full again, the key is like a new one, so a new key may take its place.
// There is no goroutine that cleans up: for each new key, the Keyed checks a few old ones.
//
// If Capacity keys are in use, the Keyed checks ten old keys for each new one. It forgets those
// with a full bucket. If there are none, it forgets the one with the fullest bucket, and counts
// it in [KeyedStats]. A forgotten key that comes back starts with a full bucket. This gives no
// advantage to a client, because it could also use a new key. Keys that have waiters or are
// paused are never forgotten. If all ten are such keys, the new key is refused: Allow returns
// false, and Wait returns an error that matches [core.ErrFull].
//
// A key that does not equal itself, such as NaN, is a new key each time, so it is not limited.
//
// A Keyed raises the signals about changes and rejected commands. It does not raise
// [SignalLimited], because one key may be limited and another not.
type Keyed[K comparable] struct {
	seed maphash.Seed
	keys []keyShard[K]
	engine
}

// NewKeyed makes a limiter for each key; see [New].
func NewKeyed[K comparable](rate core.Rate, opts Options) (*Keyed[K], error) {
	rate, opts, err := opts.resolved(rate)
	if err != nil {
		return nil, err
	}
	n := 1
	if opts.Capacity >= 8192 { // shards with few keys would have uneven loads
		n = min(64, 1<<bits.Len(uint(4*runtime.GOMAXPROCS(0)-1)))
	}
	k := &Keyed[K]{seed: maphash.MakeSeed(), keys: make([]keyShard[K], n)}
	shards := make([]*shard, n)
	for i := range k.keys {
		s := &k.keys[i]
		s.meter = bucket.Start(0, rate.PerSecond, int64(rate.Burst))
		s.maxKeys = (opts.Capacity + n - 1) / n
		s.grow()
		s.meters, s.forget = []*bucket.Meter{&s.meter}, s.forgetAll
		shards[i] = &s.shard
	}
	k.init(opts, []string{opts.Name}, shards...)
	k.subscribe(opts, true)
	return k, nil
}

// shardOf returns the shard of a key, and the hash of the key in this shard.
func (k *Keyed[K]) shardOf(key K) (s *keyShard[K], hash uint32) {
	h := maphash.Comparable(k.seed, key)
	return &k.keys[h&uint64(len(k.keys)-1)], uint32(h >> 32)
}

// Allow takes a token of the key if there is one and the queue of the key is empty, and
// reports whether it did.
func (k *Keyed[K]) Allow(key K) bool { return k.AllowN(key, 1) }

// AllowN takes n tokens of the key if there are n and the queue of the key is empty, and
// reports whether it did.
func (k *Keyed[K]) AllowN(key K, n int) bool {
	cost := [1]int64{costOf("AllowN", n)}
	s, hash := k.shardOf(key)
	now := k.now()
	if !s.mu.TryLock() {
		s.mu.lockSlow()
	}
	ok, q := s.take(key, hash, now, cost[0])
	if q != nil {
		return q.allow(now, cost[:])
	}
	if ok {
		s.counts.Allowed++
	} else {
		s.counts.Denied++
	}
	s.mu.Unlock()
	return ok
}

// Wait waits for a token of the key; see [Limiter.WaitN].
func (k *Keyed[K]) Wait(ctx context.Context, key K) error { return k.WaitN(ctx, key, 1) }

// WaitN waits until the key has n tokens, and takes them; see [Limiter.WaitN]. Each key has its
// own queue.
func (k *Keyed[K]) WaitN(ctx context.Context, key K, n int) error {
	cost := [1]int64{costOf("WaitN", n)}
	s, hash := k.shardOf(key)
	if ctx.Err() != nil {
		return s.giveUp(ctx)
	}
	now := s.lock()
	ok, _ := s.take(key, hash, now, cost[0])
	if ok {
		s.counts.Allowed++
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	r, deadline := newRequest(cost[:]), k.deadline(ctx)
	now = s.lock()
	q, err := s.queueOf(key, hash, now, cost[:])
	if err != nil {
		s.counts.Denied++
		s.mu.Unlock()
		return err
	}
	defer s.leave(q)
	return q.wait(ctx, now, r, deadline)
}

// Tokens is the number of tokens in the bucket of the key; see [Limiter.Tokens].
func (k *Keyed[K]) Tokens(key K) float64 {
	s, hash := k.shardOf(key)
	now := s.lock()
	defer s.mu.Unlock()
	b, _ := s.bucketOf(key, hash)
	return b.state("", now).Tokens
}

// Delay is the time until Allow returns true for the key, if nothing changes and no other
// request takes its tokens. A server can send it as Retry-After. If the rate is 0 or the
// limiter is closed, it is the longest [time.Duration].
func (k *Keyed[K]) Delay(key K) time.Duration {
	s, hash := k.shardOf(key)
	now := s.lock()
	defer s.mu.Unlock()
	b, q := s.bucketOf(key, hash)
	due := b.meter.Due(b.mark, 1, now)
	if q != nil {
		due = q.dueNext([]int64{1}, now)
	}
	if s.closed || due == bucket.Never {
		return infinite
	}
	return time.Duration(max(0, due-now))
}

// Rate is the rate in tokens per second.
func (k *Keyed[K]) Rate() float64 { return k.settings(0).Rate }

// Burst is how many tokens the bucket of a key holds.
func (k *Keyed[K]) Burst() int { return k.settings(0).Burst }

// SetRate changes the rate for all keys; see [Limiter.SetRate]. Its cost does not depend on the
// number of keys, except if the rate was [Unlimited].
func (k *Keyed[K]) SetRate(rate float64) error { return k.setRate(0, rate) }

// SetBurst changes the burst for all keys; see [Limiter.SetBurst].
func (k *Keyed[K]) SetBurst(burst int) error { return k.setBurst(0, burst) }

// PauseKeyFor pauses one key for the time d; PauseFor pauses all keys. If d is 0 or negative, it
// ends the pause of the key, but not a pause of all keys. After Close, or if the key is new and
// is refused (see [Keyed]), PauseKeyFor returns an error.
func (k *Keyed[K]) PauseKeyFor(key K, d time.Duration) error {
	s, hash := k.shardOf(key)
	now := s.lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.engine.errClosed
	}
	_, q := s.bucketOf(key, hash)
	change := s.endPause
	if d > 0 {
		var err error
		if q, err = s.queueOf(key, hash, now, nil); err != nil {
			return err
		}
		change = func(q *queue, now int64) { s.pause(q, now, d) }
	}
	if q != nil {
		q.change(now, func() { change(q, now) })
		q.schedule(now)
		s.remove(q, now)
	}
	return nil
}

// Stats returns the counters and the state. The shards are read one after the other; the
// equation of [Counts] holds for each shard and for the sum.
func (k *Keyed[K]) Stats() (st KeyedStats) {
	for i := range k.keys {
		s := &k.keys[i]
		now := s.lock()
		st.Counts = st.Counts.plus(s.read(now))
		st.Keys += len(s.slots) - len(s.free)
		st.Forgotten += s.forgotten
		s.mu.Unlock()
	}
	return st
}
