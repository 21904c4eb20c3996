package signalaware_test

import (
	"context"
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
