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
// background context. In the second row a body waits until the next stage has run. In the
// third row all stages share a coordinator, and a body waits as well; in the flat form it
// enqueues the next stage and ends.
func stageRows(work func()) []Row {
	return []Row{
		{Name: "stages=4", MaxAllocs: 9, Sides: []Side{ // 7, and the waits for room
			stagesRun("ours", 0, work, enqueueNext),
			stagesRun("ours-background", 1.15, work, func(next *core.Coordinator[int], _ context.Context, item int) error {
				return enqueueNext(next, context.Background(), item)
			}),
		}},
		{Name: "stages=4/wait", MaxAllocs: 18, Sides: []Side{
			stagesRun("ours", 0, work, (*core.Coordinator[int]).Do),
			stagesRun("ours-enqueue", 0, work, enqueueNext),
		}},
		{Name: "stages=4/coordinators=1", MaxAllocs: 15, Sides: []Side{
			nestedRun("ours", 0, work, (*core.Coordinator[int]).Do),
			nestedRun("ours-flat", 0, work, enqueueNext),
		}},
	}
}

func enqueueNext(next *core.Coordinator[int], ctx context.Context, item int) error {
	_, err := next.Enqueue(ctx, item)
	return err
}

func stage(work core.Work[int]) *core.Coordinator[int] {
	return core.Must(core.NewCoordinator(work, core.Options{MaxConcurrency: stageLimit, MaxQueued: stageQueue}))
}

// stagesRun is a pipeline of coordinators. A body passes its item to the next stage with pass.
func stagesRun(name string, goal float64, work func(), pass func(*core.Coordinator[int], context.Context, int) error) Side {
	return Side{name, goal, func() Body {
		var stages [stageCount]*core.Coordinator[int]
		for i := range stages {
			stages[i] = stage(func(ctx context.Context, item int) error {
				work()
				if i+1 == stageCount {
					return nil
				}
				return pass(stages[i+1], ctx, item)
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
