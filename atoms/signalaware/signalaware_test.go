package signalaware_test

import (
	"context"
	"errors"
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

type gate = signalaware.Gate[coretest.Body]

// newGate makes a gate with the usual conditions, and what change says.
func newGate(t testing.TB, change func(*signalaware.Options)) *gate {
	opts := signalaware.Options{CancelOn: "shutdown, circuit-*", DeferOn: "backpressure.*", ResumeOn: "go.on"}
	if change != nil {
		change(&opts)
	}
	g := core.Must(signalaware.New(coretest.Run, opts))
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	return g
}

func enqueue(g *gate, body coretest.Body) core.OperationID {
	return core.Must(g.TryEnqueue(context.Background(), body))
}

func isPending(g *gate, id core.OperationID) bool {
	synctest.Wait()
	op, _ := g.Lookup(id)
	return op.Status == core.StatusPending
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
	for name, opts := range map[string]signalaware.Options{
		"zero options": {},
		"conditions":   {CancelOn: "shutdown", DeferOn: "backpressure.*", MaxDefer: -1, MaxConcurrency: 1, MaxQueued: 2, MaxTracked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				g := core.Must(signalaware.New(coretest.Run, opts))
				return coretest.Subject{
					Lifecycle: g,
					Submit: func(ctx context.Context, body coretest.Body) error {
						_, err := g.Enqueue(ctx, body)
						return err
					},
					Sink:     g.Sink(),
					Stats:    g.Stats,
					WaitIdle: g.WaitIdle,
				}
			})
		})
	}
}

// Signals refuse and defer wherever they are raised, and until they are retracted or
// released, or their lease or age is over.
func TestConditionsBeginAndEnd(t *testing.T) {
	type end struct {
		by    func()
		after time.Duration
	}
	nothing := func() {}
	for name, begin := range map[string]func(g *gate, name string) end{
		"raised on the gate, retracted": func(g *gate, name string) end {
			g.Raise(name)
			return end{by: func() { assert.Equal(t, 1, g.Sink().Retract(name)) }}
		},
		"pushed out of the window": func(g *gate, name string) end {
			g.Sink().Resize(1, 0)
			g.Sink().Raise(name)
			g.Raise("chatter")
			return end{by: func() { g.Sink().Retract(name) }}
		},
		"held, released": func(g *gate, name string) end { return end{by: g.Sink().Hold(name, "", 0)} },
		"held, leased": func(g *gate, name string) end {
			g.Sink().Hold(name, "", time.Second)
			return end{nothing, time.Second}
		},
		"aged": func(g *gate, name string) end {
			g.Sink().Resize(10, time.Second)
			g.Raise(name)
			return end{nothing, time.Second}
		},
		"raised by an operation, finished": func(g *gate, name string) end {
			other := core.Must(core.NewCoordinator(coretest.Run, core.Options{Sink: g.Sink()}))
			other.Do(context.Background(), func(ctx context.Context) error { core.OperationFrom(ctx).Raise(name); return nil })
			return end{by: func() { other.Close() }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, nil)
				e := begin(g, "shutdown")
				_, err := g.TryEnqueue(context.Background(), quick)
				assertRefused(t, err, "shutdown")
				e.by()
				time.Sleep(e.after)
				enqueue(g, quick)

				e = begin(g, "backpressure.x")
				begun := time.Now()
				id := enqueue(g, quick)
				assert.True(t, isPending(g, id))
				e.by()
				require.NoError(t, g.Wait(t.Context(), id))
				assert.Equal(t, e.after, time.Since(begun))
				assert.Zero(t, g.Stats().Forced)
			})
		})
	}
}

// An item is refused with an error that names the signal, when it comes or while it waits,
// and does not count as failed.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, nil)
		g.Raise("backpressure.x")
		waiting := enqueue(g, func(context.Context) error { t.Error("it ran"); return nil })
		assert.True(t, isPending(g, waiting))
		begun := time.Now()
		g.Sink().Hold("shutdown", "deploy-7", 0)
		assertRefused(t, g.Wait(t.Context(), waiting), "shutdown")
		assert.Equal(t, begun, time.Now(), "at once")
		op, _ := g.Lookup(waiting)
		assert.Equal(t, core.StatusRefused, op.Status)

		id, err := g.Enqueue(t.Context(), quick)
		assert.Zero(t, id)
		assertRefused(t, err, "shutdown")
		assert.Equal(t, err, g.Do(t.Context(), quick))
		s := g.Stats()
		assert.Equal(t, []uint64{1, 1, 0, 2}, []uint64{s.Enqueued, s.Refused, s.Failed, s.Rejected})
	})
}

