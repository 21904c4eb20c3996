package molecules_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func TestTriggerLifecycle(t *testing.T) {
	body := signals.NewKind[coretest.Body]("coretest.body")
	for _, order := range []molecules.Order{molecules.OrderNone, molecules.OrderPerKey, molecules.OrderSerial} {
		t.Run(order.String(), func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				sink := newSink()
				trigger := core.Must(molecules.NewTrigger(sink, "coretest.body", func(ctx context.Context, s signals.Signal) error {
					run, _ := body.From(s)
					return run(ctx)
				}, molecules.TriggerOptions{Order: order}))
				return coretest.Subject{
					Lifecycle: trigger,
					Submit:    submit(body, sink, trigger.Stats),
					Sink:      sink,
					Stats:     trigger.Stats,
					WaitIdle:  trigger.WaitIdle,
				}
			})
		})
	}
}

func TestTriggerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		facts := coretest.Watch(t, sink, "trigger.*")
		trigger := core.Must(molecules.NewTrigger(sink, "go", func(context.Context, signals.Signal) error { time.Sleep(time.Minute); return nil },
			molecules.TriggerOptions{Name: "mail", MaxConcurrency: 2, MaxQueued: 3}))
		for i := range 7 {
			sink.RaiseKey("go", fmt.Sprint(i))
			synctest.Wait()
		}
		s := trigger.Stats()
		assert.Equal(t, []int{2, 3, 2}, []int{s.Running, s.Pending, int(s.Rejected)})
		raised := facts.ExpectExactly(molecules.SignalTriggerDropped, molecules.SignalTriggerDropped)
		assert.Equal(t, "5", raised[0].Key)
		dropped, _ := molecules.TriggerEvents.From(raised[0])
		assert.Equal(t, "mail", dropped.Trigger)
		assert.ErrorIs(t, dropped.Err, core.ErrFull)
		require.NoError(t, trigger.Close())
		assert.Equal(t, uint64(3), trigger.Stats().Cancelled, "the queued ones; those that ran have returned nil")
	})
}

// A failed call is counted and signalled, and OnError is called. A cancelled call does not count as
// failed.
func TestTriggerErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		facts := coretest.Watch(t, sink, "trigger.*, operation.panicked")
		var j journal
		trigger := core.Must(molecules.NewTrigger(sink, "go", func(ctx context.Context, s signals.Signal) error {
			switch s.Key {
			case "error":
				return errOnPurpose
			case "panic":
				panic(errOnPurpose)
			case "exit":
				runtime.Goexit()
			case "close":
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}, molecules.TriggerOptions{Order: molecules.OrderSerial, OnError: func(s signals.Signal, err error) { j.add("%s %T", s.Key, err) }}))
		for _, key := range []string{"error", "fine", "panic", "exit"} {
			sink.RaiseKey("go", key)
		}
		require.NoError(t, trigger.Flush(t.Context()))
		raised := facts.ExpectExactly(molecules.SignalTriggerFailed, core.SignalPanicked, molecules.SignalTriggerFailed, molecules.SignalTriggerFailed)
		assert.Equal(t, "error", raised[0].Key)
		assert.Equal(t, "trigger", raised[0].Source)
		assert.Equal(t, []string{"go", molecules.SignalTriggerFailed}, raised[0].Path())
		for _, i := range []int{0, 2} {
			failed, _ := molecules.TriggerEvents.From(raised[i])
			assert.ErrorIs(t, failed.Err, errOnPurpose)
		}
		assert.Equal(t, []string{"error *errors.errorString", "panic *core.PanicError", "exit *core.PanicError"}, j.take())

		cancel := sink.Subscribe(molecules.SignalTriggerFailed, func(signals.Signal) { runtime.Goexit() })
		sink.RaiseKey("go", "error")
		require.NoError(t, trigger.Flush(t.Context()))
		facts.ExpectExactly(molecules.SignalTriggerFailed)
		assert.Equal(t, []string{"error *errors.errorString"}, j.take(), "a handler that ends the goroutine does not prevent it")
		cancel()

		sink.RaiseKey("go", "close")
		synctest.Wait()
		require.NoError(t, trigger.Close())
		facts.None()
		assert.Empty(t, j.take())
		s := trigger.Stats()
		assert.Equal(t, []uint64{1, 4, 1}, []uint64{s.Succeeded, s.Failed, s.Cancelled})
	})
}

// A trigger reacts neither to the signals about itself nor to signals that its function raises
// through the operation without a cause.
func TestATriggerDoesNotReactToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		sink.Subscribe("operation.*", func(signals.Signal) {}) // makes operations raise these
		trigger := core.Must(molecules.NewTrigger(sink, "*", func(ctx context.Context, s signals.Signal) error {
			core.OperationFrom(ctx).Raise("noise")
			return errOnPurpose
		}, molecules.TriggerOptions{}))
		sink.Raise("go")
		synctest.Wait()
		assert.Equal(t, uint64(1), trigger.Stats().Failed)
		require.NoError(t, trigger.Close())
		sink.Raise("go")
		assert.Zero(t, trigger.Stats().Rejected, "it does not listen any more")
	})
}

func TestNewTriggerSaysWhatIsWrong(t *testing.T) {
	sink := newSink()
	fn := func(context.Context, signals.Signal) error { return nil }
	for want, c := range map[string]struct {
		sink    *signals.Sink
		pattern string
		fn      func(context.Context, signals.Signal) error
		opts    molecules.TriggerOptions
	}{
		"the sink of a trigger is nil":               {nil, "go", fn, molecules.TriggerOptions{}},
		`the pattern of a trigger is " , "`:          {sink, " , ", fn, molecules.TriggerOptions{}},
		`the function of the trigger on "go" is nil`: {sink, "go", nil, molecules.TriggerOptions{}},
		`Options.Name is "\t", it must not be blank`: {sink, "go", fn, molecules.TriggerOptions{Name: "\t"}},
		`Options.Order of "trigger" is Order(-1)`:    {sink, "go", fn, molecules.TriggerOptions{Order: -1}},
	} {
		trigger, err := molecules.NewTrigger(c.sink, c.pattern, c.fn, c.opts)
		assert.Nil(t, trigger)
		assert.ErrorContains(t, err, "molecules: ")
		assert.ErrorContains(t, err, want)
	}
}
