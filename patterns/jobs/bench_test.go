package jobs_test

import (
	"context"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/jobs"
)

// BenchmarkSignals compares a signal on a sink with jobs with one on a sink without, and one
// that sets off a job with raising it and giving its key to a keyed coordinator.
func BenchmarkSignals(b *testing.B) {
	ctx := context.Background()
	do := func(context.Context, core.Signal) error { return nil }
	opts := core.Options{MaxConcurrency: 8}
	wanted := func(b *testing.B) (*core.Sink, *jobs.Runner) {
		sink := core.NewSink(core.SinkOptions{})
		return sink, core.Must(jobs.New(sink, []jobs.Job{jobs.On("wanted", do, jobs.Options{Key: jobs.SignalKey, MaxConcurrency: -1})}, opts))
	}
	keys := [...]string{"a", "b", "c", "d", "e", "f", "g", "h"}
	b.Run("unwanted/alone", func(b *testing.B) {
		b.ReportAllocs()
		sink := core.NewSink(core.SinkOptions{})
		for i := 0; b.Loop(); i++ {
			sink.RaiseKey("other", keys[i%8])
		}
	})
	b.Run("unwanted/jobs", func(b *testing.B) {
		b.ReportAllocs()
		sink, r := wanted(b)
		defer r.Close()
		for i := 0; b.Loop(); i++ {
			sink.RaiseKey("other", keys[i%8])
		}
	})
	b.Run("wanted/raise and enqueue", func(b *testing.B) {
		b.ReportAllocs()
		sink := core.NewSink(core.SinkOptions{})
		c := core.Must(core.NewKeyedCoordinator(func(key string) string { return key }, func(context.Context, string) error { return nil }, opts))
		defer c.Close()
		for i := 0; b.Loop(); i++ {
			sink.RaiseKey("wanted", keys[i%8])
			if _, err := c.Enqueue(ctx, keys[i%8]); err != nil {
				b.Fatal(err)
			}
			if i%512 == 511 {
				core.Must(0, c.Flush(ctx))
			}
		}
	})
	b.Run("wanted/jobs", func(b *testing.B) {
		b.ReportAllocs()
		sink, r := wanted(b)
		defer r.Close()
		for i := 0; b.Loop(); i++ {
			sink.RaiseKey("wanted", keys[i%8])
			if i%512 == 511 {
				core.Must(0, r.Flush(ctx))
			}
		}
		if n := r.Stats().Rejected; n > 0 {
			b.Fatal(n, "were rejected")
		}
	})
}
