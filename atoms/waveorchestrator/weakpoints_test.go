package waveorchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wave "github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
)

// Weak point: early exit looks at one arbitrary result; a decisive one of another
// worker of the wave is ignored.
func TestEarlyExitIsAskedAboutEveryResult(t *testing.T) {
	for decisive := 1; decisive <= 4; decisive++ {
		for _, limit := range []int{1, 2, 4, -1} {
			bubble(t, func(t *testing.T) {
				o := orchestrator(t, opts{MaxPerWave: limit, EarlyExit: func(v int) bool { return v == decisive }},
					worker{Name: "a", Do: gives(1, 40*ms)}, worker{Name: "b", Do: gives(2, 30*ms)},
					worker{Name: "c", Do: gives(3, 20*ms)}, worker{Name: "d", Do: gives(4, 10*ms)},
					worker{Name: "later", Wave: 1, Do: gives(9, 0)})
				r, err := o.Execute(t.Context(), 0)
				require.NoError(t, err)
				assert.Equal(t, wave.OutcomeEarlyExit, r.Outcome, "limit %d", limit)
				require.NotNil(t, r.Decisive)
				assert.Equal(t, decisive, r.Decisive.Value)
				assert.Contains(t, brief(r), "later:1", "later waves are skipped")
			})
		}
	}
}

// It is asked as results arrive, one at a time, until one is decisive: also about
// those of workers that returned at the same instant, but not any more after that.
func TestEarlyExitIsAskedOneAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var inside, asked atomic.Int32
		workers := make([]worker, 20)
		for i := range workers {
			workers[i] = worker{Name: fmt.Sprintf("w%02d", i), Do: gives(i, ms)}
		}
		o := orchestrator(t, opts{MaxPerWave: -1, EarlyExit: func(int) bool {
			assert.EqualValues(t, 1, inside.Add(1))
			defer inside.Add(-1)
			time.Sleep(ms)
			return asked.Add(1) == 5
		}}, workers...)
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.EqualValues(t, 5, asked.Load())
		assert.Len(t, r.Completed, 20, "what was there in time is part of the result")
		assert.Equal(t, 6*ms, r.Duration)
	})
}

// Weak point: a failed worker's zero value is a result, and with no results at all
// the condition is tried on a zero value.
func TestEarlyExitIsNotAskedAboutZeroValuesOfFailedWorkers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{WorkerTimeout: time.Second, EarlyExit: func(v int) bool { t.Error("asked about", v); return true }},
			worker{Name: "fails", Do: fails(ms)},
			worker{Name: "panics", Do: func(context.Context, int) (int, error) { panic("on purpose") }},
			worker{Name: "hangs", Do: hangs},
			worker{Name: "is late", Do: deaf(0, time.Second+ms)},
			worker{Name: "fails in a wave of its own", Wave: 1, Do: fails(ms)})
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, wave.OutcomeCompleted, r.Outcome)
		assert.Empty(t, r.Completed)
		assert.Len(t, r.Failed, 5)
	})
}

// Weak point: the completed and failed names are plain sets written by parallel
// workers. (The race detector looks on.)
func TestWorkersOfAWaveEndAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var workers []worker
		for i := range 50 {
			workers = append(workers, worker{Name: fmt.Sprintf("good-%02d", i), Do: gives(i, 0)}, worker{Name: fmt.Sprintf("bad-%02d", i), Do: fails(0)})
		}
		o := orchestrator(t, opts{MaxPerWave: -1, BreakerThreshold: -1}, workers...)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				r, err := o.Execute(t.Context(), 0)
				assert.NoError(t, err)
				assert.Len(t, r.Completed, 50)
				assert.Len(t, r.Failed, 50)
			})
		}
		all.Wait()
		checkBooks(t, o.Stats(), 100)
	})
}

// Weak point: the half-open state admits every concurrent execution.
func TestHalfOpenBreakerAdmitsOneProbeOfAllExecutions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sick, runs := true, 0
		var mu sync.Mutex
		o := orchestrator(t, opts{}, worker{Name: "w", Do: func(ctx context.Context, _ int) (int, error) {
			mu.Lock()
			runs++
			failing := sick
			mu.Unlock()
			if failing {
				return 0, errOnPurpose
			}
			return 1, wait(ctx, 10*ms)
		}})
		for range 5 {
			_, err := o.Execute(t.Context(), 0)
			require.NoError(t, err)
		}
		require.Equal(t, 3, runs, "the threshold")
		assert.Equal(t, "w:open:3", breakers(o))

		time.Sleep(30*time.Second - 1)
		assert.Equal(t, "completed | skipped w:0", run(t, o), "just before")
		time.Sleep(time.Nanosecond)
		assert.Equal(t, "w:half-open:3", breakers(o))
		mu.Lock()
		sick = false
		mu.Unlock()
		results := make(chan string, 20)
		for range cap(results) {
			go func() { results <- run(t, o) }()
		}
		synctest.Wait()
		assert.Equal(t, 4, runs, "one probe")
		assert.Len(t, results, 19, "the others do not wait for it")
		time.Sleep(10 * ms)
		synctest.Wait()
		close(results)
		n := map[string]int{}
		for r := range results {
			n[r]++
		}
		assert.Equal(t, map[string]int{"completed | completed w:0=1": 1, "completed | skipped w:0": 19}, n)
		assert.Equal(t, "w:closed:0", breakers(o))
	})
}

