package molecules_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// ship is a molecule whose second step awaits "settled".
func ship(j *journal, timeout time.Duration, pay do) molecules.Blueprint {
	return molecules.Blueprint{Name: "order", On: "placed", Steps: []molecules.Step{
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
		signals := coretest.Watch(t, sink, "molecule.*")
		var j journal
		r := newRunner(t, sink, molecules.Options{}, ship(&j, 0, quick))
		sink.RaiseKey("settled:1", "a") // too early
		sink.RaiseKey("placed", "a")
		synctest.Wait()
		signals.ExpectExactly(molecules.SignalStarted, molecules.SignalStepStarted, molecules.SignalStepCompleted)
		for op := range r.Operations(core.OperationQuery{}) {
			state, _ := core.Value[molecules.State](op, molecules.ValueState)
			assert.Equal(t, molecules.State{Blueprint: "order", Step: "ship", Awaiting: "settled, settled:*"}, state)
			why, _ := r.Explain(op.ID)
			assert.Contains(t, why.String(), `its body waits for signal "settled, settled:*" for "a", for 0s, for 1m0s more at most`)
		}
		sink.RaiseKey("settled", "b") // another's
		sink.Raise("settled")         // nobody's
		time.Sleep(time.Minute - 1)
		signals.None()
		sink.RaiseKey("settled:2", "a")
		require.NoError(t, r.Flush(t.Context()))
		signals.ExpectExactly(molecules.SignalStepStarted, molecules.SignalStepCompleted, molecules.SignalCompleted)
		assert.Equal(t, []string{"ship a because of settled:2 true"}, j.take())
		require.NoError(t, r.Close())
	})
}

func TestAwaitTimesOut(t *testing.T) {
	for _, c := range []struct{ given, want time.Duration }{{0, time.Minute}, {time.Second, time.Second}} {
		t.Run(fmt.Sprint(c.given), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := newSink()
				signals := coretest.Watch(t, sink, "molecule.*")
				var j journal
				r := newRunner(t, sink, molecules.Options{}, ship(&j, c.given, quick))
				begun := time.Now()
				sink.RaiseKey("placed", "a")
				require.NoError(t, r.Flush(t.Context()))
				assert.Equal(t, c.want, time.Since(begun))
				assert.Equal(t, []string{"refund"}, j.take())
				told := signals.Expect(molecules.SignalStepCompleted, molecules.SignalStepFailed, molecules.SignalStepCompensated, molecules.SignalCompensated, molecules.SignalFailed)
				var late *molecules.AwaitError
				require.ErrorAs(t, told[4].Payload().(molecules.Event).Err, &late)
				assert.Equal(t, molecules.AwaitError{Pattern: "settled, settled:*", Key: "a", Timeout: c.want}, *late)
				require.NoError(t, r.Close())
			})
		})
	}
}

func TestAwaitWithoutLimitEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		signals := coretest.Watch(t, sink, "molecule.*")
		var j journal
		r := newRunner(t, sink, molecules.Options{}, ship(&j, -1, quick))
		sink.RaiseKey("placed", "a")
		time.Sleep(1000 * time.Hour)
		require.NoError(t, r.Close())
		signals.ExpectExactly(molecules.SignalStarted, molecules.SignalStepStarted, molecules.SignalStepCompleted,
			molecules.SignalStepCompensated, molecules.SignalCompensated, molecules.SignalCancelled)
		assert.Equal(t, []string{"refund"}, j.take())
	})
}

// A signal that comes before the step that awaits it is not lost: not while the run
// waits for its turn, not when it came from a handler that was told of the trigger
// first, not if the window has long forgotten it.
func TestAwaitedSignalsThatComeEarlyCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{Capacity: 2})
		sink.Subscribe("placed", func(s core.Signal) {
			if s.Key == "handler" {
				sink.RaiseKey("settled", s.Key)
			}
		})
		var j journal
		r := newRunner(t, sink, molecules.Options{MaxConcurrency: 1}, ship(&j, time.Nanosecond, func(_ context.Context, r *molecules.Run) error {
			time.Sleep(time.Minute)
			r.Raise("noise")
			return nil
		}))
		sink.RaiseKey("placed", "first")
		sink.RaiseKey("placed", "handler")
		sink.RaiseKey("placed", "queued")
		synctest.Wait()
		sink.RaiseKey("settled", "first")
		sink.RaiseKey("settled", "queued")
		for range 10 {
			sink.Raise("noise")
		}
		require.NoError(t, r.Drain(t.Context()), "the runs that are left still hear what they await")
		assert.Equal(t, []string{"ship first because of settled true", "ship handler because of settled true", "ship queued because of settled true"}, j.take())
	})
}

