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
