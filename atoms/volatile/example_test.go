package volatile_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/volatile"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example() {
	ctx := context.Background()
	process := func(ctx context.Context, job string) error {
		if job != "odd" { // only odd jobs are interesting
			core.OperationFrom(ctx).Raise("kill.job")
		}
		return nil
	}
	jobs := core.Must(core.NewCoordinator(process, core.Options{EchoAge: 30 * time.Second}))
	defer jobs.Close()

	evictor := core.Must(volatile.New(jobs, volatile.Options{}))
	defer evictor.Close()

	gone := make(chan string, 3)
	defer jobs.Sink().Subscribe(volatile.SignalKilled, func(s signals.Signal) { gone <- s.Key })()

	for _, job := range []string{"plain", "odd", "plain"} {
		core.Must(jobs.Enqueue(ctx, job))
	}
	<-gone
	<-gone
	if err := jobs.Flush(ctx); err != nil {
		panic(err)
	}
	fmt.Println("done:", jobs.Stats().Succeeded, "still shown:", jobs.Stats().Tracked)
	for echo := range jobs.Echoes(signals.Query{}) {
		fmt.Println("echo:", echo.Status, echo.Signals[0].Name)
	}
	// Output:
	// done: 3 still shown: 1
	// echo: succeeded kill.job
	// echo: succeeded kill.job
}
