package retry_test

import (
	"context"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
)

func nothing(context.Context) error { return nil }

// What a call costs that succeeds at once, and one that succeeds the second time
// without a pause.
func BenchmarkDo(b *testing.B) {
	budget := core.Must(retry.NewBudget(retry.BudgetOptions{}))
	for _, c := range []struct {
		name string
		opts retry.Options
	}{
		{"defaults", retry.Options{}},
		{"budget", retry.Options{Budget: budget}},
		{"elapsed", retry.Options{MaxElapsed: time.Minute}},
		{"timeout", retry.Options{AttemptTimeout: time.Minute}},
	} {
		b.Run("success/"+c.name, func(b *testing.B) {
			r := core.Must(retry.New(c.opts))
			b.ReportAllocs()
			for b.Loop() {
				_ = r.Do(context.Background(), nothing)
			}
		})
	}
	b.Run("retry", func(b *testing.B) {
		r := core.Must(retry.New(retry.Options{Backoff: retry.Constant(0)}))
		b.ReportAllocs()
		for b.Loop() {
			failed := false
			_ = r.Do(context.Background(), func(context.Context) error {
				if failed {
					return nil
				}
				failed = true
				return errOnPurpose
			})
		}
	})
}

// What the queue costs per item beside the coordinator that it is made of.
func BenchmarkQueue(b *testing.B) {
	r := core.Must(retry.New(retry.Options{}))
	work := func(context.Context, int) error { return nil }
	run := func(name string, on core.Enqueuer[int], drain func(context.Context) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				core.Must(on.Enqueue(context.Background(), 1))
			}
			if err := drain(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
	c := core.Must(core.NewCoordinator(retry.Wrap(r, work), core.Options{MaxConcurrency: 8}))
	run("coordinator", c, c.Flush)
	q := core.Must(retry.NewQueue(r, work, retry.QueueOptions{MaxConcurrency: 8}))
	run("queue", q, q.Flush)
}
