package priorityprocessor_test

import (
	"context"
	"slices"
	"testing"
	"time"

	pp "github.com/ephemeralgo/ephemeral/atoms/priorityprocessor"
)

// What it costs to go by way of a Failover: to a primary that works, to the backup of
// one that is unhealthy, and from one that fails to its backup, which is the latency
// of failover; p50 and p99 of that are shown in nanoseconds.
func BenchmarkFailover(b *testing.B) {
	fail := func(context.Context, int) error { return errDown }
	work := func(context.Context, int) error { return nil }
	for _, c := range []struct {
		name    string
		primary func(context.Context, int) error
		opts    pp.Options
		mark    bool
	}{
		{"primary=works", work, pp.Options{}, false},
		{"primary=unhealthy", fail, pp.Options{ProbeAfter: -1}, true},
		{"primary=fails", fail, pp.Options{Threshold: -1}, false},
	} {
		f, err := pp.New([]pp.Processor[int]{
			{Name: "primary", Priority: 1, Do: c.primary},
			{Name: "backup", Priority: 2, Do: work},
		}, c.opts)
		if err != nil {
			b.Fatal(err)
		}
		if c.mark {
			f.MarkUnhealthy("primary")
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f.Do(b.Context(), 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("latency", func(b *testing.B) {
		var failedAt time.Time
		took := make([]time.Duration, 0, 1<<16)
		f, err := pp.New([]pp.Processor[int]{
			{Name: "primary", Priority: 1, Do: func(context.Context, int) error { failedAt = time.Now(); return errDown }},
			{Name: "backup", Priority: 2, Do: func(context.Context, int) error {
				if len(took) < cap(took) {
					took = append(took, time.Since(failedAt))
				}
				return nil
			}},
		}, pp.Options{Threshold: -1})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			f.Do(b.Context(), 1)
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
		b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
	})
}
