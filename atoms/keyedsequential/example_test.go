package keyedsequential_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/ephemeralgo/ephemeral/atoms/keyedsequential"
	"github.com/ephemeralgo/ephemeral/core"
)

func Example() {
	type Order struct{ Customer, ID string }
	var mu sync.Mutex
	processed := map[string][]string{}
	process := func(ctx context.Context, o Order) error {
		mu.Lock()
		defer mu.Unlock()
		processed[o.Customer] = append(processed[o.Customer], o.ID)
		return nil
	}
	customer := func(o Order) string { return o.Customer }
	orders := core.Must(keyedsequential.New(customer, process, core.Options{MaxConcurrency: 16}))
	defer orders.Close()

	ctx := context.Background()
	for _, order := range []Order{
		{"ada", "order 1"},
		{"ada", "order 2"}, // waits for order 1
		{"bob", "order 3"}, // waits for no other order
	} {
		if _, err := orders.Enqueue(ctx, order); err != nil {
			panic(err)
		}
	}
	if err := orders.Drain(ctx); err != nil {
		panic(err)
	}
	fmt.Println(processed["ada"], processed["bob"])    // [order 1 order 2] [order 3]
	fmt.Println(orders.Stats().Succeeded, "processed") // 3 processed
	// Output:
	// [order 1 order 2] [order 3]
	// 3 processed
}
