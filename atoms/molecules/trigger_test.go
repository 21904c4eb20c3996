package molecules_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func newTrigger(t testing.TB, sink *core.Sink, pattern string, fn func(context.Context, core.Signal) error, opts molecules.TriggerOptions) *molecules.Trigger {
	t.Helper()
	trigger, err := molecules.NewTrigger(sink, pattern, fn, opts)
	require.NoError(t, err)
	return trigger
}

// Weak points: dispose of a trigger does not wait, and a second one throws.
func TestTriggerLifecycle(t *testing.T) {
	body := core.NewKind[coretest.Body]("coretest.body")
	for _, order := range []molecules.Order{molecules.OrderNone, molecules.OrderPerKey, molecules.OrderSerial} {
		t.Run(order.String(), func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				sink := newSink()
				trigger := newTrigger(t, sink, "coretest.body", func(ctx context.Context, s core.Signal) error {
					run, _ := body.From(s)
					return run(ctx)
				}, molecules.TriggerOptions{Order: order})
				return coretest.Subject{
					Lifecycle: trigger,
					Submit:    submit(body, sink, trigger.Stats),
					Sink:      sink,
					Stats:     trigger.Stats,
				}
			})
		})
	}
}

// Weak point: no order between matches.
func TestTriggerSerialHandlesSignalsInTheOrderInWhichTheyWereRaised(t *testing.T) {
	for _, order := range []molecules.Order{molecules.OrderSerial, molecules.OrderPerKey} {
		t.Run(order.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := newSink()
				var j journal
				trigger := newTrigger(t, sink, "n:*", func(_ context.Context, s core.Signal) error {
					n, _ := s.Arg()
					j.add("+%s", n)
					time.Sleep(time.Second)
					j.add("-%s", n)
					return nil
				}, molecules.TriggerOptions{Order: order})
				var want []string
				for i := range 20 {
					sink.Raise(fmt.Sprint("n:", i))
					want = append(want, fmt.Sprint("+", i), fmt.Sprint("-", i))
				}
				begun := time.Now()
				require.NoError(t, trigger.Drain(t.Context()))
				assert.Equal(t, 20*time.Second, time.Since(begun))
				assert.Equal(t, want, j.take())
			})
		})
	}
}

// Weak point: no limit.
func TestTriggerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		signals := coretest.Watch(t, sink, "trigger.*")
		trigger := newTrigger(t, sink, "go", func(context.Context, core.Signal) error { time.Sleep(time.Minute); return nil },
			molecules.TriggerOptions{Name: "mail", MaxConcurrency: 2, MaxQueued: 3})
		for i := range 7 {
			sink.RaiseKey("go", fmt.Sprint(i))
			synctest.Wait()
		}
		s := trigger.Stats()
		assert.Equal(t, []int{2, 3, 2}, []int{s.Running, s.Pending, int(s.Rejected)})
		told := signals.ExpectExactly(molecules.SignalTriggerDropped, molecules.SignalTriggerDropped)
		assert.Equal(t, "5", told[0].Key)
		event := told[0].Payload().(molecules.TriggerEvent)
		assert.Equal(t, "mail", event.Trigger)
		assert.Equal(t, core.ErrFull, event.Err)
		require.NoError(t, trigger.Close())
		signals.None()
		assert.Equal(t, uint64(3), trigger.Stats().Cancelled, "those that ran have returned nil")
	})
}

// Weak point: errors of callbacks vanish.
func TestTriggerErrorsAreCountedAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		signals := coretest.Watch(t, sink, "trigger.*, atom.panic")
		var j journal
		trigger := newTrigger(t, sink, "go", func(ctx context.Context, s core.Signal) error {
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
		}, molecules.TriggerOptions{Order: molecules.OrderSerial, OnError: func(s core.Signal, err error) { j.add("%s %T", s.Key, err) }})
		for _, key := range []string{"error", "fine", "panic", "exit"} {
			sink.RaiseKey("go", key)
		}
		require.NoError(t, trigger.Flush(t.Context()))
		told := signals.ExpectExactly(molecules.SignalTriggerFailed, core.SignalPanic, molecules.SignalTriggerFailed, molecules.SignalTriggerFailed)
		assert.Equal(t, "error", told[0].Key)
		assert.Equal(t, "trigger", told[0].Source)
		assert.Equal(t, []string{"go", molecules.SignalTriggerFailed}, told[0].Path())
		assert.ErrorIs(t, told[0].Payload().(molecules.TriggerEvent).Err, errOnPurpose)
		assert.ErrorIs(t, told[2].Payload().(molecules.TriggerEvent).Err, errOnPurpose)
		assert.Equal(t, []string{"error *errors.errorString", "panic *core.PanicError", "exit *core.PanicError"}, j.take())

		sink.RaiseKey("go", "close")
		synctest.Wait()
		require.NoError(t, trigger.Close())
		signals.None()
		assert.Empty(t, j.take(), "cancelled is not failed")
		s := trigger.Stats()
		assert.Equal(t, []uint64{1, 3, 1}, []uint64{s.Succeeded, s.Failed, s.Cancelled})
	})
}

