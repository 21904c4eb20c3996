package core_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core"
)

// A pipeline is shut down from its first stage on: nothing on its way is lost.
func TestInOrder(t *testing.T) {
	for name, end := range map[string]func(context.Context, core.Lifecycle) error{
		"Flush": func(ctx context.Context, l core.Lifecycle) error { return l.Flush(ctx) },
		"Drain": func(ctx context.Context, l core.Lifecycle) error { l.Complete(); return l.Drain(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var got []int
				last := core.Must(core.NewCoordinator(func(_ context.Context, n int) error {
					got = append(got, n)
					return nil
				}, core.Options{MaxConcurrency: 1}))
				first := core.Must(core.NewCoordinator(func(ctx context.Context, n int) error {
					_, err := last.Enqueue(context.WithoutCancel(ctx), n)
					return err
				}, core.Options{MaxConcurrency: 1, MaxQueued: 10}))
				both := core.InOrder(first, last)
				for n := range 5 {
					_, err := first.Enqueue(t.Context(), n)
					checkError(t, "Enqueue", err, nil)
				}
				checkError(t, name, end(t.Context(), both), nil)
				checkEqual(t, "what came out", slices.Equal(got, []int{0, 1, 2, 3, 4}), true)
				checkError(t, "Close", both.Close(), nil)
				_, err := last.TryEnqueue(t.Context(), 1)
				checkError(t, "after Close", err, core.ErrClosed)
			})
		})
	}
}

// Stop and Drain end with the first error; later stages stay open for what still runs.
func TestInOrderGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		first, last := bodies(t, core.Options{}), bodies(t, core.Options{})
		stop := make(chan bool)
		enqueue(t, first, func(context.Context) error { <-stop; return nil })
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		cancel(cause)
		both := core.InOrder(first, last)
		checkError(t, "Drain", both.Drain(ctx), cause)
		checkError(t, "Stop", both.Stop(ctx), cause)
		enqueue(t, last, quick)
		close(stop)
		synctest.Wait()
		checkError(t, "Stop", both.Stop(t.Context()), nil)
		checkError(t, "none", core.InOrder().Drain(ctx), nil)
	})
}
