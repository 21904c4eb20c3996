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
	prices, err := core.NewResultCoordinator(price, core.Options{MaxConcurrency: 4})
	if err != nil {
		panic(err)
	}
	defer prices.Close()

	ctx := context.Background()
	fmt.Println(prices.Do(ctx, "book"))
	fmt.Println(prices.Do(ctx, ""))

	lamp := core.Must(prices.Submit(ctx, "lamp")) // does not wait for the result
	table := core.Must(prices.Submit(ctx, "table"))
	fmt.Println(lamp.Wait(ctx))
	fmt.Println(table.Wait(ctx))
	// Output:
	// 40 <nil>
	// 0 no item
	// 40 <nil>
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
	orders, err := core.NewCoordinator(ship, core.Options{
		MaxConcurrency: 1,
		Timeout:        10 * time.Millisecond,
		OnDone: func(op core.Snapshot) { // once for each operation that ends
			fmt.Println(op.Item, op.Status, errors.Is(op.Err, core.ErrTimeout))
		},
	})
	if err != nil {
		panic(err)
	}
	defer orders.Close()

	ctx := context.Background()
	for _, order := range []string{"fine", "broken", "slow"} {
		core.Must(orders.Enqueue(ctx, order))
	}
	if err := orders.Drain(ctx); err != nil {
		panic(err)
	}
	for op := range orders.Operations(core.OperationQuery{Status: core.StatusFailed, Limit: 1}) {
		fmt.Println(op.Err)
	}
	// Output:
	// fine succeeded false
	// broken failed false
	// slow failed true
	// core: operation panicked: no such shelf
}

func Example_list() {
	weigh := func(ctx context.Context, parcel string) (int, error) { return 100 * len(parcel), nil }
	parcels := slices.Values([]string{"pen", "book", "lamp"})

	total := 0
	for grams, err := range core.Map(context.Background(), parcels, weigh, core.Options{MaxConcurrency: 2}) {
		if err != nil {
			panic(err)
		}
		total += grams
	}
	fmt.Println(total, "g")
	// Output: 1100 g
}
