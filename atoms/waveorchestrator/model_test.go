package waveorchestrator_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
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

// behaviour describes a worker in one execution.
type behaviour struct {
	takes    time.Duration
	fails    bool
	ignores  bool // its context
	decisive bool
}

// modelWorker is a worker, and its breaker, in the simplest form.
type modelWorker struct {
	name           string
	wave, priority int
	failures       int
	openUntil      time.Duration // while failures have opened it
	open           bool

	// In the present execution.
	status string
	err    error
	took   time.Duration
	left   bool
}

// model is an orchestrator that is computed instead of run. No two things happen at the same
// instant.
type model struct {
	workers []*modelWorker // in order
	o       opts           // all set
}

type modelRun struct {
	w     *modelWorker
	b     behaviour
	began time.Duration
}

// ends returns when a run ends if the execution goes on, and whether the run is abandoned
// then.
func (m *model) ends(r modelRun) (at time.Duration, abandoned bool) {
	late := r.began + m.o.WorkerTimeout
	switch at = r.began + r.b.takes; {
	case at <= late:
		return at, false
	case !r.b.ignores:
		return late, false
	}
	return min(at, late+m.o.Grace), at > late+m.o.Grace
}

// settle records that a run ends.
func (m *model) settle(r modelRun, status string, err error, at time.Duration, abandoned bool) {
	w := r.w
	if err == wave.ErrWorkerTimeout && r.b.ignores && r.b.fails && !abandoned { // the worker has returned an error, but too late
		err = fmt.Errorf("%w: %w", err, errOnPurpose)
	}
	w.status, w.err, w.took, w.left = status, err, at-r.began, abandoned
	switch status {
	case "completed":
		w.failures, w.open = 0, false
	case "failed":
		if w.failures++; w.open || w.failures >= m.o.BreakerThreshold {
			w.open, w.openUntil = true, at+m.o.BreakerReset
		}
	}
}

// admit returns the workers of a wave that may run.
func (m *model) admit(number int, now time.Duration) (queue []*modelWorker) {
	for _, w := range m.workers {
		switch {
		case w.wave != number:
		case w.open && now < w.openUntil:
			w.err = wave.ErrBreakerOpen
		default:
			queue = append(queue, w)
		}
	}
	return queue
}

// execute returns the result as text, the error, and the time of the end. The execution is
// cancelled at stop.
func (m *model) execute(now, stop time.Duration, does map[string]behaviour) (text string, at time.Duration, cause error) {
	begun, deadline := now, now+m.o.TotalTimeout
	end, outcome, cause := deadline, "timed-out", wave.ErrTimeout
	if stop < deadline {
		end, outcome, cause = stop, "cancelled", errOnPurpose
	}
	for _, w := range m.workers {
		w.status, w.err, w.took, w.left = "skipped", nil, 0, false
	}
	over, ran, decisive := false, false, ""
	for number := -1; number <= 2 && !over; number++ {
		queue := m.admit(number, now)
		if len(queue) == 0 {
			continue
		}
		if ran {
			if now += m.o.WaveInterval; now >= end {
				now, over = end, true
				break
			}
		}
		ran = true
		limit := cmp.Or(m.o.PerWave[number], m.o.MaxPerWave)
		if limit < 0 {
			limit = len(queue)
		}
		var running []modelRun
		for len(queue)+len(running) > 0 && !over {
			for len(queue) > 0 && len(running) < limit {
				running = append(running, modelRun{queue[0], does[queue[0].name], now})
				queue = queue[1:]
			}
			next := slices.MinFunc(running, func(a, b modelRun) int {
				x, _ := m.ends(a)
				y, _ := m.ends(b)
				return cmp.Compare(x, y)
			})
			at, abandoned := m.ends(next)
			if at >= end {
				now, over = end, true
				break
			}
			now = at
			running = slices.DeleteFunc(running, func(r modelRun) bool { return r == next })
			switch {
			case next.b.takes > m.o.WorkerTimeout:
				m.settle(next, "failed", wave.ErrWorkerTimeout, now, abandoned)
			case next.b.fails:
				m.settle(next, "failed", errOnPurpose, now, false)
			default:
				m.settle(next, "completed", nil, now, false)
				if next.b.decisive {
					outcome, cause, decisive, over = "early-exit", wave.ErrEarlyExit, " by "+next.w.name, true
				}
			}
		}
		last := now
		for _, r := range running { // runs at the end are cancelled, unless their time was over before
			status, err, until := "cancelled", cause, now+m.o.Grace
			if late := r.began + m.o.WorkerTimeout; now >= late {
				status, err, until = "failed", wave.ErrWorkerTimeout, late+m.o.Grace
			}
			at := now
			if r.b.ignores {
				at = min(r.began+r.b.takes, until)
			}
			m.settle(r, status, err, at, r.b.ignores && r.began+r.b.takes > until)
			last = max(last, at)
		}
		now = last
	}
	if !over {
		outcome, cause = "failed", wave.ErrFailed
		if slices.ContainsFunc(m.workers, func(w *modelWorker) bool { return w.status == "completed" }) {
			outcome = "completed"
		}
	}
	text = outcome + decisive
	list := func(name string, of func(*modelWorker) bool) {
		before := "\n " + name
		for _, w := range m.workers {
			if of(w) {
				text += fmt.Sprintf("%s %s (%v, %v)", before, w.name, w.took, w.err)
				before = ""
			}
		}
	}
	for _, w := range m.workers {
		if w.status != "completed" {
			w.err = cmp.Or(w.err, cause)
		}
	}
	for _, status := range []string{"completed", "failed", "cancelled", "skipped"} {
		list(status, func(w *modelWorker) bool { return w.status == status })
	}
	list("abandoned", func(w *modelWorker) bool { return w.left })
	if outcome == "completed" || outcome == "early-exit" {
		cause = nil
	}
	return text + fmt.Sprintf("\nin %v", now-begun), now, cause
}

