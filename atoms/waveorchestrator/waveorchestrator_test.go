package waveorchestrator_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wave "github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func TestDefaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		one := func(name string, wave int, do work) worker { return worker{Name: name, Wave: wave, Do: do} }
		o := orchestrator(t, opts{},
			one("a", 0, hangs), one("b", 0, hangs), one("c", 0, hangs), one("d", 0, hangs), one("e", 0, gives(5, ms)),
			one("f", 1, gives(6, ms)), one("g", 2, hangs))
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, "completed | completed e:0=5 f:1=6 | failed a:0 b:0 c:0 d:0 g:2", brief(r), "four at once, so e waited")
		assert.Equal(t, 2*time.Second+ms+50*ms+ms+50*ms+2*time.Second, r.Duration)
		assert.Equal(t, "waveorchestrator", o.Name())

		o = orchestrator(t, opts{}, one("a", 0, hangs), one("b", 1, hangs), one("c", 2, ignores(1, 6*time.Second)))
		r, err = o.Execute(t.Context(), 0)
		assert.Equal(t, wave.ErrTimeout, err)
		assert.Equal(t, 5*time.Second+100*ms, r.Duration)
		assert.Equal(t, "timed-out | failed a:0 b:1 | cancelled c:2 | abandoned c:2", brief(r))
		require.NoError(t, o.Close())
	})
}

func TestNegativeMeansNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{TotalTimeout: -1, WorkerTimeout: -1, WaveInterval: -1, MaxPerWave: -1, BreakerThreshold: -1,
			Grace: -1, MaxTracked: -1},
			worker{Name: "a", Do: gives(1, time.Hour)}, worker{Name: "b", Do: gives(2, time.Hour)}, worker{Name: "c", Do: gives(3, time.Hour)},
			worker{Name: "d", Do: gives(4, time.Hour)}, worker{Name: "e", Do: gives(5, time.Hour)}, worker{Name: "f", Wave: 1, Do: fails(0)})
		for i := range 10 {
			r, err := o.Execute(t.Context(), 0)
			require.NoError(t, err)
			assert.Equal(t, "completed | completed a:0=1 b:0=2 c:0=3 d:0=4 e:0=5 | failed f:1", brief(r))
			assert.Equal(t, time.Hour, r.Duration)
			assert.Equal(t, breaker.Closed, o.Workers()[5].Breaker)
			assert.Equal(t, i+1, o.Workers()[5].Failures)
		}
		synctest.Wait()
		assert.Empty(t, slices.Collect(o.Operations(core.OperationQuery{})))
	})
}

func TestHugeTimesDoNotOverflow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		const long = math.MaxInt64
		o := orchestrator(t, opts{TotalTimeout: long, WorkerTimeout: long - 1, Grace: long, BreakerReset: long, BreakerThreshold: 1},
			worker{Name: "a", Do: gives(1, time.Minute)}, worker{Name: "b", Wave: 1, Do: fails(time.Minute)})
		time.Sleep(time.Hour)
		assert.Equal(t, "completed | completed a:0=1 | failed b:1", run(t, o))
		time.Sleep(100 * 365 * 24 * time.Hour)
		assert.Equal(t, "completed | completed a:0=1 | skipped b:1", run(t, o))
		require.NoError(t, o.Close())
	})
}

// Failures stop neither the wave nor later waves. Another fault avoided: the zero values of workers
// that failed are results. If a worker returns an error while its context has not ended, it has
// failed, even if the error looks like the end of a context.
func TestFailuresEndNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{WorkerTimeout: time.Second, EarlyExit: func(v int) bool { assert.Equal(t, 1, v); return false }},
			worker{Name: "ends", Wave: 1, Do: func(context.Context, int) (int, error) { return 0, context.Canceled }},
			worker{Name: "ends too", Wave: 1, Do: func(context.Context, int) (int, error) { return 0, context.DeadlineExceeded }},
			worker{Name: "errs", Do: fails(ms)},
			worker{Name: "exits", Do: func(context.Context, int) (int, error) { runtime.Goexit(); return 0, nil }},
			worker{Name: "hangs", Do: func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, errOnPurpose }},
			worker{Name: "panics", Do: func(context.Context, int) (int, error) { panic(errOnPurpose) }},
			worker{Name: "works", Wave: 1, Do: gives(1, ms)})
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, "completed | completed works:1=1 | failed errs:0 exits:0 hangs:0 panics:0 ends:1 ends too:1", brief(r))
		assert.Equal(t, errOnPurpose, r.Failed[0].Err)
		var exit, panicked *core.PanicError
		require.ErrorAs(t, r.Failed[1].Err, &exit)
		assert.Nil(t, exit.Value)
		assert.ErrorIs(t, r.Failed[2].Err, wave.ErrWorkerTimeout)
		assert.ErrorIs(t, r.Failed[2].Err, context.DeadlineExceeded)
		assert.ErrorIs(t, r.Failed[2].Err, errOnPurpose, "what it returned is there, too")
		require.ErrorAs(t, r.Failed[3].Err, &panicked)
		assert.ErrorIs(t, r.Failed[3].Err, errOnPurpose)
		assert.Contains(t, string(panicked.Stack), "TestFailuresEndNothing")
		assert.Equal(t, 1, o.Sink().Count(core.SignalPanicked))
	})
}

