package fx_test

import (
	"context"
	"testing"

	"go.uber.org/fx"

	"github.com/ephemeralgo/ephemeral/complete"
	ephemeralfx "github.com/ephemeralgo/ephemeral/complete/fx"
)

// A durable queue runs from the start of a program to its end. What it has begun is done then, and
// what comes later is refused.
func TestDurableQueue(t *testing.T) {
	done := make(chan string, 2)
	var orders *complete.Queue[string]
	app := fx.New(fx.NopLogger,
		ephemeralfx.FxQueue[*complete.Queue[string]]("", func() (*complete.Queue[string], error) {
			return complete.NewQueue[string, string](complete.QueueMemory(), nil, func(_ context.Context, order string) error {
				done <- order
				return nil
			}, complete.QueueOptions{})
		}),
		fx.Populate(&orders))
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := orders.Enqueue(t.Context(), "order-1"); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got != "order-1" {
		t.Errorf("ran %q, want order-1", got)
	}
	if err := app.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := orders.Enqueue(t.Context(), "late"); err == nil {
		t.Error("an item was accepted after the end")
	}
}
