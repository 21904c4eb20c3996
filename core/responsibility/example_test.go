package responsibility_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// An upload keeps its operation until the indexer has seen where the file is. The two do
// not know each other.
func Example() {
	sink := signals.NewSink(signals.SinkOptions{})
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

// A status page shows what is kept, and why. A Pinner can be any type with the method Pin,
// here one that prints what it does.
func ExampleKeeper_Active() {
	sink := signals.NewSink(signals.SinkOptions{})
	reports := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil },
		core.Options{Sink: sink}))
	defer reports.Close()
	keeper := core.Must(responsibility.New(printing{reports}, sink, responsibility.Options{MaxPin: -1}))

	id, err := reports.Enqueue(context.Background(), "monthly")
	if err != nil {
		panic(err)
	}
	keeper.Keep(id, responsibility.Promise{Announce: "report.ready", Description: "waits to be mailed"})
	line := func(k responsibility.Kept) string { return k.Description + " until " + k.Ack }
	for _, kept := range keeper.Active() {
		fmt.Println(line(kept))
	}
	keeper.Close()
	// Output:
	// pinned
	// waits to be mailed until report.ready.ack
	// unpinned
}

type printing struct{ responsibility.Pinner }

func (p printing) Pin(id core.OperationID) (func(), bool) {
	fmt.Println("pinned")
	unpin, ok := p.Pinner.Pin(id)
	return func() {
		fmt.Println("unpinned")
		unpin()
	}, ok
}