// Weak point: caller cancellation and the total timeout are booked as failures and
// open healthy breakers. Nor do the early exit and Close.
func TestCancellationIsNeutralForBreakers(t *testing.T) {
	ends := map[string]func(t *testing.T, o *wave.Orchestrator[int, int]) error{
		"caller": func(t *testing.T, o *wave.Orchestrator[int, int]) error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
			defer cancel()
			_, err := o.Execute(ctx, 0)
			return err
		},
		"total timeout": func(t *testing.T, o *wave.Orchestrator[int, int]) error {
			_, err := o.Execute(t.Context(), 0)
			return err
		},
		"early exit": func(t *testing.T, o *wave.Orchestrator[int, int]) error {
			_, err := o.Execute(t.Context(), 1)
			return err
		},
		"close": func(t *testing.T, o *wave.Orchestrator[int, int]) error {
			time.AfterFunc(10*ms, func() { _ = o.Close() })
			_, err := o.Execute(t.Context(), 0)
			return err
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := orchestrator(t, opts{BreakerThreshold: 1, TotalTimeout: time.Second, EarlyExit: func(v int) bool { return v == 1 }},
					worker{Name: "hangs", Do: hangs},
					worker{Name: "is deaf", Do: deaf(0, 1500*ms)},
					worker{Name: "quick", Do: func(_ context.Context, in int) (int, error) { time.Sleep(ms); return in, nil }})
				_ = end(t, o)
				assert.Equal(t, "hangs:closed:0 is deaf:closed:0 quick:closed:0", breakers(o))
				s := o.Stats()
				assert.Zero(t, s.WorkersFailed)
				assert.EqualValues(t, 2, s.WorkersCancelled)
				assert.EqualValues(t, 1, s.WorkersAbandoned)
				time.Sleep(2 * time.Second)
			})
		})
	}
}

// A probe that was cancelled has shown nothing: the next execution may probe.
func TestCancelledProbeGivesTheProbeBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sick := true
		o := orchestrator(t, opts{BreakerThreshold: 1, MaxPerWave: 1},
			worker{Name: "first", Do: gives(0, 10*ms)},
			worker{Name: "second", Priority: 1, Do: func(ctx context.Context, _ int) (int, error) {
				if sick {
					return 0, errOnPurpose
				}
				return 1, wait(ctx, 10*ms)
			}})
		run(t, o)
		sick = false
		time.Sleep(30 * time.Second)
		for _, d := range []time.Duration{5 * ms, 15 * ms} { // before it has started, and while it runs
			ctx, cancel := context.WithTimeout(t.Context(), d)
			_, err := o.Execute(ctx, 0)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, "first:closed:0 second:half-open:1", breakers(o))
		}
		assert.Equal(t, "completed | completed first:0=0 second:0=1", run(t, o))
		assert.Equal(t, "first:closed:0 second:closed:0", breakers(o))
	})
}

// Weak point: in sequential mode workers are still started, with a dead context,
// after the cancellation, and all booked as failed.
func TestNothingStartsAfterTheEnd(t *testing.T) {
	for _, limit := range []int{1, 2} {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			first := func(context.Context, int) (int, error) { cancel(errOnPurpose); return 1, nil }
			never := func(context.Context, int) (int, error) { t.Error("started"); return 0, nil }
			o := orchestrator(t, opts{MaxPerWave: limit},
				worker{Name: "a", Do: first}, worker{Name: "b", Priority: 1, Do: hangs},
				worker{Name: "c", Priority: 2, Do: never}, worker{Name: "d", Wave: 1, Do: never})
			r, err := o.Execute(ctx, 0)
			assert.Equal(t, errOnPurpose, err)
			assert.Equal(t, wave.OutcomeCancelled, r.Outcome)
			assert.Empty(t, r.Failed)
			assert.Contains(t, brief(r), "c:0 d:1")
			for _, w := range r.Skipped {
				assert.Equal(t, errOnPurpose, w.Err)
			}
		})
	}
}

