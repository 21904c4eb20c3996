package jobs_test

import (
	"context"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/jobs"
)

// BenchmarkSignals compares a signal on a sink with jobs with a signal on a sink without
// jobs. It compares a signal that starts a job with a raise and an Enqueue of its key to a
// keyed coordinator.
func BenchmarkSignals(b *testing.B) {
	ctx, opts := context.Background(), core.Options{MaxConcurrency: 8}
	do := func(context.Context, signals.Signal) error { return nil }
	work := func(context.Context, string) error { return nil }
	own := func(key string) string { return key }
	keys := [...]string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, c := range []struct {
		name, signal  string
		jobs, enqueue bool
	}{
		{"unwanted/alone", "other", false, false},
		{"unwanted/jobs", "other", true, false},
		{"wanted/raise and enqueue", "wanted", false, true},
		{"wanted/jobs", "wanted", true, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			sink := signals.NewSink(signals.SinkOptions{})
			q := core.Must(core.NewKeyedCoordinator(own, work, opts))
			ends := core.Lifecycle(q)
			if c.jobs {
				job := jobs.On("wanted", do, jobs.Options{Key: jobs.SignalKey, MaxConcurrency: -1})
				ends = core.Must(jobs.New(sink, []jobs.Job{job}, opts))
			}
			defer ends.Close()
			for i := 0; b.Loop(); i++ {
				sink.RaiseKey(c.signal, keys[i%8])
				if c.enqueue {
					core.Must(q.Enqueue(ctx, keys[i%8]))
				}
				if i%512 == 511 && c.signal == "wanted" {
					core.Must(0, ends.Flush(ctx))
				}
			}
			if r, ok := ends.(*jobs.Runner); ok && r.Stats().Rejected > 0 {
				b.Fatal(r.Stats().Rejected, "were rejected")
			}
		})
	}
}
