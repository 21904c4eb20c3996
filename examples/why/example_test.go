package why_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

type Order struct{ Customer, Item string }

func Example() {
	customer := func(o Order) string { return o.Customer }
	ship := func(ctx context.Context, o Order) error {
		core.OperationFrom(ctx).Raise("order.started")
		<-ctx.Done() // a slow carrier
		return ctx.Err()
	}
	orders := core.Must(core.NewKeyedCoordinator(customer, ship, core.Options{MaxConcurrency: 8, DeferOn: "warehouse.closed"}))
	defer orders.Close() // cancels what still runs

	ctx := context.Background()
	core.Must(orders.Enqueue(ctx, Order{"ada", "a lamp"}))
	core.Must(orders.Sink().WaitFor(ctx, "order.started"))
	reopen := orders.Sink().Hold("warehouse.closed", "north", 0)
	defer reopen()
	second := core.Must(orders.Enqueue(ctx, Order{"ada", "a chair"}))

	why, _ := orders.Explain(second)
	fmt.Println("operation", second, why.Status)
	for _, reason := range why.Reasons {
		fmt.Println("-", reason)
	}
	// Output:
	// operation 2 pending
	// - the only slot of key "ada" is taken by operation 1
	// - deferred because of held signal "warehouse.closed" for "north"
}
