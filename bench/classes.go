package bench

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/ephemeralgo/ephemeral/core"
)

// plenty is a rate that is never reached, with a bucket that is never empty.
var plenty = core.Rate{PerSecond: 1e9, Burst: 1 << 30}

// classRows: operations of classes, on one core.
func classRows() []Row {
	row := func(name string, class core.Class, goal float64) Row {
		return Row{Name: "op=classes/rates=" + name, MaxAllocs: 1, Sides: []Side{
			classRun("ours", 0, class),
			classRun("ours-no-rates", goal, core.Class{}),
			oursRun("ours-plain", 0, 1, nothing),
		}}
	}
	return []Row{
		row("none", core.Class{}, 0),
		row("calls", core.Class{Rate: plenty}, 1.1),
		row("calls-and-cost", core.Class{Rate: plenty, CostRate: plenty}, 1.15),
		row("none/shadow=free", core.Class{Shadow: &core.Limits{Limit: limit, Rate: plenty, CostRate: plenty}}, 1.4),
		row("none/shadow=waits", core.Class{Shadow: &core.Limits{Limit: 1, Rate: core.Rate{PerSecond: 1000}}}, 1.4),
		{Name: "op=plain/parked-classes=63", MaxAllocs: -1, Sides: []Side{parkedClasses(), oursRun("ours-plain", 0, 1, nothing)}},
		{Name: "op=keys/parked-keys=100k", MaxAllocs: -1, Sides: []Side{parkedKeys("ours", 0, 100_000), parkedKeys("ours-parked=100", 1.5, 100)}},
	}
}

// classRun runs operations of two classes in turns.
func classRun(name string, goal float64, class core.Class) Side {
	return Side{name, goal, func() Body {
		a, b := class, class
		a.Name, b.Name = "a", "b"
		c := core.Must(core.NewCoordinator(nothing, core.Options{
			MaxConcurrency: limit,
			MaxQueued:      queue / 2,
			MaxTracked:     window,
			Classes:        []core.Class{a, b},
		}))
		views := [...]*core.Coordinator[int]{c.Class("a").Cost(1), c.Class("b").Cost(1)}
		return Body{Run: func(n int) {
			ctx := context.Background()
			for i := range n {
				_, err := views[i%len(views)].Enqueue(ctx, 0)
				check(err)
			}
			check(c.Flush(ctx))
		}, Close: closing(c)}
	}}
}

// never has a token at once, and then one in 30 years.
var never = core.Rate{PerSecond: 1e-9, Burst: 1}

// parkedClasses runs operations without a class in the middle one of three lanes, while items of
// 63 classes wait for tokens in all lanes.
func parkedClasses() Side {
	return Side{"ours", 0, func() Body {
		opts := core.Options{MaxConcurrency: limit, MaxQueued: queue, MaxTracked: window, Lanes: core.Must(core.ParseLanes("hot, normal, slow"))}
		for i := range 63 {
			opts.Classes = append(opts.Classes, core.Class{Name: fmt.Sprint(i), Rate: never})
		}
		c := core.Must(core.NewCoordinator(nothing, opts))
		for _, class := range opts.Classes {
			for _, lane := range opts.Lanes {
				for range 2 {
					_, err := c.Lane(lane.Name).Class(class.Name).Enqueue(context.Background(), 0)
					check(err)
				}
			}
		}
		return Body{Run: bounded(c.Lane("normal")), Close: closing(c)}
	}}
}

// parkedKeys runs operations without a key while as many keys wait for tokens.
func parkedKeys(name string, goal float64, keys int) Side {
	return Side{name, goal, func() Body {
		c := core.Must(core.NewKeyedCoordinator(func(i int) string {
			if i < 0 {
				return ""
			}
			return fmt.Sprint(i)
		}, nothing, core.Options{MaxConcurrency: limit, MaxQueued: 2*keys + queue, MaxTracked: window, KeyRate: never}))
		for i := range 2 * keys {
			_, err := c.Enqueue(context.Background(), i/2)
			check(err)
		}
		c.Lookup(0) // the scheduler has them all now
		return Body{Run: bounded(c), Close: closing(c)}
	}}
}

// bounded enqueues items that can start beside others that cannot, and waits for the former.
func bounded(c *core.Coordinator[int]) func(n int) {
	return func(n int) {
		ctx := context.Background()
		for n > 0 {
			g := c.Group(ctx, core.GroupOptions{})
			for range min(n, queue/2) {
				_, err := g.Enqueue(ctx, -1)
				check(err)
			}
			check(g.Wait())
			n -= min(n, queue/2)
		}
	}
}

// interactiveRow: how long an interactive item waits for its start and its end beside a batch
// that always waits, at 2,000 calls a second for both.
func interactiveRow() Row {
	per := core.Rate{PerSecond: 2000, Burst: 1}
	return Row{Name: "op=interactive-beside-batch/rate=2000", MaxAllocs: -1, Sides: []Side{
		interactive("ours", 0, core.Class{Name: "api", Rate: per}, nothing),
		interactive("x-time-rate-in-body", 0.2, core.Class{Name: "api"}, func() core.Work[int] {
			l := rate.NewLimiter(rate.Limit(per.PerSecond), per.Burst)
			return func(ctx context.Context, _ int) error { return l.Wait(ctx) }
		}()),
	}}
}

func interactive(name string, goal float64, class core.Class, work core.Work[int]) Side {
	return Side{name, goal, func() Body {
		var c *core.Coordinator[int]
		var batch *core.Coordinator[int]
		var ends atomic.Bool
		c = core.Must(core.NewCoordinator(func(ctx context.Context, item int) error {
			err := work(ctx, item)
			if item > 0 && !ends.Load() {
				_, err = batch.Enqueue(ctx, item)
			}
			return err
		}, core.Options{MaxConcurrency: 16, Ageing: -1, Lanes: core.Must(core.ParseLanes("interactive, batch")), Classes: []core.Class{class}}))
		batch = c.Lane("batch").Class("api")
		for range 32 {
			_, err := batch.Enqueue(context.Background(), 1)
			check(err)
		}
		urgent := c.Lane("interactive").Class("api")
		return Body{Run: func(n int) {
			for range n {
				check(urgent.Do(context.Background(), 0))
			}
		}, Close: func() { ends.Store(true); check(c.Close()) }}
	}}
}
