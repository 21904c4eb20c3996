package bench

import (
	"context"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
)

const wavesEach = 100 // waves, or workers, of an execution

// waveRows: from one wave to the next, an operation being a wave of workers that do
// nothing, without an interval; and a worker that is skipped because its breaker is
// open.
func waveRows() []Row {
	return []Row{
		{Name: "transition/workers=1", MaxAllocs: 30, Sides: []Side{
			oursWaves(1),
			spin("10us", 1, 10*time.Microsecond),
			errgroupWaves(1),
		}},
		{Name: "transition/workers=4", MaxAllocs: 110, Sides: []Side{
			oursWaves(4),
			errgroupWaves(4),
		}},
		{Name: "breaker=open", MaxAllocs: 1, Sides: []Side{
			oursOpen(),
			spin("1us", 1, time.Microsecond),
		}},
	}
}

// oursWaves raises all signals, keeps all accounts and shows all operations.
func oursWaves(workers int) Side {
	idle := func(context.Context, int) (int, error) { return 0, nil }
	return Side{"ours", 0, func() Body {
		many := waves(wavesEach, workers, idle, waveorchestrator.Options[int]{WaveInterval: -1})
		one := waves(1, workers, idle, waveorchestrator.Options[int]{WaveInterval: -1})
		return executing(many, one)
	}}
}

func oursOpen() Side {
	fail := func(context.Context, int) (int, error) { return 0, context.Canceled }
	opts := waveorchestrator.Options[int]{BreakerThreshold: 1, BreakerReset: time.Hour}
	return Side{"ours", 0, func() Body {
		many, one := waves(1, wavesEach, fail, opts), waves(1, 1, fail, opts)
		for _, o := range []*waveorchestrator.Orchestrator[int, int]{many, one} {
			_, err := o.Execute(context.Background(), 0)
			check(err)
		}
		return executing(many, one)
	}}
}

// waves makes an orchestrator of so many waves of so many workers.
func waves(n, workers int, do core.ResultWork[int, int], opts waveorchestrator.Options[int]) *waveorchestrator.Orchestrator[int, int] {
	var list []waveorchestrator.Worker[int, int]
	for i := range n * workers {
		list = append(list, waveorchestrator.Worker[int, int]{Name: "worker-" + strconv.Itoa(i), Wave: i / workers, Do: do})
	}
	return core.Must(waveorchestrator.New(list, opts))
}

// executing executes many, which has wavesEach waves or workers, and for what is
// left over one, which has one.
func executing(many, one *waveorchestrator.Orchestrator[int, int]) Body {
	return Body{func(n int) {
		ctx := context.Background()
		for range n / wavesEach {
			_, err := many.Execute(ctx, 0)
			check(err)
		}
		for range n % wavesEach {
			_, err := one.Execute(ctx, 0)
			check(err)
		}
	}, func() {
		check(many.Close())
		check(one.Close())
	}}
}

// errgroupWaves is what one would write by hand: a group for each wave, with a limit
// and a time. There are no breakers, signals and accounts, and a worker that does not
// return hangs it all.
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

// spin is a length of time, to compare with what is promised in absolute terms.
func spin(name string, goal float64, d time.Duration) Side {
	return loop(name, goal, func(n int) {
		for range n {
			for begun := time.Now(); time.Since(begun) < d; {
			}
		}
	})
}
