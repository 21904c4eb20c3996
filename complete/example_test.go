package complete_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/complete"
)

func Example() {
	sink := complete.NewSink(complete.SinkOptions{})
	ship := func(ctx context.Context, order string) error {
		complete.OperationFrom(ctx).Raise("order.shipped")
		return nil
	}
	pool, err := complete.NewPool(ship, complete.PoolOptions{MaxConcurrency: 4, Sink: sink})
	if err != nil {
		panic(err)
	}
	defer pool.Close()

	ctx := context.Background()
	for _, order := range []string{"order-1", "order-2"} {
		if _, err := pool.Enqueue(ctx, order); err != nil {
			panic(err)
		}
	}
	if err := pool.Drain(ctx); err != nil {
		panic(err)
	}
	fmt.Println(sink.Count("order.*"), "shipped")
	// Output: 2 shipped
}
