package core_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// subject adapts a coordinator of bodies for the lifecycle suite.
func subject(c bodyCoordinator) coretest.Subject {
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

		WaitIdle: c.WaitIdle,
	}
}

func TestCoordinatorLifecycle(t *testing.T) {
	for name, opts := range map[string]core.Options{
		"zero options":  {},
		"one at a time": {MaxConcurrency: 1},
		"short queue":   {MaxConcurrency: 1, MaxQueued: 2},
		"no window":     {MaxConcurrency: 3, MaxTracked: -1, EchoCapacity: -1},
		"with gates":    {MaxConcurrency: 2, CancelOn: "stop.*", DeferOn: "wait", ResumeOn: "go", DrainOn: "drain"},
	} {
		for _, c := range constructors {
			t.Run(c.name+", "+name, func(t *testing.T) {
				coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
					var told atomic.Uint64
					opts := opts
					opts.OnDone = func(core.Snapshot) { told.Add(1) }
					s := subject(c.make(t, opts))
					s.Told = told.Load
					return s
				})
			})
		}
	}
}

// The same holds for work that is enqueued through a lane and ended through another one, or through the
// coordinator: a lane is a view.
func TestLaneLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		c := core.Must(core.NewCoordinator(coretest.Run, core.Options{Lanes: core.Must(core.ParseLanes("hot, slow"))}))
		s := subject(c.Lane("hot"))
		s.Lifecycle = c.Lane("slow")
		s.Pause, s.Resume = c.Pause, c.Lane("slow").Resume
		return s
	})
}
