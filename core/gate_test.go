package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// gated makes a coordinator on a sink whose items do nothing.
func gated(t *testing.T, opts core.Options) (*core.Coordinator[int], *core.Sink) {
	t.Helper()
	if opts.Sink == nil {
		opts.Sink = core.NewSink(core.SinkOptions{Capacity: 10})
	}
	c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, opts))
	t.Cleanup(func() { c.Close() })
	return c, opts.Sink
}

func TestCancelOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := gated(t, core.Options{CancelOn: "overload.*, stop"})
		check := func(want string) {
			t.Helper()
			_, err := c.Enqueue(t.Context(), 0)
			_, tryErr := c.TryEnqueue(0)
			var refused, tryRefused *core.RefusedError
			switch {
			case want == "":
				if err != nil || tryErr != nil {
					t.Errorf("got %v and %v, want none", err, tryErr)
				}
			case !errors.As(err, &refused) || !errors.As(tryErr, &tryRefused):
				t.Errorf("got %v and %v, want to be refused", err, tryErr)
			case refused.Signal.Name != want || tryRefused.Signal.Name != want:
				t.Errorf("refused by %v and %v, want by %q", refused.Signal, tryRefused.Signal, want)
			}
			synctest.Wait() // what was accepted has run
		}
		check("")
		s.Raise("overloaded")
		check("")
		s.Raise("overload.cpu")
		check("overload.cpu")
		release := s.Hold("stop", "", 0)
		check("stop") // the newest
		s.Retract("overload.*")
		check("stop")
		release()
		check("")
		c.Flush(t.Context())
		if got := c.Stats(); got.Rejected != 6 || got.Succeeded != 6 {
			t.Errorf("got %d rejected, %d succeeded, want 6, 6", got.Rejected, got.Succeeded)
		}
	})
}

// Items that wait when the signal comes are refused when they are to start.
func TestCancelOnAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := gated(t, core.Options{CancelOn: "stop"})
		c.Pause()
		id, err := c.Enqueue(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		s.RaiseKey("stop", "why")
		c.Resume()
		err = c.Wait(t.Context(), id)
		var refused *core.RefusedError
		if !errors.As(err, &refused) || refused.Signal.Key != "why" {
			t.Errorf("got %v", err)
		}
		if got := c.Stats(); got.Refused != 1 || got.Failed != 0 || got.Cancelled != 0 {
			t.Errorf("got %+v, want 1 refused", got)
		}
	})
}

// The decision stands although newer signals have pushed the fact out.
func TestGateOutlivesTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := gated(t, core.Options{CancelOn: "stop", DeferOn: "wait", MaxDefer: -1})
		chatter := func() {
			for i := range 1000 {
				s.Raise(fmt.Sprintf("chatter%d", i))
			}
		}
		s.Raise("stop")
		chatter()
		if s.Has("stop") {
			t.Fatal("the fact is still in the window")
		}
		var refused *core.RefusedError
		if _, err := c.Enqueue(t.Context(), 0); !errors.As(err, &refused) {
			t.Errorf("got %v, want to be refused", err)
		}
		if got := s.Retract("stop"); got != 0 {
			t.Errorf("retracted %d in the window, want 0", got)
		}
		s.Raise("wait")
		chatter()
		if _, err := c.Enqueue(t.Context(), 0); err != nil {
			t.Fatalf("got %v after the retraction", err)
		}
		synctest.Wait()
		time.Sleep(time.Hour)
		if got := c.Stats().Pending; got != 1 {
			t.Errorf("got %d deferred, want 1", got)
		}
		s.Retract("wa*")
		synctest.Wait()
		if got := c.Stats(); got.Pending != 0 || got.Succeeded != 1 || got.Forced != 0 {
			t.Errorf("after the retraction: %+v", got)
		}
	})
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

