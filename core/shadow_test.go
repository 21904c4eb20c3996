package core_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A shadow lets everything start, and says what would wait: in Stats, in Explain and by a signal.
func TestShadow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []string
		sink, begun := new(signals.Sink), time.Now()
		core.WouldThrottle.Subscribe(sink, func(s signals.Signal, change core.ClassChange) {
			told = append(told, fmt.Sprint(s.Key, " of ", change.Coordinator, " ", time.Since(begun), " ", change.Waiting))
		})
		c := bodies(t, core.Options{Name: "calls", Sink: sink, MaxConcurrency: 9, Shadow: &core.Limits{Limit: 3},
			Classes: []core.Class{{Name: "stripe", Shadow: &core.Limits{Rate: core.Rate{PerSecond: 0.5, Burst: 2}}}}})
		second := func(context.Context) error { time.Sleep(1100 * time.Millisecond); return nil } // so that no signal is due at the same time
		var ids []core.OperationID
		for range 4 {
			ids = append(ids, enqueue(t, c.Class("stripe"), second))
			synctest.Wait() // so that one signal comes after the other
		}
		checkEqual(t, "running", c.Stats().Running, 4)
		checkExplained(t, c, ids[1], `operation # is running`)
		checkExplained(t, c, ids[3], `operation # is running: with the shadow of class "stripe" it would still wait for 4s; with the shadow of all operations it would still wait`)
		time.Sleep(800 * time.Millisecond)
		synctest.Wait()
		checkExplained(t, c, ids[2], `operation # is running: with the shadow of class "stripe" it would still wait for 1.2s`)
		checkEqual(t, "shadow", c.Stats().Classes[0].Shadow, core.ShadowStats{Limits: core.Limits{Rate: core.Rate{PerSecond: 0.5, Burst: 2}}, Started: 4, Waited: 2, Waiting: 2, Longest: 800 * time.Millisecond})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		s := c.Stats()
		checkEqual(t, "shadow of the class", s.Classes[0].Shadow, core.ShadowStats{Limits: core.Limits{Rate: core.Rate{PerSecond: 0.5, Burst: 2}}, Started: 4, Waited: 2, Longest: 4 * time.Second})
		checkEqual(t, "shadow of all", s.Shadow, core.ShadowStats{Limits: core.Limits{Limit: 3}, Started: 4, Waited: 1, Longest: 1100 * time.Millisecond})
		checkSlice(t, "signals", told, []string{"stripe of calls 0s 1", " of calls 0s 1", " of calls 2s 0", "stripe of calls 4s 0"})
	})
}

// A changed shadow counts from zero, with what runs as its slots. One with the same limits goes on. Removing it ends the signal.
func TestShadowChanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []int
		g := newGate()
		c := bodies(t, core.Options{MaxConcurrency: 9, Classes: []core.Class{{Name: "api"}}})
		core.WouldThrottle.Subscribe(c.Sink(), func(_ signals.Signal, change core.ClassChange) { told = append(told, change.Waiting) })
		set := func(shadow *core.Limits) {
			t.Helper()
			checkError(t, "SetClass", c.SetClass(core.Class{Name: "api", Limit: 5, Shadow: shadow}), nil)
		}
		start := func(n int) {
			for range n {
				enqueue(t, c.Class("api"), g.body)
			}
			synctest.Wait()
		}
		shadow := func() core.ShadowStats { s := c.Stats().Classes[0].Shadow; s.Longest = 0; return s }
		start(2)
		set(&core.Limits{Limit: 3})
		start(2)
		checkEqual(t, "set while two run", shadow(), core.ShadowStats{Limits: core.Limits{Limit: 3}, Started: 2, Waited: 1, Waiting: 1})
		set(&core.Limits{Limit: 3})
		checkEqual(t, "the same again", shadow(), core.ShadowStats{Limits: core.Limits{Limit: 3}, Started: 2, Waited: 1, Waiting: 1})
		set(&core.Limits{Limit: 1})
		checkEqual(t, "changed", shadow(), core.ShadowStats{Limits: core.Limits{Limit: 1}})
		checkSlice(t, "signals", told, []int{1, 0})
		start(1)
		checkEqual(t, "changed, and one starts", shadow().Waiting, 1)
		set(nil)
		checkEqual(t, "removed", shadow(), core.ShadowStats{})
		checkSlice(t, "signals", told, []int{1, 0, 1, 0})
		checkError(t, "SetShadow", c.SetShadow(&core.Limits{Limit: 9}), nil)
		checkEqual(t, "of all", c.Stats().Shadow, core.ShadowStats{Limits: core.Limits{Limit: 9}})
		g.open()
		synctest.Wait()
		start(9)
		checkEqual(t, "of all, after the end of what ran", c.Stats().Shadow, core.ShadowStats{Limits: core.Limits{Limit: 9}, Started: 9})
	})
}

