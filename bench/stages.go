package bench

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
)

const (
	stageCount = 4
	stageLimit = 4  // of each stage
	stageQueue = 16 // short, so that stages wait for room in the next
)

// stageRows measure an item that goes through four stages. In the first row each stage has
// its own coordinator. A body enqueues into the next stage, and waits if the queue is full.
// It passes its own context, which tells the library that an operation waits, or the
// background context. In the second row all stages share a coordinator. A body waits until
// the next stage has run; in the flat form it enqueues the next stage and ends.
func stageRows(work func()) []Row {
	return []Row{
		{Name: "stages=4", MaxAllocs: -1, Sides: []Side{
			stagesRun("ours", 0, work, func(ctx context.Context) context.Context { return ctx }),
			stagesRun("ours-background", 1.2, work, func(context.Context) context.Context { return context.Background() }),
		}},
		{Name: "stages=4/coordinators=1", MaxAllocs: -1, Sides: []Side{
			nestedRun("ours", 0, work, (*core.Coordinator[int]).Do),
			nestedRun("ours-flat", 0, work, func(c *core.Coordinator[int], ctx context.Context, stage int) error {
				_, err := c.Enqueue(ctx, stage)
				return err
			}),
		}},
	}
}

func stage(work core.Work[int]) *core.Coordinator[int] {
	return core.Must(core.NewCoordinator(work, core.Options{MaxConcurrency: stageLimit, MaxQueued: stageQueue}))
}

// stagesRun is a pipeline of coordinators. From returns the context with which a body
// enqueues.
func stagesRun(name string, goal float64, work func(), from func(context.Context) context.Context) Side {
	return Side{name, goal, func() Body {
		var stages [stageCount]*core.Coordinator[int]
		for i := range stages {
			stages[i] = stage(func(ctx context.Context, item int) error {
				work()
				if i+1 == stageCount {
					return nil
				}
				_, err := stages[i+1].Enqueue(from(ctx), item)
				return err
			})
		}
		return Body{Run: func(n int) {
			ctx := context.Background()
			for i := range n {
				_, err := stages[0].Enqueue(ctx, i)
				check(err)
			}
			for _, c := range stages {
				check(c.Flush(ctx))
			}
		}, Close: func() {
			for _, c := range stages {
				check(c.Close())
			}
		}}
	}}
}

// nestedRun is one coordinator for all stages. An item is the number of its stage, and
// its body starts the next stage with next.
func nestedRun(name string, goal float64, work func(), next func(*core.Coordinator[int], context.Context, int) error) Side {
	return Side{name, goal, func() Body {
		var c *core.Coordinator[int]
		c = stage(func(ctx context.Context, stage int) error {
			work()
			if stage+1 == stageCount {
				return nil
			}
			return next(c, ctx, stage+1)
		})
		return Body{Run: func(n int) {
			ctx := context.Background()
			for range n {
				_, err := c.Enqueue(ctx, 0)
				check(err)
			}
			check(c.WaitIdle(ctx))
		}, Close: closing(c)}
	}}
}
