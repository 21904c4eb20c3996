package bench

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/atoms/echo"
	"github.com/ephemeralgo/ephemeral/atoms/fixedwork"
	"github.com/ephemeralgo/ephemeral/atoms/keyedsequential"
	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/atoms/signalaware"
	"github.com/ephemeralgo/ephemeral/atoms/volatile"
	"github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/contributors"
	"github.com/ephemeralgo/ephemeral/core/graph"
	"github.com/ephemeralgo/ephemeral/core/reputation"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
	"github.com/ephemeralgo/ephemeral/core/stages"
	"github.com/ephemeralgo/ephemeral/patterns/adaptiverate"
	"github.com/ephemeralgo/ephemeral/patterns/anomalydetector"
	"github.com/ephemeralgo/ephemeral/patterns/backpressure"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
	"github.com/ephemeralgo/ephemeral/patterns/controlledfanout"
	"github.com/ephemeralgo/ephemeral/patterns/dynamicconcurrency"
	"github.com/ephemeralgo/ephemeral/patterns/jobs"
	"github.com/ephemeralgo/ephemeral/patterns/keyedpriorityfanout"
	"github.com/ephemeralgo/ephemeral/patterns/logging"
	"github.com/ephemeralgo/ephemeral/patterns/reactivefanout"
	"github.com/ephemeralgo/ephemeral/patterns/signallogwatcher"
	"github.com/ephemeralgo/ephemeral/patterns/telemetry"
)

type (
	number    = core.Work[int]
	numbers   = *core.Coordinator[int]
	many      = []int
	signalled = func(context.Context, core.Signal) error
)

const (
	noAtom   = "there is no such atom here"
	ourShape = "the shape of its graph is not known"
	none     = "ours loses no signal"
	room     = 1 << 20 // for all items of a run, so that none is lost
)

// originalParts are atoms and patterns. Their functions do nothing.
var originalParts = []Original{
	{"responsibility pin+ack", 5000, acknowledging, "", -1},
	{"dependency of 100 nodes", 10_000, graphOf(1, nothing), ourShape, -1},
	{"dependency of 100 nodes, 2 parents each", 10_000, graphOf(2, nothing), ourShape, -1},
	{"dependency of 100 nodes, 2 parents each, yielding", 10_000, graphOf(2, yielding), ourShape, -1},
	{"staged pipeline 4 stages x 5k", 20_000, staged, "an operation is an item in a stage", -1},
	{"contributor tracker", 50_000, tracking, "ours raises a signal for each, and has 100 contributors", -1},
	{"fixedwork", 100_000, worked(func(o core.Options) (*fixedwork.Pool[int], error) { return fixedwork.New(nothing, o) }), "", -1},
	{"keyedsequential", 100_000, worked(func(o core.Options) (*keyedsequential.Sequencer[int], error) {
		return keyedsequential.New(keyOf(100), nothing, o)
	}), "ours has 100 keys", -1},
	{"batching", 500_000, batched, "a flush of ours is an operation; ours has batches of 1,000, theirs are not known", -1},
	{"retry", 50_000, coordinated(retrying(), core.Options{}), "", -1},
	{"signalaware", 50_000, workedWith(gates, func(o core.Options) (*signalaware.Gate[int], error) { return signalaware.New(nothing, o) }), "", -1},
	{"slidingcache hit", 200_000, slidingHits(1), "", 0},
	{"slidingcache miss", 10_000, slidingMisses, "a load of ours is an operation; " + searched, -1},
	{"slidingcache hit, 8 threads", 200_000, slidingHits(8), "", 0},
	{"backpressure", 50_000, worked(func(o core.Options) (numbers, error) { return backpressure.New(nothing, o) }), "", -1},
	{"controlledfanout", 50_000, worked(func(o core.Options) (numbers, error) { return controlledfanout.New(keyOf(100), nothing, o) }), "ours has 100 keys", -1},
	{"keyedpriorityfanout", 50_000, worked(func(o core.Options) (numbers, error) {
		return keyedpriorityfanout.New(keyOf(100), nothing, core.Lane{}, o)
	}), "ours has 100 keys", -1},
	{"reactivefanout", 20_000, worked(func(o core.Options) (*reactivefanout.Fanout[int, int], error) {
		return reactivefanout.New(same, nothing, reactivefanout.Options{Concurrency: 8, Downstream: 4, High: 32, Low: 8})
	}), "", -1},
	{"reactivefanout, drained at once", 0, nil, handed, 0},
	{"adaptiverate", 20_000, worked(func(o core.Options) (numbers, error) { return adaptiverate.New(nothing, o) }), "", -1},
	{"dynamicconcurrency", 20_000, worked(func(o core.Options) (numbers, error) {
		return dynamicconcurrency.New(nothing, dynamicconcurrency.Scale{Min: 1, Max: 16}, o)
	}), "", -1},
	{"molecules, 3 atoms", 20_000, started("order.placed", func(s *core.Sink) (part, error) {
		step := molecules.Step{Do: func(context.Context, *molecules.Run) error { return nil }}
		a, b, c := step, step, step
		a.Name, b.Name, c.Name = "a", "b", "c"
		return molecules.New(s, []molecules.Blueprint{{Name: "order", On: "order.*", Steps: []molecules.Step{a, b, c}}}, molecules.Options{MaxQueued: room})
	}), "", -1},
	{"atomtrigger", 50_000, started("order.placed", func(s *core.Sink) (part, error) {
		return molecules.NewTrigger(s, "order.*", seen, molecules.TriggerOptions{MaxQueued: room})
	}), "", -1},
	{"waveorchestrator", 5000, executingWaves(nothing), "an operation is an execution of 8 workers in 2 waves", -1},
	{"waveorchestrator, yielding", 5000, executingWaves(yielding), "an operation is an execution of 8 workers in 2 waves", -1},
	{"attributes jobs", 1000, started("job.run", func(s *core.Sink) (part, error) {
		return jobs.New(s, []jobs.Job{jobs.On("job.run", seen, jobs.Options{Name: "job"})}, core.Options{MaxQueued: room})
	}), searched, -1},
	{"circuitbreaker IsOpen, 1k signals", 3000, asking, "ours counts failures when they are raised; the original when it is asked", 0},
	{"anomalydetector, 1k window", 5000, detecting, "ours counts when signals are raised; the original when it is asked", 0},
	{"telemetry", 50_000, counted, "ours counts before Raise returns; the original queues an event", -1},
	{"logging, ILogger to signal", 100_000, recording, "ours keeps attributes", -1},
	{"logging, signal to ILogger", 100_000, started("error.disk.full", func(s *core.Sink) (part, error) {
		return logging.NewBridge(s, slog.DiscardHandler, logging.BridgeOptions{Pattern: "error.*", MaxQueued: room})
	}), "ours writes the record in the background", -1},
	{"signallogwatcher", 20_000, started("error.disk.full", func(s *core.Sink) (part, error) {
		return signallogwatcher.New(s, "error.*", seen, core.Options{MaxQueued: room})
	}), none, -1},
	{"echo maker", 50_000, echoed, "", -1},
	{"volatile kill", 1000, killing, "", -1},
	{"burst", 100_000, nil, noAtom, 0},
	{"entropy, record", 100_000, nil, noAtom, 0},
	{"entropy, analyze 1k samples", 1000, nil, noAtom, 0},
	{"timeseries", 100_000, nil, noAtom, 0},
	{"decaying reputation", 500_000, scoring, "ours has 100 keys, and no sink", 0},
}

