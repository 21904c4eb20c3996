package bench

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/fixedwork"
	"github.com/ephemeralgo/ephemeral/atoms/keyedsequential"
	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/atoms/signalaware"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
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

type numbers = *core.Coordinator[int]

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
	{"molecules, 3 atoms", 20_000, started("order.placed", func(s *signals.Sink) (part, error) {
		step := molecules.Step{Do: func(context.Context, *molecules.Run) error { return nil }}
		a, b, c := step, step, step
		a.Name, b.Name, c.Name = "a", "b", "c"
		return molecules.New(s, []molecules.Blueprint{{Name: "order", On: "order.*", Steps: []molecules.Step{a, b, c}}}, molecules.Options{MaxQueued: room})
	}), "", -1},
	{"atomtrigger", 50_000, started("order.placed", func(s *signals.Sink) (part, error) {
		return molecules.NewTrigger(s, "order.*", seen, molecules.TriggerOptions{MaxQueued: room})
	}), "", -1},
	{"waveorchestrator", 5000, executingWaves(nothing), "an operation is an execution of 8 workers in 2 waves", -1},
	{"waveorchestrator, yielding", 5000, executingWaves(yielding), "an operation is an execution of 8 workers in 2 waves", -1},
	{"attributes jobs", 1000, started("job.run", func(s *signals.Sink) (part, error) {
		return jobs.New(s, []jobs.Job{jobs.On("job.run", seen, jobs.Options{Name: "job"})}, core.Options{MaxQueued: room})
	}), searched, -1},
	{"circuitbreaker IsOpen, 1k signals", 3000, asking, "ours counts failures when they are raised; the original when it is asked", 0},
	{"anomalydetector, 1k window", 5000, detecting, "ours counts when signals are raised; the original when it is asked", 0},
	{"telemetry", 50_000, counted, "ours counts before Raise returns; the original queues an event", -1},
	{"logging, ILogger to signal", 100_000, recording, "ours keeps attributes", -1},
	{"logging, signal to ILogger", 100_000, started("error.disk.full", func(s *signals.Sink) (part, error) {
		return logging.NewBridge(s, slog.DiscardHandler, logging.BridgeOptions{Pattern: "error.*", MaxQueued: room})
	}), "ours writes the record in the background", -1},
	{"signallogwatcher", 20_000, started("error.disk.full", func(s *signals.Sink) (part, error) {
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

func seen(context.Context, signals.Signal) error { return nil }
func same(_ context.Context, i int) (int, error) { return i, nil }
func nothingOf(context.Context, []int) error     { return nil }
func retrying() core.Work[int]                   { return retry.Wrap(core.Must(retry.New(retry.Options{})), nothing) }

//ephemeral:ignore
var gates = core.Options{CancelOn: "stop.*", DeferOn: "slow.*"}

// part is something that does work when a signal is raised.
type part interface {
	WaitIdle(ctx context.Context) error
	Close() error
}

// started raises a signal that starts work, and waits for the work.
func started(name string, maker func(s *signals.Sink) (part, error)) func() Body {
	return func() Body {
		s := signals.NewSink(signals.SinkOptions{})
		p := core.Must(maker(s))
		return Body{Run: func(n int) {
			for range n {
				s.Raise(name)
			}
			check(p.WaitIdle(context.Background()))
		}, Close: func() { check(p.Close()) }}
	}
}

// asking asks a breaker that failures have opened, on a sink of 1,000 signals.
func asking() Body {
	s := signals.NewSink(signals.SinkOptions{})
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
	s := signals.NewSink(signals.SinkOptions{})
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
	s := signals.NewSink(signals.SinkOptions{})
	t := core.Must(telemetry.New(s, telemetry.Options{Signals: "perf.*"}))
	return Body{Run: func(n int) {
		for range n {
			s.Raise("perf.request")
		}
	}, Close: func() { check(t.Close()) }}
}

func recording() Body {
	logger := slog.New(logging.NewHandler(signals.NewSink(signals.SinkOptions{}), logging.HandlerOptions{})).With("category", "Bench.Category")
	return Body{Run: func(n int) {
		for i := range n {
			logger.LogAttrs(context.Background(), slog.LevelError, "request failed", slog.Int("id", i), slog.Any("err", errDown))
		}
	}}
}

var errDown = errors.New("down")
