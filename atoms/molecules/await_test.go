package molecules_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// ship is a blueprint whose second step awaits "settled".
func ship(j *journal, timeout time.Duration, pay do) molecules.Blueprint {
	return molecules.Blueprint{Name: "order", On: "placed, placed:*", Steps: []molecules.Step{
		{Name: "pay", Do: pay, Compensate: j.notes("refund", nil)},
		{Name: "ship", Await: "settled, settled:*", AwaitTimeout: timeout, Do: func(_ context.Context, r *molecules.Run) error {
			s, ok := r.Awaited()
			j.add("ship %s because of %s %t", s.Key, s.Name, ok)
			return nil
		}},
	}}
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		facts := coretest.Watch(t, sink, "molecule.*")
		var j journal
		r := newRunner(sink, molecules.Options{}, ship(&j, 0, quick))
		sink.RaiseKey("settled:1", "a") // too early
		sink.RaiseKey("placed", "a")
		synctest.Wait()
		facts.ExpectExactly(molecules.SignalStarted, molecules.SignalStepStarted, molecules.SignalStepCompleted)
		for op := range r.Operations(core.OperationQuery{}) {
			state := op.Values["molecule"]
			assert.Equal(t, "{Blueprint:order Step:ship Awaiting:settled, settled:* Compensating:false}", fmt.Sprintf("%+v", state))
			why, _ := r.Explain(op.ID)
			assert.Contains(t, why.String(), `its body waits for signal "settled, settled:*" for "a", for 0s, for 1m0s more at most`)
		}
		sink.RaiseKey("settled", "b") // of another key
		sink.Raise("settled")         // without a key
		time.Sleep(time.Minute - 1)
		facts.None()
		sink.RaiseKey("settled:2", "a")
		require.NoError(t, r.Flush(t.Context()))
		facts.ExpectExactly(molecules.SignalStepStarted, molecules.SignalStepCompleted, molecules.SignalCompleted)
		assert.Equal(t, []string{"ship a because of settled:2 true"}, j.take())
		require.NoError(t, r.Close())
	})
}

func TestAwaitTimeout(t *testing.T) {
	for _, c := range []struct{ given, want time.Duration }{{0, time.Minute}, {time.Second, time.Second}} {
		bubble(t, fmt.Sprint(c.given), func(t *testing.T) {
			sink := newSink()
			facts := coretest.Watch(t, sink, "molecule.step.*, molecule.failed")
			var j journal
			r := newRunner(sink, molecules.Options{}, ship(&j, c.given, quick))
			begun := time.Now()
			sink.RaiseKey("placed", "a")
			require.NoError(t, r.Drain(t.Context()))
			assert.Equal(t, c.want, time.Since(begun))
			assert.Equal(t, []string{"refund"}, j.take())
			raised := facts.Expect(molecules.SignalStepCompleted, molecules.SignalStepFailed, molecules.SignalStepCompensated, molecules.SignalFailed)
			assert.ErrorIs(t, event(raised[3]).Err, core.ErrTimeout)
			assert.ErrorContains(t, event(raised[3]).Err, fmt.Sprintf(`no signal matching "settled, settled:*" with key "a" came within %v`, c.want))
		})
	}
}

// A signal counts even if it comes before the step that awaits it. It also counts if the run is
// still queued, if a handler raises the signal before the runner receives the trigger, and if the
// signal has left the window of the sink.
func TestAwaitedSignalsThatComeEarlyCount(t *testing.T) {
	for _, order := range []molecules.Order{molecules.OrderNone, molecules.OrderSerial} {
		bubble(t, order.String(), func(t *testing.T) {
			sink := signals.NewSink(signals.SinkOptions{Capacity: 2})
			sink.Subscribe("placed", func(s signals.Signal) {
				if s.Key == "handler" {
					sink.RaiseKey("settled", s.Key)
				}
			})
			var j journal
			pay := func(_ context.Context, r *molecules.Run) error {
				time.Sleep(time.Minute)
				r.Raise("noise")
				return nil
			}
			r := newRunner(sink, molecules.Options{MaxConcurrency: 1, Order: order}, ship(&j, time.Nanosecond, pay))
			sink.RaiseKey("placed", "first")
			synctest.Wait() // the signals of its run do not push out the handler's signal
			sink.RaiseKey("placed", "handler")
			sink.RaiseKey("placed", "queued")
			synctest.Wait()
			sink.RaiseKey("settled", "first")
			sink.RaiseKey("settled", "queued")
			for range 10 {
				sink.Raise("noise")
			}
			require.NoError(t, r.Drain(t.Context()), "queued runs still receive what they await")
			assert.Equal(t, []string{
				"ship first because of settled true", "ship handler because of settled true", "ship queued because of settled true",
			}, j.take())
		})
	}
}

