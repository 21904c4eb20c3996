package core_test

import (
	"context"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// subject adapts a coordinator of bodies for the lifecycle suite.
func subject(c *core.Coordinator[coretest.Body]) coretest.Subject {
	return coretest.Subject{
		Lifecycle: c,
		Submit: func(ctx context.Context, body coretest.Body) error {
			_, err := c.Enqueue(ctx, body)
			return err
		},
		Pause:  c.Pause,
		Resume: c.Resume,
		Sink:   c.Sink(),
		Stats:  c.Stats,
	}
}

func TestCoordinatorLifecycle(t *testing.T) {
	for name, opts := range map[string]core.Options{
		"zero options":    {},
		"one at a time":   {MaxConcurrency: 1},
		"short queue":     {MaxConcurrency: 1, MaxQueued: 2},
		"no window":       {MaxConcurrency: 3, MaxTracked: -1, EchoCapacity: -1},
		"heeding signals": {MaxConcurrency: 2, CancelOn: "stop.*", DeferOn: "wait", ResumeOn: "go", DrainOn: "drain"},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				c, err := core.NewCoordinator(coretest.Run, opts)
				if err != nil {
					t.Fatal(err)
				}
				return subject(c)
			})
		})
	}
}
