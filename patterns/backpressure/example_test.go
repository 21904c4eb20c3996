package backpressure_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/backpressure"
)

// The database is paused. The intake stops when 10 orders wait for it, until only 2 wait.
func Example() {
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	db := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil },
		core.Options{Name: "db", Sink: sink}))
	db.Pause()
	intake := core.Must(backpressure.New(func(ctx context.Context, order string) error {
		_, err := db.Enqueue(ctx, order)
		return err
	}, core.Options{Name: "intake", Sink: sink, MaxConcurrency: 1}))
	stages := core.InOrder(intake, db)
	defer stages.Close()
	var target backpressure.Target = db
	defer backpressure.Watch(target, backpressure.Watermarks{High: 10, Low: 2})()

	for range 100 {
		core.Must(intake.Enqueue(ctx, "order"))
	}
	core.Must(sink.WaitFor(ctx, "backpressure.db"))
	for running := range intake.Operations(core.OperationQuery{Status: core.StatusRunning}) {
		intake.Wait(ctx, running.ID)
	}
	fmt.Println("waiting for the database:", db.Stats().Pending, "in the intake:", intake.Stats().Pending)

	db.Resume()
	if err := stages.Drain(ctx); err != nil {
		panic(err)
	}
	fmt.Println("stored:", db.Stats().Succeeded)
	// Output:
	// waiting for the database: 10 in the intake: 90
	// stored: 100
}

// Other code raises and retracts the signal.
func ExampleNew() {
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	process := func(context.Context, string) error { return nil }
	coordinator, err := backpressure.New(process, core.Options{MaxConcurrency: 4, Sink: sink})
	if err != nil {
		panic(err)
	}
	defer coordinator.Close()

	sink.Raise("backpressure.downstream") // downstream is slow: new work waits
	if _, err := coordinator.Enqueue(ctx, "an item"); err != nil {
		panic(err)
	}
	fmt.Println(coordinator.Stats().Pending, "waits")

	sink.Retract("backpressure.downstream") // recovered: work resumes at once
	fmt.Println(coordinator.Drain(ctx))
	// Output:
	// 1 waits
	// <nil>
}
