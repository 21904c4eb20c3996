package waveorchestrator_test

import (
	"context"
	"errors"
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
	"github.com/ephemeralgo/ephemeral/core/coretest"
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
			Grace: -1},
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
		o := orchestrator(t, opts{Name: "checks", Sink: sink}, worker{Name: "w", Do: look})
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
		time.Sleep(5 * time.Minute)
		_, ok := o.Runs().Lookup(run.ID)
		assert.False(t, ok, "it is old")
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

// Fault avoided: the half-open state admits every concurrent execution.
func TestHalfOpenBreakerAdmitsOneProbeOfAllExecutions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var works atomic.Bool
		o := orchestrator(t, opts{}, worker{Name: "w", Do: func(ctx context.Context, _ int) (int, error) {
			if !works.Load() {
				return 0, errOnPurpose
			}
			return 1, wait(ctx, 10*ms)
		}})
		for range 3 {
			assert.Equal(t, "failed | failed w:0", run(t, o))
		}
		assert.Equal(t, "w:open:3", breakers(o))
		time.Sleep(30 * time.Second)
		works.Store(true)
		for range 20 {
			go func() { _, _ = o.Execute(t.Context(), 0) }()
		}
		synctest.Wait()
		assert.EqualValues(t, 3+19, o.Stats().Failed, "the others do not wait for the probe")
		time.Sleep(10 * ms)
		synctest.Wait()
		assert.EqualValues(t, 1, o.Stats().Succeeded)
		assert.Equal(t, "w:closed:0", breakers(o))
	})
}

// While a breaker is open, other code can see that and can wait for the end. Slow handlers do not
// keep the breaker open for longer.
func TestOpenedIsHeldWhileTheBreakerIsOpen(t *testing.T) {
	each(t, map[string]time.Duration{"quick": 0, "slow": 20 * time.Second, "slower than the reset": time.Minute}, func(t *testing.T, slow time.Duration) {
		sink := signals.NewSink(signals.SinkOptions{})
		o := orchestrator(t, opts{Sink: sink, BreakerThreshold: 1, TotalTimeout: -1}, worker{Name: "db", Do: fails(0)})
		sink.Subscribe("worker.failed:*", func(signals.Signal) { time.Sleep(slow) })
		begun := time.Now()
		run(t, o)
		assert.Equal(t, []string{"circuit.opened:db:failures=1"}, raised(sink, "circuit.opened:*"), "even if it is over")
		c, err := core.NewCoordinator(func(context.Context, int) error { return nil },
			core.Options{Sink: sink, DeferOn: "circuit.opened:db:*", MaxDefer: -1})
		require.NoError(t, err)
		if o.Workers()[0].Breaker == breaker.Open {
			assert.Equal(t, begun.Add(30*time.Second), o.Workers()[0].Retry)
		}
		require.NoError(t, c.Do(t.Context(), 1))
		assert.Equal(t, max(30*time.Second, slow+1), time.Since(begun))
		assert.Equal(t, "db:half-open:1", breakers(o))
		assert.Zero(t, o.Workers()[0].Retry)
	})
}

// After Close nothing waits for the breakers of the orchestrator, even if a breaker opens during
// Close.
func TestCloseReleasesOpened(t *testing.T) {
	for _, pattern := range []string{"circuit.opened:b:*", "worker.failed:b:*"} {
		bubble(t, func(t *testing.T) {
			o := orchestrator(t, opts{BreakerThreshold: 1, BreakerReset: time.Hour},
				worker{Name: "a", Do: fails(0)}, worker{Name: "b", Do: fails(ms)})
			o.Sink().Subscribe(pattern, func(signals.Signal) {
				assert.True(t, o.Sink().Has("circuit.opened:a:*"))
				assert.NoError(t, o.Close())
			})
			r, _ := o.Execute(t.Context(), 0)
			assert.Equal(t, wave.OutcomeCancelled, r.Outcome)
			assert.Len(t, r.Failed, 2)
			assert.False(t, o.Sink().Has("circuit.opened:*"))
			require.NoError(t, o.Close())
		})
	}
}

