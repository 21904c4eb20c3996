package scheduledtasks

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
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
					s, err := Load(path, slowTarget{run, accepts}, Options{SkipOverlap: true})
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
