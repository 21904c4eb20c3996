package scheduledtasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// While the task of a schedule runs, SkipOverlap skips its ticks, even if the schedule was
// removed and added again, by any call. After the end of the task, nothing is kept for
// removed schedules.
func TestSkipOverlapKnowsTheTaskOfARemovedSchedule(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schedule.json")
	write := func(definitions ...Definition) {
		data, err := json.Marshal(definitions)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	a, b := job("a", "@hourly"), job("b", "@yearly")
	for name, again := range map[string]func(*Scheduler) error{
		"Remove and Add": func(s *Scheduler) error { s.Remove("a"); return s.Add(context.Background(), a) },
		"Reload": func(s *Scheduler) error {
			write(b)
			err := s.Reload(context.Background())
			write(a, b)
			return errors.Join(err, s.Reload(context.Background()))
		},
	} {
		for _, accepts := range []time.Duration{0, time.Second} { // time that the target needs to accept a task
			t.Run(name, func(t *testing.T) {
				write(a, b)
				synctest.Test(t, func(t *testing.T) {
					j := new(journal)
					run := core.Must(core.NewCoordinator(func(ctx context.Context, task Task) error {
						_, err := j.Enqueue(ctx, task)
						time.Sleep(150 * time.Minute)
						return err
					}, core.Options{MaxConcurrency: 9}))
					s, err := Load(path, slowTarget{run, accepts}, Options{Overlap: SkipOverlap})
					require.NoError(t, err)
					defer core.InOrder(s, run).Close()
					time.Sleep(time.Hour + time.Second/2)
					require.NoError(t, again(s))
					time.Sleep(time.Second)
					require.ErrorIs(t, s.RunNow(t.Context(), "a"), ErrOverlap)
					require.NoError(t, again(s), "twice")
					time.Sleep(3 * time.Hour)
					assert.Equal(t, []string{"a 01:00:00", "a 04:00:00"}, j.take())
					assert.Equal(t, uint64(3), s.Stats().Skipped)
					s.Remove("a")
					assert.Len(t, s.tasks, 1, "its task runs")
					require.NoError(t, run.WaitIdle(t.Context()))
					s.Remove("b")
					assert.Empty(t, s.tasks)
				})
			})
		}
	}
}

// slowTarget needs time to accept a task.
type slowTarget struct {
	*core.Coordinator[Task]
	accepts time.Duration
}

func (s slowTarget) Enqueue(ctx context.Context, task Task) (core.OperationID, error) {
	time.Sleep(s.accepts)
	return s.Coordinator.Enqueue(ctx, task)
}

// A definition has its own Missed, Overlap, Jitter and Timeout, also after it was changed.
func TestOptionsOfADefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		run := core.Must(core.NewCoordinator(func(ctx context.Context, task Task) error {
			_, err := j.Enqueue(ctx, task)
			time.Sleep(90 * time.Minute)
			return err
		}, core.Options{MaxConcurrency: 9}))
		a, b, c := job("a", "@hourly"), job("b", "@hourly"), job("c", "@hourly")
		a.Overlap, c.Jitter = SkipOverlap, 30*time.Minute
		s := open(t, slowTarget{run, time.Second}, Options{Jitter: -1}, a, b, c)
		time.Sleep(2*time.Hour + 45*time.Minute)
		assert.ElementsMatch(t, []string{"a 01:00:00", "b 01:00:00", "b 02:00:00", "c 01:00:00", "c 02:00:00"}, j.take())
		assert.NotZero(t, s.plan.entries["c"].offset)
		a.Overlap, c.Jitter, c.Timeout = AllowOverlap, 0, time.Millisecond
		require.NoError(t, s.put(t.Context(), []Definition{a, b, c}, true))
		failed := coretest.Watch(t, s.Sink(), SignalFailed)
		time.Sleep(20 * time.Minute)
		failure, _ := Failures.Named(SignalFailed).From(failed.Expect(SignalFailed)[0])
		assert.Equal(t, "c", failure.Task.Name)
		assert.ErrorIs(t, failure.Err, core.ErrTimeout)
		time.Sleep(time.Hour)
		assert.Contains(t, j.take(), "a 04:00:00")
		require.NoError(t, run.Close())
	})
}

// A TargetFunc skips a tick itself, for example because a durable queue has the last task.
func TestATargetFuncSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, TargetFunc(func(_ context.Context, task Task) error {
			if task.ScheduledAt.Hour()%2 == 0 {
				return fmt.Errorf("wrapped: %w", ErrOverlap)
			}
			return nil
		}), Options{}, job("a", "@hourly"))
		skipped := coretest.Watch(t, s.Sink(), SignalSkipped)
		time.Sleep(4*time.Hour + time.Minute)
		skipped.ExpectExactly(SignalSkipped, SignalSkipped)
		assert.Equal(t, uint64(2), s.Stats().Skipped)
		d := job("b", "@hourly")
		d.Overlap = SkipOverlap
		assert.ErrorContains(t, s.Add(t.Context(), d), `scheduledtasks: schedule "b": Overlap is "skip", but that needs a target with a method Lookup, which a scheduledtasks.TargetFunc does not have`)
	})
}
