package core_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// Work that is bounded and can be asked about.
func Example() {
	resize := func(ctx context.Context, name string) error {
		if name == "broken.png" {
			return fmt.Errorf("%s is not an image", name)
		}
		core.OperationFrom(ctx).Raise("image.resized")
		return nil
	}

	images, err := core.NewCoordinator(resize, core.Options{MaxConcurrency: 4})
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
	// 2 resized
	// failed broken.png is not an image
}

// One part of a program says what is so; another heeds it. They share a sink and
// nothing else.
func Example_signals() {
	sink := core.NewSink(core.SinkOptions{})

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
	// ephemeral: refused because of signal "warehouse.closed"
	// shipping order-2
	// <nil>
}
