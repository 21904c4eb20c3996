package lru

import "sync/atomic"

// entry is a key and its value, which do not change: another value is another
// entry.
//
// Readers hold no lock. Whether an entry is still in the cache is decided by one
// word, expires: who ends the life of an entry sets it to gone, with the shard's
// lock held, and who reads the entry has seen it in the cache if it was later than
// now. So an entry can neither be served after it was removed, nor get a new life
// from a reader who was late.
type entry[K comparable, V any] struct {
	hash    uint64
	key     K
	chain   atomic.Pointer[entry[K, V]] // next in the bucket
	expires atomic.Int64
	uses    atomic.Uint64 // see heat
	ttl     int64         // how long after an access it expires
	latest  int64         // no access lets it expire later
	value   V

	// Guarded by the shard's lock.
	newer, older *entry[K, V] // in its queue
	main         bool         // which queue
}

// lapse ends the life of e if its time is over, and reports whether it has ended.
func (e *entry[K, V]) lapse(now int64) bool {
	for {
		at := e.expires.Load()
		if at > now {
			return false
		}
		if at == gone || e.expires.CompareAndSwap(at, gone) {
			return true
		}
	}
}

// prolong lets e live for span from now on, if that is longer than it would, and
// not longer than it may.
func (e *entry[K, V]) prolong(now, span int64) {
	to := min(later(now, span), e.latest)
	for {
		at := e.expires.Load()
		if at >= to || at == gone || e.expires.CompareAndSwap(at, to) {
			return
		}
	}
}

// over reports whether e would be found expired.
func (e *entry[K, V]) over(now int64) bool { return e.expires.Load() <= now }
