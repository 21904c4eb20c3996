package scheduledtasks

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
)

// became lists the firings of a schedule, the newest first.
func became(s *Scheduler, name string) (all []string) {
	synctest.Wait()
	for _, f := range s.Firings(name) {
		all = append(all, fmt.Sprintf("%s %s %t %s", f.Tick.Format("15:04"), f.State, f.Operation != 0, f.Err))
	}
	return all
}

// The last 20 firings say what became of their tasks, also when these have left the window of the target.
func TestFirings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := core.Must(core.NewCoordinator(func(_ context.Context, task Task) error {
			time.Sleep(90 * time.Minute)
			if task.ScheduledAt.Hour() == 1 {
				return errOnPurpose
			}
			return nil
		}, core.Options{MaxAge: time.Minute, MaxConcurrency: 1}))
		defer tasks.Close()
		s := open(t, tasks, Options{Overlap: SkipOverlap}, Definition{Name: "job", Cron: "@hourly", Signal: "job.due", Description: "does it"})
		defer s.Close()
		assert.Equal(t, "does it", s.Status()[0].Description)
		time.Sleep(4*time.Hour + 15*time.Minute)
		skipped := "skipped false " + ErrOverlap.Error()
		want := []string{"04:00 " + skipped, "03:00 running true ", "02:00 " + skipped, "01:00 failed true on purpose"}
		assert.Equal(t, want, became(s, "job"))
		_, ok := tasks.Lookup(s.Firings("job")[3].Operation)
		assert.False(t, ok, "it has left the window long ago")
		time.Sleep(30 * time.Minute)
		require.NoError(t, s.RunNow(t.Context(), "job"), "nothing else runs")
		time.Sleep(time.Minute)
		assert.Contains(t, became(s, "job")[0], "running true")
		time.Sleep(48 * time.Hour)
		assert.Len(t, became(s, "job"), 20)
		assert.Empty(t, became(s, "none"))
		assert.LessOrEqual(t, len(s.handed), 20, "what has left the window is forgotten")
	})
}

// Without a window, a firing is handed over. A hand-over that is tried again is one firing, and missed ticks are one.
func TestFiringsThatFailOrAreMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		var away atomic.Bool
		away.Store(true)
		j.fail = func(context.Context, Task) error {
			if away.Load() {
				return errOnPurpose
			}
			return nil
		}
		s := open(t, &j, Options{}, job("job", "@hourly"))
		defer s.Close()
		time.Sleep(time.Hour + 10*time.Second)
		assert.Equal(t, []string{"01:00 failed false on purpose"}, became(s, "job"))
		away.Store(false)
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"01:00 handed over false "}, became(s, "job"))
		away.Store(true)
		time.Sleep(2 * time.Hour)
		require.Len(t, became(s, "job"), 3)
		assert.Contains(t, became(s, "job")[1], "02:00 missed false 1 ticks were missed, and 0 of them are run late: the first of them could not be handed over")
	})
}
