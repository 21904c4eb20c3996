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
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The target and the store are away for half a second to three seconds, again and again. With
// Missed, each tick is handed over once, and in order. Without Missed, ticks that could not be
// handed over before the next tick count as missed.
func TestTheTargetIsAwayNowAndThen(t *testing.T) {
	for _, missed := range []int{0, 1000} {
		synctest.Test(t, func(t *testing.T) {
			var away atomic.Bool
			j := &journal{fail: func(context.Context, Task) error {
				if away.Load() {
					return errOnPurpose
				}
				return nil
			}}
			sink := signals.NewSink(signals.SinkOptions{})
			raised := coretest.Watch(t, sink, SignalMissed)
			store := new(memory)
			s := open(t, j, Options{Store: store, Missed: missed, Sink: sink}, job("a", "@every_second"))
			for half := range 6 {
				time.Sleep(5*time.Second + 100*time.Millisecond)
				away.Store(true)
				time.Sleep(time.Duration(half+1) * time.Second / 2)
				away.Store(false)
			}
			time.Sleep(10*time.Second + time.Second/2)
			got, stats := j.take(), s.Stats()
			ticks := int(time.Now().Unix() - time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
			assert.Equal(t, ticks, len(got)+int(stats.Missed))
			if missed > 0 {
				for n, id := range got {
					assert.Equal(t, fmt.Sprintf("a 00:00:%02d", n+1), id)
				}
				assert.Zero(t, stats.Missed)
			} else {
				assert.NotZero(t, stats.Missed)
			}
			m, _ := Missed.From(raised.Expect(SignalMissed)[0])
			assert.Contains(t, m.Reason, "could not be handed over for ")
			assert.Contains(t, m.Reason, errOnPurpose.Error())
			assert.Equal(t, s.Schedules()[0].Last, store.ticks["a"])
		})
	}
}

// A tick that could not be handed over is tried again for a minute. It is not tried again if its
// schedule was paused meanwhile, or if the target refuses it for good.
func TestAHandOverIsTriedAgain(t *testing.T) {
	hour := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		err   error
		away  time.Duration
		pause bool
		want  []string
	}{
		"three seconds":  {errOnPurpose, 3 * time.Second, false, []string{"a 01:00:00"}},
		"two minutes":    {errOnPurpose, 2 * time.Minute, false, nil},
		"paused":         {errOnPurpose, 3 * time.Second, true, nil},
		"permanent":      {permanent{errOnPurpose}, 3 * time.Second, false, nil},
		"refused":        {&core.RefusedError{}, 3 * time.Second, false, nil},
		"closed":         {core.ErrClosed, 3 * time.Second, false, nil},
		"startup, later": {errOnPurpose, 30 * time.Minute, false, []string{"b 12:00:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, back := job("a", "@hourly"), hour.Add(c.away)
				if name == "startup, later" {
					d, back = job("b", "0 12 * * *"), time.Now().Add(c.away)
					d.RunOnStartup = true
				}
				j := &journal{fail: func(context.Context, Task) error {
					if time.Now().Before(back) {
						return c.err
					}
					return nil
				}}
				s := open(t, j, Options{}, d)
				failed := coretest.Watch(t, s.Sink(), SignalFailed)
				time.Sleep(time.Hour + time.Second)
				if c.pause {
					why, err := s.Explain("a")
					require.NoError(t, err)
					assert.Equal(t, "the hand-over of the tick 2000-01-01T01:00:00Z failed 4 times; the next try is at 2000-01-01T01:00:01Z: on purpose", why)
					assert.Equal(t, 1, s.Pause("a")+s.Resume("a")-1)
				}
				time.Sleep(10 * time.Minute)
				assert.Equal(t, c.want, j.take())
				if d.Name == "a" {
					failure, _ := Failures.Named(SignalFailed).From(failed.Expect(SignalFailed)[0])
					assert.Equal(t, c.err == errOnPurpose, failure.Again)
				}
				assert.Equal(t, name == "two minutes", s.Stats().Missed == 1)
			})
		})
	}
}

// The clock was ten years ahead for a moment, in this process or in an earlier one. The schedule
// waits, raises a signal, and goes on after Reset.
func TestALastTickInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, j, sink := new(memory), new(journal), signals.NewSink(signals.SinkOptions{})
		future := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
		store.set(nil, map[string]time.Time{"a": future, "b": time.Now().Add(59 * time.Minute)})
		raised := coretest.Watch(t, sink, SignalStalled)
		s := open(t, j, Options{Store: store, Sink: sink}, job("a", "@hourly"), job("b", "@hourly"))
		stalled, _ := Stalled.From(raised.Expect(SignalStalled)[0])
		const why = "it waits for 2010-01-01T01:00:00Z, because its last tick is 87672h0m0s in the future; Reset lets it go on now"
		assert.Equal(t, StalledSchedule{"a", future, future.Add(time.Hour), why}, stalled)
		time.Sleep(30 * time.Minute)
		raised.ExpectExactly()
		require.ErrorIs(t, s.Reset(t.Context(), "x"), ErrUnknown)
		require.NoError(t, s.Reset(t.Context(), "a"))
		got, err := s.Explain("a")
		require.NoError(t, err)
		assert.Equal(t, "it waits for 2000-01-01T01:00:00Z", got)
		time.Sleep(time.Hour)
		assert.ElementsMatch(t, []string{"a 01:00:00", "b 01:00:00"}, j.take())
		assert.Equal(t, 2000, store.ticks["a"].Year())
	})
	p := newPlan(t, 0, 0, monday, job("a", "@hourly"))
	for n, now := range []time.Time{monday, monday.AddDate(10, 0, 0), monday, monday} {
		stalled := p.stalled(now)
		due, _ := p.step(now)
		for _, f := range due {
			p.done(f, true, now)
		}
		assert.Len(t, stalled, []int{0, 0, 1, 0}[n])
	}
}