// If the runs of a key do not overlap, a run does not take the signal of the run before it.
func TestAwaitedSignalsOfARunAreNotTakenForThoseOfTheNext(t *testing.T) {
	for _, order := range []molecules.Order{molecules.OrderPerKey, molecules.OrderSerial} {
		bubble(t, order.String(), func(t *testing.T) {
			sink := newSink()
			held := make(chan struct{})
			sink.Subscribe("placed:held", func(signals.Signal) { <-held })
			var j journal
			pay := func(_ context.Context, r *molecules.Run) error {
				n, _ := r.Trigger.Arg()
				j.add("pay %s", n)
				return nil
			}
			r := newRunner(sink, molecules.Options{Order: order}, ship(&j, time.Minute, pay))
			sink.RaiseKey("placed:1", "a")
			sink.RaiseKey("placed:2", "a")
			sink.RaiseKey("placed:3", "a")
			go sink.RaiseKey("placed:held", "a")
			synctest.Wait()
			for op := range r.Operations(core.OperationQuery{Status: core.StatusPending}) {
				r.Cancel(op.ID, nil) // does not change which signals the others receive
				break
			}
			sink.RaiseKey("settled", "a")
			synctest.Wait()
			assert.Equal(t, []string{"pay 1", "ship a because of settled true", "pay 3"}, j.take())
			close(held) // a trigger that comes late does not bring the signal back
			time.Sleep(time.Minute - 1)
			assert.Empty(t, j.take())
			sink.RaiseKey("settled:late", "a")
			synctest.Wait()
			assert.Equal(t, []string{"ship a because of settled:late true", "pay held"}, j.take())
			time.Sleep(time.Hour)
			assert.Equal(t, []string{"refund"}, j.take())
			assert.Zero(t, molecules.Awaiting(r))
			require.NoError(t, r.Close())
		})
	}
}

// Runs without a key overlap with OrderPerKey, so one signal is for all of them.
func TestASignalWithoutAKeyIsForAllRunsWithoutAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		r := newRunner(sink, molecules.Options{Order: molecules.OrderPerKey}, ship(&j, time.Minute, quick))
		for range 4 {
			sink.Raise("placed")
		}
		synctest.Wait()
		sink.Raise("settled")
		require.NoError(t, r.Drain(t.Context()))
		assert.EqualValues(t, 4, r.Stats().Succeeded)
	})
}

// When the signal of a run's end is raised, the run has ended: later signals are for the next
// run.
func TestAHandlerOfTheEndRaisesForTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		r := newRunner(sink, molecules.Options{Order: molecules.OrderPerKey}, ship(&j, time.Minute, quick))
		molecules.Events.Named(molecules.SignalCompleted).Subscribe(sink, func(s signals.Signal, _ molecules.Event) {
			if r.Stats().Succeeded == 0 {
				sink.RaiseKey("settled:next", s.Key)
			}
		})
		sink.RaiseKey("placed", "a")
		sink.RaiseKey("placed", "a")
		synctest.Wait()
		sink.RaiseKey("settled", "a")
		synctest.Wait()
		assert.Equal(t, []string{"ship a because of settled true", "ship a because of settled:next true"}, j.take())
		require.NoError(t, r.Drain(t.Context()))
	})
}

// Each way to end a runner ends its subscriptions first: signals start nothing, even while the
// runner waits for runs. After that, the sink does not keep the runner alive. A run that has
// begun still receives the signals that it awaits, except after Close.
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(*molecules.Runner) error{
		"Complete": func(r *molecules.Runner) error { r.Complete(); return nil },
		"Drain":    func(r *molecules.Runner) error { return r.Drain(context.Background()) },
		"Stop":     func(r *molecules.Runner) error { return r.Stop(context.Background()) },
		"Close":    func(r *molecules.Runner) error { return r.Close() },
	} {
		for _, busy := range []bool{false, true} {
			bubble(t, fmt.Sprint(name, busy), func(t *testing.T) {
				sink := newSink()
				var j, ends journal
				sink.Subscribe(terminal, func(s signals.Signal) { ends.add("%s %s", s.Name, s.Key) })
				asked := 0
				b := ship(&j, -1, quick) // its steps await signals without a limit
				b.When = func(signals.Signal) bool { asked++; return true }
				r := newRunner(sink, molecules.Options{MaxConcurrency: 1}, b)
				var want []string
				if busy {
					sink.RaiseKey("placed", "runs")
					time.Sleep(1000 * time.Hour)
					sink.RaiseKey("placed", "waits")
					want = map[string][]string{
						"Complete": {"molecule.completed runs", "molecule.completed waits"},
						"Drain":    {"molecule.completed runs", "molecule.completed waits"},
						"Stop":     {"molecule.cancelled waits", "molecule.completed runs"},
						"Close":    {"molecule.cancelled waits", "molecule.cancelled runs"},
					}[name]
				}
				before := asked
				ended := make(chan error, 1)
				go func() { ended <- end(r) }()
				synctest.Wait()
				sink.RaiseKey("placed", "late")
				sink.RaiseKey("settled", "runs")
				sink.RaiseKey("settled", "waits")
				synctest.Wait()
				require.NoError(t, <-ended)
				got := ends.take()
				if name == "Close" { // Close cancels all runs at once, and each ends on its own goroutine
					slices.Sort(got)
					slices.Sort(want)
				}
				assert.Equal(t, want, got)
				assert.Equal(t, before, asked)
				assert.Zero(t, r.Stats().Rejected)
				assert.Zero(t, molecules.Awaiting(r))

				kept := weak.Make(r)
				r = nil
				time.Sleep(time.Hour) // timers that were stopped may stay until they are due
				runtime.GC()
				assert.Nil(t, kept.Value(), "the sink keeps it alive")
			})
		}
	}
}