// Refusing wins over deferring, whichever signal came first.
func TestCancelWinsOverDefer(t *testing.T) {
	for _, order := range [][2]string{{"shutdown", "backpressure.x"}, {"backpressure.x", "shutdown"}} {
		g := newGate(t, nil)
		g.Raise(order[0])
		g.Raise(order[1])
		_, err := g.TryEnqueue(context.Background(), quick)
		assertRefused(t, err, "shutdown")
		why := g.Why()
		require.Len(t, why, 1)
		assert.Equal(t, core.ReasonRefused, why[0].Kind)
	}
}

// Deferred items wait together, without delaying the intake, for MaxDefer at most. Then
// they run, which is counted and raised.
func TestMaxDefer(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{0: 5 * time.Second, time.Minute: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, func(o *signalaware.Options) { o.MaxDefer, o.MaxConcurrency = given, 1 })
			signals := coretest.Watch(t, g.Sink(), core.SignalForced)
			g.Raise("backpressure.x")
			begun := time.Now()
			var ids []core.OperationID
			for range 100 {
				ids = append(ids, core.Must(g.Enqueue(t.Context(), quick)))
			}
			time.Sleep(want - 1)
			synctest.Wait()
			signals.None()
			require.NoError(t, g.Flush(t.Context()))
			assert.Equal(t, want, time.Since(begun))
			s := signals.Expect(core.SignalForced)[0]
			assert.Equal(t, ids[0], s.Operation)
			assert.Equal(t, "signalaware", s.Source)
			assert.Equal(t, uint64(100), g.Stats().Forced)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, func(o *signalaware.Options) { o.MaxDefer, o.Sink = -1, core.NewSink(core.SinkOptions{MaxAge: -1}) })
		g.Raise("backpressure.x")
		id := enqueue(g, quick)
		time.Sleep(1000 * time.Hour)
		assert.True(t, isPending(g, id), "without limit")
	})
}

// Items go on at the instant of the change, and wait again for a signal that is newer than
// the one that resumed.
func TestResumeOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, nil)
		g.Raise("backpressure.x")
		begun := time.Now()
		id := enqueue(g, quick)
		time.Sleep(time.Second + 7)
		g.Raise("go.on")
		require.NoError(t, g.Wait(t.Context(), id))
		assert.Equal(t, time.Second+7, time.Since(begun))
		g.Raise("backpressure.x")
		assert.True(t, isPending(g, enqueue(g, quick)))
	})
}

// For the race detector: conditions change while items and calls come.
func TestConditionsChangeWhileItemsCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, nil)
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
					g.Sink().Retract("shutdown, backpressure.*")
				}
			})
			all.Go(func() {
				for range 100 {
					if _, err := g.TryEnqueue(context.Background(), quick); err != nil {
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
		assert.Equal(t, []uint64{400, 400}, []uint64{c.Calls, c.Passed + c.Refused + c.GaveUp})
	})
}

func TestWhyAndExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, nil)
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
		check() // it leaves nothing behind
		x, ok := g.Explain(enqueue(g, quick))
		assert.True(t, ok)
		assert.Equal(t, "backpressure.db", x.Reasons[0].Signal.Name)

		call := signalaware.Wrap(g, func(context.Context, int) error { return nil })
		for range 1025 {
			go call(t.Context(), 1)
		}
		synctest.Wait()
		check() // though the queue of the calls is full
		assert.Equal(t, uint64(1025), g.Calls().Calls)
		go g.Drain(t.Context())
		synctest.Wait()
		assert.Empty(t, g.Why(), "a call would get ErrClosed")
	})
}

func TestOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []error
		g := core.Must(signalaware.New(coretest.Run, signalaware.Options{
			Timeout: time.Second, OnDone: func(s core.Snapshot) { ended = append(ended, s.Err) },
		}))
		assert.Equal(t, "signalaware", g.Name())
		assert.Equal(t, runtime.GOMAXPROCS(0), g.Stats().Limit)
		err := g.Do(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		assert.ErrorIs(t, err, core.ErrTimeout)
		slow := func(context.Context) error { time.Sleep(time.Hour); return nil }
		assert.NoError(t, signalaware.Wrap(g, coretest.Run)(t.Context(), slow), "calls are no operations of the gate")
		require.NoError(t, g.Close())
		assert.Equal(t, []error{err}, ended)

		_, err = signalaware.New(coretest.Run, signalaware.Options{MaxConcurrency: -1})
		assert.ErrorContains(t, err, "signalaware: ")
		assert.ErrorContains(t, err, "MaxConcurrency")
		_, err = signalaware.New[int](nil, signalaware.Options{})
		assert.ErrorContains(t, err, "signalaware: ")
	})
}
