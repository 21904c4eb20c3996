package guide_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example_first() {
	ship := func(ctx context.Context, order string) error {
		if order == "order-2" {
			return errors.New("no address")
		}
		return nil // a real program does the work here
	}
	orders, err := core.NewCoordinator(ship, core.Options{MaxConcurrency: 4})
	if err != nil {
		panic(err)
	}
	defer orders.Close()

	ctx := context.Background()
	for _, order := range []string{"order-1", "order-2", "order-3"} {
		if _, err := orders.Enqueue(ctx, order); err != nil {
			panic(err)
		}
	}
	if err := orders.Drain(ctx); err != nil {
		panic(err)
	}

	stats := orders.Stats()
	fmt.Println(stats.Succeeded, "succeeded,", stats.Failed, "failed")
	for op := range orders.Operations(core.OperationQuery{Status: core.StatusFailed}) {
		fmt.Println(op.Item, op.Status, op.Err)
	}
	// Output:
	// 2 succeeded, 1 failed
	// order-2 failed no address
}

func Example_sink() {
	sink := signals.NewSink(signals.SinkOptions{})
	ship := func(ctx context.Context, order string) error {
		core.OperationFrom(ctx).Raise("order.shipped")
		return nil
	}
	orders := core.Must(core.NewCoordinator(ship, core.Options{Sink: sink}))
	defer orders.Close()

	ctx := context.Background()
	id := core.Must(orders.Enqueue(ctx, "order-1"))
	fmt.Println("error of the work:", orders.Wait(ctx, id))

	op, found := orders.Lookup(id)
	fmt.Println(found, op.Status, op.Has("order.shipped"))
	fmt.Println("on the sink:", sink.Count("order.*"))
	// Output:
	// error of the work: <nil>
	// true succeeded true
	// on the sink: 1
}
