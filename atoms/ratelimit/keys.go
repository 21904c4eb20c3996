package ratelimit

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// A keyShard has a part of the keys, in its own hash table. A map would hash each key a second
// time.
type keyShard[K comparable] struct {
	meter   bucket.Meter
	heads   []int32 // the first slot of each hash; their number is a power of two
	slots   []slot[K]
	free    []int32 // unused slots
	hand    int     // the slot at which look stopped
	maxKeys int

	dropped   uint64
	forgotten uint64
	shard
}

// A slot has a key and its bucket.
type slot[K comparable] struct {
	key    K
	mark   bucket.Mark
	hash   uint32
	next   int32 // the next slot for the same head, or none
	used   bool
	queued bool // there is a queue for the key, and the mark is in its bucket
}

// none means no slot.
const none int32 = -1

// A new key looks at sweep slots for a full bucket. It is at least 2, so that full buckets are
// found faster than keys come. If there is no room, a new key looks at sweepFull slots.
const (
	sweep     = 2
	sweepFull = 10
)

// find returns the slot of the key, or none.
func (s *keyShard[K]) find(key K, hash uint32) int32 {
	at := *s.head(hash)
	for at != none && (s.slots[at].hash != hash || s.slots[at].key != key) {
		at = s.slots[at].next
	}
	return at
}

func (s *keyShard[K]) head(hash uint32) *int32 { return &s.heads[hash&uint32(len(s.heads)-1)] }

// grow doubles the heads.
func (s *keyShard[K]) grow() {
	s.heads = make([]int32, max(8, 2*len(s.heads)))
	for i := range s.heads {
		s.heads[i] = none
	}
	for at := range s.slots {
		if s.slots[at].used {
			s.link(int32(at))
		}
	}
}

func (s *keyShard[K]) link(at int32) {
	head := s.head(s.slots[at].hash)
	s.slots[at].next, *head = *head, at
}

// add returns a slot for a new key, or none if it finds no room.
func (s *keyShard[K]) add(key K, hash uint32, now int64) (at int32) {
	full, n := len(s.free) == 0 && len(s.slots) >= s.maxKeys, sweep
	if full {
		n = sweepFull
	}
	best := s.look(now, n)
	if full && len(s.free) == 0 {
		if best == none {
			return none
		}
		s.drop(best)
		s.forgotten++
	}
	if last := len(s.free) - 1; last >= 0 {
		at = s.free[last]
		s.free = s.free[:last]
	} else {
		at = int32(len(s.slots))
		s.slots = append(s.slots, slot[K]{})
		if len(s.slots) > len(s.heads) {
			s.grow()
		}
	}
	s.slots[at] = slot[K]{key: key, hash: hash, used: true}
	s.link(at)
	return at
}

// look looks at the next n slots, and drops the keys whose bucket is full. Of the other keys
// that may be dropped, it returns the slot with the fullest bucket, or none.
func (s *keyShard[K]) look(now int64, n int) int32 {
	best, full := none, s.meter.FullMark(now)
	for range min(n, len(s.slots)) {
		s.hand = (s.hand + 1) % len(s.slots)
		at := int32(s.hand)
		it := &s.slots[at]
		switch {
		case !it.used || it.queued && !s.remove(s.queues[at], now):
		case !full.Less(it.mark):
			s.drop(at)
			s.dropped++
		case best == none || it.mark.Less(s.slots[best].mark):
			best = at
		}
	}
	return best
}

func (s *keyShard[K]) drop(at int32) {
	link := s.head(s.slots[at].hash)
	for *link != at {
		link = &s.slots[*link].next
	}
	*link = s.slots[at].next
	s.slots[at] = slot[K]{}
	s.free = append(s.free, at)
}

// forgetAll drops all keys without a queue.
func (s *keyShard[K]) forgetAll() {
	for at := range s.slots {
		if it := &s.slots[at]; it.used && !it.queued {
			s.drop(int32(at))
			s.dropped++
		}
	}
}

// take takes n tokens if it can. If the key has a queue, take returns the queue instead.
func (s *keyShard[K]) take(key K, hash uint32, now, n int64) (ok bool, decides *queue) {
	if s.closed {
		return false, nil
	}
	at := s.find(key, hash)
	if at != none {
		if s.slots[at].queued && !s.remove(s.queues[at], now) {
			return false, s.queues[at]
		}
		return s.meter.Take(&s.slots[at].mark, now, n), nil
	}
	var mark bucket.Mark
	ok = s.meter.Take(&mark, now, n)
	if ok && mark != (bucket.Mark{}) {
		if at = s.add(key, hash, now); at == none {
			return false, nil
		}
		s.slots[at].mark = mark
	}
	return ok, nil
}

// bucketOf returns the bucket of a key, and its queue if there is one.
func (s *keyShard[K]) bucketOf(key K, hash uint32) (tokenBucket, *queue) {
	at := s.find(key, hash)
	if at == none {
		return tokenBucket{meter: &s.meter}, nil
	}
	if q := s.queues[at]; q != nil {
		return q.buckets[0], q
	}
	return tokenBucket{&s.meter, s.slots[at].mark}, nil
}

// queueOf returns the queue of a key. If there is none, it makes one, or returns an error if
// the request could never pass.
func (s *keyShard[K]) queueOf(key K, hash uint32, now int64, costs []int64) (*queue, error) {
	b, q := s.bucketOf(key, hash)
	if q != nil {
		return q, nil
	}
	buckets := []tokenBucket{b}
	if err := s.check(buckets, costs); err != nil {
		return nil, err
	}
	at := s.find(key, hash)
	if at == none {
		at = s.add(key, hash, now)
	}
	if at == none {
		return nil, s.engine.errKeys
	}
	q = &queue{}
	s.addQueue(q, at, buckets)
	s.slots[at].queued = true
	return q, nil
}

// remove removes a queue if it is empty and the key is not paused, and reports whether it did.
// The mark goes from the queue back to the slot.
func (s *keyShard[K]) remove(q *queue, now int64) bool {
	if q.requests.Len() > 0 || s.isPaused(q) && now < q.buckets[0].meter.PausedUntil() {
		return false
	}
	s.endPause(q, now)
	s.slots[q.slot].mark, s.slots[q.slot].queued = q.buckets[0].mark, false
	delete(s.queues, q.slot)
	return true
}

// leave is called when a waiter has left the queue. It removes the queue if it can.
func (s *keyShard[K]) leave(q *queue) {
	now := s.lock()
	if s.queues[q.slot] == q {
		s.remove(q, now)
	}
	s.mu.Unlock()
}

// isPaused reports whether the bucket of a key has its own meter, because the key is or was
// paused.
func (s *keyShard[K]) isPaused(q *queue) bool { return q.buckets[0].meter != &s.meter }

// pause gives the bucket its own meter, and pauses this meter.
func (s *keyShard[K]) pause(q *queue, now int64, d time.Duration) {
	if !s.isPaused(q) {
		own := s.meter
		q.buckets[0].meter = &own
	}
	q.buckets[0].meter.PauseFor(now, d)
}

// endPause gives the bucket the meter of the shard again. The bucket keeps its tokens.
func (s *keyShard[K]) endPause(q *queue, now int64) {
	if b := &q.buckets[0]; s.isPaused(q) {
		*b = tokenBucket{&s.meter, b.meter.Move(b.mark, now, &s.meter)}
	}
}
