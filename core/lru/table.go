package lru

import "sync/atomic"

// table finds entries by key: buckets of linked entries. It is read without a lock, and
// changed with the lock of the shard.
//
// A new entry becomes the head of its bucket, or takes the place of the entry that it
// replaces. An entry that was taken out keeps its link. So a reader finds every entry that
// was there all the time. Growing changes the links, and a reader may lose its way. So there
// are no buckets while the table grows, and a reader that has not found its key checks
// whether the buckets are still the same.
type table[K comparable, V any] struct {
	buckets atomic.Pointer[[]bucket[K, V]]
	_       cacheLine // readers do not share a cache line with writers
}

type bucket[K comparable, V any] = atomic.Pointer[entry[K, V]]

type cacheLine [128]byte

const minBuckets = 8

// bucketOf uses the low bits of a hash; the high ones choose the shard.
func bucketOf[K comparable, V any](buckets []bucket[K, V], hash uint64) *bucket[K, V] {
	return &buckets[hash&uint64(len(buckets)-1)]
}

// peek finds the entry of a key without the lock. If it finds none and is not sure, the
// caller has to take the lock and use find.
func (t *table[K, V]) peek(hash uint64, key K) (e *entry[K, V], sure bool) {
	buckets := t.buckets.Load()
	if buckets == nil {
		return nil, false
	}
	for e := bucketOf(*buckets, hash).Load(); e != nil; e = e.chain.Load() {
		if e.hash == hash && e.key == key {
			return e, true
		}
	}
	return nil, t.buckets.Load() == buckets
}

func (t *table[K, V]) find(hash uint64, key K) *entry[K, V] {
	e, _ := t.peek(hash, key)
	return e
}

// insert adds e. N is the number of entries with e.
func (t *table[K, V]) insert(e *entry[K, V], n int) {
	buckets := t.buckets.Load()
	if buckets == nil || 2*n > len(*buckets) {
		buckets = t.grow()
	}
	b := bucketOf(*buckets, e.hash)
	e.chain.Store(b.Load())
	b.Store(e)
}

// replace puts e in the place of old.
func (t *table[K, V]) replace(old, e *entry[K, V]) {
	e.chain.Store(old.chain.Load())
	t.linkTo(old).Store(e)
}

func (t *table[K, V]) remove(e *entry[K, V]) {
	t.linkTo(e).Store(e.chain.Load())
}

// clear frees the buckets of an empty table.
func (t *table[K, V]) clear() { t.buckets.Store(nil) }

// linkTo returns the link that points to e.
func (t *table[K, V]) linkTo(e *entry[K, V]) *atomic.Pointer[entry[K, V]] {
	link := bucketOf(*t.buckets.Load(), e.hash)
	for at := link.Load(); at != e; at = link.Load() {
		link = &at.chain
	}
	return link
}

// grow doubles the buckets.
func (t *table[K, V]) grow() *[]bucket[K, V] {
	old := t.buckets.Load()
	if old == nil {
		old = new([]bucket[K, V])
	}
	buckets := make([]bucket[K, V], max(minBuckets, 2*len(*old)))
	t.buckets.Store(nil)
	for i := range *old {
		for e := (*old)[i].Load(); e != nil; {
			next := e.chain.Load()
			b := bucketOf(buckets, e.hash)
			e.chain.Store(b.Load())
			b.Store(e)
			e = next
		}
	}
	t.buckets.Store(&buckets)
	return &buckets
}
