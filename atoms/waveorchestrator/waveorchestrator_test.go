package waveorchestrator_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wave "github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
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

		o = orchestrator(t, opts{}, one("a", 0, hangs), one("b", 1, hangs), one("c", 2, hangs))
		r, err = o.Execute(t.Context(), 0)
		assert.Equal(t, wave.ErrTimeout, err)
		assert.Equal(t, 5*time.Second, r.Duration)
		assert.Equal(t, "timed-out | failed a:0 b:1 | cancelled c:2", brief(r))
	})
}

func TestNegativeMeansNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{TotalTimeout: -1, WorkerTimeout: -1, WaveInterval: -1, MaxPerWave: -1, BreakerThreshold: -1, MaxAbandoned: -1, Grace: -1},
			worker{Name: "a", Do: gives(1, time.Hour)}, worker{Name: "b", Do: gives(2, time.Hour)}, worker{Name: "c", Do: gives(3, time.Hour)},
			worker{Name: "d", Do: gives(4, time.Hour)}, worker{Name: "e", Do: gives(5, time.Hour)},
			worker{Name: "f", Wave: 1, Do: func(ctx context.Context, _ int) (int, error) {
				_, limited := ctx.Deadline()
				assert.False(t, limited)
				return 0, errOnPurpose
			}})
		for i := range 10 {
			r, err := o.Execute(t.Context(), 0)
			require.NoError(t, err)
			assert.Equal(t, "completed | completed a:0=1 b:0=2 c:0=3 d:0=4 e:0=5 | failed f:1", brief(r))
			assert.Equal(t, time.Hour, r.Duration)
			assert.Equal(t, wave.BreakerClosed, o.Workers()[5].Breaker)
			assert.Equal(t, i+1, o.Workers()[5].Failures)
		}
	})
}

func TestHugeTimesDoNotOverflow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		const long = math.MaxInt64
		o := orchestrator(t, opts{TotalTimeout: long, WorkerTimeout: long - 1, Grace: long, BreakerReset: long, BreakerThreshold: 1, WaveInterval: ms},
			worker{Name: "a", Do: gives(1, time.Minute)}, worker{Name: "b", Wave: 1, Do: fails(time.Minute)})
		time.Sleep(time.Hour)
		assert.Equal(t, "completed | completed a:0=1 | failed b:1", run(t, o))
		time.Sleep(100 * 365 * 24 * time.Hour)
		assert.Equal(t, "completed | completed a:0=1 | skipped b:1", run(t, o))
		require.NoError(t, o.Close())
	})
}

func TestPerWave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		workers := make([]worker, 0, 24)
		for i, n := range "abcdefghijklmnopqrstuvwx" {
			workers = append(workers, worker{Name: string(n), Wave: i / 8, Do: gives(0, ms)})
		}
		limits := map[int]int{0: 8, 1: 2}
		o := orchestrator(t, opts{MaxPerWave: 1, PerWave: limits, WaveInterval: -1}, workers...)
		limits[0] = 1
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, ms+4*ms+8*ms, r.Duration)

		_, err = wave.New(workers, opts{PerWave: map[int]int{3: 1}})
		assert.EqualError(t, err, "waveorchestrator: Options.PerWave limits wave 3, but no worker is in it")
		o = orchestrator(t, opts{PerWave: map[int]int{0: 0, 1: -1}, WaveInterval: -1}, workers...)
		r, err = o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, 2*ms+ms+2*ms, r.Duration, "0 is MaxPerWave, negative no limit")
	})
}

func TestSequentialInOrderOfPriority(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var order string
		note := func(name string) worker {
			return worker{Name: name, Do: func(context.Context, int) (int, error) { order += name; time.Sleep(ms); return 0, nil }}
		}
		a, b, c, d := note("a"), note("b"), note("c"), note("d")
		a.Priority, b.Priority, c.Priority, d.Priority = 5, -5, 0, 0
		run(t, orchestrator(t, opts{MaxPerWave: 1}, a, d, b, c))
		assert.Equal(t, "bcda", order)
	})
}

