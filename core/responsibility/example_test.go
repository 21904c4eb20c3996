package responsibility_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
)

// An upload answers for its file until the indexer, of which it knows nothing, has
// seen where the file is.
func Example() {
	sink := core.NewSink(core.SinkOptions{})
	var keeper *responsibility.Keeper

	uploads, err := core.NewCoordinator(func(ctx context.Context, file string) error {
		op := core.OperationFrom(ctx)
		op.Set("location", "/bucket/"+file)
		keeper.Keep(op.ID(), responsibility.Promise{
			Announce:    "file.ready",
			Key:         file,
			Description: "saved, waits to be indexed",
		})
		return nil
	}, core.Options{Sink: sink, MaxTracked: 10, MaxAge: time.Second})
	if err != nil {
		panic(err)
	}
	defer uploads.Close()

	keeper, err = responsibility.New(uploads, sink, responsibility.Options{MaxPin: time.Minute})
	if err != nil {
		panic(err)
	}
	defer keeper.Close()

	ctx := context.Background()
	if err := uploads.Do(ctx, "cat.png"); err != nil {
		panic(err)
	}
	for id, p := range keeper.Active() {
		fmt.Println(p.Key, p.Description)
		op, _ := uploads.Lookup(id)
		location, _ := core.Value[string](op, "location")
		fmt.Println("found at", location)
	}
	sink.RaiseKey("file.ready.ack", "cat.png")
	fmt.Println(keeper.Len(), "left")
	// Output:
	// cat.png saved, waits to be indexed
	// found at /bucket/cat.png
	// 0 left
}

// The one who made the promise can end it as well, here because the consumer has
// failed and the work will be done again.
func ExampleKeeper_Complete() {
	sink := core.NewSink(core.SinkOptions{})
	reports := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil },
		core.Options{Sink: sink}))
	defer reports.Close()
	keeper := core.Must(responsibility.New(reports, sink, responsibility.Options{}))
	defer keeper.Close()

	id, err := reports.Enqueue(context.Background(), "monthly")
	if err != nil {
		panic(err)
	}
	fmt.Println("kept:", keeper.Keep(id, responsibility.Promise{Description: "waits to be mailed"}))
	fmt.Println("released:", keeper.Complete(id))
	fmt.Println("released again:", keeper.Complete(id))
	// Output:
	// kept: true
	// released: true
	// released again: false
}
