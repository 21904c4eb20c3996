package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/ephemeralgo/ephemeral/bench"
)

// margin is how many percentage points our hit ratio may be below the ratio of otter.
const margin = 1.5

// hitRatios prints how many of a hundred requests each cache could serve.
func hitRatios(w io.Writer, requests int) {
	fmt.Fprintf(w, "%s %s/%s, %d requests, hits of a hundred\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, requests)
	names := bench.CacheNames()
	line(w, slices.Concat([]string{"requests", "capacity"}, names, []string{"otter - 1.5"})...)
	line(w, slices.Concat([]string{"---", "--:"}, slices.Repeat([]string{"--:"}, len(names)), []string{"---"})...)
	for _, trace := range bench.Traces() {
		for _, capacity := range []int{1_000, 32_768} {
			ratios := trace.HitRatios(capacity, requests)
			columns := []string{trace.Name, fmt.Sprint(capacity)}
			for _, ratio := range ratios {
				columns = append(columns, fmt.Sprintf("%.1f", ratio))
			}
			goal := ratios[slices.Index(names, "otter")] - margin
			line(w, append(columns, met(goal, ratios[0]))...)
		}
	}
}
