package lru

// sweeper knows where to look for expired entries, and when it is worth it.
type sweeper struct {
	bucket int   // the next
	first  int64 // no entry expires before
	next   int64 // none that was passed, or came, since bucket 0 does
}

// sweepBuckets is how many buckets an insertion looks at. There are at most four for
// an entry, so that all are looked at within as many insertions as there are
// entries.
const sweepBuckets = 4

// sweepChunk is how many are looked at without giving others the lock.
const sweepChunk = 1024

// expect takes note of an entry that expires at that time, or later.
func (s *sweeper) expect(at int64) {
	s.first = min(s.first, at)
	s.next = min(s.next, at)
}

// sweep removes what has expired in the next few buckets.
func (s *shard[K, V]) sweep(now int64, out *removals[K, V]) {
	w := &s.sweeper
	for range sweepBuckets {
		if now < w.first || s.table.n == 0 {
			return
		}
		if w.bucket == 0 {
			w.next = never
		}
		w.next = min(w.next, s.sweepBucket(w.bucket, now, out))
		w.bucket++
		if w.bucket >= s.table.len() {
			w.bucket, w.first = 0, w.next
		}
	}
}

// sweepBucket removes what has expired in a bucket, and returns when the first of
// the others may expire.
func (s *shard[K, V]) sweepBucket(i int, now int64, out *removals[K, V]) (first int64) {
	first = never
	for e := s.table.bucket(i); e != nil; e = e.chain.Load() {
		if e.lapse(now) {
			s.remove(e, ReasonExpired, out)
		} else {
			first = min(first, e.expires.Load())
		}
	}
	return first
}

// sweepFrom removes what has expired in a chunk of buckets, and returns where to go
// on; 0 if all have been looked at.
func (s *shard[K, V]) sweepFrom(i int, now int64, out *removals[K, V]) (next int) {
	end := min(i+sweepChunk, s.table.len())
	for ; i < end; i++ {
		s.sweepBucket(i, now, out)
	}
	if end == s.table.len() {
		return 0
	}
	return end
}
