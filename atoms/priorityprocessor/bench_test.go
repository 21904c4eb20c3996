package priorityprocessor_test

import (
	"context"
	"slices"
	"testing"
	"time"

	pp "github.com/ephemeralgo/ephemeral/atoms/priorityprocessor"
)

// How long an item takes from a primary that fails it to the backup, with p50 and p99. The
// benchmarks of the module bench say what items cost.
func BenchmarkLatency(b *testing.B) {
	var failedAt time.Time
	took := make([]time.Duration, 0, 1<<16)
	f := newFailover(pp.Options{Threshold: -1}, pp.Processor[int]{Name: "primary", Priority: 1, Do: func(context.Context, int) error {
		failedAt = time.Now()
		return errDown
	}}, pp.Processor[int]{Name: "backup", Priority: 2, Do: func(context.Context, int) error {
		if len(took) < cap(took) {
			took = append(took, time.Since(failedAt))
		}
		return nil
	}})
	for b.Loop() {
		f.Do(b.Context(), 1)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
}
