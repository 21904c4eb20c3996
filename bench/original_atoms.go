package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/atoms/echo"
	"github.com/ephemeralgo/ephemeral/atoms/volatile"
	"github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/contributors"
	"github.com/ephemeralgo/ephemeral/core/graph"
	"github.com/ephemeralgo/ephemeral/core/reputation"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/core/stages"
)

// acknowledging keeps an operation that has ended, and acknowledges it.
func acknowledging() Body {
	ctx, s := context.Background(), signals.NewSink(signals.SinkOptions{})
	c := core.Must(core.NewCoordinator(nothing, core.Options{Sink: s}))
	keeper := core.Must(responsibility.New(c, s, responsibility.Options{}))
	return Body{Run: func(n int) {
		for i := range n {
			id := core.Must(c.Enqueue(ctx, i))
			check(c.Wait(ctx, id))
			keeper.Keep(id, responsibility.Promise{Ack: "responsibility.ack.*"})
			s.RaiseKey("responsibility.ack.done", id.String())
		}
	}, Close: func() { check(keeper.Close()); check(c.Close()) }}
}

// graphOf runs graphs of 100 nodes. Each depends on the nodes before it: one, or two.
func graphOf(parents int, work core.Work[int]) func() Body {
	return func() Body {
		g := graph.New[int]()
		for i := range 100 {
			var deps []string
			for back := 1; back <= min(parents, i); back++ {
				deps = append(deps, strconv.Itoa(i-back))
			}
			check(g.Add(strconv.Itoa(i), i, deps...))
		}
		return Body{Run: func(n int) {
			for range (n + 99) / 100 {
				core.Must(g.Run(context.Background(), work, core.Options{MaxConcurrency: 16}))
			}
		}}
	}
}

func staged() Body {
	var list []stages.Stage[int]
	for _, name := range []string{"a", "b", "c", "d"} {
		list = append(list, stages.Stage[int]{Name: name, Work: same})
	}
	p := core.Must(stages.New(list, core.Options{MaxConcurrency: 16}))
	return Body{Run: func(n int) { core.Must(p.Run(context.Background(), make([]int, (n+3)/4))) }}
}

func tracking() Body {
	names := make([]string, 100)
	for i := range names {
		names[i] = "contributor" + strconv.Itoa(i)
	}
	return Body{Run: func(n int) {
		for done := 0; done < n; done += len(names) {
			t := core.Must(contributors.New[int](names, contributors.Options{}))
			for i, name := range names {
				check(t.Complete(name, i))
			}
		}
	}}
}

func batched() Body {
	b := core.Must(batching.New(nothingOf, batching.Options[int]{MaxSize: 1000, MaxQueued: 10_000}))
	return Body{Run: func(n int) {
		ctx := context.Background()
		for i := range n {
			check(b.Enqueue(ctx, i))
		}
		check(b.Flush(ctx))
	}, Close: func() { check(b.Close()) }}
}

func slidingHits(threads int) func() Body {
	return func() Body {
		c, ctx := oursLoading(cached), context.Background()
		c.set("key", 1)
		return Body{Run: func(n int) {
			spread(threads, n, func(n int) {
				for range n {
					_, err := c.get(ctx, "key")
					check(err)
				}
			})
		}, Close: c.done}
	}
}

// slidingMisses loads keys that are all different.
func slidingMisses() Body {
	c, ctx, next := oursLoading(cached), context.Background(), 0
	return Body{Run: func(n int) {
		for range n {
			next++
			_, err := c.get(ctx, "key."+strconv.Itoa(next))
			check(err)
		}
	}, Close: c.done}
}

func executingWaves(work core.Work[int]) func() Body {
	return func() Body {
		do := func(ctx context.Context, i int) (int, error) { return i, work(ctx, i) }
		o := waves(2, 4, do, waveorchestrator.Options[int]{WaveInterval: -1})
		return Body{Run: func(n int) {
			for range n {
				core.Must(o.Execute(context.Background(), 0))
			}
		}, Close: func() { check(o.Close()) }}
	}
}

// echoed hands over what each operation raised before it left the window of 1,000.
func echoed() Body {
	kind := signals.NewKind[int]("order.echo")
	c := core.Must(core.NewCoordinator(func(ctx context.Context, i int) error {
		kind.Raise(core.OperationFrom(ctx), "", i)
		return nil
	}, core.Options{MaxConcurrency: 16, MaxTracked: 1000}))
	r := core.Must(echo.New(c, kind, func(context.Context, echo.Entry[int]) error { return nil }, echo.Options{MaxQueued: room}))
	return Body{Run: func(n int) {
		running(c, 1)(n)
		check(r.Flush(context.Background()))
	}, Close: func() { check(c.Close()); check(r.Close()) }}
}

// killing runs operations that a signal removes from the window.
func killing() Body {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
		core.OperationFrom(ctx).Raise("kill.it")
		return nil
	}, core.Options{MaxConcurrency: 16}))
	e := core.Must(volatile.New(c, volatile.Options{}))
	return Body{Run: running(c, 1), Close: func() { check(c.Close()); check(e.Close()) }}
}

func scoring() Body {
	scores, key := core.Must(reputation.New[string](reputation.Options{HalfLife: time.Hour})), keyOf(100)
	return Body{Run: func(n int) {
		for i := range n {
			scores.Update(key(i), 1)
		}
	}}
}