// A watched context knows when Execute waits for an execution that was accepted: Execute calls Done
// then.
type watched struct {
	context.Context
	watch    atomic.Bool
	accepted chan struct{}
}

func (c *watched) Done() <-chan struct{} {
	if !c.watch.Swap(true) {
		close(c.accepted)
	}
	return nil
}

// Executions keep the promises of core.Lifecycle, with and without a limit.
func TestLifecycle(t *testing.T) {
	for name, limit := range map[string]int{"no limit": 0, "one at a time": 1} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				do := func(ctx context.Context, body coretest.Body) (struct{}, error) { return struct{}{}, body(ctx) }
				o, err := wave.New([]wave.Worker[coretest.Body, struct{}]{{Name: "w", Do: do}}, wave.Options[struct{}]{
					TotalTimeout: -1, WorkerTimeout: -1, Grace: 1 << 60, BreakerThreshold: -1, MaxConcurrency: limit,
				})
				require.NoError(t, err)
				submit := func(ctx context.Context, body coretest.Body) error {
					c, ended := &watched{Context: context.WithoutCancel(ctx), accepted: make(chan struct{})}, make(chan error, 1)
					go func() { _, err := o.Execute(c, body); ended <- err }()
					select {
					case err := <-ended:
						if c.watch.Load() {
							err = nil
						}
						return err
					case <-c.accepted:
						return nil
					}
				}
				return coretest.Subject{Lifecycle: o, Submit: submit, Pause: o.Pause, Resume: o.Resume, WaitIdle: o.WaitIdle, Sink: o.Sink(), Stats: o.Stats}
			})
		})
	}
}

// An execution waits while the orchestrator is paused or at its limit. It is shown then, and can be
// cancelled. A cancelled one does not begin, and Execute returns the cause.
func TestExecutionsThatWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{MaxConcurrency: 1, TotalTimeout: time.Second}, worker{Name: "w", Do: ignores(1, time.Hour)})
		errs := make(chan error, 4)
		begin := func() {
			go func() { _, err := o.Execute(t.Context(), 0); errs <- err }()
			synctest.Wait()
		}
		o.Pause()
		begin()
		time.Sleep(time.Minute) // its timeout has not begun
		why := func() core.ReasonKind {
			var waits core.OperationID
			for op := range o.Operations(core.OperationQuery{Status: core.StatusPending}) {
				waits = op.ID
			}
			x, ok := o.Explain(waits)
			require.True(t, ok && len(x.Reasons) == 1, "%v", x)
			return x.Reasons[0].Kind
		}
		assert.Equal(t, core.ReasonPaused, why())
		o.Resume()
		begin()
		assert.Equal(t, core.ReasonLimit, why())
		assert.Equal(t, []int{1, 1, 1}, []int{o.Stats().Running, o.Stats().Pending, o.Stats().Limit})
		assert.False(t, o.Evict(slices.Collect(o.Operations(core.OperationQuery{}))[0].ID), "it runs")
		assert.True(t, o.Cancel(slices.Collect(o.Operations(core.OperationQuery{}))[1].ID, errOnPurpose))
		assert.Equal(t, errOnPurpose, <-errs)
		begin()
		require.NoError(t, o.SetMaxConcurrency(2))
		begin()
		assert.Equal(t, []int{2, 1}, []int{o.Stats().Running, o.Stats().Pending})

		begun := time.Now()
		require.NoError(t, o.Stop(t.Context()))
		assert.Equal(t, time.Hour, time.Since(begun), "abandoned workers are waited for")
		assert.Equal(t, core.ErrStopped, <-errs)
		assert.Equal(t, []error{wave.ErrTimeout, wave.ErrTimeout}, []error{<-errs, <-errs})
		s := o.Stats()
		assert.Equal(t, []uint64{4, 2, 2, 0}, []uint64{s.Enqueued, s.Failed, s.Cancelled, s.Rejected})
		require.NoError(t, coretest.CheckBooks(s))
	})
}

