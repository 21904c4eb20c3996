package durations

import (
	"iter"
	"math/bits"
	"time"
)

// A Histogram says how many durations were in each of its ranges. The width of a range is at
// most an eighth of its durations, or a microsecond. Durations of more than 19 hours are in
// the last range. The zero value is empty. A Histogram is a plain value, and its counts wrap
// around at 2^32.
type Histogram [ranges]uint32

// A microsecond is 1024 ns here. There are eight ranges of one microsecond, and then eight
// ranges for each power of two.
const ranges = 34 * 8

// rangeOf returns the index of the range of a duration.
func rangeOf(d int64) uint {
	v := uint64(d) >> 10
	if v < 8 {
		return uint(v)
	}
	if d < 0 {
		return 0
	}
	power := uint(bits.Len64(v) - 4)
	return min(power<<3+uint(v>>power), ranges-1)
}

// endOf returns the end of a range.
func endOf(i int) time.Duration {
	if i < 8 {
		return time.Duration(i+1) << 10
	}
	return time.Duration(i&7+9) << (i>>3 - 1 + 10)
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) { h[rangeOf(int64(d))]++ }

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other {
		h[i] += n
	}
}

// All yields the ranges that are not empty, the shortest first: the end of the range, which
// is not in it, and how many durations were in it.
func (h *Histogram) All() iter.Seq2[time.Duration, uint32] {
	return func(yield func(time.Duration, uint32) bool) {
		for i, n := range h {
			if n > 0 && !yield(endOf(i), n) {
				return
			}
		}
	}
}

// Count returns how many durations were counted.
func (h *Histogram) Count() (n uint64) {
	for _, in := range h {
		n += uint64(in)
	}
	return n
}

// Quantile returns a duration that the share q of all durations did not exceed: 0.5 is the
// median. It is at most an eighth, or a microsecond, too long. It returns 0 if h is empty.
func (h *Histogram) Quantile(q float64) (end time.Duration) {
	left := max(1, q*float64(h.Count()))
	for to, n := range h.All() {
		if end, left = to, left-float64(n); left <= 0 {
			break
		}
	}
	return end
}
