package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// gated makes a coordinator on a sink whose items do nothing.
func gated(t *testing.T, opts core.Options) (*core.Coordinator[int], *signals.Sink) {
	t.Helper()
	if opts.Sink == nil {
		opts.Sink = signals.NewSink(signals.SinkOptions{Capacity: 10})
	}
	c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, opts))
	t.Cleanup(func() { c.Close() })
	return c, opts.Sink
}

// deferred enqueues an item and returns how long it waited to be run.
func deferred(t *testing.T, c *core.Coordinator[int], limit time.Duration) time.Duration {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errCause)
	defer cancel()
	if err := c.Do(ctx, 0); err != nil {
		t.Errorf("got %v after %v", err, time.Since(start))
	}
	return time.Since(start)
}

// What TestEngineModel does not have.
func TestDeferOn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		opts  core.Options
		setup func(s *signals.Sink)
		want  time.Duration
	}{
		{"restored", core.Options{}, func(s *signals.Sink) {
			s.Restore(slices.Values([]signals.Signal{{Name: "busy.a", Time: time.Now()}}))
			time.AfterFunc(time.Second, func() { s.Retract("busy.a") })
		}, time.Second},
		{"resumed between two, of which the newer goes", core.Options{ResumeOn: "done", MaxDefer: -1}, func(s *signals.Sink) {
			s.Raise("busy.old")
			s.Raise("done")
			s.Raise("busy.new")
			time.AfterFunc(time.Second, func() { s.Retract("busy.new") })
		}, time.Second},
		{"longest MaxDefer", core.Options{MaxDefer: math.MaxInt64}, func(s *signals.Sink) {
			time.AfterFunc(time.Minute, s.Hold("busy.a", "", 0))
		}, time.Minute},
		{"held before it was resumed", core.Options{ResumeOn: "done"}, func(s *signals.Sink) {
			s.Hold("busy.a", "", 0)
			s.Raise("done")
			s.Raise("busy.a")
		}, 5 * time.Second},
		{"forgotten", core.Options{MaxDefer: -1}, func(s *signals.Sink) {
			s.Raise("busy.a")
			time.AfterFunc(2*time.Second, func() { s.Forget(signals.Query{Pattern: "*"}) })
		}, 2 * time.Second},
		{"aged by a resize", core.Options{MaxDefer: -1}, func(s *signals.Sink) {
			s.Raise("busy.a")
			time.AfterFunc(time.Second, func() { s.Resize(100, 2*time.Second) })
		}, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.opts.DeferOn = "busy.*"
				c, s := gated(t, tt.opts)
				tt.setup(s)
				checkEqual(t, "ran after", deferred(t, c, 2*time.Hour), tt.want)
				wantForced := uint64(0)
				if max := tt.opts.MaxDefer; tt.want > 0 && (tt.want == max || max == 0 && tt.want == 5*time.Second) {
					wantForced = 1
				}
				if got := c.Stats().Forced; got != wantForced || uint64(c.Count(core.SignalForced)) != wantForced {
					t.Errorf("got %d forced, %d signalled, want %d", got, c.Count(core.SignalForced), wantForced)
				}
			})
		})
	}
}

// A gate stays closed by the oldest signal of the coordinator's own operations when many newer ones have left.
func TestGateStaysShutWhenManyNewerOperationsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		c := core.Must(core.NewCoordinator(func(ctx context.Context, after time.Duration) error {
			time.Sleep(after)
			core.OperationFrom(ctx).RaiseKey("full", after.String())
			return nil
		}, core.Options{Sink: s, CancelOn: "full", MaxConcurrency: 301, MaxTracked: 301}))
		defer c.Close()
		for i := range 301 {
			accepted(t)(c.Enqueue(t.Context(), time.Duration(1+i)))
		}
		c.Flush(t.Context())
		s.Forget(signals.Query{Pattern: "*"}) // the operations show them still
		for signal := range c.Sense(signals.Query{}) {
			if signal.Key != "1ns" {
				c.Evict(signal.Operation)
			}
		}
		var refused *core.RefusedError
		if _, err := c.Enqueue(t.Context(), 0); !errors.As(err, &refused) || refused.Signal.Key != "1ns" {
			t.Errorf("got %v, want to be refused by the first", err)
		}
	})
}

