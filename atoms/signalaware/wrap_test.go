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
)

// double is what is put behind the gate.
func double(_ context.Context, n int) (int, error) { return 2 * n, nil }

func TestACallGoesThroughOnItsOwnGoroutineWithItsOwnContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, usual())
		call := signalaware.Wrap(g, func(ctx context.Context, n *int) error {
			*n++
			assert.Same(t, t.Context(), ctx)
			return errOnPurpose
		})
		n := 0
		assert.Equal(t, errOnPurpose, call(t.Context(), &n))
		assert.Equal(t, 1, n)
		assert.Equal(t, signalaware.CallStats{Calls: 1, Passed: 1}, g.Calls())
		assert.Zero(t, g.Stats().Enqueued)
		require.NoError(t, g.Close())
	})
}

func TestACallIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, usual())
		call := signalaware.WrapResult(g, double)
		g.Raise("shutdown")
		_, err := call(t.Context(), 1)
		var refused *core.RefusedError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, "shutdown", refused.Signal.Name)
		g.Retract("shutdown")
		n, err := call(t.Context(), 1)
		assert.NoError(t, err)
		assert.Equal(t, 2, n)

		g.Raise("backpressure.x")
		time.AfterFunc(time.Second, func() { g.Raise("shutdown") })
		begun := time.Now()
		_, err = call(t.Context(), 1)
		assert.ErrorAs(t, err, &refused, "while it waits")
		assert.Equal(t, time.Second, time.Since(begun))
		assert.Equal(t, signalaware.CallStats{Calls: 3, Passed: 1, Refused: 2}, g.Calls())
		require.NoError(t, g.Close())
	})
}

func TestACallWaitsAndGoesOnInTheVeryInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, usual())
		call := signalaware.WrapResult(g, double)
		g.Raise("backpressure.x")
		time.AfterFunc(time.Second+7, func() {
			assert.Equal(t, 1, g.Calls().Waiting)
			g.Retract("backpressure.*")
		})
		begun := time.Now()
		_, err := call(t.Context(), 1)
		assert.NoError(t, err)
		assert.Equal(t, time.Second+7, time.Since(begun))

		g.Hold("backpressure.x", "", time.Minute)
		forced := coretest.Watch(t, g.Sink(), core.SignalForced)
		begun = time.Now()
		_, err = call(t.Context(), 1)
		assert.NoError(t, err)
		assert.Equal(t, 5*time.Second, time.Since(begun), "MaxDefer")
		forced.ExpectExactly(core.SignalForced)

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		begun = time.Now()
		_, err = call(ctx, 1)
		assert.ErrorIs(t, err, errOnPurpose)
		assert.Equal(t, time.Second, time.Since(begun))
		assert.Equal(t, signalaware.CallStats{Calls: 3, Passed: 2, Forced: 1, GaveUp: 1}, g.Calls())
		require.NoError(t, g.Close())
	})
}

// A call that waits is refused in the very instant, too.
func TestACallIsRefusedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, usual())
		call := signalaware.WrapResult(g, double)
		g.Hold("backpressure.x", "", 0)
		time.AfterFunc(time.Second, func() { g.Raise("shutdown") })
		begun := time.Now()
		_, err := call(t.Context(), 1)
		assert.ErrorAs(t, err, new(*core.RefusedError))
		assert.Equal(t, time.Second, time.Since(begun))
		assert.Equal(t, signalaware.CallStats{Calls: 1, Refused: 1}, g.Calls())
		require.NoError(t, g.Close())
	})
}

// Calls are let through in the order in which they came, one does not hold up
// another, and many waiting ones are bounded by their contexts only.
func TestManyCallsWaitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := usual()
		opts.MaxQueued = 10
		g := newGate(t, opts)
		call := signalaware.Wrap(g, func(context.Context, int) error { time.Sleep(time.Hour); return nil })
		g.Raise("backpressure.x")
		begun := time.Now()
		done := make(chan error, 30)
		for i := range 30 {
			go func() { done <- call(t.Context(), i) }()
		}
		synctest.Wait()
		assert.Equal(t, 30, g.Calls().Waiting)
		g.Retract("*")
		for range 30 {
			assert.NoError(t, <-done)
		}
		assert.Equal(t, time.Hour, time.Since(begun))
		require.NoError(t, g.Close())
	})
}

