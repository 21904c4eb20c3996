package dynamicconcurrency_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/dynamicconcurrency"
)

func second(context.Context, int) error { time.Sleep(time.Second); return nil }

func TestOneStepForEachSignalSaidWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink, said := signals.NewSink(signals.SinkOptions{}), []int{}
		say := func(s signals.Signal, limit int) { said = append(said, limit) }
		dynamicconcurrency.Decreased.Subscribe(sink, func(signals.Signal, int) { sink.Raise("boost") }) // the subscription is older than say
		dynamicconcurrency.Increased.Subscribe(sink, say)
		dynamicconcurrency.Decreased.Subscribe(sink, say)
		sink.Raise("load.high") // raised before the coordinator exists
		coretest.NothingLeft(t, sink, func() {
			c := core.Must(dynamicconcurrency.New(second, dynamicconcurrency.Scale{Max: 10, UpOn: "load.high, boost"}, core.Options{Sink: sink}))
			require.Equal(t, 1, c.Stats().Limit)
			for _, step := range []struct {
				signal string
				limit  int
			}{
				{"load.low", 1}, {"load.high", 2}, {"boost", 4}, {"load.low", 4}, // while a high signal is still there
				{"load.high", 8}, {"load.high", 10}, {"load.high", 10}, {"load.low", 10},
			} {
				time.Sleep(time.Second)
				sink.Raise(step.signal)
				require.Equal(t, step.limit, c.Stats().Limit, step.signal)
			}
			require.Equal(t, []int{2, 4, 2, 4, 8, 10, 5, 10}, said)
			require.NoError(t, c.Drain(t.Context()))
			sink.Raise("load.low")
			require.Equal(t, 10, c.Stats().Limit)
		})
	})
}

// Many goroutines raise: each signal is one step, and items follow the limit.
func TestStepsAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		c := core.Must(dynamicconcurrency.New(second, dynamicconcurrency.Scale{Max: 1 << 20}, core.Options{Sink: sink, MaxConcurrency: 8}))
		for i := range 500 {
			core.Must(c.Enqueue(t.Context(), i))
		}
		burst := func(signal string, n int) {
			var raised sync.WaitGroup
			for range n {
				raised.Go(func() { sink.Raise(signal) })
			}
			raised.Wait()
			synctest.Wait()
		}
		burst("load.high", 4)
		require.Equal(t, 8<<4, c.Stats().Running, "at once")
		burst("load.low", 5)
		require.Equal(t, 8<<4, c.Stats().Running, "nothing is cancelled")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 8>>1, c.Stats().Running)
		require.NoError(t, c.Close())
	})
}

func TestErrors(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	for want, wrong := range map[string]struct {
		scale dynamicconcurrency.Scale
		opts  core.Options
	}{
		"Scale.Min is 3":               {dynamicconcurrency.Scale{Min: 3, Max: 2}, core.Options{Sink: sink}},
		"Options.Sink is nil":          {},
		"Options.MaxConcurrency is 33": {opts: core.Options{Sink: sink, MaxConcurrency: 33}},
		"core: Options.MaxPerKey is 2": {opts: core.Options{Sink: sink, MaxPerKey: 2}},
	} {
		_, err := dynamicconcurrency.New(second, wrong.scale, wrong.opts)
		require.ErrorContains(t, err, "dynamicconcurrency: "+want)
	}
}
