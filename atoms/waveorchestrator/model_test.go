package waveorchestrator_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
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
)

// behaviour is what a worker does in one execution.
type behaviour struct {
	takes    time.Duration
	fails    bool
	deaf     bool
	decisive bool
}

// modelWorker is a worker, and its breaker, in the dullest form.
type modelWorker struct {
	name           string
	wave, priority int
	failures       int
	openUntil      time.Duration // while failures have opened it
	open           bool
	abandoned      []time.Duration // when runs that were abandoned return
}

// model is an orchestrator that is computed instead of run: events one after the
// other, at most one at a time.
type model struct {
	workers []*modelWorker // in order
	o       opts           // all set
}

type modelRun struct {
	w     *modelWorker
	b     behaviour
	began time.Duration
}

// execute returns the result in brief, with durations, and when it is there. The
// caller gives up at stop.
func (m *model) execute(now, stop time.Duration, does map[string]behaviour) (string, time.Duration) {
	var (
		begun     = now
		deadline  = now + m.o.TotalTimeout
		end       = min(deadline, stop)
		outcome   = "completed"
		decisive  = ""
		verdicts  = map[string]string{}
		took      = map[string]time.Duration{}
		abandoned = map[string]bool{}
		ran       bool
	)
	if stop < deadline {
		outcome = "cancelled"
	} else {
		outcome = "timed-out"
	}
	over := false
	settle := func(w *modelWorker, verdict string, d time.Duration, at time.Duration) {
		verdicts[w.name], took[w.name] = verdict, d
		switch verdict {
		case "completed":
			w.failures, w.open = 0, false
		case "failed":
			if w.failures++; w.open || w.failures >= m.o.BreakerThreshold {
				w.open, w.openUntil = true, at+m.o.BreakerReset
			}
		}
	}
	abandon := func(r modelRun, verdict string, at time.Duration) {
		settle(r.w, verdict, at-r.began, at)
		abandoned[r.w.name] = true
		r.w.abandoned = append(r.w.abandoned, r.began+r.b.takes)
	}
	numbers := map[int]bool{}
	for _, w := range m.workers {
		numbers[w.wave] = true
	}
	var waves []int
	for n := range numbers {
		waves = append(waves, n)
	}
	slices.Sort(waves)
	for _, number := range waves {
		if over {
			break
		}
		var queue []*modelWorker
		for _, w := range m.workers {
			if w.wave != number {
				continue
			}
			w.abandoned = slices.DeleteFunc(w.abandoned, func(at time.Duration) bool { return at <= now })
			if len(w.abandoned) < m.o.MaxAbandoned && (!w.open || now >= w.openUntil) {
				queue = append(queue, w)
			}
		}
		if len(queue) == 0 {
			continue
		}
		if ran {
			if now+m.o.WaveInterval >= end {
				now, over = end, true
				break
			}
			now += m.o.WaveInterval
		}
		ran = true
		limit := m.o.MaxPerWave
		if n, ok := m.o.PerWave[number]; ok {
			limit = n
		}
		var running []modelRun
		// leaves is when a run is out of the way if the execution goes on.
		leaves := func(r modelRun) time.Duration {
			switch {
			case r.b.takes <= m.o.WorkerTimeout:
				return r.began + r.b.takes
			case r.b.deaf:
				return r.began + min(r.b.takes, m.o.WorkerTimeout+m.o.Grace)
			}
			return r.began + m.o.WorkerTimeout
		}
		for len(queue)+len(running) > 0 && !over {
			for len(queue) > 0 && len(running) < limit {
				running = append(running, modelRun{queue[0], does[queue[0].name], now})
				queue = queue[1:]
			}
			next := slices.MinFunc(running, func(a, b modelRun) int { return cmp.Compare(leaves(a), leaves(b)) })
			if leaves(next) >= end {
				now, over = end, true
				break
			}
			now = leaves(next)
			running = slices.DeleteFunc(running, func(r modelRun) bool { return r == next })
			switch d := now - next.began; {
			case next.b.takes > m.o.WorkerTimeout && now < next.began+next.b.takes && next.b.deaf:
				abandon(next, "failed", now)
			case next.b.takes > m.o.WorkerTimeout || next.b.fails:
				settle(next.w, "failed", d, now)
			default:
				settle(next.w, "completed", d, now)
				if next.b.decisive {
					outcome, decisive, over = "early-exit", next.w.name, true
				}
			}
		}
		// What runs at the end is cancelled, or failed already.
		last := now
		for _, r := range running {
			late := now >= r.began+m.o.WorkerTimeout // then it is deaf, and within its grace
			verdict, until := "cancelled", now+m.o.Grace
			if late {
				verdict, until = "failed", r.began+m.o.WorkerTimeout+m.o.Grace
			}
			at := now
			switch {
			case r.b.deaf && r.began+r.b.takes <= until:
				at = r.began + r.b.takes
				settle(r.w, verdict, at-r.began, at)
			case r.b.deaf:
				at = until
				abandon(r, verdict, at)
			default:
				settle(r.w, verdict, at-r.began, at)
			}
			last = max(last, at)
		}
		now = last
	}
	if !over {
		outcome = "completed"
	}
	text := outcome
	if decisive != "" {
		text += " by " + decisive
	}
	for _, w := range m.workers {
		v := verdicts[w.name]
		if v == "" {
			v = "skipped"
		}
		text += fmt.Sprintf("\n%s: %s %v %v", w.name, v, took[w.name], abandoned[w.name])
	}
	return text + fmt.Sprintf("\nin %v", now-begun), now
}

