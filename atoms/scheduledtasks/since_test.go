package scheduledtasks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// A restart runs, as missed, no ticks of a cron that was changed, and none of a pause, in this process or between two.
func TestARestartAfterAChangeOrAPause(t *testing.T) {
	const old, changed = "@hourly", "*/10 * * * *"
	for name, c := range map[string]struct {
		first, second string // crons of two processes
		during        func(*Scheduler)
		want          []string // until 07:10; the first process ran until 04:30, the second from 06:30
	}{
		"unchanged": {old, old, func(*Scheduler) {}, []string{"a 05:00:00", "a 06:00:00", "a 07:00:00"}},
		"changed":   {old, "5 * * * *", func(*Scheduler) {}, []string{"a 07:05:00"}},
		"changed in the process": {old, changed, func(s *Scheduler) {
			assert.NoError(t, s.Add(context.Background(), job("a", changed)))
		}, []string{"a 06:10:00", "a 06:20:00", "a 06:30:00", "a 06:40:00", "a 06:50:00", "a 07:00:00", "a 07:10:00"}},
		"changed and back": {old, old, func(s *Scheduler) {
			assert.NoError(t, s.Add(context.Background(), job("a", changed)))
			s.Pause("a")
			assert.NoError(t, s.Add(context.Background(), job("a", old)))
		}, []string{"a 07:00:00"}},
		"paused": {old, old, func(s *Scheduler) { s.Pause("a") }, []string{"a 07:00:00"}},
		"paused and resumed": {old, old, func(s *Scheduler) {
			s.Pause("a")
			time.Sleep(time.Hour)
			s.Resume("a")
		}, []string{"a 06:00:00", "a 07:00:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, j := new(memory), new(journal)
				first := open(t, j, Options{Store: store}, job("a", c.first))
				time.Sleep(4*time.Hour + 30*time.Minute)
				c.during(first)
				first.Close()
				j.take()
				time.Sleep(time.Until(time.Date(2000, 1, 1, 6, 30, 0, 0, time.UTC)))
				open(t, j, Options{Store: store, Missed: 3}, job("a", c.second))
				time.Sleep(40 * time.Minute)
				assert.Equal(t, c.want, j.take())
			})
		})
	}
	// A tick of a cron that never ran is not missed, however long no process ran.
	synctest.Test(t, func(t *testing.T) {
		store, j := new(memory), new(journal)
		first := open(t, j, Options{Store: store}, job("a", old))
		time.Sleep(time.Hour)
		first.Close()
		j.take()
		time.Sleep(4 * time.Hour)
		d := job("a", changed)
		d.RunOnStartup = true
		s := open(t, j, Options{Store: store, Missed: 100}, d)
		missed := coretest.Watch(t, s.Sink(), SignalMissed)
		assert.Equal(t, []string{"a 05:00:00"}, j.take(), "RunOnStartup runs the latest tick")
		missed.ExpectExactly()
		store.set(errOnPurpose, store.ticks)
		failed := coretest.Watch(t, s.Sink(), SignalFailed)
		assert.Equal(t, 1, s.Pause("a"))
		failed.ExpectExactly(SignalFailed)
	})
}
