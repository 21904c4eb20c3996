package signalaware_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/signalaware"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

var errOnPurpose = errors.New("failed on purpose")

type gate = signalaware.Gate[coretest.Body]

// newGate makes a gate with the usual options, after change has changed them.
func newGate(t testing.TB, change func(*core.Options)) *gate {
	opts := core.Options{CancelOn: "shutdown, circuit-*", DeferOn: "backpressure.*", ResumeOn: "go.on"}
	if change != nil {
		change(&opts)
	}
	g := core.Must(signalaware.New(coretest.Run, opts))
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	return g
}

// bubble runs a test with a gate.
func bubble(t *testing.T, change func(*core.Options), test func(*testing.T, *gate)) {
	synctest.Test(t, func(t *testing.T) { test(t, newGate(t, change)) })
}

func enqueue(g *gate, body coretest.Body) core.OperationID {
	return core.Must(g.TryEnqueue(context.Background(), body))
}

func assertRefused(t testing.TB, err error, signal string) {
	t.Helper()
	var refused *core.RefusedError
	if assert.ErrorAs(t, err, &refused) {
		assert.Equal(t, signal, refused.Signal.Name)
	}
}

func quick(context.Context) error { return nil }

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		g := core.Must(signalaware.New(coretest.Run, core.Options{CancelOn: "shutdown", DeferOn: "backpressure.*", MaxConcurrency: 1, MaxQueued: 2}))
		submit := func(ctx context.Context, body coretest.Body) error {
			_, err := g.Enqueue(ctx, body)
			return err
		}
		return coretest.Subject{Lifecycle: g, Submit: submit, Sink: g.Sink(), Stats: g.Stats, WaitIdle: g.WaitIdle}
	})
}

// An item is refused with an error that names the signal, when it comes or while it waits,
// and does not count as failed. Refusing wins over deferring. Fault avoided: the refusal
// was easy to ignore.
func TestRefused(t *testing.T) {
	bubble(t, nil, func(t *testing.T, g *gate) {
		g.Raise("backpressure.x")
		waiting := enqueue(g, func(context.Context) error { t.Error("it ran"); return nil })
		begun := time.Now()
		release := g.Sink().Hold("shutdown", "deploy-7", 0)
		assertRefused(t, g.Wait(t.Context(), waiting), "shutdown")
		assert.Equal(t, begun, time.Now(), "at once")
		id, err := g.Enqueue(t.Context(), quick)
		assert.Zero(t, id)
		assertRefused(t, err, "shutdown")
		g.Raise("backpressure.x") // after it
		why := g.Why()[0]
		assert.Equal(t, []any{core.ReasonRefused, "shutdown"}, []any{why.Kind, why.Signal.Name})
		assert.Equal(t, err, g.Do(t.Context(), quick))
		s := g.Stats()
		assert.Equal(t, []uint64{1, 1, 0, 2}, []uint64{s.Enqueued, s.Refused, s.Failed, s.Rejected})
		release()
		g.Sink().Retract("backpressure.*")
		assert.NoError(t, g.Do(t.Context(), quick))
	})
}

func TestWhy(t *testing.T) {
	bubble(t, func(o *core.Options) { o.MaxQueued = -1 }, func(t *testing.T, g *gate) {
		assert.Empty(t, g.Why())
		assert.False(t, g.Raise(""), "blank is ignored")
		g.Raise("backpressure.x")
		g.Sink().Hold("backpressure.db", "orders", time.Second)
		now := time.Now()
		check := func() {
			why := g.Why()
			require.Len(t, why, 2)
			assert.Equal(t, core.ReasonDeferred, why[0].Kind)
			assert.True(t, now.Add(time.Second).Equal(why[0].Expires))
			assert.Zero(t, why[0].Forced, "MaxDefer does not end a held signal")
			assert.Equal(t, `deferred because of held signal "backpressure.db" for "orders"`, why[0].String())
			assert.Equal(t, "backpressure.x", why[1].Signal.Name)
		}
		check()
		check()
		assert.NoError(t, g.Flush(t.Context()))
		assert.Equal(t, now, time.Now(), "it leaves nothing behind that Flush waits for")

		call := signalaware.Wrap(g, func(context.Context, int) error { return nil })
		var passed atomic.Int64
		for range 1025 {
			go func() {
				if call(t.Context(), 1) == nil {
					passed.Add(1)
				}
			}()
		}
		synctest.Wait()
		check()                     // passes although the queue of calls is full
		time.Sleep(5 * time.Second) // MaxDefer
		synctest.Wait()
		assert.EqualValues(t, 1025, passed.Load(), "they wait together, without a bound")
		require.NoError(t, g.Drain(t.Context()))
		assert.Empty(t, g.Why(), "a call would get ErrClosed")
	})
}

// A signal ends the intake of items whose Name its key matches. When they are finished, calls get
// ErrClosed, too, though the key does not match their Source.
func TestDrainOn(t *testing.T) {
	bubble(t, func(o *core.Options) { o.Name, o.DrainOn = "mail", "drain" }, func(t *testing.T, g *gate) {
		call := signalaware.Wrap(g, coretest.Run)
		finish := make(chan struct{})
		id := enqueue(g, func(context.Context) error { <-finish; return nil })
		g.Sink().RaiseKey("drain", "mail")
		assert.NoError(t, call(t.Context(), quick))
		close(finish)
		assert.NoError(t, g.Wait(t.Context(), id))
		synctest.Wait()
		assert.ErrorIs(t, call(t.Context(), quick), core.ErrClosed)
	})
}

// Options of lanes are about items. ResumeOn may be for lanes alone.
func TestLanes(t *testing.T) {
	bubble(t, func(o *core.Options) {
		o.DeferOn, o.ResumeOn, o.Lanes = "", "go.on", []core.Lane{{Name: "hot"}, {Name: "cold", DeferOn: "calm"}}
	}, func(t *testing.T, g *gate) {
		g.Raise("calm")
		cold := core.Must(g.Lane("cold").Submit(t.Context(), quick))
		assert.NoError(t, g.Lane("hot").Do(t.Context(), quick))
		assert.NoError(t, signalaware.Wrap(g, coretest.Run)(t.Context(), quick))
		assert.Equal(t, 1, g.Stats().Pending)
		g.Raise("shutdown")
		_, err := cold.Wait(t.Context())
		assertRefused(t, err, "shutdown")
	})
}

func TestErrors(t *testing.T) {
	_, err := signalaware.New(coretest.Run, core.Options{MaxConcurrency: -1})
	assert.ErrorContains(t, err, "signalaware: core: Options.MaxConcurrency")
	assert.PanicsWithValue(t, "signalaware: Wrap needs a gate and a function", func() { signalaware.Wrap[int](new(gate), nil) })
	assert.PanicsWithValue(t, "signalaware: WrapResult needs a gate and a function", func() {
		signalaware.WrapResult[int, int, int](nil, double)
	})
}