func TestOnErrorIsToldEvenIfAHandlerEndsTheGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		sink.Subscribe(molecules.SignalTriggerFailed, func(core.Signal) { runtime.Goexit() })
		var told []error
		trigger, err := molecules.NewTrigger(sink, "go", func(context.Context, core.Signal) error { return errOnPurpose },
			molecules.TriggerOptions{OnError: func(_ core.Signal, err error) { told = append(told, err) }})
		require.NoError(t, err)
		sink.Raise("go")
		require.NoError(t, trigger.Drain(t.Context()))
		assert.Equal(t, []error{errOnPurpose}, told)
	})
}

// Weak point: no cycle guard.
func TestTriggersThatSetEachOtherOffComeToAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{Propagation: core.Propagation{AllowCycles: true, MaxDepth: 5}})
		raise := func(name string) func(context.Context, core.Signal) error {
			return func(_ context.Context, s core.Signal) error { sink.Because(s).Raise(name); return nil }
		}
		ping := newTrigger(t, sink, "ping", raise("pong"), molecules.TriggerOptions{})
		pong := newTrigger(t, sink, "pong", raise("ping"), molecules.TriggerOptions{})
		sink.Raise("ping")
		synctest.Wait()
		assert.Equal(t, []uint64{3, 3}, []uint64{ping.Stats().Succeeded, pong.Stats().Succeeded})
		require.NoError(t, ping.Close())
		require.NoError(t, pong.Close())
	})
}

// What a trigger says of itself, and its callback through its operation, does not
// come back to it.
func TestATriggerDoesNotReactToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		trigger := newTrigger(t, sink, "*", func(ctx context.Context, s core.Signal) error {
			core.OperationFrom(ctx).Raise("noise")
			return errOnPurpose
		}, molecules.TriggerOptions{})
		sink.Raise("go")
		synctest.Wait()
		assert.Equal(t, uint64(1), trigger.Stats().Failed)
		require.NoError(t, trigger.Close())
	})
}

// A trigger reacts to what becomes of molecules.
func TestATriggerOnWhatBecomesOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		trigger := newTrigger(t, sink, molecules.SignalFailed, func(_ context.Context, s core.Signal) error {
			j.add("%s: %v", s.Key, s.Payload().(molecules.Event).Err)
			return nil
		}, molecules.TriggerOptions{})
		r := newRunner(t, sink, molecules.Options{}, blueprint(fail))
		sink.RaiseKey("go", "a")
		require.NoError(t, r.Drain(t.Context()))
		require.NoError(t, trigger.Drain(t.Context()))
		assert.Equal(t, []string{`a: molecules: step "step0" of "m": failed on purpose`}, j.take())
	})
}

func TestNewTriggerSaysWhatIsWrong(t *testing.T) {
	sink := newSink()
	fn := func(context.Context, core.Signal) error { return nil }
	for _, c := range []struct {
		sink    *core.Sink
		pattern string
		fn      func(context.Context, core.Signal) error
		opts    molecules.TriggerOptions
		want    string
	}{
		{nil, "go", fn, molecules.TriggerOptions{}, "there must be a sink"},
		{sink, " , ", fn, molecules.TriggerOptions{}, `pattern of the trigger is " , "`},
		{sink, "go", nil, molecules.TriggerOptions{}, "there must be a function"},
		{sink, "go", fn, molecules.TriggerOptions{Order: -1}, "Order(-1)"},
		{sink, "go", fn, molecules.TriggerOptions{MaxQueued: -1}, "MaxQueued"},
		{sink, "go", fn, molecules.TriggerOptions{MaxConcurrency: 2, Order: molecules.OrderSerial}, "MaxConcurrency is 2"},
	} {
		trigger, err := molecules.NewTrigger(c.sink, c.pattern, c.fn, c.opts)
		assert.Nil(t, trigger)
		assert.ErrorContains(t, err, "molecules: ")
		assert.ErrorContains(t, err, c.want)
	}
	trigger := newTrigger(t, sink, "go", fn, molecules.TriggerOptions{})
	assert.Equal(t, "trigger", trigger.Name())
	require.NoError(t, trigger.Close())
	sink.Raise("go")
	assert.Zero(t, trigger.Stats().Rejected)
	assert.Empty(t, slices.Collect(trigger.Operations(core.OperationQuery{})))
}
