package guide_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

func Example_results() {
	price := func(ctx context.Context, item string) (int, error) {
		if item == "" {
			return 0, errors.New("no item")
		}
		return 10 * len(item), nil
	}
	prices := core.Must(core.NewResultCoordinator(price, core.Options{MaxConcurrency: 4}))
	defer prices.Close()

	ctx := context.Background()
	fmt.Println(prices.Do(ctx, "book"))
	fmt.Println(prices.Do(ctx, ""))

	chair := core.Must(prices.Submit(ctx, "chair")) // does not wait for the result
	fmt.Println(chair.Wait(ctx))
	// Output:
	// 40 <nil>
	// 0 no item
	// 50 <nil>
}

func Example_failures() {
	ship := func(ctx context.Context, order string) error {
		switch order {
		case "broken":
			panic("no such shelf")
		case "slow":
			<-ctx.Done() // Timeout ends the context
			return context.Cause(ctx)
		}
		return nil
	}
	orders := core.Must(core.NewCoordinator(ship, core.Options{
		MaxConcurrency: 1,
		Timeout:        10 * time.Millisecond,
		OnDone: func(op core.Snapshot) { // once for each operation that ends
			fmt.Println(op.Item, op.Status, op.Err)
		},
	}))
	defer orders.Close()

	ctx := context.Background()
	for _, order := range []string{"fine", "broken", "slow"} {
		core.Must(orders.Enqueue(ctx, order))
	}
	if err := orders.Drain(ctx); err != nil {
		panic(err)
	}
	// Output:
	// fine succeeded <nil>
	// broken failed core: operation panicked: no such shelf
	// slow failed core: operation took longer than its timeout
}

func Example_list() {
	weigh := func(ctx context.Context, parcel string) (int, error) { return 100 * len(parcel), nil }
	parcels := slices.Values([]string{"pen", "book", "chair"})
	for grams, err := range core.Map(context.Background(), parcels, weigh, core.Options{MaxConcurrency: 2}) {
		fmt.Print(grams, " g ", err, "; ")
	}
	// Output: 300 g <nil>; 400 g <nil>; 500 g <nil>;
}
