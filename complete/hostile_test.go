package complete_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/atoms/hedge"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/atoms/scheduledtasks"
	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/adaptiverate"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

// An error whose methods panic ends each call with an error, whatever the key, and nothing is left running.
func FuzzHostile(f *testing.F) {
	for n := range coretest.HostileErrors() {
		f.Add("key", uint8(n))
		f.Add("\xff*,?:", uint8(n))
	}
	f.Fuzz(func(t *testing.T, key string, n uint8) {
		hostile := coretest.HostileErrors()
		fault := hostile[int(n)%len(hostile)]
		synctest.Test(t, func(t *testing.T) {
			ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
			r := core.Must(retry.New(retry.Options{Attempts: 2, Sink: sink}))
			h := core.Must(hedge.New(hedge.Options{}))
			b := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{Threshold: 1, HalfOpen: 1, OpenFor: time.Second, CountIf: func(error) bool { panic("CountIf") }}))
			defer b.Close()
			fails := func(context.Context, string) error { return fault }
			call := core.Must(adaptiverate.New(retry.Wrap(r, circuitbreaker.Wrap(b, hedge.Wrap(h, fails))), core.Options{Sink: sink}))
			defer call.Close()
			batch := core.Must(batching.New(func(context.Context, []string) error { return fault }, batching.Options[string]{Key: func(s string) string { return s }}))
			defer batch.Close()
			cache := core.Must(slidingcache.New(func(context.Context, string) (int, error) { return 0, fault }, slidingcache.Options[string]{}))
			tasks := core.Must(scheduledtasks.New([]scheduledtasks.Definition{{Name: "task", Cron: "@hourly", Key: key}},
				scheduledtasks.TargetFunc(func(context.Context, scheduledtasks.Task) error { return fault }), scheduledtasks.Options{}))
			defer tasks.Close()

			_, missing := cache.Get(ctx, key)
			for name, err := range map[string]error{"call": call.Do(ctx, key), "batch": batch.Do(ctx, key), "cache": missing, "task": tasks.RunNow(ctx, "task")} {
				if err == nil {
					t.Errorf("%s: no error", name)
				}
			}
			time.Sleep(2 * time.Second) // the breaker is half open: the place of a trial must come back
			for range 2 {
				if done, err := b.Allow(); err != nil {
					t.Error("the place of a trial is lost")
				} else {
					done(fault)
				}
				time.Sleep(2 * time.Second)
			}
			if n := call.Stats().Running + tasks.Stats().Running; n != 0 {
				t.Errorf("%d operations run", n)
			}
		})
	})
}
