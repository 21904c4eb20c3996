package core_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// CancelOn, DeferOn, ResumeOn, MaxDefer and DrainOn: what signals do to the intake
// and to pending items.

// Lifecycle signals cost more than the start and the end of an operation, so a subscription to everything does not
// switch them on.
func TestOnlyAPatternThatNamesLifecycleSignalsSwitchesThemOn(t *testing.T) {
	watchers := map[string]func(s *core.Sink, pattern string) (cancel func()){
		"Subscribe": func(s *core.Sink, pattern string) func() { return s.Subscribe(pattern, func(core.Signal) {}) },
		"Monitor":   func(s *core.Sink, pattern string) func() { return s.Monitor(pattern, 0).Stop },
		"Forward": func(s *core.Sink, pattern string) func() {
			return s.Forward(core.NewSink(core.SinkOptions{}), pattern)
		},
	}
	const off, on = "body after", "operation.started body operation.stopped after" // as one who watches everything sees it
	patterns := map[string]string{
		"*": off, "**": off, "?peration.started": off, "*.started, *.stopped": off, "operation*": off, "operation.panicked": off, "operations.*": off, "*, operation.panicked": off,
		"operation.*": on, "operation.started": on, "operation.stopped": on, "x, operation.st*": on, "*, operation.s*": on,
	}
	for name, watch := range watchers {
		for pattern, want := range patterns {
			bubble(t, func(t *testing.T) {
				s := core.NewSink(core.SinkOptions{})
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

// MaxDefer limits how long raised facts defer. A held fact defers as long as it is held. Raised facts beside it
// keep their own time.
func TestMaxDeferDoesNotOverrideWhatIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		signals func(s *core.Sink)
		want    time.Duration
		forced  uint64
	}{
		"held twice, then raised": {func(s *core.Sink) {
			time.AfterFunc(time.Minute, s.Hold("busy", "", 0))
			time.AfterFunc(time.Second, s.Hold("busy", "", 0))
			s.Raise("busy")
		}, time.Minute, 1},
		"raised shortly before the release": {func(s *core.Sink) {
			time.AfterFunc(time.Minute, s.Hold("busy", "", 0))
			time.AfterFunc(59*time.Second, func() { s.Raise("busy") })
		}, 64 * time.Second, 1},
		"held before it was resumed": {func(s *core.Sink) {
			s.Hold("busy", "", 0)
			s.Raise("go")
			s.Raise("busy")
		}, 5 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := core.NewSink(core.SinkOptions{})
				gated := bodies(t, core.Options{Sink: s, DeferOn: "busy", ResumeOn: "go"})
				c.signals(s)
				begun := time.Now()
				checkError(t, "Do", gated.Do(t.Context(), quick), nil)
				checkEqual(t, "deferred for", time.Since(begun), c.want)
				checkEqual(t, "forced", gated.Stats().Forced, c.forced)
			})
		})
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
				sink := core.NewSink(core.SinkOptions{})
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