func TestDeferOn(t *testing.T) {
	tests := []struct {
		name  string
		opts  core.Options
		setup func(s *core.Sink)
		want  time.Duration
	}{
		{"no signal", core.Options{}, func(s *core.Sink) {}, 0},
		{"another signal", core.Options{}, func(s *core.Sink) { s.Raise("busy") }, 0},
		{"at most MaxDefer", core.Options{}, func(s *core.Sink) { s.Raise("busy.a") }, 5 * time.Second},
		{"at most MaxDefer, another", core.Options{MaxDefer: time.Minute}, func(s *core.Sink) { s.Raise("busy.a") }, time.Minute},
		{"retracted", core.Options{}, func(s *core.Sink) {
			s.Raise("busy.a")
			time.AfterFunc(time.Second, func() { s.Retract("busy.a") })
		}, time.Second},
		{"released", core.Options{}, func(s *core.Sink) {
			time.AfterFunc(time.Second, s.Hold("busy.a", "", 0))
		}, time.Second},
		{"one of two released", core.Options{}, func(s *core.Sink) {
			time.AfterFunc(time.Second, s.Hold("busy.a", "", 0))
			time.AfterFunc(2*time.Second, s.Hold("busy.a", "", 0))
		}, 2 * time.Second},
		{"lease", core.Options{MaxDefer: -1}, func(s *core.Sink) {
			s.Hold("busy.a", "", time.Second)
			s.Hold("busy.b", "", 3*time.Second)
		}, 3 * time.Second},
		{"age", core.Options{MaxDefer: -1}, func(s *core.Sink) {
			s.Resize(10, 3*time.Second)
			s.Raise("busy.a")
		}, 3 * time.Second},
		{"age of the newest", core.Options{MaxDefer: -1}, func(s *core.Sink) {
			s.Resize(10, 3*time.Second)
			s.Raise("busy.a")
			time.AfterFunc(2*time.Second, func() { s.Raise("busy.a") })
		}, 5 * time.Second},
		{"held longer than the age", core.Options{MaxDefer: -1}, func(s *core.Sink) {
			s.Resize(10, 3*time.Second)
			time.AfterFunc(time.Hour, s.Hold("busy.a", "", 0))
		}, time.Hour},
		{"pushed out, then too old", core.Options{MaxDefer: -1}, func(s *core.Sink) {
			s.Resize(10, 3*time.Second)
			s.Raise("busy.a")
			for range 100 {
				s.Raise("chatter")
			}
		}, 3 * time.Second},
		{"forgotten", core.Options{MaxDefer: -1}, func(s *core.Sink) {
			s.Raise("busy.a")
			time.AfterFunc(time.Second, func() { s.Forget(core.Query{Pattern: "busy.*"}) })
		}, time.Second},
		{"resumed", core.Options{ResumeOn: "done"}, func(s *core.Sink) {
			s.Raise("busy.a")
			time.AfterFunc(time.Second, func() { s.Raise("done") })
		}, time.Second},
		{"resumed before", core.Options{ResumeOn: "done"}, func(s *core.Sink) {
			s.Raise("busy.a")
			s.Raise("done")
		}, 0},
		{"resumed, and busy again", core.Options{ResumeOn: "done"}, func(s *core.Sink) {
			s.Raise("busy.a")
			s.Raise("done")
			s.Raise("busy.a")
		}, 5 * time.Second},
		{"restored", core.Options{}, func(s *core.Sink) {
			s.Restore(slices.Values([]core.Signal{{Name: "busy.a", Time: time.Now()}}))
			time.AfterFunc(time.Second, func() { s.Retract("busy.a") })
		}, time.Second},
		{"longest MaxDefer", core.Options{MaxDefer: math.MaxInt64}, func(s *core.Sink) {
			time.AfterFunc(time.Minute, s.Hold("busy.a", "", 0))
		}, time.Minute},

		// The same, with an end that is set only while it is waited for.
		{"leased later", core.Options{MaxDefer: -1}, func(s *core.Sink) {
			release := s.Hold("busy.a", "", 0)
			time.AfterFunc(time.Second, func() {
				s.Hold("busy.b", "", time.Second)
				release()
			})
		}, 2 * time.Second},
		{"aged by a resize", core.Options{MaxDefer: -1}, func(s *core.Sink) {
			s.Raise("busy.a")
			time.AfterFunc(time.Second, func() { s.Resize(10, 2*time.Second) })
		}, 2 * time.Second},
		{"released, and then a younger one aged", core.Options{MaxDefer: -1}, func(s *core.Sink) {
			s.Resize(10, time.Second)
			release := s.Hold("busy.a", "", 0)
			time.AfterFunc(time.Second, func() {
				s.Raise("busy.b")
				release()
			})
		}, 2 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.opts.DeferOn = "busy.*"
				c, s := gated(t, tt.opts)
				tt.setup(s)
				if got := deferred(t, c, 2*time.Hour); got != tt.want {
					t.Errorf("ran after %v, want %v", got, tt.want)
				}
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

// A gate sees what was there before the coordinator was.
func TestGateStartsWithTheWindow(t *testing.T) {
	for what, setup := range map[string]func(s *core.Sink){
		"raised": func(s *core.Sink) { s.Raise("other"); s.Raise("stop") },
		"held":   func(s *core.Sink) { s.Hold("stop", "", 0); s.Raise("other") },
	} {
		s := core.NewSink(core.SinkOptions{})
		setup(s)
		c, _ := gated(t, core.Options{Sink: s, CancelOn: "stop"})
		if _, err := c.Enqueue(t.Context(), 0); err == nil {
			t.Errorf("%s before: not refused", what)
		}
	}
}

// A gate heeds the coordinator's own operations, as long as they are in its
// window, wherever the sink's window ends.
func TestGateOnOwnSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{Capacity: 2})
		c := core.Must(core.NewCoordinator(func(ctx context.Context, retract bool) error {
			o := core.OperationFrom(ctx)
			o.Raise("full")
			if retract {
				o.Retract("full")
			}
			return nil
		}, core.Options{Sink: s, CancelOn: "full", MaxAge: time.Minute}))
		defer c.Close()
		if err := c.Do(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if err := c.Do(t.Context(), false); err != nil {
			t.Fatalf("got %v after a retraction", err)
		}
		for range 100 {
			s.Raise("chatter")
		}
		s.Retract("*") // not the sink's to retract
		var refused *core.RefusedError
		if err := c.Do(t.Context(), true); !errors.As(err, &refused) || refused.Signal.Source != "coordinator" {
			t.Errorf("got %v, want to be refused by its own signal", err)
		}
		time.Sleep(time.Minute) // the operation leaves the window
		if err := c.Do(t.Context(), true); err != nil {
			t.Errorf("got %v after the operation has left", err)
		}
	})
}