// A worker that returns exactly at the end of its time is late. If the time of the execution ends
// at that instant too, the worker has not failed.
func TestTheInstantItselfIsLate(t *testing.T) {
	for range 20 {
		bubble(t, func(t *testing.T) {
			late := func(context.Context, int) (int, error) { time.Sleep(time.Second); return 0, errOnPurpose }
			o := orchestrator(t, opts{WorkerTimeout: time.Second, TotalTimeout: 2 * time.Second, WaveInterval: -1, BreakerThreshold: 1},
				worker{Name: "before", Do: ignores(1, time.Second-1)}, worker{Name: "value", Do: ignores(1, time.Second)},
				worker{Name: "error", Do: late}, worker{Name: "both", Wave: 1, Do: late})
			r, err := o.Execute(t.Context(), 0)
			assert.Equal(t, wave.ErrTimeout, err)
			assert.Equal(t, "timed-out | completed before:0=1 | failed error:0 value:0 | cancelled both:1", brief(r))
			assert.ErrorIs(t, r.Failed[0].Err, wave.ErrWorkerTimeout)
			assert.Equal(t, wave.ErrWorkerTimeout, r.Failed[1].Err)
			assert.Equal(t, "before:closed:0 error:open:1 value:open:1 both:closed:0", breakers(o))
			require.NoError(t, o.Close())
		})
	}
}

func TestErrorsAreTimeouts(t *testing.T) {
	for _, err := range []error{wave.ErrTimeout, wave.ErrWorkerTimeout} {
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.True(t, err.(interface{ Timeout() bool }).Timeout())
	}
}

// EarlyExit is called for one value at a time, until one is decisive, even if workers return at
// the same instant.
func TestEarlyExitIsCalledForOneValueAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var inside, calls atomic.Int32
		workers := make([]worker, 20)
		for i := range workers {
			workers[i] = worker{Name: fmt.Sprintf("w%02d", i), Do: gives(i, ms)}
		}
		o := orchestrator(t, opts{MaxPerWave: -1, EarlyExit: func(int) bool {
			assert.EqualValues(t, 1, inside.Add(1))
			defer inside.Add(-1)
			time.Sleep(ms)
			return calls.Add(1) == 5
		}}, workers...)
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.EqualValues(t, 5, calls.Load())
		assert.Len(t, r.Completed, 20, "what was there in time is part of the result")
		assert.Equal(t, 6*ms, r.Duration)
	})
}

// A panic of EarlyExit ends the execution: running workers are cancelled, and nothing is lost.
func TestEarlyExitPanics(t *testing.T) {
	each(t, map[string]func(){"panic": func() { panic(errOnPurpose) }, "goexit": runtime.Goexit}, func(t *testing.T, broken func()) {
		o := orchestrator(t, opts{BreakerThreshold: 1, MaxPerWave: 2, EarlyExit: func(int) bool { broken(); return false }},
			worker{Name: "a", Do: gives(1, ms)}, worker{Name: "b", Do: hangs},
			worker{Name: "c", Do: gives(3, 0)}, worker{Name: "d", Wave: 1, Do: gives(4, 0)})
		r, err := o.Execute(t.Context(), 0)
		var panicked *core.PanicError
		require.ErrorAs(t, err, &panicked)
		assert.Equal(t, "cancelled | completed a:0=1 | cancelled b:0 | skipped c:0 d:1", brief(r))
		synctest.Wait()
		assert.Len(t, slices.Collect(o.Operations(core.OperationQuery{Status: core.StatusFailed})), 1, "the execution")
		assert.Equal(t, "a:closed:0 b:closed:0 c:closed:0 d:closed:0", breakers(o))
		require.NoError(t, o.Close())
	})
}