// Errors do not stop the wave, nor what comes after.
func TestFailuresEndNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{WorkerTimeout: time.Second},
			worker{Name: "errs", Do: fails(ms)},
			worker{Name: "exits", Do: func(context.Context, int) (int, error) { runtime.Goexit(); return 0, nil }},
			worker{Name: "hangs", Do: func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, errOnPurpose }},
			worker{Name: "panics", Do: func(context.Context, int) (int, error) { panic(errOnPurpose) }},
			worker{Name: "works", Wave: 1, Do: gives(1, ms)})
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, "completed | completed works:1=1 | failed errs:0 exits:0 hangs:0 panics:0", brief(r))
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
		assert.Equal(t, 1, o.Sink().Count(core.SignalPanic))
	})
}

// Just before its time is over a worker completes; just after, it is late.
func TestWorkerTimeoutToTheInstant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{WorkerTimeout: time.Second, EarlyExit: func(int) bool { return false }},
			worker{Name: "before", Do: deaf(1, time.Second-1)}, worker{Name: "after", Do: deaf(2, time.Second+1)})
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, "completed | completed before:0=1 | failed after:0", brief(r))
		assert.Equal(t, time.Second+1, r.Failed[0].Duration, "it had the grace to return")
		assert.EqualValues(t, 1, o.Stats().Late)
		assert.Zero(t, o.Stats().WorkersAbandoned)
	})
}

// Whoever returns at the very instant at which the time is over is late, and if the
// worker's time and the total end together it is nobody's fault.
func TestTheInstantItselfIsLate(t *testing.T) {
	for range 20 {
		bubble(t, func(t *testing.T) {
			o := orchestrator(t, opts{WorkerTimeout: time.Second, TotalTimeout: 2 * time.Second, WaveInterval: -1, BreakerThreshold: 1},
				worker{Name: "value", Do: deaf(1, time.Second)},
				worker{Name: "error", Do: func(context.Context, int) (int, error) { time.Sleep(time.Second); return 0, errOnPurpose }},
				worker{Name: "both", Wave: 1, Do: func(context.Context, int) (int, error) { time.Sleep(time.Second); return 0, errOnPurpose }})
			r, err := o.Execute(t.Context(), 0)
			assert.Equal(t, wave.ErrTimeout, err)
			assert.Equal(t, "timed-out | failed error:0 value:0 | cancelled both:1", brief(r))
			for _, w := range r.Failed {
				assert.ErrorIs(t, w.Err, wave.ErrWorkerTimeout)
			}
			assert.Equal(t, wave.BreakerClosed, o.Workers()[2].Breaker)
			assert.Len(t, signals(o.Sink(), "worker.timeout:*"), 2)
		})
	}
}

// The operation of an execution ends as the execution does.
func TestStatusOfExecutions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{TotalTimeout: time.Second, EarlyExit: func(v int) bool {
			if v == 2 {
				panic("on purpose")
			}
			return v == 1
		}}, worker{Name: "w", Do: func(ctx context.Context, in int) (int, error) {
			if in < 0 {
				return hangs(ctx, in)
			}
			return in, nil
		}})
		for in := -1; in <= 2; in++ {
			_, _ = o.Execute(t.Context(), in)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), ms, errOnPurpose)
		defer cancel()
		_, _ = o.Execute(ctx, -1)
		synctest.Wait()
		var executions, runs []any
		var errs []error
		for op := range o.Operations(core.OperationQuery{}) {
			if op.Key == "" {
				executions = append(executions, op.Status)
			} else {
				runs = append(runs, op.Status)
			}
			if op.Status == core.StatusCancelled {
				errs = append(errs, op.Err)
			}
		}
		assert.Equal(t, []any{core.StatusFailed, core.StatusSucceeded, core.StatusSucceeded, core.StatusFailed, core.StatusCancelled}, executions)
		assert.Equal(t, []any{core.StatusCancelled, core.StatusSucceeded, core.StatusSucceeded, core.StatusSucceeded, core.StatusCancelled}, runs)
		assert.Equal(t, []error{wave.ErrTimeout, errOnPurpose, errOnPurpose}, errs)
	})
}