func seen(context.Context, core.Signal) error    { return nil }
func same(_ context.Context, i int) (int, error) { return i, nil }
func nothingOf(context.Context, many) error      { return nil }
func retrying() core.Work[int]                   { return retry.Wrap(core.Must(retry.New(retry.Options{})), nothing) }

var gates = core.Options{CancelOn: "stop.*", DeferOn: "slow.*"}

// part is something that does work when a signal is raised.
type part interface {
	WaitIdle(ctx context.Context) error
	Close() error
}

// started raises a signal that starts work, and waits for the work.
func started(name string, maker func(s *core.Sink) (part, error)) func() Body {
	return func() Body {
		s := core.NewSink(core.SinkOptions{})
		p := core.Must(maker(s))
		return Body{Run: func(n int) {
			for range n {
				s.Raise(name)
			}
			check(p.WaitIdle(context.Background()))
		}, Close: func() { check(p.Close()) }}
	}
}

// acknowledging keeps an operation that has ended, and acknowledges it.
func acknowledging() Body {
	ctx, s := context.Background(), core.NewSink(core.SinkOptions{})
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

// asking asks a breaker that failures have opened, on a sink of 1,000 signals.
func asking() Body {
	s := core.NewSink(core.SinkOptions{})
	b := core.Must(circuitbreaker.New(s, circuitbreaker.Options{Failure: "failure", OpenFor: time.Hour}))
	for range 1000 {
		s.Raise("failure")
	}
	return Body{Run: func(n int) {
		for range n {
			if !b.Open() {
				panic("bench: the breaker is not open")
			}
		}
	}, Close: func() { check(b.Close()) }}
}

// detecting looks for an anomaly on a sink of 1,000 signals, of which 4 are errors.
func detecting() Body {
	s := core.NewSink(core.SinkOptions{})
	d := core.Must(anomalydetector.New(s, anomalydetector.Options{}))
	for i := range 1000 {
		s.Raise(map[bool]string{true: "error.disk", false: "info.disk"}[i%250 == 0])
	}
	return Body{Run: func(n int) {
		for range n {
			if d.Anomalous() {
				panic("bench: 4 errors are an anomaly")
			}
		}
	}, Close: func() { check(d.Close()) }}
}

func counted() Body {
	s := core.NewSink(core.SinkOptions{})
	t := core.Must(telemetry.New(s, telemetry.Options{Signals: "perf.*"}))
	return Body{Run: func(n int) {
		for range n {
			s.Raise("perf.request")
		}
	}, Close: func() { check(t.Close()) }}
}

func recording() Body {
	logger := slog.New(logging.NewHandler(core.NewSink(core.SinkOptions{}), logging.HandlerOptions{})).With("category", "Bench.Category")
	return Body{Run: func(n int) {
		for i := range n {
			logger.LogAttrs(context.Background(), slog.LevelError, "request failed", slog.Int("id", i), slog.Any("err", errDown))
		}
	}}
}

var errDown = errors.New("down")

// echoed hands over what each operation raised before it left the window of 1,000.
func echoed() Body {
	kind := core.NewKind[int]("order.echo")
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
	e := core.Must(volatile.New(c, volatile.Options{LetFinish: true}))
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
