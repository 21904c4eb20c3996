package lru_test

import (
	"container/list"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// exactLRU evicts exactly the least recently used key.
type exactLRU struct {
	capacity int
	order    list.List // the least recently used first
	at       map[int]*list.Element
}

func (l *exactLRU) hit(key int) bool {
	if e := l.at[key]; e != nil {
		l.order.MoveToBack(e)
		return true
	}
	if len(l.at) == l.capacity {
		delete(l.at, l.order.Remove(l.order.Front()).(int))
	}
	l.at[key] = l.order.PushBack(key)
	return false
}

// The policy has more hits than exact LRU where keys differ in popularity, goes on
// having some where LRU has none, and follows when popularity moves. How it compares
// with other libraries is shown by go run ./bench/compare -hits.
func TestHitRatios(t *testing.T) {
	if coretest.Race {
		t.Skip("slow, and one goroutine")
	}
	requests := 400_000
	if testing.Short() {
		requests = 100_000
	}
	for _, capacity := range []int{1000, 4096} { // one shard, and four
		i := 0
		popular := zipf(16 * capacity)
		for _, trace := range []struct {
			name        string
			least, more float64 // hits of a hundred, and how many more than LRU
			next        func() int
		}{
			{"zipf", 60, 2, popular},
			{"zipf and scans", 25, 2, func() int {
				if i++; i/capacity%4 >= 2 {
					return 16*capacity + i
				}
				return popular()
			}},
			{"loop", 50, 50, func() int { i++; return i % (capacity * 3 / 2) }},
			{"drifting zipf", 30, -20, func() int { i++; return popular() + i/8 }},
		} {
			c := newCache(t, lru.Options[int, int]{Capacity: capacity})
			for key := range 2 * capacity * (requests / 400_000) { // makes no difference in the end
				c.Set(-key, key)
				c.Get(-key)
			}
			l := exactLRU{capacity: capacity, at: map[int]*list.Element{}}
			ours, theirs := 0, 0
			for range requests {
				key := trace.next()
				if l.hit(key) {
					theirs++
				}
				if _, ok := c.Get(key); ok {
					ours++
				} else {
					c.Set(key, key)
				}
			}
			got := 100 * float64(ours) / float64(requests)
			more := 100 * float64(ours-theirs) / float64(requests)
			if got < trace.least || more < trace.more {
				t.Errorf("%s, capacity %d: %.1f hits of a hundred, want %.1f; %.1f more than LRU, want %.1f", trace.name, capacity, got, trace.least, more, trace.more)
			}
		}
	}
}

// zipf returns a source of numbers below n, of which each is the less frequent the
// higher it is.
func zipf(n int) func() int {
	sums := make([]float64, n)
	sum := 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -0.99)
		sums[i] = sum
	}
	r := rand.New(rand.NewPCG(1, 1))
	return func() int { return sort.SearchFloat64s(sums, r.Float64()*sum) }
}
