package filepipeline

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The simple model keeps and sorts all durations.
func TestHistogramAgainstSorted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var h histogram
		var all []time.Duration
		for range 1 + random.IntN(500) {
			d := time.Duration(math.Exp(random.Float64() * 43)) // durations of all magnitudes up to a century
			h.add(d)
			all = append(all, d)
		}
		slices.Sort(all)
		for _, q := range []float64{0, 0.01, 0.5, 0.95, 0.99, 1} {
			exact := all[max(0, int(math.Ceil(q*float64(len(all))))-1)]
			got := h.quantile(q)
			if got < exact || float64(got) > float64(exact)*(1+1.0/subBuckets) {
				t.Fatalf("quantile(%v) of %d durations = %v, exact is %v", q, len(all), got, exact)
			}
		}
	}
}

func TestHistogramEdges(t *testing.T) {
	var h histogram
	if got := h.quantile(0.5); got != 0 {
		t.Errorf("median of nothing = %v", got)
	}
	h.add(-time.Second) // a clock that was set back
	if got := h.quantile(1); got != 0 {
		t.Errorf("a negative duration counts as %v, want 0", got)
	}
}