func TestEarlyExitCancelsTheLosers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var cause error
		o := orchestrator(t, opts{BreakerThreshold: 1, EarlyExit: func(v int) bool { return v == 2 }},
			worker{Name: "winner", Do: gives(2, 10*ms)},
			worker{Name: "loser", Do: func(ctx context.Context, _ int) (int, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return 0, errOnPurpose
			}},
			worker{Name: "stubborn", Do: deaf(2, 20*ms)},
			worker{Name: "later", Wave: 1, Do: gives(2, 0)})
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, "early-exit by winner | completed winner:0=2 | cancelled loser:0 stubborn:0 | skipped later:1", brief(r))
		assert.Equal(t, wave.ErrEarlyExit, cause)
		assert.Equal(t, 20*ms, r.Duration, "losers are awaited, as long as Grace")
		for _, w := range append(r.Cancelled, r.Skipped...) {
			assert.Equal(t, wave.ErrEarlyExit, w.Err)
			assert.Zero(t, w.Value)
		}
		assert.EqualValues(t, 1, o.Stats().Late)
		synctest.Wait()
		for op := range o.Operations(core.OperationQuery{Key: "loser"}) {
			assert.Equal(t, core.StatusCancelled, op.Status)
		}
		for _, w := range o.Workers() {
			assert.Equal(t, wave.BreakerClosed, w.Breaker)
		}
	})
}

func TestPauseOnlyBetweenWavesThatRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{BreakerThreshold: 1, WaveInterval: time.Second},
			worker{Name: "sick", Do: fails(0)}, worker{Name: "a", Wave: 1, Do: gives(1, ms)},
			worker{Name: "ill", Wave: 2, Do: fails(0)}, worker{Name: "b", Wave: 3, Do: gives(2, ms)}, worker{Name: "bad", Wave: 4, Do: fails(0)})
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, 4*time.Second+2*ms, r.Duration)
		r, err = o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, time.Second+2*ms, r.Duration)
		assert.Equal(t, "completed | completed a:1=1 b:3=2 | skipped sick:0 ill:2 bad:4", brief(r))
		for _, w := range r.Skipped {
			assert.Equal(t, wave.ErrBreakerOpen, w.Err)
			assert.Zero(t, w.Operation)
		}
	})
}

func TestTheEndComesDuringThePause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{WaveInterval: time.Second, TotalTimeout: 500 * ms},
			worker{Name: "a", Do: gives(1, ms)}, worker{Name: "b", Wave: 1, Do: gives(2, ms)})
		r, err := o.Execute(t.Context(), 0)
		assert.Equal(t, wave.ErrTimeout, err)
		assert.Equal(t, "timed-out | completed a:0=1 | skipped b:1", brief(r))
		assert.Equal(t, 500*ms, r.Duration)
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		r, err = o.Execute(ctx, 0)
		assert.Equal(t, context.DeadlineExceeded, err)
		assert.Equal(t, 100*ms, r.Duration)
	})
}

func TestContextThatHasEndedBefore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errOnPurpose)
		o := orchestrator(t, opts{}, worker{Name: "a", Do: gives(1, ms)})
		r, err := o.Execute(ctx, 0)
		assert.Equal(t, errOnPurpose, err)
		assert.Equal(t, "cancelled | skipped a:0", brief(r))
		assert.Equal(t, errOnPurpose, r.Skipped[0].Err)
		assert.Equal(t, wave.Stats{Rejected: 1}, o.Stats())
		assert.Zero(t, o.Sink().Count("*"))
	})
}