// Lifecycle signals close no gate, so "*" does not lock a coordinator out by its own work.
func TestGateIgnoresLifecycleSignals(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	s.Subscribe("operation.*", func(signals.Signal) {})
	c, _ := gated(t, core.Options{Sink: s, CancelOn: "*"})
	for range 3 {
		if err := c.Do(t.Context(), 0); err != nil {
			t.Errorf("got %v", err)
		}
	}
	checkEqual(t, "lifecycle signals", s.Count("operation.started"), 3)
}

// A closed coordinator reacts to no signal, and nothing is kept for its gates.
func TestGateOfClosedCoordinator(t *testing.T) {
	c, s := gated(t, core.Options{DeferOn: "a", CancelOn: "b", DrainOn: "c"})
	s.Raise("b")
	for range 10 {
		s.Raise("chatter")
	}
	checkEqual(t, "kept", s.Stats().Kept, 1)
	c.Close()
	s.Raise("a")
	s.Raise("b")
	s.Raise("c")
	if got := s.Stats(); got.Panics != 0 || got.Kept != 0 || got.Raised != 15 { // and coordinator.closed
		t.Errorf("got %+v", got)
	}
}

// The cost of an end is proportional to the number of held facts, and each release is reported once.
func TestEndOfManyHeldFactsIsLinear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 4000
		s := signals.NewSink(signals.SinkOptions{})
		told := 0
		s.SubscribeRetracted("held", func(signals.Retraction) { told++ })
		m := s.Monitor("held", 0)
		var before, after runtime.MemStats
		c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
			o := core.OperationFrom(ctx)
			for range n {
				o.Hold("held", 0)
			}
			runtime.ReadMemStats(&before)
			return nil
		}, core.Options{Sink: s}))
		defer c.Close()
		gate, _ := gated(t, core.Options{Sink: s, CancelOn: "held"})
		checkError(t, "Do", c.Do(t.Context(), 0), nil)
		synctest.Wait() // for the telling
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) / n; got > 4<<10 {
			t.Errorf("the end of each of %d held facts took %d bytes, want less than 4 KiB", n, got)
		}
		if err := gate.Do(t.Context(), 0); err != nil || told != n || m.Count() != 0 || s.Has("held") {
			t.Errorf("got %v, %d releases reported, %d counted, %v, want %d and nothing left", err, told, m.Count(), s.Has("held"), n)
		}
	})
}

// A signal costs the same when the operation has raised more than it shows.
func TestSignalsOfAnOperationBeyondItsWindowCostNoMore(t *testing.T) {
	skipRace(t)
	inBody(t, core.Options{}, func(_ context.Context, o *core.Operation, _ *core.Coordinator[coretest.Body]) {
		for range 3000 {
			o.Raise("a")
		}
		wantAllocs(t, "an operation's 3,001st signal", 0, func() { o.Raise("a") })
		if got := o.Signals(); len(got) != 1000 || got[999].Seq != got[0].Seq+999 {
			t.Errorf("got %d signals, %d to %d", len(got), got[0].Seq, got[len(got)-1].Seq)
		}
	})
}

func TestGates(t *testing.T) {
	c, sink := gated(t, core.Options{
		CancelOn: "stop", DeferOn: "wait.*", ResumeOn: "go",
		Lanes:   []core.Lane{{Name: "hot"}, {Name: "slow", DeferOn: "busy"}},
		Classes: []core.Class{{Name: "gpt", TrialOn: "half_open", Trials: 3}},
	})
	closed := func(want ...string) {
		t.Helper()
		var got []string
		for _, g := range c.Gates() {
			if g.Closed {
				got = append(got, fmt.Sprint(g.Kind, " ", g.Lane+g.Class, " ", g.Pattern, " ", g.Signal.Name))
			}
		}
		checkSlice(t, "closed gates", got, want)
	}
	checkEqual(t, "gates", len(c.Gates()), 4)
	closed()
	sink.Raise("wait.long")
	release := sink.Hold("busy", "", 0)
	sink.Raise("half_open")
	closed("deferred  wait.* wait.long", "deferred slow busy busy", "trial gpt half_open half_open")
	sink.Retract("half_open")
	sink.Raise("go")
	closed()
	sink.Raise("stop")
	sink.Raise("wait.again")
	release()
	closed("refused  stop stop", "deferred  wait.* wait.again")
	sink.Forget(signals.Query{Pattern: "*"})
	closed()
}