// modelText is a result as the model writes it.
func modelText(r wave.Result[int]) string {
	return text(r, "\n", func(w wave.WorkerResult[int]) string {
		return fmt.Sprintf("%s (%v, %v)", w.Worker, w.Duration, w.Err)
	}) + fmt.Sprintf("\nin %v", r.Duration)
}

// Random orchestrators, executed again and again, do exactly what the model says, to the
// nanosecond. This includes several faults of the original: a decisive result of another
// worker is ignored; results are lost at the timeout; cancellation opens breakers; a worker
// that ignores its context blocks everything; results are in random order.
func TestModel(t *testing.T) {
	rounds := 40
	if os.Getenv("EPHEMERAL_LONG") != "" {
		rounds = 400
	}
	outcomes := map[wave.Outcome]int{}
	abandoned, opened := 0, 0
	for seed := range rounds {
		bubble(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 14))
			random := func(least, most time.Duration) time.Duration {
				return least + time.Duration(rng.Int64N(int64(most-least)))
			}
			m := &model{o: opts{
				TotalTimeout:     random(100*ms, time.Second),
				WorkerTimeout:    random(50*ms, 400*ms),
				WaveInterval:     random(1, 50*ms),
				Grace:            random(1, 50*ms),
				MaxPerWave:       1 + rng.IntN(4),
				PerWave:          map[int]int{},
				BreakerThreshold: 1 + rng.IntN(3),
				BreakerReset:     random(1, 3*time.Second),
			}}
			var does atomic.Pointer[map[string]behaviour]
			var workers []worker
			for i := range 1 + rng.IntN(9) {
				w := &modelWorker{name: fmt.Sprintf("w%d", i), wave: rng.IntN(4) - 1, priority: rng.IntN(3)}
				m.workers = append(m.workers, w)
				if rng.IntN(3) == 0 {
					m.o.PerWave[w.wave] = rng.IntN(5) - 1
				}
				workers = append(workers, worker{Name: w.name, Wave: w.wave, Priority: w.priority, Do: func(ctx context.Context, in int) (int, error) {
					return (*does.Load())[w.name].do(ctx)
				}})
			}
			slices.SortFunc(m.workers, func(a, b *modelWorker) int {
				return cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.priority, b.priority), strings.Compare(a.name, b.name))
			})
			options := m.o
			options.PerWave = maps.Clone(m.o.PerWave)
			if rng.IntN(6) == 0 {
				m.o.BreakerReset, options.BreakerReset = 0, -1
			}
			options.EarlyExit = func(v int) bool { return v == 1 }
			o := orchestrator(t, options, workers...)
			clear(options.PerWave) // it is copied
			var execution atomic.Uint64
			wave.Events.Named(wave.SignalStarted).Subscribe(o.Sink(), func(_ signals.Signal, e wave.Event) { execution.Store(uint64(e.Execution)) })
			base := time.Now()
			for step := range 12 {
				plan := map[string]behaviour{}
				for _, w := range m.workers {
					b := behaviour{takes: random(1, 100*ms), fails: rng.IntN(3) == 0, decisive: rng.IntN(8) == 0}
					switch rng.IntN(8) {
					case 0:
						b.takes = random(1, 600*ms)
					case 1:
						b.takes, b.ignores = random(1, 2*time.Second), true
					}
					plan[w.name] = b
				}
				does.Store(&plan)
				now := time.Since(base)
				patience := time.Hour
				if rng.IntN(4) == 0 {
					patience = random(1, 500*ms)
				}
				want, end, wantErr := m.execute(now, now+patience, plan)
				ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errOnPurpose)
				timer := time.AfterFunc(patience, func() { o.Cancel(core.OperationID(execution.Load()), errOnPurpose) })
				if rng.IntN(2) == 0 {
					timer.Stop()
				} else {
					ctx = t.Context()
				}
				r, err := o.Execute(ctx, 0)
				timer.Stop()
				cancel()
				synctest.Wait()
				require.Equal(t, want, modelText(r), "seed %d, step %d, %+v", seed, step, m.o)
				require.Equal(t, []any{wantErr, end}, []any{err, time.Since(base)})
				checkOperations(t, o, core.OperationID(execution.Load()), r, err)
				require.NoError(t, coretest.CheckBooks(o.Stats()))
				outcomes[r.Outcome]++
				abandoned += len(r.Abandoned)
				for i, w := range o.Workers() {
					mw := m.workers[i]
					status := breaker.Closed
					switch {
					case mw.open && end < mw.openUntil:
						status = breaker.Open
						opened++
					case mw.open:
						status = breaker.HalfOpen
					}
					require.Equal(t, []any{mw.name, status, mw.failures},
						[]any{w.Name, w.Breaker, w.Failures}, "seed %d, step %d", seed, step)
				}
				time.Sleep(random(1, time.Second))
				synctest.Wait()
			}
			require.NoError(t, o.Close())
			require.Zero(t, o.Runs().Stats().Running)
		})
		if t.Failed() {
			return
		}
	}
	assert.Len(t, outcomes, 5, "all outcomes")
	assert.NotZero(t, abandoned)
	assert.NotZero(t, opened)
}

