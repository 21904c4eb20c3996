package guide_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// t is the test that runs the next example.
var t *testing.T

// TestClock and the other tests run the code of their examples: an example has no testing.T.
func TestClock(test *testing.T)  { t = test; Example_clock() }
func TestStuck(test *testing.T)  { t = test; Example_stuck() }
func TestExpect(test *testing.T) { t = test; Example_expect() }

func Example_clock() {
	synctest.Test(t, func(t *testing.T) {
		r := core.Must(retry.New(retry.Options{Attempts: 3, Backoff: retry.Constant(time.Hour)}))
		call := func(ctx context.Context, order string) error { return errors.New("carrier is busy") }
		orders := core.Must(core.NewCoordinator(retry.Wrap(r, call), core.Options{}))
		defer orders.Close()

		start := time.Now()
		err := orders.Do(t.Context(), "order-1")
		coretest.Check(t, errors.Is(err, retry.ErrAttempts), "%v", err)
		if waited := time.Since(start); waited != 2*time.Hour { // exactly
			t.Error("waited", waited)
		}
	})
}

func Example_stuck() {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		ship := func(ctx context.Context, order string) error { return nil }
		orders := core.Must(core.NewCoordinator(ship, core.Options{Sink: sink, DeferOn: "warehouse.closed"}))
		defer orders.Close()

		sink.Hold("warehouse.closed", "north", time.Hour) // a lease of one hour
		core.Must(orders.Enqueue(t.Context(), "order-1"))

		time.Sleep(time.Hour - time.Nanosecond)
		synctest.Wait() // until all other goroutines wait for something
		if n := orders.Stats().Pending; n != 1 {
			t.Error("before the end:", n, "pending")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n := orders.Stats().Succeeded; n != 1 {
			t.Error("after the end:", n, "succeeded")
		}
	})
}

func Example_expect() {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		raised := coretest.Watch(t, sink, "order.*")
		orders := core.Must(core.NewCoordinator(func(ctx context.Context, order string) error {
			op := core.OperationFrom(ctx)
			op.Raise("order.packed")
			op.Raise("order.shipped")
			return nil
		}, core.Options{Sink: sink}))
		defer orders.Close()

		if err := orders.Do(t.Context(), "order-1"); err != nil {
			t.Error(err)
		}
		raised.ExpectExactly("order.packed", "order.shipped")
	})
}
