package bench

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/alitto/pond/v2"
	"github.com/panjf2000/ants/v2"
	"github.com/sourcegraph/conc/iter"
	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/errgroup"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Settings for every side, if its library has such a setting.
const (
	limit  = 8    // operations at once
	queue  = 1024 // operations waiting
	window = 200  // operations remembered
)

func noop() {}

// runRows measure operations whose bodies do nothing, so that only the overhead counts.
func runRows() []Row {
	rows := []Row{
		{Name: "producers=1", MaxAllocs: 1, Sides: []Side{
			oursRun("ours", 0, 1, nothing),
			concRun(0.65, 1, noop),
			antsRun(0.4, 1, noop),
			errgroupRun(0.45, 1, noop),
			pondSubmit(0.25, 1, noop),
			pondGo(1.2, 1, noop),
		}},
		{Name: "producers=64", MaxAllocs: -1, Sides: []Side{ // a producer that waits for room allocates
			oursRun("ours", 0, 64, nothing),
			concRun(0.45, 64, noop),
			antsRun(0, 64, noop),
			errgroupRun(0, 64, noop),
			pondSubmit(0, 64, noop),
			pondGo(0, 64, noop),
		}},
		{Name: "producers=1/signals=1/age=none", MaxAllocs: -1, Sides: []Side{
			oursRun("ours", 0, 1, raising),
			concRun(1.0, 1, noop),
			oursRun("ours-signals=0", 0, 1, nothing),
		}},
		{Name: "producers=1/signals=1/age=default", MaxAllocs: -1, Sides: []Side{
			oursRunOn("ours", 0, 0, 1, raising),
			concRun(0, 1, noop),
			oursRun("ours-age=none", 0, 1, raising),
		}},
		{Name: "producers=1/lanes=3", MaxAllocs: 1, Sides: []Side{
			lanesRun(),
			concRun(0.9, 1, noop),
			oursRun("ours-lanes=0", 0, 1, nothing),
		}},
		{Name: "producers=1/one-at-a-time", MaxAllocs: 1, Sides: []Side{ // the task signals its end on a channel
			oursOne(),
			concOne(1.4),
			concOneEach(),
			antsOne(),
			errgroupOne(),
			pondOne(),
		}},
		{Name: "producers=1/one-at-a-time/do", MaxAllocs: -1, Sides: []Side{ // Do returns when the task has ended
			oursDo(),
			concOne(2.0),
			concOneEach(),
			errgroupOne(),
			pondOne(),
		}},
		{Name: "for-each/limit=16", MaxAllocs: -1, Sides: forEach(16, 0, noop)},
		{Name: "for-each/limit=32", MaxAllocs: -1, Sides: forEach(32, 0, noop)},
		{Name: "for-each/limit=16/body=yields", MaxAllocs: -1, Sides: forEach(16, 0, runtime.Gosched)},
		{Name: "for-each/limit=16/queue=256", MaxAllocs: -1, Sides: forEach(16, 256, noop)},
	}
	return append(append(rows, interactiveRow()), stageRows(noop)...)
}

// nothing is work of a coordinator that does nothing.
func nothing(context.Context, int) error { return nil }

// raising raises one signal that belongs to the operation.
func raising(ctx context.Context, _ int) error {
	core.OperationFrom(ctx).Raise(names[0])
	return nil
}

// coordinator makes a coordinator on a sink with that MaxAge.
func coordinator(work core.Work[int], age time.Duration) *core.Coordinator[int] {
	return core.Must(core.NewCoordinator(work, core.Options{
		Sink:           signals.NewSink(signals.SinkOptions{MaxAge: age}),
		MaxConcurrency: limit,
		MaxQueued:      queue,
		MaxTracked:     window,
	}))
}

func oursRun(name string, goal float64, producers int, work core.Work[int]) Side {
	return oursRunOn(name, goal, -1, producers, work)
}

func oursRunOn(name string, goal float64, age time.Duration, producers int, work core.Work[int]) Side {
	return Side{name, goal, func() Body {
		c := coordinator(work, age)
		return Body{Run: running(c, producers), Close: closing(c)}
	}}
}

// running enqueues items and waits for them.
func running(c *core.Coordinator[int], producers int) func(n int) {
	return func(n int) {
		ctx := context.Background()
		produce(producers, n, func() { _, err := c.Enqueue(ctx, 0); check(err) })
		check(c.Flush(ctx))
	}
}

func lanesRun() Side {
	return Side{"ours", 0, func() Body {
		c := core.Must(core.NewCoordinator(nothing, core.Options{
			MaxConcurrency: limit,
			MaxQueued:      queue / 3,
			MaxTracked:     window,
			Lanes:          core.Must(core.ParseLanes("hot:4, normal, slow:2")),
		}))
		lanes := [...]*core.Coordinator[int]{c.Lane("hot"), c.Lane("normal"), c.Lane("slow")}
		return Body{Run: func(n int) {
			ctx := context.Background()
			for i := range n {
				_, err := lanes[i%len(lanes)].Enqueue(ctx, 0)
				check(err)
			}
			check(c.Flush(ctx))
		}, Close: closing(c)}
	}}
}

// A conc pool ends with Wait, so every run has its own pool.
func concRun(goal float64, producers int, work func()) Side {
	return concRunOf(limit, goal, producers, work)
}

func concRunOf(limit int, goal float64, producers int, work func()) Side {
	return loop("conc", goal, func(n int) {
		p := pool.New().WithMaxGoroutines(limit)
		produce(producers, n, func() { p.Go(work) })
		p.Wait()
	})
}

