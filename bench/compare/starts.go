package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ephemeralgo/ephemeral/bench"
)

// starts prints how long an item waits for its start in an empty queue, ours beside River.
func starts(w io.Writer, span time.Duration) error {
	if os.Getenv(bench.PostgresDSN) == "" {
		return errors.New("-starts needs " + bench.PostgresDSN)
	}
	fmt.Fprintf(w, "From the call that adds an item to the start of its body, %v each\n\n", span)
	line(w, "items a second", "part", "ours", "river", "ratio")
	line(w, "--:", "--:", "--:", "--:", "--:")
	for _, perSecond := range []int{1, 100} {
		ours, river := bench.MeasureStarts(perSecond, span)
		for _, part := range []float64{0.5, 0.99} {
			a, b := ours.At(part), river.At(part)
			line(w, fmt.Sprint(perSecond), fmt.Sprintf("p%.0f", 100*part), a.Round(10*time.Microsecond).String(), b.Round(10*time.Microsecond).String(), fmt.Sprintf("%.2f", float64(a)/float64(b)))
		}
	}
	return nil
}
