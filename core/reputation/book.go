package reputation

import (
	"cmp"
	"container/heap"
	"math"
	"time"
)

// book is a bounded number of decaying scores. Its entries are in a heap whose root
// is the score nearest to 0.
//
// At any time t, the value of an entry is |score| x 2^(-(t-at)/halfLife). To
// compare the values of two entries, it is enough to compare log2|score| +
// at/halfLife: t drops out. So this rank is computed at an update, and the order
// stays right. It is known as forward decay: Cormode, Shkapenyuk, Srivastava and
// Xu, "Forward Decay: A Practical Time Decay Model for Streaming Systems", ICDE
// 2009.
type book[K ~string] struct {
	halfLife float64 // in nanoseconds
	floor    float64
	entries  map[K]*entry[K]
	heap     byRank[K]
	capacity int
}

type entry[K ~string] struct {
	key   K
	score float64 // score at the time of the last update
	at    time.Duration
	rank  float64
	index int // in the heap
}

func newBook[K ~string](capacity int, halfLife, floor float64) book[K] {
	return book[K]{halfLife: halfLife, floor: floor, entries: make(map[K]*entry[K]), capacity: capacity}
}

// update adds delta to the score of key and returns it. Time does not go back.
func (b *book[K]) update(key K, delta float64, now time.Duration) float64 {
	b.fade(now)
	e := b.entries[key]
	score := delta
	if e != nil {
		score += b.decayed(e, now)
	}
	score = min(max(score, -math.MaxFloat64), math.MaxFloat64)
	if b.forgets(score) {
		b.remove(key)
		return 0
	}
	if e == nil {
		if len(b.heap) == b.capacity {
			b.remove(b.heap[0].key)
		}
		e = &entry[K]{key: key}
		b.entries[key] = e
		heap.Push(&b.heap, e)
	}
	e.score, e.at = score, now
	e.rank = math.Log2(math.Abs(score)) + float64(now)/b.halfLife
	heap.Fix(&b.heap, e.index)
	return score
}

func (b *book[K]) score(key K, now time.Duration) float64 {
	if e := b.entries[key]; e != nil {
		if score := b.decayed(e, now); !b.forgets(score) {
			return score
		}
	}
	return 0
}

// remove forgets the score of key, if there is one.
func (b *book[K]) remove(key K) {
	if e := b.entries[key]; e != nil {
		heap.Remove(&b.heap, e.index)
		delete(b.entries, key)
	}
}

// fade forgets the scores that are too near to 0.
func (b *book[K]) fade(now time.Duration) {
	for len(b.heap) > 0 && b.forgets(b.decayed(b.heap[0], now)) {
		b.remove(b.heap[0].key)
	}
}

func (b *book[K]) forgets(score float64) bool { return score == 0 || math.Abs(score) < b.floor }

func (b *book[K]) decayed(e *entry[K], now time.Duration) float64 {
	return e.score * math.Exp2(-float64(now-e.at)/b.halfLife)
}

// all returns the entries with their present scores.
func (b *book[K]) all(now time.Duration) []entry[K] {
	b.fade(now)
	all := make([]entry[K], len(b.heap))
	for i, e := range b.heap {
		all[i] = entry[K]{key: e.key, score: b.decayed(e, now)}
	}
	return all
}

// higher sorts the highest score first, and equal scores by key.
func higher[K ~string](x, y entry[K]) int {
	return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.key, y.key))
}

// byRank is a heap of entries; see container/heap.
type byRank[K ~string] []*entry[K]

func (h byRank[K]) Len() int           { return len(h) }
func (h byRank[K]) Less(i, j int) bool { return h[i].rank < h[j].rank }
func (h byRank[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *byRank[K]) Push(e any) {
	e.(*entry[K]).index = len(*h)
	*h = append(*h, e.(*entry[K]))
}

func (h *byRank[K]) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