// The test checks the exact signals and their order.
func TestSignals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		seen := coretest.Watch(t, sink, "wave.*,worker.*,circuit.*")
		works := false
		o := orchestrator(t, opts{Sink: sink, Name: "checks", BreakerThreshold: 1, BreakerReset: 10 * time.Second, WorkerTimeout: time.Second,
			TotalTimeout: 3 * time.Second, MaxPerWave: 1, EarlyExit: func(v int) bool { return v == 9 }},
			worker{Name: "fast", Do: gives(1, 12*ms)},
			worker{Name: "down", Priority: 1, Do: func(context.Context, int) (int, error) {
				if !works {
					return 0, errOnPurpose
				}
				return 2, nil
			}},
			worker{Name: "hangs", Wave: 3, Do: hangs},
			worker{Name: "last", Wave: 4, Do: func(_ context.Context, in int) (int, error) { return in, nil }})
		_, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		got := seen.ExpectExactly(
			"wave.orchestrator.started",
			"wave.started:wave=0:workers=2",
			"worker.started:fast",
			"worker.completed:fast:duration=12",
			"worker.started:down",
			"worker.failed:down:error=failed on purpose",
			"circuit.opened:down:failures=1",
			"wave.started:wave=3:workers=1",
			"worker.started:hangs",
			"worker.timeout:hangs:duration=1000",
			"circuit.opened:hangs:failures=1",
			"wave.started:wave=4:workers=1",
			"worker.started:last",
			"worker.completed:last:duration=0",
			"wave.orchestrator.completed:duration=1112:results=2",
		)
		execution := got[0].Operation
		want := []wave.Event{
			{}, {Wave: 0, Workers: 2}, {Worker: "fast"}, {Worker: "fast", Duration: 12 * ms},
			{Worker: "down"}, {Worker: "down", Err: errOnPurpose}, {Worker: "down"},
			{Wave: 3, Workers: 1}, {Worker: "hangs", Wave: 3}, {Worker: "hangs", Wave: 3, Duration: time.Second, Err: wave.ErrWorkerTimeout},
			{Worker: "hangs"}, {Wave: 4, Workers: 1}, {Worker: "last", Wave: 4}, {Worker: "last", Wave: 4},
			{Workers: 2, Duration: 1112 * ms, Outcome: wave.OutcomeCompleted},
		}
		keys := []string{"", "0", "fast", "fast", "down", "down", "down", "3", "hangs", "hangs", "hangs", "4", "last", "last", ""}
		for i, s := range got {
			assert.Equal(t, keys[i], s.Key, s.Name)
			if s.Held {
				assert.Nil(t, s.Payload())
				continue
			}
			want[i].Execution = execution
			assert.Equal(t, want[i], s.Payload(), s.Name)
			source := "checks"
			if strings.HasPrefix(s.Name, "worker.") || s.Name == "circuit.closed" {
				source = "checks.workers"
			}
			assert.Equal(t, source, s.Source)
		}

		// Workers with an open breaker are not counted. A wave without other workers does not
		// start.
		_, err = o.Execute(t.Context(), 9)
		require.NoError(t, err)
		got = seen.ExpectExactly(
			"wave.orchestrator.started",
			"wave.started:wave=0:workers=1",
			"worker.started:fast",
			"worker.completed:fast:duration=12",
			"wave.started:wave=4:workers=1",
			"worker.started:last",
			"worker.completed:last:duration=0",
			"wave.early_exit:wave=4",
			"wave.orchestrator.completed:duration=62:results=2",
		)
		assert.Equal(t, "4", got[7].Key)
		assert.Equal(t, "last", got[7].Payload().(wave.Event).Worker)

		// The probe closes it.
		time.Sleep(10 * time.Second)
		synctest.Wait()
		works = true
		_, err = o.Execute(t.Context(), 9)
		require.NoError(t, err)
		got = seen.Expect("worker.completed:down:duration=0", "circuit.closed", "circuit.opened:hangs:failures=2")
		closed, ok := wave.Events.From(got[1])
		assert.True(t, ok)
		assert.Equal(t, "down", closed.Worker)
		assert.Equal(t, "down", got[1].Key)

		// An execution without a value has failed, even if its workers were skipped.
		o = orchestrator(t, opts{Sink: sink, BreakerThreshold: 1}, worker{Name: "fails", Do: fails(10 * ms)})
		for _, want := range []string{"failed | failed fails:0", "failed | skipped fails:0"} {
			r, err := o.Execute(t.Context(), 0)
			assert.Equal(t, []any{wave.ErrFailed, want}, []any{err, brief(r)})
			event, ok := wave.Events.From(seen.Expect("wave.failed")[0])
			assert.Equal(t, []any{true, r.Duration, wave.ErrFailed}, []any{ok, event.Duration, event.Err})
		}
	})
}

