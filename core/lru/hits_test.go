package lru_test

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// The policy has more hits than exact LRU if keys differ in popularity. It has some
// hits where LRU has none, and it follows if popularity changes. "go run
// ./bench/compare -hits" compares it with other libraries.
func TestHitRatios(t *testing.T) {
	if coretest.Race {
		t.Skip("slow, and one goroutine")
	}
	requests := 400_000
	if testing.Short() {
		requests = 100_000
	}
	for shards, capacity := range []int{1000, 4096} { // one shard, and four
		i := 0
		popular := zipf(16 * capacity)
		for _, trace := range []struct {
			name  string
			least [2]float64 // least number of hits in a hundred
			next  func() int
		}{
			{"zipf", [2]float64{63.8, 67.5}, popular}, // LRU: 61.8 and 65.5
			{"zipf and scans", [2]float64{27.9, 30.4}, func() int { // LRU: 25.9 and 28.4
				if i++; i/capacity%4 >= 2 {
					return 16*capacity + i
				}
				return popular()
			}},
			{"loop", [2]float64{50, 50}, func() int { i++; return i % (capacity * 3 / 2) }},       // LRU: none
			{"drifting zipf", [2]float64{32.9, 36.8}, func() int { i++; return popular() + i/8 }}, // LRU: 52.9 and 56.8
		} {
			c := newCache(t, lru.Options[int, int]{Capacity: capacity})
			for key := range 2 * capacity * (requests / 400_000) { // the keys before do not matter at the end
				c.Set(-key, key)
				c.Get(-key)
			}
			hits := 0
			for range requests {
				key := trace.next()
				if _, ok := c.Get(key); ok {
					hits++
				} else {
					c.Set(key, key)
				}
			}
			if got, least := 100*float64(hits)/float64(requests), trace.least[shards]; got < least {
				t.Errorf("%s, capacity %d: %.1f hits of a hundred, want %.1f", trace.name, capacity, got, least)
			}
		}
	}
}

// zipf returns a source of numbers below n. Higher numbers are less frequent.
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