// The breaker goes through its states; the threshold counts failures in a row.
func TestBreaker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var fail bool
		o := orchestrator(t, opts{BreakerThreshold: 2, BreakerReset: time.Minute}, worker{Name: "w", Do: func(context.Context, int) (int, error) {
			if fail {
				return 0, errOnPurpose
			}
			return 1, nil
		}})
		for _, step := range []struct {
			after time.Duration
			fail  bool
			want  string
		}{
			{0, true, "w:closed:1"},
			{0, false, "w:closed:0"},
			{0, true, "w:closed:1"},
			{0, true, "w:open:2"},
			{time.Minute - 1, false, "w:open:2"},
			{1, true, "w:open:3"},
			{time.Minute - 1, false, "w:open:3"},
			{1, false, "w:closed:0"},
			{0, true, "w:closed:1"},
			{0, true, "w:open:2"},
		} {
			time.Sleep(step.after)
			fail = step.fail
			run(t, o)
			assert.Equal(t, step.want, breakers(o))
		}
		assert.Equal(t, time.Now().Add(time.Minute), o.Workers()[0].Retry)
		assert.Equal(t, []string{"circuit.opened:w:failures=2"}, signals(o.Sink(), "circuit.opened:*"), "held")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Empty(t, signals(o.Sink(), "circuit.opened:*"))
		assert.Zero(t, o.Workers()[0].Retry)
	})
}

func TestResetAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{BreakerThreshold: 1, BreakerReset: -1}, worker{Name: "w", Do: fails(0)})
		for range 3 {
			assert.Equal(t, "completed | failed w:0", run(t, o))
			assert.Equal(t, wave.BreakerHalfOpen, o.Workers()[0].Breaker)
		}
		time.Sleep(time.Nanosecond)
	})
}

// While a breaker is open others can wait for its end.
func TestOthersWaitForABreaker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		o := orchestrator(t, opts{Sink: sink, BreakerThreshold: 1}, worker{Name: "db", Do: fails(0)})
		var at time.Time
		c, err := core.NewCoordinator(func(context.Context, int) error { at = time.Now(); return nil },
			core.Options{Sink: sink, DeferOn: "circuit.opened:db:*", MaxDefer: -1})
		require.NoError(t, err)
		run(t, o)
		opened := time.Now()
		require.NoError(t, c.Do(t.Context(), 1))
		assert.Equal(t, 30*time.Second, at.Sub(opened))
	})
}

// Runs that never return do not pile up.
func TestMaxAbandoned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{TotalTimeout: 100 * ms, MaxAbandoned: 2}, worker{Name: "deaf", Do: deaf(1, time.Hour)})
		for i := range 4 {
			r, _ := o.Execute(t.Context(), 0)
			if i < 2 {
				assert.Equal(t, "timed-out | cancelled deaf:0 | abandoned deaf:0", brief(r))
				continue
			}
			assert.Equal(t, "completed | skipped deaf:0", brief(r))
			assert.Equal(t, wave.ErrStuck, r.Skipped[0].Err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		r, _ := o.Execute(t.Context(), 0)
		assert.Len(t, r.Abandoned, 1, "they have returned")
		require.NoError(t, o.Close())
		s := o.Stats()
		assert.Equal(t, []any{uint64(3), 0, uint64(3)}, []any{s.WorkersAbandoned, s.StillAbandoned, s.Late})
	})
}

// A panic of EarlyExit ends the execution: what runs is cancelled, and nothing is lost.
func TestEarlyExitPanics(t *testing.T) {
	for name, broken := range map[string]func(){"panic": func() { panic(errOnPurpose) }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := orchestrator(t, opts{BreakerThreshold: 1, MaxPerWave: 2, EarlyExit: func(v int) bool {
					if v == 1 {
						broken()
					}
					return false
				}},
					worker{Name: "a", Do: gives(1, ms)}, worker{Name: "b", Do: hangs}, worker{Name: "c", Do: gives(3, 0)}, worker{Name: "d", Wave: 1, Do: gives(4, 0)})
				r, err := o.Execute(t.Context(), 0)
				var panicked *core.PanicError
				require.ErrorAs(t, err, &panicked)
				assert.Equal(t, "cancelled | completed a:0=1 | cancelled b:0 | skipped c:0 d:1", brief(r))
				checkBooks(t, o.Stats(), 4)
				assert.EqualValues(t, 1, o.Stats().Cancelled)
				assert.Equal(t, "a:closed:0 b:closed:0 c:closed:0 d:closed:0", breakers(o))
				require.NoError(t, o.Close())
			})
		})
	}
}

