// Package durations counts durations in ranges.
//
// A [Histogram] is a value of 1 kB with counts: how often a duration was in a range. A
// coordinator returns such values for the waits and runs of its operations:
//
//	for _, t := range orders.Times(5 * time.Minute) { // the first call begins to count
//		fmt.Println(t.Lane, t.Class, t.Waiting.Quantile(0.95))
//	}
package durations
