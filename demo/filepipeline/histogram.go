package filepipeline

import (
	"math"
	"math/bits"
	"sync"
	"time"
)

// A histogram counts durations in buckets. Below subBuckets nanoseconds they are exact; above, their width is at
// most 1/subBuckets of their value. It takes 15 KB, whatever the number of durations is. The zero value is ready to
// use, from several goroutines.
type histogram struct {
	mu     sync.Mutex
	counts [buckets]uint64
	total  uint64
	max    time.Duration
}

const (
	subBits    = 5
	subBuckets = 1 << subBits
	buckets    = (64 - subBits) * subBuckets
)

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[bucketOf(d)]++
	h.total++
	h.max = max(h.max, d)
}

// since adds the time that has passed, in one deferred call.
func (h *histogram) since(start time.Time) { h.add(time.Since(start)) }

// quantile returns a duration that the fraction q of all durations does not exceed. It is at most 1/subBuckets too
// large, and never larger than the largest duration. Without durations it is 0.
func (h *histogram) quantile(q float64) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	rank := uint64(math.Ceil(q * float64(h.total)))
	var seen uint64
	for b, n := range h.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(lastOf(b), h.max)
		}
	}
	return 0
}

// bucketOf numbers the buckets: the first subBuckets hold one nanosecond each, and every further power of two is split
// into subBuckets equal parts.
func bucketOf(d time.Duration) int {
	n := uint64(d)
	shift := bits.Len64(n) - subBits - 1
	if shift <= 0 {
		return int(n)
	}
	return shift<<subBits + int(n>>shift)
}

// lastOf returns the largest duration of bucket b.
func lastOf(b int) time.Duration {
	shift := b>>subBits - 1
	if shift <= 0 {
		return time.Duration(b)
	}
	first := uint64(b&(subBuckets-1)|subBuckets) << shift
	return time.Duration(first + 1<<shift - 1)
}
