package signalaware_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
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

func newGate(t testing.TB, opts signalaware.Options) *signalaware.Gate[coretest.Body] {
	t.Helper()
	g, err := signalaware.New(coretest.Run, opts)
	require.NoError(t, err)
	return g
}

func enqueue(t testing.TB, g *signalaware.Gate[coretest.Body], body coretest.Body) core.OperationID {
	t.Helper()
	id, err := g.TryEnqueue(body)
	require.NoError(t, err)
	return id
}

func quick(context.Context) error { return nil }

// usual are the options of most tests.
func usual() signalaware.Options {
	return signalaware.Options{CancelOn: "shutdown, circuit-*", DeferOn: "backpressure.*", ResumeOn: "go.on", Sink: core.NewSink(core.SinkOptions{})}
}

func TestLifecycle(t *testing.T) {
	for name, opts := range map[string]signalaware.Options{
		"zero options": {},
		"conditions":   {CancelOn: "shutdown", DeferOn: "backpressure.*", MaxDefer: -1, MaxConcurrency: 1, MaxQueued: 2, MaxTracked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				g := newGate(t, opts)
				return coretest.Subject{
					Lifecycle: g,
					Submit: func(ctx context.Context, body coretest.Body) error {
						_, err := g.Enqueue(ctx, body)
						return err
					},
					Sink:  g.Sink(),
					Stats: g.Stats,
				}
			})
		})
	}
}

// Weak point: signals on the sink never reject, signals on the atom never defer.
func TestSignalsCountWhereverTheyAreRaised(t *testing.T) {
	for name, raise := range map[string]func(g *signalaware.Gate[coretest.Body], name string){
		"on the gate":      func(g *signalaware.Gate[coretest.Body], name string) { g.Raise(name) },
		"on the sink":      func(g *signalaware.Gate[coretest.Body], name string) { g.Sink().Raise(name) },
		"held on the gate": func(g *signalaware.Gate[coretest.Body], name string) { g.Hold(name, "why", 0) },
		"held on the sink": func(g *signalaware.Gate[coretest.Body], name string) { g.Sink().Hold(name, "", time.Hour) },
		"by an operation":  func(g *signalaware.Gate[coretest.Body], name string) { byOperation(g, name) },
		"pushed out by other": func(g *signalaware.Gate[coretest.Body], name string) {
			g.Raise(name)
			g.Sink().Resize(1, 0)
			g.Raise("chatter")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, usual())
				raise(g, "backpressure.downstream")
				id := enqueue(t, g, quick)
				synctest.Wait()
				op, _ := g.Lookup(id)
				assert.Equal(t, core.StatusPending, op.Status)
				raise(g, "circuit-open")
				_, err := g.TryEnqueue(quick)
				assert.ErrorAs(t, err, new(*core.RefusedError))
				require.NoError(t, g.Close())
			})
		})
	}
}

func byOperation(g *signalaware.Gate[coretest.Body], name string) {
	other, err := core.NewCoordinator(coretest.Run, core.Options{Sink: g.Sink()})
	if err != nil {
		panic(err)
	}
	if err := other.Do(context.Background(), func(ctx context.Context) error { core.OperationFrom(ctx).Raise(name); return nil }); err != nil {
		panic(err)
	}
}

// Weak point: the ambient set can never be emptied, so one signal rejects for the
// rest of the atom's life.
func TestConditionsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(g *signalaware.Gate[coretest.Body], name string) (end func())
		ends  time.Duration
	}{
		"retracted": {begin: func(g *signalaware.Gate[coretest.Body], name string) func() {
			g.Raise(name)
			return func() { assert.Equal(t, 1, g.Retract(name+"*")) }
		}},
		"released": {begin: func(g *signalaware.Gate[coretest.Body], name string) func() { return g.Hold(name, "", 0) }},
		"leased": {begin: func(g *signalaware.Gate[coretest.Body], name string) func() {
			g.Hold(name, "", time.Second)
			return func() {}
		}, ends: time.Second},
		"aged": {begin: func(g *signalaware.Gate[coretest.Body], name string) func() {
			g.Sink().Resize(10, time.Second)
			g.Raise(name)
			return func() {}
		}, ends: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, usual())
				end := c.begin(g, "shutdown")
				_, err := g.TryEnqueue(quick)
				require.ErrorAs(t, err, new(*core.RefusedError))
				end()
				time.Sleep(c.ends)
				enqueue(t, g, quick)

				end = c.begin(g, "backpressure.x")
				begun := time.Now()
				var ran time.Duration
				enqueue(t, g, func(context.Context) error { ran = time.Since(begun); return nil })
				synctest.Wait()
				end()
				require.NoError(t, g.Drain(t.Context()))
				assert.Equal(t, c.ends, ran)
				assert.Zero(t, g.Stats().Forced)
			})
		})
	}
}