// Matches counts each signal that a gate has ever seen once, present or not: what was on the sink before the gate,
// raised on the sink, raised by an operation, held, copied and restored. A gate that nothing matches has none.
func TestGatesCountWhatEverMatched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 4})
		sink.Raise("stop.early")
		sink.Raise("busy")
		sink.Raise("busy")
		sink.Retract("stop.early")
		defer sink.Hold("busy", "held before", 0)()
		c := coordinator(t, func(ctx context.Context, name string) error {
			op := core.OperationFrom(ctx)
			op.Raise(name)
			op.Hold(name, 0)
			return nil
		}, core.Options{
			Sink: sink, CancelOn: "stop.*", DeferOn: "night", MaxDefer: time.Millisecond, MaxTracked: -1,
			Lanes: []core.Lane{{Name: "hot", CancelOn: "stpo"}, {Name: "slow", DeferOn: "busy, stop.*"}},
		})
		check := func(want string) {
			t.Helper()
			got := ""
			for _, g := range c.Gates() {
				got += fmt.Sprint(g.Lane, " ", g.Pattern, ": ", g.Matches, "; ")
			}
			checkEqual(t, "matches", got, want)
		}
		check(" stop.*: 0;  night: 0; hot stpo: 0; slow busy, stop.*: 3; ")
		checkError(t, "Do", c.Lane("hot").Do(t.Context(), "night"), nil) // one raised and one held signal; both have gone with the operation
		check(" stop.*: 0;  night: 2; hot stpo: 0; slow busy, stop.*: 3; ")
		for range 10 { // more than the window has room for, and one alone keeps the gate closed
			sink.Raise("stop.now")
		}
		sink.Retract("stop.*")
		sink.Hold("stop.held", "", time.Second)
		time.Sleep(time.Hour) // all have gone
		check(" stop.*: 11;  night: 2; hot stpo: 0; slow busy, stop.*: 14; ")
		other := signals.NewSink(signals.SinkOptions{})
		defer other.Forward(sink, "night")()
		other.Raise("night")
		sink.Restore(other.Sense(signals.Query{}))
		sink.Forget(signals.Query{Pattern: "*"})
		checkError(t, "Close", c.Close(), nil)
		sink.Raise("night") // the gate does not count any more
		check(" stop.*: 11;  night: 4; hot stpo: 0; slow busy, stop.*: 14; ")
	})
}

// CancelOn, DeferOn, ResumeOn, MaxDefer and DrainOn: what signals do to the intake
// and to pending items.

// Lifecycle signals cost more than the start and the end of an operation, so a subscription to everything does not
// switch them on.
func TestOnlyAPatternThatNamesLifecycleSignalsSwitchesThemOn(t *testing.T) {
	watchers := map[string]func(s *signals.Sink, pattern string) (cancel func()){
		"Subscribe": func(s *signals.Sink, pattern string) func() { return s.Subscribe(pattern, func(signals.Signal) {}) },
		"Monitor":   func(s *signals.Sink, pattern string) func() { return s.Monitor(pattern, 0).Stop },
		"Forward": func(s *signals.Sink, pattern string) func() {
			return s.Forward(signals.NewSink(signals.SinkOptions{}), pattern)
		},
	}
	const off, on = "body after", "operation.started body operation.stopped after" // as a watcher of all signals sees it
	patterns := map[string]string{
		"*": off, "**": off, "?peration.started": off, "*.started, *.stopped": off, "operation*": off, "operation.panicked": off, "operations.*": off, "*, operation.panicked": off,
		"operation.*": on, "operation.started": on, "operation.stopped": on, "x, operation.st*": on, "*, operation.s*": on,
	}
	for name, watch := range watchers {
		for pattern, want := range patterns {
			bubble(t, func(t *testing.T) {
				s := signals.NewSink(signals.SinkOptions{})
				c := bodies(t, core.Options{Sink: s})
				all := coretest.Watch(t, s, "*")
				cancel := watch(s, pattern)
				checkError(t, "Do", c.Do(t.Context(), raise("body")), nil)
				cancel()
				checkError(t, "Do", c.Do(t.Context(), raise("after")), nil)
				if seen := all.ExpectExactly(strings.Fields(want)...); t.Failed() {
					t.Fatalf("%s of %q: got %v", name, pattern, seen)
				}
			})
		}
	}
}

