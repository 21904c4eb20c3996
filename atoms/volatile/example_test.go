package volatile_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/volatile"
	"github.com/ephemeralgo/ephemeral/core"
)

func Example() {
	ctx := context.Background()
	process := func(ctx context.Context, job string) error {
		if job != "odd" { // nothing to see here
			core.OperationFrom(ctx).Raise("kill.job")
		}
		return nil
	}
	jobs := core.Must(core.NewCoordinator(process, core.Options{EchoAge: 30 * time.Second}))
	defer jobs.Close()

	gone := make(chan core.OperationID, 3)
	evictor, err := volatile.New(jobs, volatile.Options{
		LetFinish: true,
		OnKilled:  func(id core.OperationID, _ core.Signal) { gone <- id },
	})
	if err != nil {
		panic(err)
	}
	defer evictor.Close()

	for _, job := range []string{"plain", "odd", "plain"} {
		if _, err := jobs.Enqueue(ctx, job); err != nil {
			panic(err)
		}
	}
	<-gone
	<-gone
	if err := jobs.Flush(ctx); err != nil {
		panic(err)
	}
	fmt.Println("done:", jobs.Stats().Succeeded, "still shown:", jobs.Stats().Tracked)
	for echo := range jobs.Echoes(core.Query{}) {
		fmt.Println("echo:", echo.Status, echo.Signals[0].Name)
	}
	// Output:
	// done: 3 still shown: 1
	// echo: succeeded kill.job
	// echo: succeeded kill.job
}

// Somebody else kills an operation, by its id.
func Example_byKey() {
	ctx := context.Background()
	sink := core.NewSink(core.SinkOptions{})
	jobs := core.Must(core.NewCoordinator(func(ctx context.Context, job string) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}, core.Options{Sink: sink}))
	defer jobs.Close()
	evictor, err := volatile.New(jobs, volatile.Options{ByKey: true})
	if err != nil {
		panic(err)
	}
	defer evictor.Close()

	id, err := jobs.Enqueue(ctx, "endless")
	if err != nil {
		panic(err)
	}
	sink.RaiseKey("kill.job", id.String())
	if _, err := sink.WaitFor(ctx, volatile.SignalKilled); err != nil {
		panic(err)
	}
	_, shown := jobs.Lookup(id)
	fmt.Println("cancelled:", jobs.Stats().Cancelled, "still shown:", shown)
	// Output:
	// cancelled: 1 still shown: false
}
