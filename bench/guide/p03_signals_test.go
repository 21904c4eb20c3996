package guide_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example_signals() {
	sink := signals.NewSink(signals.SinkOptions{})
	cancel := sink.Subscribe("payment.*", func(s signals.Signal) { fmt.Println("handler:", s.Name, s.Key) })
	defer cancel()

	sink.RaiseKey("payment.declined", "order-1")
	sink.RaiseKey("payment.accepted", "order-2")
	sink.RaiseKey("order.shipped", "order-2")

	fmt.Println(sink.Has("payment.declined"), sink.Count("payment.*"))
	for s := range sink.Sense(signals.Query{Key: "order-2", Within: time.Minute}) {
		fmt.Println("found:", s.Name)
	}
	// Output:
	// handler: payment.declined order-1
	// handler: payment.accepted order-2
	// true 2
	// found: payment.accepted
	// found: order.shipped
}

func Example_gates() {
	sink := signals.NewSink(signals.SinkOptions{})
	show := func(ctx context.Context, text string) error {
		fmt.Println(text)
		return nil
	}
	parcels := core.Must(core.NewCoordinator(show, core.Options{Sink: sink, DeferOn: "warehouse.closed"}))
	defer parcels.Close()
	quotes := core.Must(core.NewCoordinator(show, core.Options{Sink: sink, CancelOn: "warehouse.closed"}))
	defer quotes.Close()

	ctx := context.Background()
	reopen := sink.Hold("warehouse.closed", "north", 0) // 0: until reopen is called
	id := core.Must(parcels.Enqueue(ctx, "parcel for Ada"))
	_, err := quotes.Enqueue(ctx, "quote for Bob")
	fmt.Println(err)

	reopen()
	fmt.Println(parcels.Wait(ctx, id))
	// Output:
	// core: refused because of signal "warehouse.closed" for "north"
	// parcel for Ada
	// <nil>
}

func Example_kinds() {
	type Parcel struct{ Grams int }
	packed := signals.NewKind[Parcel]("parcel.packed") // usually a package variable

	sink := signals.NewSink(signals.SinkOptions{})
	cancel := packed.Subscribe(sink, func(s signals.Signal, p Parcel) { fmt.Println(s.Key, p.Grams, "g") })
	defer cancel()
	packed.Raise(sink, "order-1", Parcel{Grams: 700})
	fmt.Println(sink.Has("parcel.packed"))
	// Output:
	// order-1 700 g
	// true
}
