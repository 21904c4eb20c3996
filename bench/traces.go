package bench

import (
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
)

// A Trace is a kind of requests to a cache.
type Trace struct {
	Name string

	// requests returns a source of keys for a cache of that capacity.
	requests func(capacity int) func() int
}

// Traces lists all traces.
func Traces() []Trace {
	skewed := func(capacity int) func() int { return zipf(16*capacity, 0.99, 1) }
	return []Trace{
		{"zipf 0.99", skewed},
		{"zipf 0.8", func(capacity int) func() int { return zipf(16*capacity, 0.8, 1) }},
		{"zipf and scans", func(capacity int) func() int { // scans of keys that never come again
			popular, i := skewed(capacity), 0
			return func() int {
				if i++; i%(4*capacity) >= 2*capacity {
					return 16*capacity + i
				}
				return popular()
			}
		}},
		{"drifting zipf", func(capacity int) func() int { // each key in turn is the most popular one for eight requests
			popular, i := skewed(capacity), 0
			return func() int { i++; return popular() + i/8 }
		}},
		{"loop of 1.1 x capacity", loopOf(1.1)},
		{"loop of 1.5 x capacity", loopOf(1.5)},
		{"loop of 2 x capacity", loopOf(2)},
	}
}

// HitRatios makes that number of requests to a cache of each library, and returns how many
// of a hundred were hits.
func (t Trace) HitRatios(capacity, requests int) []float64 {
	var ratios []float64
	for _, maker := range cacheMakers {
		c, next, hits := maker.new(capacity), t.requests(capacity), 0
		for i := range requests {
			key := strconv.Itoa(next())
			if _, ok := c.get(key); ok {
				hits++
			} else {
				c.set(key, i)
			}
		}
		c.done()
		ratios = append(ratios, 100*float64(hits)/float64(requests))
	}
	return ratios
}

// CacheNames lists the libraries, in the order of [Trace.HitRatios].
func CacheNames() []string {
	var names []string
	for _, maker := range cacheMakers {
		names = append(names, maker.name)
	}
	return names
}

// loopOf requests the same keys again and again, in order.
func loopOf(capacities float64) func(capacity int) func() int {
	return func(capacity int) func() int {
		keys, i := int(capacities*float64(capacity)), 0
		return func() int { i++; return i % keys }
	}
}

// zipf returns a source of numbers below n. The k-th most frequent number is 1/k^s times as
// frequent as the first.
func zipf(n int, s float64, seed uint64) func() int {
	sums := make([]float64, n)
	sum := 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -s)
		sums[i] = sum
	}
	r := rand.New(rand.NewPCG(seed, seed))
	return func() int { return sort.SearchFloat64s(sums, r.Float64()*sum) }
}