func modelText(r wave.Result[int], workers []*modelWorker) string {
	text := string(r.Outcome)
	if r.Decisive != nil {
		text += " by " + r.Decisive.Worker
	}
	lines := map[string]string{}
	left := map[string]bool{}
	for _, w := range r.Abandoned {
		left[w.Worker] = true
	}
	for verdict, list := range map[string][]wave.WorkerResult[int]{"completed": r.Completed, "failed": r.Failed, "cancelled": r.Cancelled, "skipped": r.Skipped} {
		for _, w := range list {
			lines[w.Worker] += fmt.Sprintf("%s %v %v", verdict, w.Duration, left[w.Worker])
		}
	}
	for _, w := range workers {
		text += fmt.Sprintf("\n%s: %s", w.name, lines[w.name])
	}
	return text + fmt.Sprintf("\nin %v", r.Duration)
}

// Random orchestrators, executed again and again, do exactly what the model says, to
// the nanosecond. Times are drawn so that no two things happen at the same instant.
func TestModel(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 60
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
				MaxAbandoned:     1 + rng.IntN(3),
				BreakerThreshold: 1 + rng.IntN(3),
				BreakerReset:     random(1, 3*time.Second),
			}}
			var (
				does    atomic.Pointer[map[string]behaviour]
				workers []worker
			)
			for i := range 1 + rng.IntN(9) {
				w := &modelWorker{name: fmt.Sprintf("w%d", i), wave: rng.IntN(4) - 1, priority: rng.IntN(3)}
				m.workers = append(m.workers, w)
				if rng.IntN(3) == 0 {
					m.o.PerWave[w.wave] = 1 + rng.IntN(3)
				}
				workers = append(workers, worker{Name: w.name, Wave: w.wave, Priority: w.priority, Do: func(ctx context.Context, _ int) (int, error) {
					b := (*does.Load())[w.name]
					switch {
					case b.deaf:
						time.Sleep(b.takes)
					case wait(ctx, b.takes) != nil:
						return 0, ctx.Err()
					}
					if b.fails {
						return 0, errOnPurpose
					}
					if b.decisive {
						return 1, nil
					}
					return 0, nil
				}})
			}
			slices.SortFunc(m.workers, func(a, b *modelWorker) int {
				return cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.priority, b.priority), strings.Compare(a.name, b.name))
			})
			options := m.o
			options.EarlyExit = func(v int) bool { return v == 1 }
			o := orchestrator(t, options, workers...)
			base := time.Now()
			for step := range 12 {
				plan := map[string]behaviour{}
				for _, w := range m.workers {
					b := behaviour{takes: random(1, 100*ms), fails: rng.IntN(3) == 0, decisive: rng.IntN(8) == 0}
					switch rng.IntN(8) {
					case 0:
						b.takes = random(1, 600*ms)
					case 1:
						b.takes, b.deaf = random(1, 2*time.Second), true
					}
					plan[w.name] = b
				}
				does.Store(&plan)
				now := time.Since(base)
				patience := time.Hour
				if rng.IntN(4) == 0 {
					patience = random(1, 500*ms)
				}
				want, end := m.execute(now, now+patience, plan)
				ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errOnPurpose)
				r, err := o.Execute(ctx, 0)
				cancel()
				synctest.Wait()
				require.Equal(t, want, modelText(r, m.workers), "seed %d, step %d, %+v", seed, step, m.o)
				require.Equal(t, end, time.Since(base))
				switch r.Outcome {
				case wave.OutcomeTimedOut:
					require.Equal(t, wave.ErrTimeout, err)
				case wave.OutcomeCancelled:
					require.Equal(t, errOnPurpose, err)
				default:
					require.NoError(t, err)
				}
				checkBooks(t, o.Stats(), len(m.workers))
				outcomes[r.Outcome]++
				abandoned += len(r.Abandoned)
				for i, w := range o.Workers() {
					mw := m.workers[i]
					status := wave.BreakerClosed
					switch {
					case mw.open && end < mw.openUntil:
						status = wave.BreakerOpen
						opened++
					case mw.open:
						status = wave.BreakerHalfOpen
					}
					mw.abandoned = slices.DeleteFunc(mw.abandoned, func(at time.Duration) bool { return at <= end })
					require.Equal(t, []any{mw.name, status, mw.failures, len(mw.abandoned)}, []any{w.Name, w.Breaker, w.Failures, w.Abandoned}, "seed %d, step %d", seed, step)
				}
				time.Sleep(random(1, time.Second))
				synctest.Wait()
			}
			require.NoError(t, o.Close())
			require.Zero(t, o.Stats().StillAbandoned)
		})
		if t.Failed() {
			return
		}
	}
	for _, outcome := range []wave.Outcome{wave.OutcomeCompleted, wave.OutcomeEarlyExit, wave.OutcomeTimedOut, wave.OutcomeCancelled} {
		assert.NotZero(t, outcomes[outcome], outcome)
	}
	assert.NotZero(t, abandoned)
	assert.NotZero(t, opened)
	t.Log(outcomes, abandoned, opened)
}

