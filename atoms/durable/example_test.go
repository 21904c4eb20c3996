package durable_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

type Order struct{ Customer, ID string }

func (o Order) CustomerKey() string { return o.Customer }

func Example() {
	ctx := context.Background()
	ship := func(ctx context.Context, o Order) error {
		fmt.Println("ship", o.ID, "attempt", durable.ClaimFrom(ctx).Attempt)
		return nil
	}
	store := durable.Memory() // a program opens the store of an engine
	orders, err := durable.New(store, Order.CustomerKey, ship, durable.Options{Name: "orders", MaxConcurrency: 1})
	if err != nil {
		panic(err)
	}
	defer orders.Close()

	for _, id := range []string{"4711", "4712"} {
		if _, err := orders.Enqueue(ctx, Order{"ada", id}); err != nil { // nil: it is on disk
			panic(err)
		}
	}
	done := orders.Sink().Monitor(durable.SignalSucceeded, 0)
	defer done.Stop()
	ctx, stop := context.WithCancel(ctx)
	defer done.OnCount(2, 1, func(bool) { stop() })() // a server runs until it is told to stop
	if err := orders.Run(ctx); err != nil {
		panic(err)
	}
	stats, err := orders.Stats(context.Background())
	fmt.Println(stats.Done, "done", err)
	// Output:
	// ship 4711 attempt 1
	// ship 4712 attempt 1
	// 2 done <nil>
}

// A process without Run is a producer. It can ask about items, and cancel them.
func ExampleQueue_Explain() {
	ctx := context.Background()
	work := func(context.Context, Order) error { return nil }
	lanes := core.Must(core.ParseLanes("hot:4, normal, slow:2")) // limits of all processes
	orders, err := durable.New(durable.Memory(), Order.CustomerKey, work, durable.Options{Lanes: lanes})
	if err != nil {
		panic(err)
	}
	defer orders.Close()

	first, _ := orders.Lane("hot").Enqueue(ctx, Order{"ada", "4711"})
	once := orders.With(durable.ItemOptions{Unique: "order 4712", Delay: time.Hour})
	second, _ := once.Enqueue(ctx, Order{"ada", "4712"})
	again, _ := once.Enqueue(ctx, Order{"ada", "4712"})
	fmt.Println(second == again)
	for _, id := range []durable.ItemID{first, second} {
		why, err := orders.Explain(ctx, id)
		fmt.Println(why, err)
	}
	fmt.Println(orders.Cancel(ctx, second, "customer left"))
	// Output:
	// true
	// no node serves the queue <nil>
	// behind 1 item of key ada; the first can be claimed <nil>
	// true <nil>
}

// Dead items are kept, listed, and tried again when the reason is gone.
func ExampleQueue_Again() {
	ctx := context.Background()
	fixed := false
	work := func(_ context.Context, o Order) error {
		if !fixed {
			return durable.Permanent(errors.New("no such address"))
		}
		fmt.Println("ship", o.ID)
		return nil
	}
	orders, err := durable.New(durable.Memory(), Order.CustomerKey, work, durable.Options{})
	if err != nil {
		panic(err)
	}
	defer orders.Close()
	go orders.Run(ctx)

	orders.Enqueue(ctx, Order{"ada", "4711"})
	orders.Sink().WaitFor(ctx, durable.SignalFailed)
	fixed = true
	for dead, err := range orders.Items(ctx, durable.Query{Dead: true}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(dead.ID, dead.Key, dead.Err)
		fmt.Println(orders.Again(ctx, dead.ID))
	}
	orders.Sink().WaitFor(ctx, durable.SignalSucceeded)
	// Output:
	// 1 ada no such address
	// 1 <nil>
	// ship 4711
}
