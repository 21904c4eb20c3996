package core_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
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

// The short form has each constructor, and each of the options, but not all pairs of them.
func TestCoordinatorLifecycle(t *testing.T) {
	for i, test := range []struct {
		name string
		opts core.Options
	}{
		{"zero options", core.Options{}},
		{"one at a time", core.Options{MaxConcurrency: 1}},
		{"short queue", core.Options{MaxConcurrency: 1, MaxQueued: 2}},
		{"no window", core.Options{MaxConcurrency: 3, MaxTracked: -1, EchoCapacity: -1}},
		{"with gates", core.Options{MaxConcurrency: 2, CancelOn: "stop.*", DeferOn: "wait", ResumeOn: "go", DrainOn: "drain"}},
	} {
		for j, c := range constructors {
			if j%5 != i && long.Often(1, 0) == 0 {
				continue
			}
			t.Run(c.name+", "+test.name, func(t *testing.T) {
				coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
					var told atomic.Uint64
					opts := test.opts
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

// bodyCoordinator is any coordinator whose items are bodies.
type bodyCoordinator interface {
	core.Inspector
	signals.Sensor
	core.Enqueuer[coretest.Body]
	Do(ctx context.Context, body coretest.Body) error
	Wait(ctx context.Context, id core.OperationID) error
	Cancel(id core.OperationID, cause error) bool
	Evict(id core.OperationID) bool
	OnFinalized(fn func(core.Snapshot)) (cancel func())
	Pin(id core.OperationID) (unpin func(), ok bool)
	Pause()
	Resume()
	SetMaxConcurrency(n int) error
	WaitIdle(ctx context.Context) error
	Sink() *signals.Sink
}

// resultBodies lets a coordinator with results pass for one without.
type resultBodies struct {
	*core.ResultCoordinator[coretest.Body, string]
}

func (c resultBodies) Do(ctx context.Context, body coretest.Body) error {
	_, err := c.ResultCoordinator.Do(ctx, body)
	return err
}

func (c resultBodies) Wait(ctx context.Context, id core.OperationID) error {
	_, err := c.ResultCoordinator.Wait(ctx, id)
	return err
}

func runForResult(ctx context.Context, body coretest.Body) (string, error) {
	return "result", body(ctx)
}

// oneKey gives all items the same key, and differentKeys gives each item another key.
func oneKey(coretest.Body) string { return "key" }

func differentKeys() func(coretest.Body) string {
	var n atomic.Int64
	return func(coretest.Body) string { return strconv.FormatInt(n.Add(1), 10) }
}

// constructor makes coordinators of one kind.
type constructor struct {
	name string
	make func(t testing.TB, opts core.Options) bodyCoordinator
}

// constructors are all the ways to make a coordinator.
var constructors = []constructor{
	{"plain", func(t testing.TB, opts core.Options) bodyCoordinator {
		return core.Must(core.NewCoordinator(coretest.Run, opts))
	}},
	{"one key", func(t testing.TB, opts core.Options) bodyCoordinator {
		return core.Must(core.NewKeyedCoordinator(oneKey, coretest.Run, opts))
	}},
	{"different keys", func(t testing.TB, opts core.Options) bodyCoordinator {
		return core.Must(core.NewKeyedCoordinator(differentKeys(), coretest.Run, opts))
	}},
	{"lanes", func(t testing.TB, opts core.Options) bodyCoordinator {
		opts.Lanes = core.Must(core.ParseLanes("hot:2, normal, slow:1"))
		return core.Must(core.NewCoordinator(coretest.Run, opts))
	}},
	{"slow lane", func(t testing.TB, opts core.Options) bodyCoordinator {
		opts.Lanes = core.Must(core.ParseLanes("hot:2, normal, slow:1"))
		return core.Must(core.NewCoordinator(coretest.Run, opts)).Lane("slow")
	}},
	{"keys and lanes", func(t testing.TB, opts core.Options) bodyCoordinator {
		opts.Lanes = core.Must(core.ParseLanes("hot:2, slow"))
		return core.Must(core.NewKeyedCoordinator(oneKey, coretest.Run, opts)).Lane("hot")
	}},
	{"results", func(t testing.TB, opts core.Options) bodyCoordinator {
		return resultBodies{core.Must(core.NewResultCoordinator(runForResult, opts))}
	}},
	{"results with keys", func(t testing.TB, opts core.Options) bodyCoordinator {
		return resultBodies{core.Must(core.NewKeyedResultCoordinator(oneKey, runForResult, opts))}
	}},
	{"results with keys and lanes", func(t testing.TB, opts core.Options) bodyCoordinator {
		opts.Lanes = core.Must(core.ParseLanes("hot:2, slow"))
		return resultBodies{core.Must(core.NewKeyedResultCoordinator(differentKeys(), runForResult, opts)).Lane("hot")}
	}},
}

// everyConstructor runs a test in a bubble for each of them.
func everyConstructor(t *testing.T, test func(t *testing.T, c constructor)) {
	t.Helper()
	for _, c := range constructors {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { test(t, c) })
		})
	}
}
