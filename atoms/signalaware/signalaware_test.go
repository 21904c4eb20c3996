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
	"github.com/ephemeralgo/ephemeral/core/signals"
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

// double is work behind the gate.
func double(_ context.Context, n int) (int, error) { return 2 * n, nil }

func TestACallGoesThroughOnItsOwnGoroutineWithItsOwnContext(t *testing.T) {
	done := func(core.Snapshot) { t.Error("a call is no operation of the gate") }
	g := newGate(t, func(o *core.Options) { o.OnDone, o.MaxQueued, o.Timeout = done, -1, 1 })
	n := 0
	call := signalaware.Wrap(g, func(ctx context.Context, n *int) error {
		*n++
		assert.Same(t, t.Context(), ctx)
		return errOnPurpose
	})
	assert.Equal(t, errOnPurpose, call(t.Context(), &n))
	assert.Equal(t, 1, n)
	assert.Zero(t, g.Stats().Enqueued)
	assert.Equal(t, "signalaware", g.Name())
}

// A call waits like an item, and ends at the instant of the change. Fault avoided: no
// signal said that a call ran because of MaxDefer.
func TestACallWaits(t *testing.T) {
	bubble(t, func(o *core.Options) { o.MaxDefer = time.Minute }, func(t *testing.T, g *gate) {
		raised := coretest.Watch(t, g.Sink(), core.SignalForced)
		call := signalaware.WrapResult(g, double)
		takes := func(want time.Duration, ctx context.Context) (int, error) {
			begun := time.Now()
			n, err := call(ctx, 1)
			assert.Equal(t, want, time.Since(begun))
			return n, err
		}
		g.Raise("backpressure.x")
		time.AfterFunc(time.Second+7, func() {
			g.Raise("go.on")
		})
		n, err := takes(time.Second+7, t.Context())
		assert.NoError(t, err)
		assert.Equal(t, 2, n)

		raised.None()

		g.Raise("backpressure.x")
		_, err = takes(time.Minute, t.Context())
		assert.NoError(t, err, "MaxDefer")
		assert.Equal(t, "signalaware.calls", raised.ExpectExactly(core.SignalForced)[0].Source)

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		_, err = takes(time.Second, ctx)
		assert.ErrorIs(t, err, errOnPurpose)

		time.AfterFunc(time.Second, func() { g.Raise("shutdown") })
		_, err = takes(time.Second, t.Context())
		assertRefused(t, err, "shutdown")
		_, err = takes(0, t.Context())
		assertRefused(t, err, "shutdown")
	})
}

// A call that waits at the gate gets ErrClosed from Close and ErrStopped from Stop; the
// other ways to end wait for it. A call that comes later gets ErrClosed.
func TestCallsAndTheLifecycle(t *testing.T) {
	background := context.Background()
	for name, c := range map[string]struct {
		end  func(g *gate) error
		call error // error of the waiting call
		late error
	}{
		"Close":    {func(g *gate) error { return g.Close() }, core.ErrClosed, core.ErrClosed},
		"Stop":     {func(g *gate) error { return g.Stop(background) }, core.ErrStopped, core.ErrClosed},
		"Drain":    {func(g *gate) error { return g.Drain(background) }, nil, core.ErrClosed},
		"Flush":    {func(g *gate) error { return g.Flush(background) }, nil, nil},
		"WaitIdle": {func(g *gate) error { return g.WaitIdle(background) }, nil, nil},
		"Complete": {func(g *gate) error { g.Complete(); return nil }, nil, core.ErrClosed},
		"Drain that gives up": {func(g *gate) error {
			ctx, cancel := context.WithTimeout(background, time.Second)
			defer cancel()
			if g.Drain(ctx) != context.DeadlineExceeded {
				return errOnPurpose
			}
			return nil
		}, nil, core.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, g *gate) {
				call := signalaware.Wrap(g, coretest.Run)
				g.Sink().Hold("backpressure.x", "", 3*time.Second)
				first, late, ended := make(chan error, 1), make(chan error, 1), make(chan error, 1)
				begun := time.Now()
				go func() { first <- call(background, quick) }()
				synctest.Wait()
				go func() { ended <- c.end(g) }()
				synctest.Wait()
				go func() { late <- call(background, quick) }()
				assert.ErrorIs(t, <-first, c.call)
				if c.call == nil {
					assert.Equal(t, 3*time.Second, time.Since(begun))
				}
				assert.ErrorIs(t, <-late, c.late)
				assert.NoError(t, <-ended)
			})
		})
	}
}

// The work of an item may make a call that waits at the same gate, and close it. Methods
// that would wait for the caller change nothing.
func TestFromInsideTheWork(t *testing.T) {
	bubble(t, func(o *core.Options) { o.MaxConcurrency = 1 }, func(t *testing.T, g *gate) {
		check := func(ctx context.Context) error {
			assert.ErrorIs(t, g.Flush(ctx), core.ErrWouldDeadlock)
			assert.ErrorIs(t, g.Stop(ctx), core.ErrWouldDeadlock)
			assert.ErrorIs(t, g.Drain(ctx), core.ErrWouldDeadlock)
			return nil
		}
		call := signalaware.Wrap(g, coretest.Run)
		cancel := g.Sink().Subscribe(signals.SignalStarted, func(signals.Signal) { g.Drain(t.Context()) }) // of a call
		assert.NoError(t, call(t.Context(), quick))
		cancel()
		id := enqueue(g, func(ctx context.Context) error {
			g.Raise("backpressure.x")
			return call(ctx, check)
		})
		synctest.Wait()
		x, _ := g.Explain(id)
		require.Len(t, x.Reasons, 2, "it says what it waits for, and what that waits for")
		assert.Equal(t, "backpressure.x", x.Reasons[1].Signal.Name)
		require.NoError(t, g.Wait(t.Context(), id))
		g.Sink().Retract("*")
		assert.NoError(t, g.Do(t.Context(), func(context.Context) error { return g.Close() }))
	})
}

type badContext struct{ context.Context }

func (badContext) Err() error { panic("on purpose") }

// A context that panics leaves the gate as it was.
func TestACallWhoseContextPanics(t *testing.T) {
	g := newGate(t, nil)
	call := signalaware.Wrap(g, coretest.Run)
	assert.Panics(t, func() { call(badContext{t.Context()}, quick) })
	assert.NoError(t, call(t.Context(), quick))
}
