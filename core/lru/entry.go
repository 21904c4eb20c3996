package lru

import "sync/atomic"

// entry is a key and its value, which do not change: a new value is a new entry.
//
// Readers hold no lock. One word, expires, decides whether an entry is still in the cache. To
// remove an entry, a goroutine that holds the shard's lock sets expires to gone. A reader
// uses the entry only if expires is later than now. So an entry that was removed is not
// returned, and a late reader does not revive it.
type entry[K comparable, V any] struct {
	hash    uint64
	key     K
	chain   atomic.Pointer[entry[K, V]] // next in the bucket
	expires atomic.Int64
	uses    atomic.Uint64 // see heat
	ttl     int64         // how long after an access it expires
	latest  int64         // latest expiry; an access does not move it
	value   V

	// Guarded by the shard's lock.
	newer, older *entry[K, V] // in its queue
	main         bool         // which queue
	place        uint32       // in deadlines
}

// lapse removes e if it has expired, and reports whether it is removed.
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

// end removes e, and returns ReasonExpired if e had expired, else reason.
func (e *entry[K, V]) end(now int64, reason Reason) Reason {
	if e.expires.Swap(gone) <= now {
		return ReasonExpired
	}
	return reason
}

// prolong extends the life of e to now+ttl, but not beyond latest. It never shortens the
// life.
func (e *entry[K, V]) prolong(now, ttl int64) {
	to := min(later(now, ttl), e.latest)
	for {
		at := e.expires.Load()
		if at >= to || at == gone || e.expires.CompareAndSwap(at, to) {
			return
		}
	}
}

// found returns the value of e, and whether e is not nil.
func (e *entry[K, V]) found() (value V, ok bool) {
	if e == nil {
		return value, false
	}
	return e.value, true
}

// over reports whether e has expired or was removed.
func (e *entry[K, V]) over(now int64) bool { return e.expires.Load() <= now }
