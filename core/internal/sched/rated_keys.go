package sched

import (
	"cmp"
	"maps"

	"github.com/ephemeralgo/ephemeral/core/internal/meters"
)

// ratedKeys decide when a key with rates gets its turns: they have the buckets of keys. A key is here
// while it has items, and after that until its buckets are full. Its items stay in the keyTable.
type ratedKeys struct {
	meters.Meters
	known  map[string]*ratedKey
	peak   int         // highest len(known) since the map was made
	fresh  []*ratedKey // keys that have changed since they were settled
	parked keyHeap     // keys that have items and lack tokens
	idle   keyHeap     // keys without items whose buckets are not full
	swept  int64       // when the idle keys were last checked
}

// ratedKey has the buckets of a key.
type ratedKey struct {
	meters.Buckets
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
		if r.known == nil {
			r.known = map[string]*ratedKey{}
		}
		r.known[text] = k
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
		return never
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

// keyChanged records that other items of a key may be able to start, if keys have rates.
// Every change of the board calls advance before and after it. So keys get their turns in the
// order of time, and not when next is called.
func (b *Board) keyChanged(k *keyState) {
	if b.rated != nil {
		b.ratedChanged(k)
	}
}

// ratedChanged is not inlined, so that keyChanged is.
//
//go:noinline
func (b *Board) ratedChanged(k *keyState) { b.rated.change(k.text) }

// advance settles the keys that have got their tokens by now, in this order, and those for which
// something has changed.
func (b *Board) advance(now int64) {
	if b.rated != nil {
		b.advanceKeys(b.rated, now)
	}
}

func (b *Board) advanceKeys(r *ratedKeys, now int64) {
	for r.parked.first() <= now {
		k := r.parked.keys[0]
		k.leave()
		b.settle(k, now)
	}
	for i := 0; i < len(r.fresh); i++ {
		k := r.fresh[i]
		r.fresh[i], k.fresh = nil, false
		b.settle(k, now)
	}
	if r.fresh = r.fresh[:0]; cap(r.fresh) > 1024 {
		r.fresh = nil
	}
	if r.nextSweep() <= now {
		r.sweep(now)
	}
}

// settle gives the turns of a key to the lanes in which its next item has tokens of the
// key. An item that lacks them keeps the key's lower lanes waiting.
func (b *Board) settle(rated *ratedKey, now int64) {
	r := b.rated
	var k *keyState
	if b.keys.n > 0 {
		k = *b.keys.link(rated.text)
	}
	if k == nil {
		rated.leave()
		if at := r.Full(&rated.Buckets, now); at > now {
			rated.wait(&r.idle, at)
		} else {
			r.forget(rated)
		}
		return
	}
	free, at := k.running < b.perKey, int64(never)
	for i := range k.turns {
		t, l := &k.turns[i], &b.lanes[i]
		item := cmp.Or(t.up, t.queue.head)
		if item != nil && free {
			if due := r.Due(&rated.Buckets, item.takes(), item.asOf(now)); due > now {
				free, at = false, due
			}
		}
		switch {
		case !free:
			l.put(t)
		case item != t.up:
			l.take(t)
		}
	}
	if at == never {
		rated.leave()
	} else {
		rated.wait(&r.parked, at)
	}
}