// Where runs of a key go one after the other, one does not take the payment of the
// one before it for its own.
func TestAwaitedSignalsOfARunAreNotTakenForThoseOfTheNext(t *testing.T) {
	for _, order := range []molecules.Order{molecules.OrderPerKey, molecules.OrderSerial} {
		t.Run(order.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := newSink()
				var j journal
				pay := func(_ context.Context, r *molecules.Run) error {
					n, _ := r.Trigger.Arg()
					j.add("pay %s", n)
					return nil
				}
				b := ship(&j, time.Minute, pay)
				b.On = "placed:*"
				r := newRunner(t, sink, molecules.Options{Order: order}, b)
				sink.RaiseKey("placed:1", "a")
				sink.RaiseKey("placed:2", "a")
				sink.RaiseKey("placed:3", "a")
				synctest.Wait()
				for op := range r.Operations(core.OperationQuery{Status: core.StatusPending}) {
					r.Cancel(op.ID, nil) // has no influence on what the others have heard
					break
				}
				sink.RaiseKey("settled", "a")
				synctest.Wait()
				assert.Equal(t, []string{"pay 1", "ship a because of settled true", "pay 3"}, j.take())
				time.Sleep(time.Minute - 1)
				assert.Empty(t, j.take())
				sink.RaiseKey("settled:late", "a")
				synctest.Wait()
				assert.Equal(t, []string{"ship a because of settled:late true"}, j.take())
				assert.Zero(t, molecules.Listed(r))
				require.NoError(t, r.Close())
			})
		})
	}
}

// Not even if the signal that sets the next one off is delivered late.
func TestALateTriggerDoesNotTakeWhatWasForTheRunBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 1500 // more than are remembered
		sink := core.NewSink(core.SinkOptions{Capacity: 100 * keys})
		late := make(chan struct{})
		sink.Subscribe("placed:late", func(core.Signal) { <-late })
		var j journal
		b := ship(&j, time.Minute, quick)
		b.On = "placed:*"
		r := newRunner(t, sink, molecules.Options{Order: molecules.OrderPerKey, MaxQueued: keys}, b)
		sink.RaiseKey("placed:1", "a")
		go sink.RaiseKey("placed:late", "a")
		synctest.Wait()
		sink.RaiseKey("settled", "a")
		synctest.Wait()
		assert.Equal(t, []string{"ship a because of settled true"}, j.take())
		close(late)
		synctest.Wait()
		assert.Empty(t, j.take(), "that was for the first")
		sink.RaiseKey("settled:too", "a")
		synctest.Wait()
		assert.Equal(t, []string{"ship a because of settled:too true"}, j.take())

		for i := range keys {
			key := fmt.Sprint(i)
			sink.RaiseKey("placed:1", key)
			sink.RaiseKey("settled", key)
			synctest.Wait()
		}
		assert.Len(t, j.take(), keys)
		assert.LessOrEqual(t, molecules.Remembered(r), 1024)
		require.NoError(t, r.Drain(t.Context()))
	})
}

// When the end of a run is told of, it is over: what is raised then is for the next.
func TestAHandlerOfTheEndRaisesForTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		r := newRunner(t, sink, molecules.Options{Order: molecules.OrderPerKey}, ship(&j, time.Minute, quick))
		core.NewKind[molecules.Event](molecules.SignalCompleted).Subscribe(sink, func(s core.Signal, e molecules.Event) {
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

// A step may do nothing but wait, and the first may, too.
func TestAStepThatOnlyAwaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		r := newRunner(t, sink, molecules.Options{}, molecules.Blueprint{Name: "m", On: "go", Steps: []molecules.Step{
			{Name: "wait", Await: "on.your.marks"},
			{Name: "then", Do: j.notes("then", nil)},
		}})
		sink.Raise("go")
		synctest.Wait()
		assert.Empty(t, j.take())
		sink.Raise("on.your.marks")
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, []string{"then"}, j.take())
	})
}

// Drain, too, ends the listening first, and not if it is called from inside.
func TestWhileItIsDrainedNothingIsSetOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		asked := 0
		var r *molecules.Runner
		b := blueprint(func(ctx context.Context, _ *molecules.Run) error {
			assert.ErrorIs(t, r.Drain(ctx), core.ErrWouldDeadlock)
			assert.ErrorIs(t, r.Drain(t.Context()), core.ErrWouldDeadlock)
			return nil
		}, takes(time.Second))
		b.When = func(core.Signal) bool { asked++; return true }
		r = newRunner(t, sink, molecules.Options{}, b)
		called := 0
		trigger := newTrigger(t, sink, "go", func(context.Context, core.Signal) error { called++; time.Sleep(time.Second); return nil }, molecules.TriggerOptions{})
		sink.Raise("go")
		synctest.Wait()
		sink.Raise("go")
		synctest.Wait()
		go func() { assert.NoError(t, r.Drain(t.Context())) }()
		go func() { assert.NoError(t, trigger.Drain(t.Context())) }()
		synctest.Wait()
		sink.Raise("go")
		time.Sleep(time.Minute)
		assert.Equal(t, 2, asked)
		assert.Equal(t, 2, called)
		assert.Zero(t, r.Stats().Rejected)
		assert.Zero(t, trigger.Stats().Rejected)
	})
}

// After its end a runner does not listen any more, to anything.
func TestNothingIsListenedToAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(*molecules.Runner){
		"Complete": func(r *molecules.Runner) { r.Complete() },
		"Drain":    func(r *molecules.Runner) { r.Drain(context.Background()) },
		"Close":    func(r *molecules.Runner) { r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, busy := range []bool{false, true} {
					sink := newSink()
					var j journal
					r := newRunner(t, sink, molecules.Options{}, ship(&j, time.Second, quick))
					if busy {
						sink.RaiseKey("placed", "a")
						synctest.Wait()
					}
					end(r)
					time.Sleep(time.Second)
					synctest.Wait()
					assert.False(t, molecules.Listens(r), busy)
				}
			})
		})
	}
}
