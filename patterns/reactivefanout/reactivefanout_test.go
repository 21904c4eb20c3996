package reactivefanout_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/reactivefanout"
)

func TestLifecycle(t *testing.T) {
	same := func(_ context.Context, b coretest.Body) (coretest.Body, error) { return b, nil }
	run := func(ctx context.Context, b coretest.Body) (coretest.Body, error) { return b, b(ctx) }
	for stage, first := range map[string]core.ResultWork[coretest.Body, coretest.Body]{"first": run, "second": same} {
		t.Run(stage, func(t *testing.T) {
			second := coretest.Run
			if stage == "first" {
				second = func(context.Context, coretest.Body) error { return nil }
			}
			coretest.RunLifecycle(t, func(testing.TB) coretest.Subject {
				f := core.Must(reactivefanout.New(first, second, reactivefanout.Options{MaxQueued: 2, High: 2}))
				return coretest.Subject{Lifecycle: f, Sink: f.Sink(), Submit: func(ctx context.Context, b coretest.Body) error {
					_, err := f.Enqueue(ctx, b)
					return err
				}}
			})
		})
	}
}

// fanout makes a Fanout on a sink, and checks that nothing is left there. An item takes 100
// ms in the first stage and a second in the second.
func fanout(t *testing.T, opts reactivefanout.Options, second core.Work[int], test func(*testing.T, *reactivefanout.Fanout[int, int])) {
	synctest.Test(t, func(t *testing.T) {
		opts.Name, opts.Sink = "two", signals.NewSink(signals.SinkOptions{})
		coretest.NothingLeft(t, opts.Sink, func() {
			test(t, core.Must(reactivefanout.New(func(_ context.Context, item int) (int, error) {
				time.Sleep(100 * time.Millisecond)
				if item < 0 {
					return 0, errors.New("negative")
				}
				return item, nil
			}, func(ctx context.Context, item int) error {
				time.Sleep(time.Second)
				return second(ctx, item)
			}, opts)))
		})
	})
}

func TestTheFirstStageShrinksAndRecoversByItself(t *testing.T) {
	nothing := func(context.Context, int) error { return nil }
	fanout(t, reactivefanout.Options{MinConcurrency: 2}, nothing, func(t *testing.T, f *reactivefanout.Fanout[int, int]) {
		for range 2 {
			for i := range 200 {
				core.Must(f.Enqueue(t.Context(), i))
			}
			s, err := f.Sink().WaitFor(t.Context(), reactivefanout.SignalThrottled)
			require.NoError(t, err)
			require.Equal(t, "two", s.Key)
			time.Sleep(100 * time.Millisecond) // running items have ended
			synctest.Wait()
			require.Equal(t, 2, f.First().Stats().Running)
			require.Positive(t, f.First().Stats().Pending)
			require.NoError(t, f.First().WaitIdle(t.Context()))
			require.Equal(t, 2, f.First().Stats().Limit, "64 wait for the second stage")
			require.NoError(t, f.Sink().WaitGone(t.Context(), reactivefanout.SignalThrottled))
			synctest.Wait()
			require.Equal(t, 8, f.First().Stats().Limit)
			require.Equal(t, 8, f.Second().Stats().Pending)
			require.NoError(t, f.Flush(t.Context()))
		}
		require.NoError(t, f.Drain(t.Context()))
	})
}

func TestEachItemReachesTheSecondStageOnceAlsoThroughDrain(t *testing.T) {
	var times [300]atomic.Int32
	fanout(t, reactivefanout.Options{High: 5}, func(_ context.Context, item int) error {
		times[item].Add(1)
		return nil
	}, func(t *testing.T, f *reactivefanout.Fanout[int, int]) {
		for i := range times {
			core.Must(f.Enqueue(t.Context(), i))
		}
		require.NoError(t, f.Drain(t.Context()))
		for i := range times {
			require.EqualValues(t, 1, times[i].Load(), i)
		}
	})
}

// High may be so large that there is never pressure.
func TestWithoutBacklogPressure(t *testing.T) {
	fanout(t, reactivefanout.Options{High: math.MaxInt}, func(context.Context, int) error {
		time.Sleep(time.Second)
		return nil
	}, func(t *testing.T, f *reactivefanout.Fanout[int, int]) {
		for i := range 200 {
			core.Must(f.Enqueue(t.Context(), i))
		}
		require.NoError(t, f.First().WaitIdle(t.Context()))
		require.Zero(t, f.First().Stats().Failed)
		require.NotZero(t, f.Second().Stats().Pending)
		require.NoError(t, f.Flush(t.Context()))
	})
}

func TestFailuresAreSaid(t *testing.T) {
	fails := func(_ context.Context, item int) error {
		if item == 2 {
			panic(item)
		}
		return errors.New("full disk")
	}
	fanout(t, reactivefanout.Options{}, fails, func(t *testing.T, f *reactivefanout.Fanout[int, int]) {
		for _, item := range []int{-1, 1, 2} {
			core.Must(f.Enqueue(t.Context(), item))
		}
		require.NoError(t, f.Flush(t.Context()))
		require.Equal(t, 1, f.First().Count(reactivefanout.SignalFirstFailed))
		require.Equal(t, 2, f.Second().Count(reactivefanout.SignalSecondFailed))
		require.EqualValues(t, 1, f.First().Stats().Failed)
		require.Equal(t, 8, f.First().Stats().Limit, "failures are no pressure")
	})
}

func TestErrors(t *testing.T) {
	for want, opts := range map[string]reactivefanout.Options{
		"Concurrency is 8": {MinConcurrency: 9},
		"Concurrency is -": {Concurrency: -1},
		"Downstream is -1": {Downstream: -1},
		"High is 8":        {High: 8, Low: 8},
	} {
		_, err := reactivefanout.New(func(context.Context, int) (int, error) { return 0, nil }, func(context.Context, int) error { return nil }, opts)
		require.ErrorContains(t, err, "reactivefanout: Options."+want)
	}
	_, err := reactivefanout.New[int, int](nil, nil, reactivefanout.Options{})
	require.EqualError(t, err, "reactivefanout: New needs two functions")
}