// A cause of another orchestrator, further out, is not one's own.
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
		assert.Equal(t, "completed | failed inner:0", run(t, outer), "its time was over")
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

// A worker may execute the orchestrator it is of.
func TestRecursion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var o *wave.Orchestrator[int, int]
		o = orchestrator(t, opts{}, worker{Name: "w", Do: func(ctx context.Context, in int) (int, error) {
			if in == 0 {
				return 1, nil
			}
			r, err := o.Execute(ctx, in-1)
			if err != nil {
				return 0, err
			}
			return r.Completed[0].Value + 1, nil
		}})
		r, err := o.Execute(t.Context(), 5)
		require.NoError(t, err)
		require.Equal(t, "completed | completed w:0=6", brief(r), "%+v", r)
		assert.EqualValues(t, 6, o.Stats().Executions)
	})
}

type contextKey struct{}

func TestWorkersAreOperations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		o := orchestrator(t, opts{Name: "checks", Sink: sink}, worker{Name: "w", Do: func(ctx context.Context, in int) (int, error) {
			op := core.OperationFrom(ctx)
			op.Set("in", in)
			op.Raise("looked")
			at, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, 2*time.Second, time.Until(at))
			return ctx.Value(contextKey{}).(int), nil
		}})
		assert.Same(t, sink, o.Sink())
		r, err := o.Execute(context.WithValue(t.Context(), contextKey{}, 7), 3)
		require.NoError(t, err)
		assert.Equal(t, "completed | completed w:0=7", brief(r))
		synctest.Wait()
		n := 0
		var execution core.OperationID
		for op := range o.Operations(core.OperationQuery{}) {
			n++
			assert.Equal(t, core.StatusSucceeded, op.Status)
			if op.Key == "" {
				execution = op.ID
				continue
			}
			assert.Equal(t, r.Completed[0].Operation, op.ID)
			assert.Equal(t, execution, op.Parent)
			in, _ := core.Value[int](op, "in")
			assert.Equal(t, 3, in)
			assert.True(t, op.Has("looked"))
		}
		assert.Equal(t, 2, n)
		op, ok := o.Lookup(r.Completed[0].Operation)
		assert.True(t, ok)
		assert.Equal(t, "w", op.Key)
		for s := range sink.Sense(core.Query{Pattern: "looked"}) {
			assert.Equal(t, "checks", s.Source)
			assert.Equal(t, "w", s.Key)
		}
		require.NoError(t, o.Close())

		o = orchestrator(t, opts{MaxTracked: -1}, worker{Name: "w", Do: gives(1, 0)})
		run(t, o)
		synctest.Wait()
		for range o.Operations(core.OperationQuery{}) {
			t.Error("tracked")
		}
		o = orchestrator(t, opts{MaxAge: time.Second}, worker{Name: "w", Do: gives(1, 0)})
		run(t, o)
		synctest.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		for range o.Operations(core.OperationQuery{}) {
			t.Error("shown for too long")
		}
	})
}

func TestComposesWithACoordinator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{}, worker{Name: "w", Do: gives(1, time.Second)})
		c, err := core.NewResultCoordinator(o.Execute, core.Options{MaxConcurrency: 2})
		require.NoError(t, err)
		var all sync.WaitGroup
		begun := time.Now()
		for range 6 {
			all.Go(func() {
				r, err := c.Do(t.Context(), 0)
				assert.NoError(t, err)
				assert.Equal(t, "completed | completed w:0=1", brief(r))
			})
		}
		all.Wait()
		assert.Equal(t, 3*time.Second, time.Since(begun))
		id, err := c.Enqueue(t.Context(), 0)
		require.NoError(t, err)
		synctest.Wait()
		assert.True(t, c.Cancel(id, errOnPurpose))
		_, err = c.Wait(t.Context(), id)
		assert.ErrorIs(t, err, errOnPurpose)
		assert.EqualValues(t, 1, o.Stats().Cancelled)
		require.NoError(t, c.Close())
	})
}