// Weak point: -1 as a result is easy to ignore.
func TestARefusedItemIsAnErrorThatNamesTheSignal(t *testing.T) {
	g := newGate(t, usual())
	defer g.Close()
	g.Hold("shutdown", "deploy-7", 0)
	id, err := g.Enqueue(t.Context(), quick)
	assert.Zero(t, id)
	var refused *core.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "shutdown", refused.Signal.Name)
	assert.Equal(t, "deploy-7", refused.Signal.Key)
	assert.Equal(t, refused, g.Do(t.Context(), quick))
}

// Weak point: items skipped because of a signal count as failed, have no operation
// and leave no trace.
func TestAnItemRefusedWhileItWaitsIsNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, usual())
		g.Raise("backpressure.x")
		id := enqueue(t, g, func(context.Context) error { t.Error("it ran"); return nil })
		synctest.Wait()
		begun := time.Now()
		g.Raise("shutdown")
		assert.ErrorAs(t, g.Wait(t.Context(), id), new(*core.RefusedError))
		assert.Equal(t, begun, time.Now(), "at once")
		op, _ := g.Lookup(id)
		assert.Equal(t, core.StatusRefused, op.Status)
		_, err := g.TryEnqueue(quick)
		assert.Error(t, err)
		s := g.Stats()
		assert.Equal(t, []uint64{1, 1, 0, 1}, []uint64{s.Enqueued, s.Refused, s.Failed, s.Rejected})
		require.NoError(t, g.Close())
	})
}

// Must: cancel wins over defer, whichever came first.
func TestCancelWinsOverDefer(t *testing.T) {
	for _, order := range [][2]string{{"shutdown", "backpressure.x"}, {"backpressure.x", "shutdown"}} {
		g := newGate(t, usual())
		g.Raise(order[0])
		g.Raise(order[1])
		_, err := g.TryEnqueue(quick)
		assert.ErrorAs(t, err, new(*core.RefusedError), order)
		why := g.Why()
		require.Len(t, why, 1)
		assert.Equal(t, core.ReasonRefused, why[0].Kind)
		require.NoError(t, g.Close())
	}
}

// Weak point: while one item is deferring the whole intake is stopped, and each
// waits as long again, so 100 items might take 100 x 5 s.
func TestDeferredItemsWaitTogetherAndHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := usual()
		opts.MaxConcurrency = 1
		g := newGate(t, opts)
		begun := time.Now()
		g.Raise("backpressure.x")
		for range 100 {
			_, err := g.Enqueue(t.Context(), quick)
			require.NoError(t, err)
		}
		assert.Equal(t, begun, time.Now(), "the intake goes on")
		require.NoError(t, g.Flush(t.Context()))
		assert.Equal(t, 5*time.Second, time.Since(begun), "all of them together")
		assert.Equal(t, uint64(100), g.Stats().Forced)
		require.NoError(t, g.Close())
	})
}

// Weak point: that an item runs in spite of a signal is silent.
func TestThatAnItemIsForcedIsCountedAndRaised(t *testing.T) {
	for _, c := range []struct{ given, want time.Duration }{{0, 5 * time.Second}, {time.Minute, time.Minute}} {
		t.Run(fmt.Sprint(c.given), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := usual()
				opts.MaxDefer = c.given
				g := newGate(t, opts)
				signals := coretest.Watch(t, g.Sink(), core.SignalForced)
				g.Hold("backpressure.x", "", 0)
				begun := time.Now()
				id := enqueue(t, g, quick)
				time.Sleep(c.want - 1)
				synctest.Wait()
				signals.None()
				require.NoError(t, g.Wait(t.Context(), id))
				assert.Equal(t, c.want, time.Since(begun))
				s := signals.ExpectExactly(core.SignalForced)[0]
				assert.Equal(t, id, s.Operation)
				assert.Equal(t, "signalaware", s.Source)
				assert.Equal(t, uint64(1), g.Stats().Forced)
				require.NoError(t, g.Close())
			})
		})
	}
}

func TestWithoutLimitItemsWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := usual()
		opts.MaxDefer = -1
		g := newGate(t, opts)
		release := g.Hold("backpressure.x", "", 0)
		id := enqueue(t, g, quick)
		time.Sleep(1000 * time.Hour)
		op, _ := g.Lookup(id)
		assert.Equal(t, core.StatusPending, op.Status)
		release()
		require.NoError(t, g.Drain(t.Context()))
	})
}

// Must: wake on signal change, not at the next poll.
func TestItemsGoOnInTheVeryInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, usual())
		for _, end := range []func(){
			func() { g.Retract("backpressure.*") },
			func() { g.Raise("go.on") },
		} {
			g.Raise("backpressure.x")
			begun := time.Now()
			id := enqueue(t, g, quick)
			time.Sleep(time.Second + 7)
			end()
			require.NoError(t, g.Wait(t.Context(), id))
			assert.Equal(t, time.Second+7, time.Since(begun))
		}
		g.Raise("backpressure.x") // is newer
		id := enqueue(t, g, quick)
		synctest.Wait()
		op, _ := g.Lookup(id)
		assert.Equal(t, core.StatusPending, op.Status)
		require.NoError(t, g.Close())
	})
}

