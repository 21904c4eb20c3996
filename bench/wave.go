package bench

import (
	"context"
	"errors"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

const wavesEach = 100 // waves, or workers, of an execution

// waveRows measure waves of workers that do nothing, without an interval between waves. In
// the last row an operation is a worker that is skipped because its breaker is open.
func waveRows() []Row {
	return []Row{
		{Name: "transition/workers=1", MaxAllocs: 30, Sides: []Side{
			oursWaves("ours", 1, 0),
			oursWaves("ours-age=none", 1, -1),
			spin("10us", 1, 10*time.Microsecond),
			errgroupWaves(1),
		}},
		{Name: "transition/workers=4", MaxAllocs: 110, Sides: []Side{
			oursWaves("ours", 4, 0),
			oursWaves("ours-age=none", 4, -1),
			errgroupWaves(4),
		}},
		{Name: "breaker=open", MaxAllocs: 1, Sides: []Side{
			oursOpen(),
			spin("1us", 1, time.Microsecond),
		}},
	}
}

// oursWaves raises all signals, counts all results and shows all operations.
func oursWaves(name string, workers int, age time.Duration) Side {
	idle := func(context.Context, int) (int, error) { return 0, nil }
	return Side{name, 0, func() Body {
		opts := waveorchestrator.Options[int]{Sink: signals.NewSink(signals.SinkOptions{MaxAge: age}), WaveInterval: -1}
		many, one := waves(wavesEach, workers, idle, opts), waves(1, workers, idle, opts)
		return executing(many, one)
	}}
}

func oursOpen() Side {
	fail := func(context.Context, int) (int, error) { return 0, context.Canceled }
	opts := waveorchestrator.Options[int]{BreakerThreshold: 1, BreakerReset: time.Hour}
	return Side{"ours", 0, func() Body {
		many, one := waves(1, wavesEach, fail, opts), waves(1, 1, fail, opts)
		for _, o := range []*waveorchestrator.Orchestrator[int, int]{many, one} {
			o.Execute(context.Background(), 0) // fails, and opens the breakers
		}
		return executing(many, one)
	}}
}

// waves makes an orchestrator of n waves, each with that number of workers.
func waves(n, workers int, do core.ResultWork[int, int], opts waveorchestrator.Options[int]) *waveorchestrator.Orchestrator[int, int] {
	var list []waveorchestrator.Worker[int, int]
	for i := range n * workers {
		list = append(list, waveorchestrator.Worker[int, int]{Name: "worker-" + strconv.Itoa(i), Wave: i / workers, Do: do})
	}
	return core.Must(waveorchestrator.New(list, opts))
}

// executing executes the orchestrator many, with wavesEach waves or workers. If n is not a
// multiple of wavesEach, it executes the orchestrator one, with one wave or worker, for the
// rest.
func executing(many, one *waveorchestrator.Orchestrator[int, int]) Body {
	execute := func(o *waveorchestrator.Orchestrator[int, int], times int) {
		for range times {
			if _, err := o.Execute(context.Background(), 0); !errors.Is(err, waveorchestrator.ErrFailed) { // where every worker is skipped
				check(err)
			}
		}
	}
	return Body{Run: func(n int) {
		execute(many, n/wavesEach)
		execute(one, n%wavesEach)
	}, Close: func() {
		check(many.Close())
		check(one.Close())
	}}
}

// errgroupWaves is the code that a program writes itself: a group for each wave, with a
// limit and a timeout. It has no breakers, signals and counters, and a worker that does
// not return blocks everything.
func errgroupWaves(workers int) Side {
	return loop("errgroup", 0, func(n int) {
		results := make([]int, workers)
		for range n {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			g, ctx := errgroup.WithContext(ctx)
			g.SetLimit(4)
			for i := range workers {
				g.Go(func() error {
					results[i] = 1
					return ctx.Err()
				})
			}
			check(g.Wait())
			cancel()
		}
	})
}

// spin takes a fixed time, to compare with a limit in nanoseconds.
func spin(name string, goal float64, d time.Duration) Side {
	return loop(name, goal, func(n int) {
		for range n {
			for begun := time.Now(); time.Since(begun) < d; {
			}
		}
	})
}