func (b behaviour) do(ctx context.Context) (int, error) {
	switch {
	case b.ignores:
		time.Sleep(b.takes)
	case wait(ctx, b.takes) != nil:
		return 0, ctx.Err()
	}
	switch {
	case b.fails:
		return 0, errOnPurpose
	case b.decisive:
		return 1, nil
	}
	return 0, nil
}

// checkOperations checks that the operations have ended as the execution and the workers did.
func checkOperations(t *testing.T, o *wave.Orchestrator[int, int], execution core.OperationID, r wave.Result[int], err error) {
	t.Helper()
	check := func(in core.Inspector, id core.OperationID, status core.Status, err error) {
		op, ok := in.Lookup(id)
		require.Equal(t, []any{true, status, err}, []any{ok, op.Status, op.Err})
	}
	check(o, execution, map[wave.Outcome]core.Status{
		wave.OutcomeCompleted: core.StatusSucceeded, wave.OutcomeEarlyExit: core.StatusSucceeded,
		wave.OutcomeTimedOut: core.StatusFailed, wave.OutcomeFailed: core.StatusFailed, wave.OutcomeCancelled: core.StatusCancelled,
	}[r.Outcome], err)
	for status, list := range map[core.Status][]wave.WorkerResult[int]{
		core.StatusSucceeded: r.Completed, core.StatusFailed: r.Failed, core.StatusCancelled: r.Cancelled,
	} {
		for _, w := range list {
			if !slices.Contains(r.Abandoned, w) {
				check(o.Runs(), w.Operation, status, w.Err)
			}
		}
	}
}

// Many executions at once, ended in all ways: nothing is lost, and the counters balance.
func TestManyExecutionsAtOnce(t *testing.T) {
	rounds := 4
	if os.Getenv("EPHEMERAL_LONG") != "" {
		rounds = 20
	}
	for seed := range rounds {
		bubble(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 41))
			var workers []worker
			for i := range 6 {
				workers = append(workers, worker{Name: fmt.Sprint(i), Wave: i / 3, Do: arbitrary})
			}
			o := orchestrator(t, opts{TotalTimeout: 300 * ms, WorkerTimeout: 50 * ms, Grace: 5 * ms, MaxPerWave: 2, BreakerThreshold: 2,
				BreakerReset: 100 * ms, EarlyExit: func(v int) bool { return v%17 == 1 }}, workers...)
			done := make(chan struct{})
			const executions = 200
			for i := range executions {
				at, patience := time.Duration(rng.Int64N(int64(time.Second))), time.Duration(rng.Int64N(int64(time.Second)))
				go func() {
					defer func() { done <- struct{}{} }()
					time.Sleep(at)
					ctx, cancel := context.WithTimeout(context.Background(), patience)
					defer cancel()
					r, err := o.Execute(ctx, i)
					assert.Equal(t, 6, len(r.Completed)+len(r.Failed)+len(r.Cancelled)+len(r.Skipped))
					assert.Equal(t, err == nil, r.Outcome == wave.OutcomeCompleted || r.Outcome == wave.OutcomeEarlyExit)
				}()
			}
			if seed%2 == 1 {
				time.Sleep(500 * ms)
				assert.NoError(t, o.Close())
				assert.Zero(t, o.Stats().Running)
			}
			for range executions {
				<-done
			}
			require.NoError(t, o.Close())
			all := o.Stats()
			require.NoError(t, coretest.CheckBooks(all))
			assert.EqualValues(t, executions, all.Enqueued+all.Rejected)
			assert.Zero(t, o.Runs().Stats().Running)
		})
	}
}

// arbitrary is the function of a worker. Its behaviour depends on the input.
func arbitrary(ctx context.Context, in int) (int, error) {
	b := behaviour{takes: time.Duration(in%60) * ms, fails: in%7 == 0, ignores: in%7 == 1}
	if in%7 == 2 {
		panic(", on purpose")
	}
	_, err := b.do(ctx)
	core.OperationFrom(ctx).Raise("done")
	return in, err
}