// Weak point: when the total timeout strikes a parallel wave while workers wait for a
// slot, what was produced in that wave is lost.
func TestResultsSurviveTheTotalTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{MaxPerWave: 2, TotalTimeout: 100 * ms},
			worker{Name: "a", Do: gives(1, 10*ms)}, worker{Name: "b", Do: gives(2, 20*ms)},
			worker{Name: "c", Do: hangs}, worker{Name: "d", Do: hangs}, worker{Name: "e", Do: gives(5, 0)})
		r, err := o.Execute(t.Context(), 0)
		assert.ErrorIs(t, err, wave.ErrTimeout)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, "timed-out | completed a:0=1 b:0=2 | cancelled c:0 d:0 | skipped e:0", brief(r))
		assert.Equal(t, 100*ms, r.Duration)
		for _, w := range append(r.Cancelled, r.Skipped...) {
			assert.Equal(t, wave.ErrTimeout, w.Err)
		}
	})
}

// Weak point: cancellation sometimes throws and sometimes looks normal; the total
// timeout shows only in a signal, and not even there in a sequential or in the last
// wave.
func TestTheEndIsToldInOneWay(t *testing.T) {
	for _, limit := range []int{1, 4} {
		for last := range 2 {
			bubble(t, func(t *testing.T) {
				o := orchestrator(t, opts{MaxPerWave: limit, TotalTimeout: time.Second},
					worker{Name: "a", Wave: 1 - last, Do: gives(1, ms)}, worker{Name: "b", Wave: 1, Do: hangs}, worker{Name: "c", Wave: 1 + last, Do: gives(1, ms)})
				r, err := o.Execute(t.Context(), 0)
				assert.Equal(t, wave.ErrTimeout, err)
				assert.Equal(t, wave.OutcomeTimedOut, r.Outcome)
				assert.Equal(t, []string{"wave.timeout:elapsed=1000"}, signals(o.Sink(), "wave.timeout:*"))

				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second-1, errOnPurpose)
				defer cancel()
				r, err = o.Execute(ctx, 0)
				assert.Equal(t, errOnPurpose, err)
				assert.Equal(t, wave.OutcomeCancelled, r.Outcome)
				assert.NotEmpty(t, r.Completed, "with what there was")
			})
		}
	}
}

// Weak point: no workers are an error only after the first signal; negative waves
// never run; a gap is walked wave by wave; workers of one name share a breaker.
func TestWorkersAreCheckedAndWavesAreThoseThereAre(t *testing.T) {
	do := gives(1, 0)
	sink := core.NewSink(core.SinkOptions{})
	for want, list := range map[string][]worker{
		"at least one worker":        {},
		"worker 1 needs a name":      {{Name: "a", Do: do}, {Do: do}},
		`two workers "a"`:            {{Name: "a", Do: do}, {Name: "a", Wave: 1, Do: do}},
		`"a" needs a function Do`:    {{Name: "a"}},
		`the name "a*" of worker 0`:  {{Name: "a*", Do: do}},
		`the name "a:b" of worker 0`: {{Name: "a:b", Do: do}},
		`the name " a" of worker 0`:  {{Name: " a", Do: do}},
		"has 129 bytes":              {{Name: strings.Repeat("x", 129), Do: do}},
	} {
		_, err := wave.New(list, opts{Sink: sink})
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "waveorchestrator: ")
	}
	assert.Zero(t, sink.Count("*"))

	bubble(t, func(t *testing.T) {
		var order []string
		note := func(name string) work {
			return func(context.Context, int) (int, error) { order = append(order, name); return 0, nil }
		}
		o := orchestrator(t, opts{},
			worker{Name: "last", Wave: math.MaxInt, Do: note("last")}, worker{Name: "zero", Do: note("zero")},
			worker{Name: "negative", Wave: -7, Do: note("negative")}, worker{Name: "first", Wave: math.MinInt, Do: note("first")})
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, []string{"first", "negative", "zero", "last"}, order)
		assert.Equal(t, 150*ms, r.Duration, "three pauses, between waves only")
	})
}

// Weak point: a worker that ignores its context blocks the execution beyond every
// timeout.
func TestWorkerThatIgnoresItsContextIsAbandoned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{MaxPerWave: 1},
			worker{Name: "deaf", Do: deaf(1, time.Hour)}, worker{Name: "next", Priority: 1, Do: gives(2, 0)}, worker{Name: "later", Wave: 1, Do: gives(3, 0)})
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, "completed | completed next:0=2 later:1=3 | failed deaf:0 | abandoned deaf:0", brief(r))
		assert.Equal(t, 2*time.Second+100*ms+50*ms, r.Duration)
		assert.Equal(t, 2*time.Second+100*ms, r.Abandoned[0].Duration)
		assert.Equal(t, wave.ErrWorkerTimeout, r.Failed[0].Err)
		assert.Equal(t, "deaf:closed:1 next:closed:0 later:closed:0", breakers(o))
		assert.Equal(t, []string{"worker.abandoned:deaf"}, signals(o.Sink(), "worker.abandoned:*"))
		s := o.Stats()
		assert.Equal(t, []any{uint64(1), 1, uint64(0)}, []any{s.WorkersAbandoned, s.StillAbandoned, s.Late})
		assert.Equal(t, 1, o.Workers()[0].Abandoned)

		begun := time.Now()
		require.NoError(t, o.Close())
		assert.Equal(t, time.Hour-r.Duration, time.Since(begun), "Close waits for it")
		s = o.Stats()
		assert.Equal(t, []any{uint64(1), 0, uint64(1)}, []any{s.WorkersAbandoned, s.StillAbandoned, s.Late})
		assert.Zero(t, o.Workers()[0].Abandoned)
	})
}

