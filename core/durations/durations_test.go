package durations_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/durations"
)

// The end of the range of a duration is above it, by at most an eighth or a microsecond. Ranges
// are in order.
func TestRanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var all durations.Histogram
	for range 100_000 {
		d := time.Duration(random.Int64() >> (17 + random.IntN(47)))
		var h durations.Histogram
		h.Add(d)
		all.Add(d)
		if end := h.Quantile(0.5); end <= d || end > d+max(d/8, 1024) {
			t.Fatalf("%v is in a range that ends at %v", d, end)
		}
	}
	var ends []time.Duration
	for end := range all.All() {
		ends = append(ends, end)
	}
	if !slices.IsSorted(ends) || len(ends) < 250 || all.Count() != 100_000 {
		t.Fatalf("%d ranges with %d durations: %v", len(ends), all.Count(), ends)
	}
	var h durations.Histogram
	h.Add(-1)
	h.Add(1 << 62)
	if h.Quantile(0) > 1024 || h.Quantile(1) < 19*time.Hour || new(durations.Histogram).Quantile(0.5) != 0 {
		t.Fatalf("too short, too long, none: %v %v %v", h.Quantile(0), h.Quantile(1), new(durations.Histogram).Quantile(0.5))
	}
}

// The test compares quantiles with sorted durations.
func TestQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var h durations.Histogram
		var all []time.Duration
		for range 1 + random.IntN(500) {
			d := time.Duration(random.ExpFloat64() * float64(time.Second))
			h.Add(d)
			all = append(all, d)
		}
		slices.Sort(all)
		for _, q := range []float64{0.5, 0.95, 0.99, 1} {
			want := all[max(0, int(q*float64(len(all))+0.999999)-1)]
			if got := h.Quantile(q); got <= want || got > want+max(want/8, 1024) {
				t.Fatalf("%v of %d durations is %v, want %v and at most an eighth more", q, len(all), got, want)
			}
		}
	}
}
