package durations_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core/durations"
)

// Ninety calls take 10 ms, and ten take a second. A quantile is the end of a range.
func ExampleHistogram() {
	var calls durations.Histogram
	for i := range 100 {
		if calls.Add(10 * time.Millisecond); i >= 90 {
			calls.Add(time.Second)
		}
	}
	fmt.Println(calls.Count(), calls.Quantile(0.5), calls.Quantile(0.99).Round(time.Millisecond))
	// Output: 110 10.48576ms 1.007s
}

// In JSON, times are in milliseconds, and a range is twice as long as the one before.
func ExampleHistogram_MarshalJSON() {
	var calls durations.Histogram
	for _, ms := range []time.Duration{1, 2, 6, 6} {
		calls.Add(ms * time.Millisecond)
	}
	text, err := json.Marshal(calls)
	fmt.Println(string(text), err)
	// Output: {"count":4,"p50Ms":2.097,"p95Ms":6.291,"p99Ms":6.291,"ranges":[[1.048,1],[2.097,1],[4.194,0],[8.388,2]]} <nil>
}