// An operation that is suspended, such as a retry that backs off, has no slot in the shadow. When the queue is full in the
// shadow, further items would be refused.
func TestShadowSuspendedAndRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 9, MaxQueued: 2, Shadow: &core.Limits{Limit: 1}})
		enqueue(t, c, func(ctx context.Context) error {
			time.Sleep(time.Second)
			defer time.Sleep(time.Second)
			return core.OperationFrom(ctx).Suspend(ctx, "a backoff", func(context.Context) error { time.Sleep(10 * time.Second); return nil })
		})
		time.Sleep(2 * time.Second)
		second := func(context.Context) error { time.Sleep(time.Second); return nil }
		checkError(t, "Do", c.Do(t.Context(), second), nil)
		checkEqual(t, "suspended", c.Stats().Shadow, core.ShadowStats{Limits: core.Limits{Limit: 1}, Started: 2})
		for range 5 {
			enqueue(t, c, second)
			synctest.Wait()
		}
		checkError(t, "WaitIdle", c.WaitIdle(t.Context()), nil)
		time.Sleep(time.Minute)
		checkEqual(t, "refused", c.Stats().Shadow, core.ShadowStats{Limits: core.Limits{Limit: 1}, Started: 7, Waited: 2, Refused: 2, Longest: 2 * time.Second})
	})
}

// A shadow that is looser than what is in force, or empty, is an error, and changes nothing.
func TestShadowMustBeStricter(t *testing.T) {
	c := bodies(t, core.Options{MaxConcurrency: 4, Classes: []core.Class{{Name: "api", Limit: 3, Shadow: &core.Limits{Limit: 2}}}})
	defer c.Close()
	api := core.Class{Name: "api", Limit: 3, Rate: core.Rate{PerSecond: 10, Burst: 2}, CostRate: core.Rate{PerSecond: 10}}
	for want, shadow := range map[string]core.Limits{
		`SetClass of "api": Shadow.Limit is 4, but must not be looser than the limit in force, which is 3`: {Limit: 4},
		`Shadow.Limit is -1, but must not be negative`:                                                     {Limit: -1},
		`Shadow is empty`: {},
		`Shadow.Rate is 11 a second with a burst of 1, but must not be looser than the rate in force, which is 10 with 2`: {Rate: core.Rate{PerSecond: 11, Burst: 1}},
		`Shadow.Rate is 9 a second with a burst of 20`:                                                                    {Rate: core.Rate{PerSecond: 9}},
		`Shadow.CostRate is 20 a second`:                                                                                  {CostRate: core.Rate{PerSecond: 20}},
		`Shadow.CostRate: core: rate is 1e+10`:                                                                            {CostRate: core.Rate{PerSecond: 1e10}},
	} {
		api.Shadow = &shadow
		checkSays(t, "SetClass", c.SetClass(api), want)
		_, err := core.NewCoordinator(coretest.Run, core.Options{Classes: []core.Class{api}})
		checkSays(t, "NewCoordinator", err, "core: ")
	}
	checkSays(t, "SetShadow", c.SetShadow(&core.Limits{Limit: 5}), "core: SetShadow: Shadow.Limit is 5, but must not be looser than the limit in force, which is 4")
	checkSays(t, "ForEach", core.ForEach(t.Context(), upTo(0), func(context.Context, int) error { return nil }, core.Options{Shadow: &core.Limits{Limit: 1}}), "Shadow")
	checkEqual(t, "shadow", c.Stats().Classes[0].Shadow, core.ShadowStats{Limits: core.Limits{Limit: 2}})
}
