package coretest

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core"
)

// Idle says of each operation that has not ended why it waits, of all coordinators, and how many there are beyond the first.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		work := func(ctx context.Context, wait string) error {
			if wait == "suspended" {
				return core.OperationFrom(ctx).Suspend(ctx, "an answer", func(context.Context) error { <-free; return nil })
			}
			<-free
			return nil
		}
		first := core.Must(core.NewCoordinator(work, core.Options{Name: "first", MaxConcurrency: 1}))
		second := core.Must(core.NewCoordinator(work, core.Options{Name: "second"}))
		Idle(t, first, second)
		core.Must(first.Enqueue(t.Context(), "suspended"))
		synctest.Wait()
		for range idleShown + 1 {
			core.Must(first.Enqueue(t.Context(), ""))
		}
		synctest.Wait()
		got := record(t, func(t testing.TB) { Idle(t, second, first) })
		for _, want := range []string{"first is not idle:\noperation ", " is suspended: its body waits for an answer", " is running\n", " is pending: the only slot is taken", "\nand 2 more"} {
			Check(t, strings.Contains(got, want), "%q has no %q", got, want)
		}
		Check(t, !strings.Contains(got, "second") && strings.Count(got, "operation ") >= idleShown, "got %q", got)
		close(free)
		synctest.Wait()
		Idle(t, first, second)
		Check(t, core.InOrder(first, second).Close() == nil, "Close failed")
	})
}
