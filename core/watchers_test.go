package core_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Ten times as many coordinators and handlers take some ten times as long, not a hundred times: to come and to go.
func TestManyCoordinatorsCostNoMoreEach(t *testing.T) {
	if coretest.Race {
		t.Skip("the race detector makes many cost more")
	}
	t.Run("handlers of a dispatcher and of its end", func(t *testing.T) {
		long.Linear(t, 30_000, func(n int) {
			d := core.Must(core.NewDispatcher(core.Options{}))
			defer d.Close()
			ends := make([]func(), n)
			for i := range ends {
				a, b := d.OnClosed(func() {}), d.Handle("name", func(context.Context, signals.Signal) error { return nil })
				ends[i] = func() { a(); b() }
			}
			for _, end := range ends {
				end()
			}
		})
	})
	t.Run("gates", func(t *testing.T) {
		long.Linear(t, 10_000, func(n int) {
			s := signals.NewSink(signals.SinkOptions{})
			all := make([]*core.Coordinator[int], n)
			for i := range all {
				all[i] = core.Must(core.NewCoordinator(func(context.Context, int) error { return nil },
					core.Options{Sink: s, DrainOn: "drain", CancelOn: fmt.Sprint("stop.", i)}))
			}
			s.Raise("drain")
			for _, c := range all {
				c.Close()
			}
		})
	})
}
