// Package durations counts durations in ranges, and says what was counted in the last
// minutes.
//
// A [Histogram] is a value of 1 kB with counts: how often a duration was in a range. A
// coordinator returns such values for the waits and runs of its operations:
//
//	for _, t := range orders.Times(5 * time.Minute) { // the first call begins to count
//		fmt.Println(t.Lane, t.Class, t.Waiting.Quantile(0.95))
//	}
//
// A [History] has histograms, and knows what they were at earlier moments of the last hour.
// It reads no clock and has no lock: now is a parameter.
package durations