// A handler of the signal sees an abandoned run in the counters.
func TestSignalsOfTheTotalTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{TotalTimeout: 150 * ms}, worker{Name: "LLM", Wave: -3, Do: ignores(1, time.Second)})
		seen := coretest.Watch(t, o.Sink(), "wave.*,worker.*,circuit.*")
		wave.Events.Named(wave.SignalWorkerAbandoned).Subscribe(o.Sink(), func(s signals.Signal, e wave.Event) {
			assert.Equal(t, []string{"LLM", "LLM"}, []string{s.Key, e.Worker})
			assert.Equal(t, 1, o.Runs().Stats().Running)
		})
		_, err := o.Execute(t.Context(), 0)
		assert.Equal(t, wave.ErrTimeout, err)
		seen.ExpectExactly(
			"wave.orchestrator.started",
			"wave.started:wave=-3:workers=1",
			"worker.started:LLM",
			"wave.timeout:elapsed=150",
			"worker.abandoned",
			"wave.orchestrator.completed:duration=250:results=0",
		)
		require.NoError(t, o.Close())
	})
}

// A handler that blocks holds up the run that calls it, and nothing else.
func TestHandlerBlocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{WorkerTimeout: 100 * ms, Grace: ms},
			worker{Name: "a", Do: gives(1, ms)}, worker{Name: "b", Do: ignores(2, time.Hour)})
		o.Sink().Subscribe("worker.completed:a:*", func(signals.Signal) { time.Sleep(time.Minute) })
		r, err := o.Execute(t.Context(), 0)
		assert.Equal(t, wave.ErrTimeout, err)
		assert.Equal(t, "timed-out | completed a:0=1 | failed b:0 | abandoned b:0", brief(r))
		assert.Equal(t, time.Minute+ms, r.Duration)
		assert.Equal(t, ms, r.Completed[0].Duration)
		require.NoError(t, o.Close())
	})
}

type broken struct{}

func (broken) Error() string { panic("no text") }

// Fault avoided: the text of an error goes unbounded into the name, colons and all.
func TestErrorTextInNamesIsBounded(t *testing.T) {
	for want, err := range map[string]error{
		"a; b_ _: " + strings.Repeat("é", 59) + "_": errors.New("a, b? *: " + strings.Repeat("é", 4000) + "\n"),
		"one_two _":                        errors.New("one\ntwo \n"),
		"dial tcp: refused":                errors.New("dial tcp: refused"),
		"%!v(PANIC=Error method: no text)": broken{},
		"_":                                errors.New("\xff\xfe"),
	} {
		bubble(t, func(t *testing.T) {
			o := orchestrator(t, opts{}, worker{Name: "w", Do: func(context.Context, int) (int, error) { return 0, err }})
			seen := coretest.Watch(t, o.Sink(), "worker.failed:*")
			_, _ = o.Execute(t.Context(), 0)
			s := seen.ExpectExactly("worker.failed:w:error=" + want)[0]
			assert.LessOrEqual(t, len(want), 128)
			assert.Equal(t, err, s.Payload().(wave.Event).Err, "all of it")
		})
	}
}

