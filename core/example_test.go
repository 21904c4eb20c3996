package core_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A coordinator runs a bounded number of operations and shows what they did.
func Example() {
	resize := func(ctx context.Context, name string) error {
		if name == "broken.png" {
			return fmt.Errorf("%s is not an image", name)
		}
		core.OperationFrom(ctx).Raise("image.resized")
		return nil
	}

	images, err := core.NewCoordinator(resize, core.Options{
		MaxConcurrency: 4,
		OnDone: func(op core.Snapshot) { // called once for each operation that ends
			if op.Err != nil {
				fmt.Println(op.Item, op.Status)
			}
		},
	})
	if err != nil {
		panic(err)
	}
	defer images.Close()

	ctx := context.Background()
	for _, name := range []string{"cat.png", "broken.png", "dog.png"} {
		if _, err := images.Enqueue(ctx, name); err != nil {
			panic(err)
		}
	}
	if err := images.Drain(ctx); err != nil {
		panic(err)
	}

	fmt.Println(images.Count("image.*"), "resized")
	for op := range images.Operations(core.OperationQuery{Status: core.StatusFailed}) {
		fmt.Println(op.Status, op.Err)
	}
	// Output:
	// broken.png failed
	// 2 resized
	// failed broken.png is not an image
}

// One part of a program holds a signal; another part refuses work while it is held.
// They share a sink and nothing else.
func Example_signals() {
	sink := signals.NewSink(signals.SinkOptions{})

	orders, err := core.NewCoordinator(func(ctx context.Context, id string) error {
		fmt.Println("shipping", id)
		return nil
	}, core.Options{Sink: sink, CancelOn: "warehouse.closed"})
	if err != nil {
		panic(err)
	}
	defer orders.Close()

	ctx := context.Background()
	reopen := sink.Hold("warehouse.closed", "north", 0)
	fmt.Println(orders.Do(ctx, "order-1"))

	reopen()
	fmt.Println(orders.Do(ctx, "order-2"))
	// Output:
	// core: refused because of signal "warehouse.closed" for "north"
	// shipping order-2
	// <nil>
}

// Ask an operation why it waits. Printed as a whole, the answer is one line:
//
//	operation 2 is pending: the only slot of key "ada" is taken by operation 1, for 2ms; deferred because of held signal "warehouse.closed" for "north"
func Example_explain() {
	type order struct {
		customer string
		number   int
	}
	sink := signals.NewSink(signals.SinkOptions{})
	started, finish := make(chan bool), make(chan bool)
	orders, err := core.NewKeyedCoordinator(
		func(o order) string { return o.customer },
		func(ctx context.Context, o order) error {
			started <- true
			<-finish
			return nil
		}, core.Options{MaxConcurrency: 8, Sink: sink, DeferOn: "warehouse.closed"})
	if err != nil {
		panic(err)
	}
	defer orders.Close()

	ctx := context.Background()
	orders.Enqueue(ctx, order{"ada", 1})
	<-started
	reopen := sink.Hold("warehouse.closed", "north", 0)
	second, err := orders.Enqueue(ctx, order{"ada", 2})
	if err != nil {
		panic(err)
	}

	why, _ := orders.Explain(second)
	for _, reason := range why.Reasons {
		fmt.Printf("%s: %s\n", reason.Kind, reason.Key+reason.Signal.Name)
	}

	finish <- true
	reopen()
	<-started
	finish <- true
	// Output:
	// key: ada
	// deferred: warehouse.closed
}