// What waits at the gate when it closes, or comes later, gets ErrClosed; a Drain
// waits until it has been let through.
func TestCallsAndTheLifecycle(t *testing.T) {
	for name, end := range map[string]func(g *signalaware.Gate[coretest.Body]) error{
		"Close":    func(g *signalaware.Gate[coretest.Body]) error { return g.Close() },
		"Drain":    func(g *signalaware.Gate[coretest.Body]) error { return g.Drain(context.Background()) },
		"Flush":    func(g *signalaware.Gate[coretest.Body]) error { return g.Flush(context.Background()) },
		"Complete": func(g *signalaware.Gate[coretest.Body]) error { g.Complete(); return nil },
		"Drain that gives up": func(g *signalaware.Gate[coretest.Body]) error {
			g.TryEnqueue(func(context.Context) error { time.Sleep(10 * time.Second); return nil })
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if g.Drain(ctx) != context.DeadlineExceeded {
				return errOnPurpose
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, usual())
				call := signalaware.WrapResult(g, double)
				g.Hold("backpressure.x", "", 3*time.Second)
				done := make(chan error)
				begun := time.Now()
				go func() {
					_, err := call(context.Background(), 1)
					done <- err
				}()
				synctest.Wait()
				ended := make(chan error, 1)
				go func() { ended <- end(g) }()
				synctest.Wait()
				_, late := call(t.Context(), 1)
				if name != "Flush" {
					assert.ErrorIs(t, late, core.ErrClosed)
				}
				err := <-done
				if name == "Close" {
					assert.ErrorIs(t, err, core.ErrClosed)
				} else {
					assert.NoError(t, err)
					assert.Equal(t, 3*time.Second, time.Since(begun))
				}
				assert.NoError(t, <-ended)
				require.NoError(t, g.Close())
			})
		})
	}
}

// The work of an item may call what waits at the same gate, and flush and close it.
func TestACallFromInsideTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := usual()
		opts.MaxConcurrency = 1
		g := newGate(t, opts)
		call := signalaware.Wrap(g, func(ctx context.Context, _ int) error {
			assert.ErrorIs(t, g.Flush(ctx), core.ErrWouldDeadlock)
			assert.ErrorIs(t, g.Drain(ctx), core.ErrWouldDeadlock)
			return nil
		})
		id := enqueue(t, g, func(ctx context.Context) error {
			g.Raise("backpressure.x")
			return call(ctx, 1)
		})
		synctest.Wait()
		x, _ := g.Explain(id)
		require.Len(t, x.Reasons, 2, "it says what it waits for, and what that waits for")
		assert.Equal(t, "backpressure.x", x.Reasons[1].Signal.Name)
		require.NoError(t, g.Wait(t.Context(), id))
		assert.Equal(t, uint64(1), g.Calls().Forced)

		g.Retract("*")
		assert.NoError(t, g.Do(t.Context(), func(ctx context.Context) error { return g.Close() }))
		require.NoError(t, g.Close())
	})
}

type badContext struct{ context.Context }

func (badContext) Err() error { panic("on purpose") }

// A context that panics is not the gate's fault, and leaves it as it was.
func TestACallWhoseContextPanics(t *testing.T) {
	g := newGate(t, usual())
	call := signalaware.Wrap(g, func(context.Context, int) error { return nil })
	assert.Panics(t, func() { call(badContext{t.Context()}, 1) })
	assert.Equal(t, signalaware.CallStats{Calls: 1, GaveUp: 1}, g.Calls())
	assert.NoError(t, call(t.Context(), 1))
	require.NoError(t, g.Close())
}

func TestWrapNeedsAGateAndAFunction(t *testing.T) {
	g := newGate(t, usual())
	defer g.Close()
	assert.PanicsWithValue(t, "signalaware: Wrap needs a gate and a function", func() { signalaware.Wrap[int](g, nil) })
	assert.PanicsWithValue(t, "signalaware: WrapResult needs a gate and a function", func() {
		signalaware.WrapResult[int, int, int](nil, double)
	})
}
