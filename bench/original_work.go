package bench

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

const (
	onCaller = "theirs run one after the other, on the caller's thread"
	shown    = "ours shows each operation until it leaves the window"
	searched = "the original searches the sink at the end of each operation"
)

// originalWork runs operations of a coordinator, or of ForEach.
var originalWork = []Original{
	{"coordinator, limit 16", 100_000, coordinated(nothing, core.Options{}), shown, -1},
	{"keyed, 10k keys x 10", 100_000, keyedOf(keyCount), "", -1},
	{"for each, limit 16", 100_000, eachOf(nothing), onCaller, -1},
	{"results, limit 16", 50_000, resulting, "", -1},
	{"for each, limit 16, yielding", 100_000, eachOf(yielding), "", -1},
	{"for each, limit 16, 1 us of work", 50_000, eachOf(working), onCaller, -1},
	{"for each, limit 16, yielding then 1 us", 50_000, eachOf(yieldingThenWorking), "", -1},
	{"coordinator, yielding", 100_000, coordinated(yielding, core.Options{}), "", -1},
	{"coordinator, yielding then 1 us", 50_000, coordinated(yieldingThenWorking, core.Options{}), "", -1},
	{"coordinator, sink attached", 50_000, coordinated(nothing, core.Options{}), "ours always has a sink; " + searched, -1},
	{"coordinator, one signal each", 1000, coordinated(raising, core.Options{}), searched, -1},
	{"for each, one signal each", 50_000, eachOf(raising), onCaller, -1},
	{"coordinator, 1 ms each, limit 100", 5000, coordinated(sleeping, core.Options{MaxConcurrency: 100}), "", -1},
	{"enqueue only", 100_000, enqueuing, "the operations run meanwhile, and are not waited for", -1},
	{"latency, idle coordinator", 10_000, func() Body { return oursOne().New() }, "from Enqueue to the body of an operation", -1},
	{"keyed, 1 key", 100_000, keyedOf(1), "", -1},
	{"keyed, 100k keys x 1", 100_000, keyedOf(100_000), "", -1},
	{"priority lanes, 3 lanes", 60_000, laned, "", -1},
	{"dispatcher", 50_000, dispatching, "ours keeps the order within a name", -1},
	{"dispatcher, flushed at once", 0, nil, handed, 0},
	{"echo of each operation", 50_000, echoing, "", -1},
}

func yielding(context.Context, int) error { runtime.Gosched(); return nil }
func sleeping(context.Context, int) error { time.Sleep(time.Millisecond); return nil }

func working(context.Context, int) error {
	for begun := time.Now(); time.Since(begun) < time.Microsecond; {
	}
	return nil
}

func yieldingThenWorking(ctx context.Context, i int) error {
	return errors.Join(yielding(ctx, i), working(ctx, i))
}

// worker is what coordinators and the patterns over them have.
type worker interface {
	Enqueue(ctx context.Context, item int) (core.OperationID, error)
	Flush(ctx context.Context) error
	Close() error
}

// worked enqueues numbers to what maker makes with a limit of 16, and waits for them.
func worked[W worker](maker func(opts core.Options) (W, error)) func() Body {
	return workedWith(core.Options{}, maker)
}

func workedWith[W worker](opts core.Options, maker func(opts core.Options) (W, error)) func() Body {
	if opts.MaxConcurrency == 0 {
		opts.MaxConcurrency = 16
	}
	return func() Body {
		opts.Sink = signals.NewSink(signals.SinkOptions{})
		c := core.Must(maker(opts))
		return Body{Run: func(n int) {
			ctx := context.Background()
			for i := range n {
				_, err := c.Enqueue(ctx, i)
				check(err)
			}
			check(c.Flush(ctx))
		}, Close: func() { check(c.Close()) }}
	}
}

func coordinated(work core.Work[int], opts core.Options) func() Body {
	return workedWith(opts, func(opts core.Options) (*core.Coordinator[int], error) { return core.NewCoordinator(work, opts) })
}

// keyOf is the key of an item, if there are so many keys.
func keyOf(keys int) func(i int) string {
	names := make([]string, keys)
	for i := range names {
		names[i] = "key-" + strconv.Itoa(i)
	}
	return func(i int) string { return names[i%keys] }
}

func keyedOf(keys int) func() Body {
	return worked(func(opts core.Options) (*core.Coordinator[int], error) {
		return core.NewKeyedCoordinator(keyOf(keys), nothing, opts)
	})
}

func eachOf(work core.Work[int]) func() Body {
	return func() Body {
		return Body{Run: func(n int) {
			items := func(yield func(int) bool) {
				for i := range n {
					if !yield(i) {
						return
					}
				}
			}
			check(core.ForEach(context.Background(), items, work, core.Options{MaxConcurrency: 16}))
		}}
	}
}

var resulting = worked(func(opts core.Options) (*core.ResultCoordinator[int, int], error) {
	return core.NewResultCoordinator(func(_ context.Context, i int) (int, error) { return i, nil }, opts)
})

// enqueuing does not wait for the operations, and has room for all of them.
func enqueuing() Body {
	c := core.Must(core.NewCoordinator(nothing, core.Options{MaxConcurrency: 16, MaxQueued: 1 << 20}))
	ctx := context.Background()
	return Body{Ready: func(int) { check(c.Flush(ctx)) }, Run: func(n int) {
		for i := range n {
			_, err := c.Enqueue(ctx, i)
			check(err)
		}
	}, Close: closing(c)}
}

func laned() Body {
	c := core.Must(core.NewCoordinator(nothing, core.Options{MaxConcurrency: 16, Lanes: core.Must(core.ParseLanes("high, normal, low"))}))
	lanes := [...]*core.Coordinator[int]{c.Lane("high"), c.Lane("normal"), c.Lane("low")}
	return Body{Run: func(n int) {
		ctx := context.Background()
		for i := range n {
			_, err := lanes[i%len(lanes)].Enqueue(ctx, i)
			check(err)
		}
		check(c.Flush(ctx))
	}, Close: closing(c)}
}

// dispatching has room for all signals of a run, so none is dropped.
func dispatching() Body {
	d := core.Must(core.NewDispatcher(core.Options{MaxQueued: 1 << 20}))
	d.Handle("work.*", func(context.Context, signals.Signal) error { return nil })
	return Body{Run: func(n int) {
		for range n {
			d.Dispatch(signals.Signal{Name: "work.0"})
		}
		check(d.Flush(context.Background()))
	}, Close: func() { check(d.Close()) }}
}

// echoing keeps an echo of each operation that leaves the window of 1,000.
func echoing() Body {
	c := core.Must(core.NewCoordinator(raising, core.Options{MaxConcurrency: 16, MaxTracked: 1000, EchoCapacity: 50_000}))
	return Body{Run: running(c, 1), Close: closing(c)}
}