// The same within every other end.
func TestDeafWorkerDoesNotHoldUpTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{TotalTimeout: time.Second, Grace: 30 * ms, EarlyExit: func(v int) bool { return v == 1 }},
			worker{Name: "deaf", Do: deaf(5, time.Hour)},
			worker{Name: "quick", Do: func(_ context.Context, in int) (int, error) { time.Sleep(ms); return in, nil }})
		r, err := o.Execute(t.Context(), 1)
		require.NoError(t, err)
		assert.Equal(t, "early-exit by quick | completed quick:0=1 | cancelled deaf:0 | abandoned deaf:0", brief(r))
		assert.Equal(t, 31*ms, r.Duration)
		assert.Equal(t, wave.ErrEarlyExit, r.Abandoned[0].Err)

		r, err = o.Execute(t.Context(), 0)
		assert.Equal(t, wave.ErrTimeout, err)
		assert.Equal(t, "timed-out | completed quick:0=0 | cancelled deaf:0 | abandoned deaf:0", brief(r))
		assert.Equal(t, time.Second+30*ms, r.Duration)

		ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
		defer cancel()
		r, err = o.Execute(ctx, 0)
		assert.Equal(t, context.DeadlineExceeded, err)
		assert.Equal(t, "cancelled | completed quick:0=0 | cancelled deaf:0 | abandoned deaf:0", brief(r))
		assert.Equal(t, 40*ms, r.Duration)
		require.NoError(t, o.Close())
		assert.EqualValues(t, 3, o.Stats().Late)
		checkBooks(t, o.Stats(), 2)
	})
}

// Weak point: the order of results is random, and they do not say whose they are.
func TestResultsAreInOrderAndBearNames(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{MaxPerWave: -1, WaveInterval: -1},
			worker{Name: "z", Wave: 2, Priority: -1, Do: gives(1, 2*ms)},
			worker{Name: "y", Wave: 2, Do: gives(2, 3*ms)},
			worker{Name: "x", Wave: 2, Do: gives(3, 5*ms)},
			worker{Name: "b", Wave: 1, Priority: 7, Do: gives(4, ms)},
			worker{Name: "a", Wave: 1, Priority: 9, Do: gives(5, 0)})
		r, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, "completed | completed b:1=4 a:1=5 z:2=1 x:2=3 y:2=2", brief(r))
		var took []time.Duration
		for _, w := range r.Completed {
			took = append(took, w.Duration)
		}
		assert.Equal(t, []time.Duration{ms, 0, 2 * ms, 5 * ms, 3 * ms}, took)
	})
}

type broken struct{}

func (broken) Error() string { panic("no text") }

// Weak point: the text of an error goes unbounded into the name, colons and all.
func TestErrorTextInNamesIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		errs := map[string]error{
			"long":    errors.New("a, b? *: " + strings.Repeat("é", 4000) + "\n"),
			"multi":   errors.New("one\ntwo \n"),
			"plain":   errors.New("dial tcp: refused"),
			"broken":  broken{},
			"invalid": errors.New("\xff\xfe"),
		}
		for name, err := range errs {
			o := orchestrator(t, opts{}, worker{Name: name, Do: func(context.Context, int) (int, error) { return 0, err }})
			_, _ = o.Execute(t.Context(), 0)
			n := 0
			for s := range o.Sink().Sense(core.Query{Pattern: "worker.failed:" + name + ":error=*"}) {
				n++
				assert.LessOrEqual(t, len(s.Name), len("worker.failed::error=")+len(name)+128)
				assert.Equal(t, name, s.Key)
				assert.Equal(t, err, s.Payload().(wave.Event).Err, "all of it")
				assert.NotContains(t, s.Name, "\n")
				switch name {
				case "plain":
					assert.Equal(t, "worker.failed:plain:error=dial tcp: refused", s.Name)
				case "multi":
					assert.Equal(t, "worker.failed:multi:error=one_two _", s.Name)
				}
			}
			assert.Equal(t, 1, n, name)
		}
	})
}
