// Command alone has a coordinator that nothing can close.
package main

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func main() {
	work := func(ctx context.Context, id int) error {
		core.OperationFrom(ctx).Raise("disk.full")
		return nil
	}
	a, _ := core.NewCoordinator(work, core.Options{DeferOn: "maintenance"}) // want `nothing can close "maintenance"`
	b, _ := core.NewCoordinator(work, core.Options{DeferOn: "disk.*"})
	sink := signals.NewSink(signals.SinkOptions{})
	c, _ := core.NewCoordinator(work, core.Options{DeferOn: "maintenance", Sink: sink})
	sink.Raise("maintenance")
	d, _ := core.NewCoordinator(work, core.Options{DeferOn: "maintenance"})
	d.Sink().Raise("maintenance")
	core.Shutdown(context.Background(), a, b, c)
}
