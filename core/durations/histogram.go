package durations

import (
	"encoding/json"
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

// MarshalJSON writes the number of durations, quantiles, and how many durations were in ranges each of which is twice as
// long as the one before. All times are in milliseconds: a range is a pair of its end and a number.
func (h Histogram) MarshalJSON() ([]byte, error) {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	shown := struct {
		Count  uint64       `json:"count"`
		P50    float64      `json:"p50Ms"`
		P95    float64      `json:"p95Ms"`
		P99    float64      `json:"p99Ms"`
		Ranges [][2]float64 `json:"ranges"`
	}{h.Count(), ms(h.Quantile(0.5)), ms(h.Quantile(0.95)), ms(h.Quantile(0.99)), [][2]float64{}}
	last := 0
	for end, n := range h.All() {
		power := bits.Len64(uint64(end - 1))
		for ; last > 0 && last < power; last++ {
			shown.Ranges = append(shown.Ranges, [2]float64{ms(1 << (last + 1))})
		}
		if last == 0 {
			shown.Ranges, last = append(shown.Ranges, [2]float64{ms(1 << power)}), power
		}
		shown.Ranges[len(shown.Ranges)-1][1] += float64(n)
	}
	return json.Marshal(shown)
}
