package core

import (
	"maps"

	"github.com/ephemeralgo/ephemeral/core/internal/lists"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
)

// ratedKeys are the buckets of keys. A key is here while it has operations, and after that
// until its buckets are full. The order of keys stays in the keyTable.
type ratedKeys struct {
	meters
	known  map[string]*ratedKey
	peak   int         // highest len(known) since the map was made
	fresh  []*ratedKey // keys that have changed since they were settled
	parked keyHeap     // keys that have operations and lack tokens
	idle   keyHeap     // keys without operations whose buckets are not full
	swept  int64       // when the idle keys were last checked
}

// ratedKey has the buckets of a key.
type ratedKey struct {
	buckets
	text  string
	at    int64    // when the key is to be settled, if it is in a heap
	in    *keyHeap // nil: none
	place int
	fresh bool
}

func (r *ratedKeys) obtain(text string) *ratedKey {
	k := r.known[text]
	if k == nil {
		k = &ratedKey{text: text}
		lists.Put(&r.known, text, k)
		r.peak = max(r.peak, len(r.known))
	}
	return k
}

// change says that something about a key has changed, and returns it.
func (r *ratedKeys) change(text string) *ratedKey {
	k := r.obtain(text)
	if !k.fresh {
		k.fresh = true
		r.fresh = append(r.fresh, k)
	}
	return k
}

// wait puts a key into a heap.
func (k *ratedKey) wait(in *keyHeap, at int64) {
	if k.in != in || k.at != at {
		k.leave()
		k.at = at
		in.push(k)
	}
}

func (k *ratedKey) leave() {
	if k.in != nil {
		k.in.remove(k.place)
	}
}

// forget drops a key with full buckets.
func (r *ratedKeys) forget(k *ratedKey) {
	k.leave()
	delete(r.known, k.text)
	if r.peak > 64 && len(r.known) < r.peak/8 {
		fewer := make(map[string]*ratedKey, 2*len(r.known))
		maps.Copy(fewer, r.known)
		r.known, r.peak = fewer, len(fewer)
		r.parked.shrink()
		r.idle.shrink()
	}
}

// Once in sweepEvery, at most sweepMost idle keys are looked at: so a sweep holds the lock for some
// 50 microseconds, and a full bucket is kept for about a second.
const (
	sweepEvery = int64(1e9)
	sweepMost  = 256
)

// sweep forgets idle keys with full buckets.
func (r *ratedKeys) sweep(now int64) {
	r.swept = now
	for range sweepMost {
		if len(r.idle.keys) == 0 || r.idle.keys[0].at > now {
			return
		}
		r.forget(r.idle.keys[0])
	}
	r.swept = now - sweepEvery + 1e6 // go on soon
}

// nextSweep returns when sweep can forget a key.
func (r *ratedKeys) nextSweep() int64 { return max(r.idle.first(), r.swept+sweepEvery) }

// keyHeap is a heap of keys, the earliest first.
type keyHeap struct{ keys []*ratedKey }

func (h *keyHeap) first() int64 {
	if len(h.keys) == 0 {
		return clock.Never
	}
	return h.keys[0].at
}

func (h *keyHeap) push(k *ratedKey) {
	h.keys = append(h.keys, k)
	k.in = h
	h.up(len(h.keys)-1, k)
}

func (h *keyHeap) remove(i int) {
	h.keys[i].in = nil
	end := len(h.keys) - 1
	last := h.keys[end]
	h.keys[end] = nil
	h.keys = h.keys[:end]
	if i < end {
		h.down(i, last)
		if last.place == i {
			h.up(i, last)
		}
	}
}

func (a *ratedKey) before(b *ratedKey) bool {
	return a.at < b.at || a.at == b.at && a.text < b.text
}

func (h *keyHeap) set(i int, k *ratedKey) { h.keys[i], k.place = k, i }

func (h *keyHeap) up(i int, k *ratedKey) {
	for ; i > 0; i = (i - 1) / 2 {
		parent := h.keys[(i-1)/2]
		if !k.before(parent) {
			break
		}
		h.set(i, parent)
	}
	h.set(i, k)
}

func (h *keyHeap) down(i int, k *ratedKey) {
	for {
		child := 2*i + 1
		if child+1 < len(h.keys) && h.keys[child+1].before(h.keys[child]) {
			child++
		}
		if child >= len(h.keys) || !h.keys[child].before(k) {
			break
		}
		h.set(i, h.keys[child])
		i = child
	}
	h.set(i, k)
}

// shrink gives back the memory of a heap that was much larger.
func (h *keyHeap) shrink() {
	h.keys = append(make([]*ratedKey, 0, 2*len(h.keys)), h.keys...)
}