// DrainOn ends the intake of an idle coordinator too, and a key selects coordinators by name.
func TestDrainOn(t *testing.T) {
	for _, test := range []struct {
		name, key string
		want      bool
	}{
		{"drain.now", "", true},
		{"drain.now", "orders", true},
		{"drain.now", "ord*, payments", true},
		{"drain.now", "payments", false},
		{"other", "", false},
	} {
		t.Run(test.name+" "+test.key, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				sink := signals.NewSink(signals.SinkOptions{})
				c := bodies(t, core.Options{Sink: sink, Name: "orders", DrainOn: "drain.*"})
				id := enqueue(t, c, func(ctx context.Context) error { time.Sleep(time.Second); return nil })
				synctest.Wait()
				sink.RaiseKey(test.name, test.key)
				checkEqual(t, "closed", c.Stats().Closed, test.want)
				time.Sleep(time.Second)
				synctest.Wait()
				checkStatus(t, c, id, core.StatusSucceeded) // accepted work is done
			})
		})
	}
}

// The table "How long a signal blocks" in docs/guide/03-signals-and-gates.md: how long a signal is
// on its sink, refuses items and defers one.
func TestHowLongASignalBlocks(t *testing.T) {
	const age = 5 * time.Minute
	for by, want := range map[string]struct {
		opts                 *signals.SinkOptions // nil: the sink is the coordinator's own
		has, refuses, defers time.Duration
	}{
		"sink":          {&signals.SinkOptions{}, age, age, 5 * time.Second},
		"own sink":      {nil, age, age, 5 * time.Second},
		"without limit": {&signals.SinkOptions{MaxAge: -1}, 9 * age, 9 * age, 5 * time.Second},
		"own":           {nil, age, 3 * age, 5 * time.Second}, // the operation runs for twice the age, and then is shown for once
		"other":         {nil, age, age, 5 * time.Second},
		"held":          {nil, 4 * age, 4 * age, 4 * age},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, ctx := time.Now(), t.Context()
			body := func(ctx context.Context, raises bool) error {
				if raises {
					core.OperationFrom(ctx).Raise("stop")
					time.Sleep(2 * age)
				}
				return nil
			}
			opts := core.Options{CancelOn: "stop"}
			if want.opts != nil {
				opts.Sink = signals.NewSink(*want.opts)
			}
			own := core.Must(core.NewCoordinator(body, opts))
			sink := own.Sink()
			other := core.Must(core.NewCoordinator(body, core.Options{Sink: sink}))
			var ran time.Duration
			deferring := core.Must(core.NewCoordinator(func(context.Context, bool) error {
				ran = time.Since(began)
				return nil
			}, core.Options{Sink: sink, DeferOn: "stop"}))
			switch by {
			case "own":
				core.Must(own.Enqueue(ctx, true))
			case "other":
				core.Must(other.Enqueue(ctx, true))
			case "held":
				sink.Hold("stop", "", 4*age)
			default:
				sink.Raise("stop")
			}
			synctest.Wait()
			core.Must(deferring.Enqueue(ctx, false))
			for wait := age - 1; time.Since(began) < 5*age; wait = age - wait { // just before an end, and at it
				time.Sleep(wait)
				at := time.Since(began)
				_, err := own.TryEnqueue(ctx, false)
				if has := sink.Has("stop"); has != (at < want.has) || (err != nil) != (at < want.refuses) {
					t.Errorf("%s: after %v, Has is %v and TryEnqueue returns %v", by, at, has, err)
				}
			}
			own.Close()
			other.Close()
			deferring.Close()
			coretest.Check(t, ran == want.defers, "%s: the deferred item ran after %v, want %v", by, ran, want.defers)
		})
	}
}