// ants cannot wait for all tasks, so the tasks count down a WaitGroup.
func antsRun(goal float64, producers int, work func()) Side {
	return Side{"ants", goal, func() Body {
		p, err := ants.NewPool(limit)
		check(err)
		var wg sync.WaitGroup
		task := func() { work(); wg.Done() }
		return Body{Run: func(n int) {
			wg.Add(n)
			produce(producers, n, func() { check(p.Submit(task)) })
			wg.Wait()
		}, Close: p.Release}
	}}
}

func errgroupRun(goal float64, producers int, work func()) Side {
	task := func() error { work(); return nil }
	return loop("errgroup", goal, func(n int) {
		var g errgroup.Group
		g.SetLimit(limit)
		produce(producers, n, func() { g.Go(task) })
		check(g.Wait())
	})
}

// pondSubmit returns a future for every task, as Enqueue returns an id.
func pondSubmit(goal float64, producers int, work func()) Side {
	return pondRun("pond-Submit", goal, producers, work, func(p pond.Pool, task func()) { p.Submit(task) })
}

// pondGo returns no future.
func pondGo(goal float64, producers int, work func()) Side {
	return pondRun("pond-Go", goal, producers, work, func(p pond.Pool, task func()) { check(p.Go(task)) })
}

// A pond pool ends with StopAndWait, so the tasks count down a WaitGroup.
func pondRun(name string, goal float64, producers int, work func(), submit func(pond.Pool, func())) Side {
	return Side{name, goal, func() Body {
		p := pond.NewPool(limit, pond.WithQueueSize(queue))
		var wg sync.WaitGroup
		task := func() { work(); wg.Done() }
		return Body{Run: func(n int) {
			wg.Add(n)
			produce(producers, n, func() { submit(p, task) })
			wg.Wait()
		}, Close: p.StopAndWait}
	}}
}

// produce calls put n times in all, from the given number of goroutines.
func produce(producers, n int, put func()) {
	many := func(n int) {
		for range n {
			put()
		}
	}
	if producers == 1 {
		many(n)
		return
	}
	spread(producers, n, many)
}

// One operation at a time: submit it, wait until it has ended, submit the next. Our
// coordinator exists and is idle before each operation, and so do the other pools.
// Users of these pools wait at a channel.

func oursOne() Side {
	return Side{"ours", 0, func() Body {
		c := core.Must(core.NewCoordinator(func(_ context.Context, task func()) error {
			task()
			return nil
		}, core.Options{MaxConcurrency: limit, MaxQueued: queue, MaxTracked: window}))
		return Body{Run: oneByOne(func(task func()) {
			_, err := c.Enqueue(context.Background(), task)
			check(err)
		}), Close: func() { check(c.Close()) }}
	}}
}

func oursDo() Side {
	return Side{"ours", 0, func() Body {
		c := coordinator(nothing, -1)
		return Body{Run: func(n int) {
			ctx := context.Background()
			for range n {
				check(c.Do(ctx, 0))
			}
		}, Close: closing(c)}
	}}
}

func concOne(goal float64) Side {
	return Side{"conc", goal, func() Body {
		p := pool.New().WithMaxGoroutines(limit)
		return Body{Run: oneByOne(p.Go), Close: p.Wait}
	}}
}

// concOneEach uses conc as intended: a pool for each operation.
func concOneEach() Side {
	return loop("conc-new-pool", 0, func(n int) {
		for range n {
			p := pool.New().WithMaxGoroutines(limit)
			p.Go(noop)
			p.Wait()
		}
	})
}

func antsOne() Side {
	return Side{"ants", 0, func() Body {
		p, err := ants.NewPool(limit)
		check(err)
		return Body{Run: oneByOne(func(task func()) { check(p.Submit(task)) }), Close: p.Release}
	}}
}

func errgroupOne() Side {
	return Side{"errgroup", 0, func() Body {
		var g errgroup.Group
		g.SetLimit(limit)
		return Body{Run: func(n int) {
			for range n {
				g.Go(func() error { return nil })
				check(g.Wait())
			}
		}}
	}}
}

func pondOne() Side {
	return Side{"pond-Submit", 0, func() Body {
		p := pond.NewPool(limit, pond.WithQueueSize(queue))
		return Body{Run: func(n int) {
			for range n {
				check(p.Submit(noop).Wait())
			}
		}, Close: p.StopAndWait}
	}}
}

func oneByOne(submit func(task func())) func(n int) {
	done := make(chan struct{})
	task := func() { done <- struct{}{} }
	return func(n int) {
		for range n {
			submit(task)
			<-done
		}
	}
}

func closing(c *core.Coordinator[int]) func() { return func() { check(c.Close()) } }

// check stops a measurement in which an operation failed.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// forEach returns ForEach over a sequence, a conc pool, and conc's ForEach over a slice.
func forEach(limit, queued int, work func()) []Side {
	return []Side{
		loop("ours", 0, func(n int) {
			items := func(yield func(int) bool) {
				for i := range n {
					if !yield(i) {
						return
					}
				}
			}
			check(core.ForEach(context.Background(), items, func(context.Context, int) error { work(); return nil }, core.Options{MaxConcurrency: limit, MaxQueued: queued}))
		}),
		concRunOf(limit, 0, 1, work),
		loop("conc-iter", 0, func(n int) {
			iter.Iterator[struct{}]{MaxGoroutines: limit}.ForEach(make([]struct{}, n), func(*struct{}) { work() })
		}),
	}
}