// Facts of an operation gate others on the same sink until the operation leaves,
// though the sink's window has pushed them out.
func TestGateOnSignalsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{Capacity: 2})
		other := core.Must(core.NewCoordinator(func(ctx context.Context, name string) error {
			core.OperationFrom(ctx).Raise(name)
			return nil
		}, core.Options{Sink: s}))
		defer other.Close()
		c, _ := gated(t, core.Options{Sink: s, CancelOn: "full"})
		id, _ := other.Enqueue(t.Context(), "full")
		other.Flush(t.Context())
		for range 100 {
			s.Raise("chatter")
		}
		if err := c.Do(t.Context(), 0); err == nil {
			t.Error("not refused")
		}
		other.Evict(id)
		if err := c.Do(t.Context(), 0); err != nil {
			t.Errorf("got %v after the operation has left", err)
		}
	})
}

// Facts beyond the thousand that an operation shows go with it as well.
func TestGateOpensWhenOperationOfManySignalsLeaves(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	other := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
		o := core.OperationFrom(ctx)
		o.Raise("full")
		for range 1000 {
			o.Raise("chatter")
		}
		return nil
	}, core.Options{Sink: s}))
	c, _ := gated(t, core.Options{Sink: s, CancelOn: "full"})
	if err := other.Do(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	other.Close()
	if err := c.Do(t.Context(), 0); err != nil {
		t.Errorf("got %v, although the operation that raised it has left", err)
	}
}