// Weak point: the ambient set is an unsynchronised hash set. For the race detector.
func TestConditionsChangeWhileItemsCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, usual())
		var accepted, rejected atomic.Uint64
		call := signalaware.Wrap(g, func(context.Context, int) error { return nil })
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 100 {
					g.Raise("backpressure.x")
					g.Raise("shutdown")
					time.Sleep(time.Nanosecond)
					g.Why()
					g.Retract("shutdown, backpressure.*")
				}
			})
			all.Go(func() {
				for range 100 {
					if _, err := g.TryEnqueue(quick); err != nil {
						rejected.Add(1)
					} else {
						accepted.Add(1)
					}
					call(t.Context(), 1)
					time.Sleep(time.Nanosecond)
				}
			})
		}
		all.Wait()
		require.NoError(t, g.Drain(t.Context()))
		s := g.Stats()
		assert.NoError(t, coretest.CheckBooks(s))
		assert.Equal(t, []uint64{accepted.Load(), rejected.Load()}, []uint64{s.Enqueued, s.Rejected})
		c := g.Calls()
		assert.Equal(t, uint64(400), c.Passed+c.Refused+c.GaveUp)
		assert.Equal(t, uint64(400), c.Calls)
	})
}

func TestWhyAndExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := usual()
		opts.MaxQueued = 1
		g := newGate(t, opts)
		assert.Empty(t, g.Why())
		assert.False(t, g.Raise(""), "blank is ignored")

		g.Raise("backpressure.x")
		g.Hold("backpressure.db", "orders", time.Second)
		now := time.Now()
		check := func() {
			why := g.Why()
			require.Len(t, why, 2)
			assert.Equal(t, core.ReasonDeferred, why[0].Kind)
			assert.Equal(t, "backpressure.db", why[0].Signal.Name)
			assert.True(t, now.Add(time.Second).Equal(why[0].Expires))
			assert.True(t, now.Add(5*time.Second).Equal(why[0].Forced))
			assert.Equal(t, `deferred because of held signal "backpressure.db" for "orders"`, why[0].String())
			assert.Equal(t, "backpressure.x", why[1].Signal.Name)
		}
		check()
		check() // asking leaves nothing behind
		id := enqueue(t, g, quick)
		x, ok := g.Explain(id)
		assert.True(t, ok)
		assert.Equal(t, "backpressure.db", x.Reasons[0].Signal.Name)

		call := signalaware.Wrap(g, func(context.Context, int) error { return nil })
		go call(t.Context(), 1)
		synctest.Wait()
		check() // though there is no room to knock
		g.Retract("*")
		require.NoError(t, g.Close())
		assert.Empty(t, g.Why())
		assert.Equal(t, uint64(1), g.Calls().Calls)
	})
}

// While items are drained a call gets ErrClosed, so there is nothing it would wait for.
func TestWhyWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, usual())
		g.Hold("backpressure.x", "", 0)
		enqueue(t, g, quick)
		go g.Drain(t.Context())
		synctest.Wait()
		assert.Empty(t, g.Why())
		require.NoError(t, g.Close())
	})
}

func TestOptions(t *testing.T) {
	g := newGate(t, signalaware.Options{})
	assert.Equal(t, "signalaware", g.Name())
	assert.Equal(t, runtime.GOMAXPROCS(0), g.Stats().Limit)
	assert.NotNil(t, g.Sink())
	require.NoError(t, g.Do(t.Context(), quick))
	require.NoError(t, g.Close())

	for field, opts := range map[string]signalaware.Options{
		"MaxConcurrency": {MaxConcurrency: -1},
		"MaxQueued":      {MaxQueued: -1},
	} {
		g, err := signalaware.New(coretest.Run, opts)
		assert.Nil(t, g)
		assert.ErrorContains(t, err, "signalaware: ")
		assert.ErrorContains(t, err, field)
	}
	_, err := signalaware.New[int](nil, signalaware.Options{})
	assert.ErrorContains(t, err, "signalaware: ")
}

func TestCancelAndOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, signalaware.Options{MaxTracked: 1, MaxConcurrency: 2})
		id := enqueue(t, g, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		synctest.Wait()
		assert.True(t, g.Cancel(id, errOnPurpose))
		assert.ErrorIs(t, g.Wait(t.Context(), id), errOnPurpose)
		require.NoError(t, g.Do(t.Context(), quick))
		n := 0
		for range g.Operations(core.OperationQuery{}) {
			n++
		}
		assert.Equal(t, 1, n)
		require.NoError(t, g.Close())
	})
}

// Calls that are wrapped are no operations of the gate's.
func TestEveryItemIsFinalizedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, signalaware.Options{MaxTracked: 1})
		var mu sync.Mutex
		var left []core.OperationID
		g.OnFinalized(func(op core.Snapshot) {
			mu.Lock()
			defer mu.Unlock()
			left = append(left, op.ID)
		})
		first, second := enqueue(t, g, quick), enqueue(t, g, quick)
		require.NoError(t, signalaware.Wrap(g, coretest.Run)(t.Context(), quick))
		require.NoError(t, g.Drain(t.Context()))
		require.NoError(t, g.Close())
		assert.ElementsMatch(t, []core.OperationID{first, second}, left)
	})
}