const ms = time.Millisecond

var errOnPurpose = errors.New("failed on purpose")

type (
	worker = wave.Worker[int, int]
	work   = core.ResultWork[int, int]
	opts   = wave.Options[int]
)

// gives returns v after d, unless its context ends before.
func gives(v int, d time.Duration) work {
	return func(ctx context.Context, _ int) (int, error) { return v, wait(ctx, d) }
}

// fails is like gives, but returns an error.
func fails(d time.Duration) work {
	return func(ctx context.Context, _ int) (int, error) {
		if err := wait(ctx, d); err != nil {
			return 0, err
		}
		return 0, errOnPurpose
	}
}

// ignores returns v after d, even if its context ends before.
func ignores(v int, d time.Duration) work {
	return func(context.Context, int) (int, error) { time.Sleep(d); return v, nil }
}

// hangs returns when its context ends.
func hangs(ctx context.Context, _ int) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	alarm := time.NewTimer(d)
	defer alarm.Stop()
	select {
	case <-alarm.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func orchestrator(t testing.TB, o opts, workers ...worker) *wave.Orchestrator[int, int] {
	t.Helper()
	x, err := wave.New(workers, o)
	require.NoError(t, err)
	return x
}

// bubble runs a test in a bubble. Goroutines that are left running fail it.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// each runs a test in a bubble for each case.
func each[C any](t *testing.T, cases map[string]C, test func(t *testing.T, c C)) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { bubble(t, func(t *testing.T) { test(t, c) }) })
	}
}

// brief returns a result as one line: "completed a:1=3 b:1=5 | failed c:2 | skipped d:3".
func brief(r wave.Result[int]) string {
	return text(r, " |", func(w wave.WorkerResult[int]) string {
		if w.Err == nil {
			return fmt.Sprintf("%s:%d=%d", w.Worker, w.Wave, w.Value)
		}
		return fmt.Sprintf("%s:%d", w.Worker, w.Wave)
	})
}

// text returns a result as text, without empty lists.
func text(r wave.Result[int], before string, show func(wave.WorkerResult[int]) string) string {
	text := string(r.Outcome)
	if r.Decisive != nil {
		text += " by " + r.Decisive.Worker
	}
	for i, list := range [][]wave.WorkerResult[int]{r.Completed, r.Failed, r.Cancelled, r.Skipped, r.Abandoned} {
		if len(list) > 0 {
			text += before + " " + []string{"completed", "failed", "cancelled", "skipped", "abandoned"}[i]
		}
		for _, w := range list {
			text += " " + show(w)
		}
	}
	return text
}

// run calls Execute, and returns the result as one line.
func run(t testing.TB, o *wave.Orchestrator[int, int]) string {
	t.Helper()
	r, err := o.Execute(t.Context(), 0)
	if r.Outcome == wave.OutcomeFailed {
		require.Equal(t, wave.ErrFailed, err)
	} else {
		require.NoError(t, err)
	}
	return brief(r)
}

// signals lists the names of the signals on the sink that match.
func raised(sink *signals.Sink, pattern string) (names []string) {
	for s := range sink.Sense(signals.Query{Pattern: pattern}) {
		names = append(names, s.Name)
	}
	return names
}

func breakers(o *wave.Orchestrator[int, int]) string {
	var list []string
	for _, w := range o.Workers() {
		list = append(list, fmt.Sprintf("%s:%s:%d", w.Name, w.Breaker, w.Failures))
	}
	return strings.Join(list, " ")
}