// What an operation holds ends with it.
func TestGateOnHeldByOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{})
		writer := core.Must(core.NewCoordinator(func(ctx context.Context, panics bool) error {
			core.OperationFrom(ctx).Hold("update.in-progress", 0)
			time.Sleep(time.Second)
			if panics {
				panic("writer")
			}
			return nil
		}, core.Options{Sink: s}))
		defer writer.Close()
		reader, _ := gated(t, core.Options{Sink: s, DeferOn: "update.in-progress"})
		for _, panics := range []bool{false, true} {
			writer.Enqueue(t.Context(), panics)
			synctest.Wait()
			if got := deferred(t, reader, time.Minute); got != time.Second {
				t.Errorf("panics %v: ran after %v, want 1s", panics, got)
			}
		}
	})
}

// The unretracted copy of a fact keeps the gate shut: a gate must not forget what
// is still present.
func TestGateKeepsTheOlderOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := gated(t, core.Options{CancelOn: "stop"})
		s.Raise("stop")
		first := newest(t, s, "stop").Seq
		s.Raise("stop")
		if got := s.Forget(core.Query{AfterSeq: first}); got != 1 || !s.Has("stop") {
			t.Fatalf("forgot %d, Has %v, want 1, true", got, s.Has("stop"))
		}
		if err := c.Do(t.Context(), 0); err == nil {
			t.Error("not refused, although a matching signal is present")
		}
	})
}

// Many facts about different things: the gate opens with the last.
func TestGateOnManyKeys(t *testing.T) {
	c, s := gated(t, core.Options{Sink: core.NewSink(core.SinkOptions{}), CancelOn: "stop*"})
	const n = 300
	var releases []func()
	for i := range n {
		releases = append(releases, s.Hold("stop", fmt.Sprint(i), 0))
	}
	for i := n - 1; i >= 0; i-- { // the newest first
		if err := c.Do(t.Context(), 0); err == nil {
			t.Fatalf("not refused with %d held", s.Count("stop"))
		}
		releases[i]()
	}
	if err := c.Do(t.Context(), 0); err != nil {
		t.Errorf("got %v with none held", err)
	}
}

// MaxDefer counts from when the item was enqueued or this deferral began: one
// that was resumed from is over.
func TestMaxDeferOfASecondDeferral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{})
		start := time.Now()
		var ran time.Duration
		c := core.Must(core.NewCoordinator(func(_ context.Context, first bool) error {
			if first {
				time.Sleep(10 * time.Second)
			} else {
				ran = time.Since(start)
			}
			return nil
		}, core.Options{Sink: s, MaxConcurrency: 1, DeferOn: "busy", ResumeOn: "done", MaxDefer: 5 * time.Second}))
		defer c.Close()
		s.Raise("busy")
		s.Raise("done")
		c.Enqueue(t.Context(), true)
		c.Enqueue(t.Context(), false)
		time.Sleep(9 * time.Second)
		s.Raise("busy")
		c.Flush(t.Context())
		if ran != 14*time.Second {
			t.Errorf("ran after %v, want 14s: 5s after the second deferral began", ran)
		}
	})
}

// Gates do not heed what the engine reports of its operations, so that "*" does
// not lock a coordinator out by its own work. (Weak point 3.5.)
func TestGateDoesNotHeedLifecycle(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	s.Subscribe("atom.*", func(core.Signal) {})
	c, _ := gated(t, core.Options{Sink: s, CancelOn: "*"})
	for range 3 {
		if err := c.Do(t.Context(), 0); err != nil {
			t.Errorf("got %v", err)
		}
	}
	if got := s.Count("atom.start"); got != 3 {
		t.Errorf("got %d lifecycle signals, want 3", got)
	}
}

// A closed coordinator heeds nothing any more.
func TestGateOfClosedCoordinator(t *testing.T) {
	c, s := gated(t, core.Options{DeferOn: "a", CancelOn: "b", DrainOn: "c"})
	c.Close()
	s.Raise("a")
	s.Raise("b")
	s.Raise("c")
	if got := s.Stats(); got.Panics != 0 || got.Raised != 4 { // and coordinator.closed
		t.Errorf("got %+v", got)
	}
}