func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{}, worker{Name: "hangs", Do: hangs}, worker{Name: "slow", Do: deaf(1, 50*ms)}, worker{Name: "later", Wave: 1, Do: gives(2, 0)})
		results := make(chan wave.Result[int], 3)
		for range cap(results) {
			go func() {
				r, err := o.Execute(context.Background(), 0)
				assert.Equal(t, core.ErrClosed, err)
				results <- r
			}()
		}
		time.Sleep(20 * ms)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				assert.NoError(t, o.Close())
				assert.EqualValues(t, 0, o.Stats().Running)
			})
		}
		all.Wait()
		for range cap(results) {
			r := <-results
			assert.Equal(t, "cancelled | cancelled hangs:0 slow:0 | skipped later:1", brief(r))
			assert.Equal(t, 50*ms, r.Duration)
			assert.Equal(t, core.ErrClosed, r.Cancelled[0].Err)
		}
		r, err := o.Execute(t.Context(), 0)
		assert.Equal(t, core.ErrClosed, err)
		assert.Equal(t, "cancelled | skipped hangs:0 slow:0 later:1", brief(r))
		assert.EqualValues(t, 1, o.Stats().Rejected)
		checkBooks(t, o.Stats(), 3)
	})
}

// Close may be called from everything that it waits for.
func TestCloseFromInside(t *testing.T) {
	type where int
	const (
		inWorker where = iota
		inEarlyExit
		inWaveHandler
		inWorkerHandler
		inEndHandler
		everywhere
	)
	for at := inWorker; at < everywhere; at++ {
		bubble(t, func(t *testing.T) {
			var o *wave.Orchestrator[int, int]
			closes := func(w where) {
				if w == at {
					assert.NoError(t, o.Close())
				}
			}
			o = orchestrator(t, opts{EarlyExit: func(int) bool { closes(inEarlyExit); return false }},
				worker{Name: "closes", Do: func(ctx context.Context, _ int) (int, error) { closes(inWorker); return 1, nil }},
				worker{Name: "hangs", Wave: 1, Do: hangs})
			o.Sink().Subscribe("wave.started:*", func(core.Signal) { closes(inWaveHandler) })
			o.Sink().Subscribe("worker.completed:*", func(core.Signal) { closes(inWorkerHandler) })
			o.Sink().Subscribe("wave.orchestrator.completed:*", func(core.Signal) { closes(inEndHandler) })
			begun := time.Now()
			r, err := o.Execute(t.Context(), 0)
			if at == inEndHandler {
				assert.NoError(t, err)
				assert.Equal(t, wave.OutcomeCompleted, r.Outcome)
			} else {
				assert.Equal(t, core.ErrClosed, err, "%d", at)
				assert.Equal(t, wave.OutcomeCancelled, r.Outcome)
				assert.Zero(t, time.Since(begun))
			}
			require.NoError(t, o.Close())
			_, err = o.Execute(t.Context(), 0)
			assert.Equal(t, core.ErrClosed, err)
		})
	}
}

// What a worker returns while its context has not ended is its own failure, even if
// it looks like the end.
func TestErrorsThatLookLikeTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{},
			worker{Name: "a", Do: func(context.Context, int) (int, error) { return 0, context.Canceled }},
			worker{Name: "b", Do: func(context.Context, int) (int, error) { return 0, context.DeadlineExceeded }},
			worker{Name: "c", Do: func(context.Context, int) (int, error) { return 0, wave.ErrTimeout }})
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, "completed | failed a:0 b:0 c:0", brief(r))
	})
}

func TestErrorsAreTimeouts(t *testing.T) {
	for _, err := range []error{wave.ErrTimeout, wave.ErrWorkerTimeout} {
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		var timeout interface{ Timeout() bool }
		assert.True(t, errors.As(err, &timeout) && timeout.Timeout())
	}
	assert.NotErrorIs(t, wave.ErrTimeout, wave.ErrWorkerTimeout)
}
