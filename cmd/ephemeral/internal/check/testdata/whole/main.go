// Command whole uses module complete.
package main

import (
	"context"

	"github.com/ephemeralgo/ephemeral/complete"
)

func main() {
	ctx, sink := context.Background(), complete.NewSink(complete.SinkOptions{})
	work := func(context.Context, string) error { return nil }
	c := complete.Must(complete.NewCoordinator(work, complete.Options{
		Sink: sink, CancelOn: "disk.ful", // want `CancelOn of c: nothing raises "disk.ful"; did you mean "disk.full"`
		Lanes: complete.Must(complete.ParseLanes("hot:4, cold")),
	}))
	c.Lane("hto").Enqueue(ctx, "a") // want `its options have no lane "hto"`
	full := complete.NewKind[int]("disk.full")
	full.Raise(sink, "", 1)
	sink.Subscribe(complete.BatcherSignalFlushed, nil)
	sink.Subscribe("batch.flusehd", nil)                                 // want `did you mean "batch.flushed" \(atoms/batching\)`
	gate, _ := complete.NewGate(work, complete.Options{DeferOn: "busy"}) // want `DeferOn of gate: nothing can close "busy"`
	sink.Raise("busy")
	gate.Lane("hot").Enqueue(ctx, "b") // want `its options have no lane "hot"`
}
