package scheduledtasks

import (
	"context"
	"io/fs"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// callsBack is an error that calls its scheduler.
type callsBack struct{ s *atomic.Pointer[Scheduler] }

func (c callsBack) Error() string {
	c.s.Load().Stats()
	return "calls back"
}

// An error may panic in its methods, or call the scheduler back. Schedules, Stats and Close go on.
func TestErrorsThatPanicOrCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var scheduler atomic.Pointer[Scheduler]
		var none *fs.PathError
		accepted := 0
		s := open(t, TargetFunc(func(_ context.Context, task Task) error {
			switch {
			case task.Name == "panics":
				return none
			case task.Name == "calls back":
				return callsBack{&scheduler}
			}
			accepted++
			return nil
		}), Options{}, job("panics", "@hourly"), job("calls back", "@hourly"), job("good", "@hourly"))
		scheduler.Store(s)
		failed := coretest.Watch(t, s.Sink(), SignalFailed)
		time.Sleep(2*time.Hour + 30*time.Second)
		synctest.Wait()
		assert.Equal(t, 2, accepted)
		assert.Contains(t, became(s, "panics")[0], "02:00 failed false error of type *fs.PathError, whose method Error panicked")
		assert.Equal(t, "02:00 failed false calls back", became(s, "calls back")[0])
		why, err := s.Explain("panics")
		assert.NoError(t, err)
		assert.Contains(t, why, "failed 24 times")
		assert.Contains(t, why, "whose method Error panicked")
		assert.EqualValues(t, 2, s.Stats().Succeeded)
		failed.Expect(SignalFailed)
		s.Close()
	})
}