// If the execution of an outer orchestrator ends, the inner one does not treat that as its own
// timeout or cancellation.
func TestOrchestratorsWithinOrchestrators(t *testing.T) {
	bubble(t, func(t *testing.T) {
		inner := orchestrator(t, opts{BreakerThreshold: 1, WorkerTimeout: -1, TotalTimeout: -1}, worker{Name: "w", Do: hangs})
		var results []string
		var errs []error
		execute := func(ctx context.Context, in int) (int, error) {
			r, err := inner.Execute(ctx, in)
			results, errs = append(results, brief(r)), append(errs, err)
			return 0, err
		}
		outer := orchestrator(t, opts{WorkerTimeout: time.Second}, worker{Name: "inner", Do: execute})
		assert.Equal(t, "failed | failed inner:0", run(t, outer), "its time was over")
		outer = orchestrator(t, opts{TotalTimeout: time.Second}, worker{Name: "inner", Do: execute})
		r, err := outer.Execute(t.Context(), 0)
		assert.Equal(t, wave.ErrTimeout, err)
		assert.Equal(t, "timed-out | cancelled inner:0", brief(r))
		assert.Equal(t, []string{"cancelled | cancelled w:0", "cancelled | cancelled w:0"}, results)
		assert.ErrorIs(t, errs[0], wave.ErrWorkerTimeout)
		assert.ErrorIs(t, errs[1], wave.ErrTimeout)
		assert.Equal(t, "w:closed:0", breakers(inner))
	})
}

// A worker may execute its own orchestrator.
func TestRecursion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var _ core.ResultWork[int, wave.Result[int]] = new(wave.Orchestrator[int, int]).Execute
		var o *wave.Orchestrator[int, int]
		o = orchestrator(t, opts{}, worker{Name: "w", Do: func(ctx context.Context, in int) (int, error) {
			if in == 0 {
				return 1, nil
			}
			r, err := o.Execute(ctx, in-1)
			return r.Completed[0].Value + 1, err
		}})
		r, err := o.Execute(t.Context(), 5)
		require.NoError(t, err)
		assert.Equal(t, "completed | completed w:0=6", brief(r))
	})
}

func TestExecutionsAndRunsAreOperations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		look := func(ctx context.Context, in int) (int, error) {
			core.OperationFrom(ctx).Set("in", in)
			core.OperationFrom(ctx).Raise("looked")
			return 7, nil
		}
		o := orchestrator(t, opts{Name: "checks", Sink: sink, MaxAge: time.Minute}, worker{Name: "w", Do: look})
		assert.Same(t, sink, o.Sink())
		r, err := o.Execute(t.Context(), 3)
		require.NoError(t, err)
		synctest.Wait()
		executions, runs := slices.Collect(o.Operations(core.OperationQuery{})), slices.Collect(o.Runs().Operations(core.OperationQuery{}))
		require.Equal(t, []int{1, 1}, []int{len(executions), len(runs)})
		execution, run := executions[0], runs[0]
		assert.Equal(t, []string{"checks", "checks.workers"}, []string{o.Name(), o.Runs().Name()})
		assert.Equal(t, []any{"", "w", execution.ID, r.Completed[0].Operation}, []any{execution.Key, run.Key, run.Parent, run.ID})
		in, _ := core.Value[int](run, "in")
		assert.Equal(t, 3, in)
		assert.True(t, run.Has("looked"))
		for s := range sink.Sense(signals.Query{Pattern: "looked"}) {
			assert.Equal(t, []string{"checks.workers", "w"}, []string{s.Source, s.Key})
		}
		time.Sleep(time.Minute)
		_, ok := o.Runs().Lookup(run.ID)
		assert.False(t, ok, "MaxAge has passed")
		require.NoError(t, o.Close())
	})
}

// Fault avoided: no workers are an error only after the first signal; negative waves never
// run; a gap is walked wave by wave; workers of one name share a breaker.
func TestWorkersAreCheckedAndWavesAreThoseThereAre(t *testing.T) {
	do := gives(1, 0)
	sink := signals.NewSink(signals.SinkOptions{})
	for want, list := range map[string][]worker{
		"at least one worker":                                   {},
		"worker 1 needs a Name":                                 {{Name: "a", Do: do}, {Do: do}},
		`two workers "a"`:                                       {{Name: "a", Do: do}, {Name: "a", Wave: 1, Do: do}},
		`"a" needs a function Do`:                               {{Name: "a"}},
		`the name "a*" of worker 0`:                             {{Name: "a*", Do: do}},
		`the name "a:b" of worker 0`:                            {{Name: "a:b", Do: do}},
		`the name " a" of worker 0`:                             {{Name: " a", Do: do}},
		"has 129 bytes":                                         {{Name: strings.Repeat("x", 129), Do: do}},
		"Options.PerWave limits wave 3, but no worker is in it": {{Name: "a", Do: do}},
	} {
		_, err := wave.New(list, opts{Sink: sink, PerWave: map[int]int{3: 1}})
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "waveorchestrator: ")
	}
	assert.Zero(t, sink.Count("*"))

	bubble(t, func(t *testing.T) {
		order := ""
		note := func(name string, number int) worker {
			return worker{Name: name, Wave: number, Do: func(context.Context, int) (int, error) { order += name; return 0, nil }}
		}
		o := orchestrator(t, opts{}, note("d", math.MaxInt), note("c", 0), note("b", -7), note("a", math.MinInt))
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, "abcd", order)
		assert.Equal(t, 150*ms, r.Duration, "three pauses, between waves only")
	})
}