// Many executions at once, ended in all ways: nobody is lost, and there is never more
// than one probe.
func TestManyExecutionsAtOnce(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	for seed := range rounds {
		bubble(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 41))
			o := orchestrator(t, opts{TotalTimeout: 300 * ms, WorkerTimeout: 50 * ms, Grace: 5 * ms, MaxPerWave: 2, BreakerThreshold: 2, BreakerReset: 100 * ms,
				EarlyExit: func(v int) bool { return v%17 == 1 }},
				worker{Name: "a", Do: arbitrary}, worker{Name: "b", Do: arbitrary}, worker{Name: "c", Do: arbitrary},
				worker{Name: "d", Wave: 1, Do: arbitrary}, worker{Name: "e", Wave: 1, Do: arbitrary}, worker{Name: "f", Wave: 7, Do: arbitrary})
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
					checkBooks(t, o.Stats(), 6)
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
			s := o.Stats()
			checkBooks(t, s, 6)
			assert.EqualValues(t, executions, s.Executions+s.Rejected)
			require.NoError(t, o.Close())
			assert.Zero(t, o.Stats().StillAbandoned)
			for _, w := range o.Workers() {
				assert.Zero(t, w.Abandoned)
			}
		})
	}
}

// arbitrary does something or other, by its input.
func arbitrary(ctx context.Context, in int) (int, error) {
	d := time.Duration(in%60) * ms
	switch in % 7 {
	case 0:
		return 0, errOnPurpose
	case 1:
		time.Sleep(d)
	case 2:
		panic("on purpose")
	default:
		if err := wait(ctx, d); err != nil {
			return 0, err
		}
	}
	core.OperationFrom(ctx).Raise("done")
	return in, nil
}
