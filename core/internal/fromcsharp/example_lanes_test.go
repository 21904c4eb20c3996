package fromcsharp_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Lanes: their order, their limits, and the signals that defer or refuse their items.
func Example_lanes() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})

	orders := core.Must(core.NewCoordinator(deliver, core.Options{
		Sink: sink,
		Lanes: []core.Lane{
			{Name: "hot", Limit: 4, CancelOn: "maintenance"},
			{Name: "normal"},
			{Name: "slow", Limit: 2},
		},
	}))
	defer orders.Close()

	hot, slow := orders.Lane("hot"), orders.Lane("slow")
	core.Must(hot.Enqueue(ctx, parcel{ID: "order-42"}))
	core.Must(slow.Enqueue(ctx, parcel{ID: "order-43"}))
	if err := orders.Drain(ctx); err != nil {
		panic(err)
	}
	for _, lane := range orders.Stats().Lanes {
		fmt.Println(lane.Name, lane.Limit)
	}
	// Output:
	// hot 4
	// normal 0
	// slow 2
}

// The same lanes from text, with keys: one order of a customer runs at a time, and urgent
// orders run first.
func Example_lanesKeyed() {
	ctx := context.Background()
	lanes := core.Must(core.ParseLanes("hot:4, normal, slow:2")) // for example from a configuration

	orders := core.Must(core.NewKeyedCoordinator(parcel.customer, shipNow, core.Options{Lanes: lanes}))
	defer orders.Close()

	orders.Pause()
	for _, lane := range []string{"normal", "hot"} {
		core.Must(orders.Lane(lane).Enqueue(ctx, parcel{ID: lane, Customer: "A"}))
	}
	orders.Resume()
	if err := orders.Drain(ctx); err != nil {
		panic(err)
	}
	// Output:
	// shipping hot
	// shipping normal
}

// There are three lanes without their own limits.
func Example_priorities() {
	ctx := context.Background()
	lanes := []core.Lane{{Name: "high"}, {Name: "normal"}, {Name: "low"}}

	coordinator := core.Must(core.NewCoordinator(shipNow, core.Options{Lanes: lanes}))
	defer coordinator.Close()

	fmt.Println(coordinator.Lane("high").Do(ctx, parcel{ID: "order-44"}))
	// Output:
	// shipping order-44
	// <nil>
}

// These functions stand for your code.

type parcel struct{ ID, Customer string }

func (p parcel) customer() string { return p.Customer }

func deliver(context.Context, parcel) error { return nil }

func shipNow(_ context.Context, p parcel) error {
	fmt.Println("shipping", p.ID)
	return nil
}
