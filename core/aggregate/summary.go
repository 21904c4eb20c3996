package aggregate

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"
)

// A Summary has the count, sum and mean of the numbers of some facts, and by Quantile the least
// and the greatest.
type Summary struct {
	Count int     `json:"count"`
	Sum   float64 `json:"sum"`
	Mean  float64 `json:"mean"` // 0 if Count is 0

	Covered  time.Duration `json:"covered"`  // how far back the facts reach
	Complete bool          `json:"complete"` // Covered is the whole span

	values []float64 // ascending
}

// Quantile returns the q-quantile of the numbers: 0.5 is the median, 0.99 the 99th
// percentile, 0 the least number and 1 the greatest. It is always one of the numbers
// (the nearest-rank method: definition 1 of Hyndman and Fan, "Sample Quantiles in
// Statistical Packages", 1996), or 0 if there are none. It panics if q is not between
// 0 and 1.
func (s Summary) Quantile(q float64) float64 {
	if !(0 <= q && q <= 1) {
		panic(fmt.Sprintf("aggregate: Quantile needs a part between 0 and 1, not %v", q))
	}
	if s.Count == 0 {
		return 0
	}
	return s.values[sort.Search(s.Count, func(i int) bool {
		return float64(i+1)/float64(s.Count) >= q
	})]
}

// summarize returns the summary of values. It may change the slice.
func summarize(values []float64) Summary {
	values = slices.DeleteFunc(values, math.IsNaN)
	if len(values) == 0 {
		return Summary{}
	}
	slices.Sort(values)
	s := Summary{Count: len(values), values: values}
	for _, v := range values {
		s.Sum += v
	}
	s.Mean = s.Sum / float64(s.Count)
	return s
}
