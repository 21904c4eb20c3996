package fxmodule_test

import (
	"context"
	"fmt"

	"go.uber.org/fx"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/fxmodule"
	"github.com/ephemeralgo/ephemeral/patterns/jobs"
)

// A program with one coordinator. Its operations trigger a job.
func Example() {
	newUploads := func(sink *signals.Sink) (*core.Coordinator[string], error) {
		return core.NewCoordinator(func(ctx context.Context, file string) error {
			core.OperationFrom(ctx).RaiseKey("file.saved", file)
			return nil
		}, core.Options{Name: "uploads", Sink: sink})
	}
	newJobs := func() []jobs.Job {
		return []jobs.Job{jobs.On("file.saved", func(ctx context.Context, s signals.Signal) error {
			fmt.Println("thumbnail of", s.Key)
			return nil
		}, jobs.Options{Name: "thumbnail"})}
	}

	var uploads *core.Coordinator[string]
	var runner *jobs.Runner
	app := fx.New(fx.NopLogger,
		fxmodule.Module(core.Options{MaxConcurrency: 16}),
		fxmodule.Jobs(newJobs),
		fxmodule.Coordinator[*core.Coordinator[string]]("", newUploads),
		fx.Populate(&uploads, &runner),
	)
	ctx := context.Background()
	if err := app.Start(ctx); err != nil {
		panic(err)
	}
	if err := uploads.Do(ctx, "cat.png"); err != nil {
		panic(err)
	}
	if err := app.Stop(ctx); err != nil { // drains the coordinator, and then the runner
		panic(err)
	}
	// Output:
	// thumbnail of cat.png
}
