package core_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core"
)

// endless is how often a handler lets itself be called before a test decides
// that nobody stops it; far below what overflows the stack.
const endless = 10_000

func TestScoped(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	job := s.Scoped("request", "gateway", "ResizeImageJob")
	job.Raise("started")
	s.Scoped("request", "gateway", "*").Raise("batch.completed")
	s.Scoped("request", "*", "*").RaiseKey("health.failed", "db")
	wantNames(t, "sink", sensed(s, core.Query{}),
		"request.gateway.ResizeImageJob.started", "request.gateway.*.batch.completed", "request.*.*.health.failed")
	if got := newest(t, s, "request.*.health.failed"); got.Key != "db" {
		t.Errorf("key: got %q, want db", got.Key)
	}
	if job.Raise("") {
		t.Error("raised a scope without a name")
	}
	if got := s.Count("*"); got != 3 {
		t.Errorf("got %d signals, want 3", got)
	}
}

func TestScopedWithinScoped(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	s.Scoped("a", "b", "c").Scoped("d", "e", "f").Raise("x")
	wantNames(t, "sink", sensed(s, core.Query{}), "a.b.c.d.e.f.x")
}

// Weak point 18.1: scoped emitters dropped the cause, so constraints never
// blocked them.
func TestScopedKeepsCause(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	s.Raise("a")
	a := newest(t, s, "a")
	for i, r := range []core.Raiser{
		s.Because(a).Scoped("s", "c", "t"),
		s.Scoped("s", "c", "t").Because(a),
	} {
		if !r.Raise("b") {
			t.Fatalf("%d: not raised", i)
		}
		b := newest(t, s, "s.c.t.b")
		if got, want := b.Path(), []string{"a", "s.c.t.b"}; !slices.Equal(got, want) {
			t.Errorf("%d: got path %q, want %q", i, got, want)
		}
		if s.Scoped("s", "c", "t").Because(b).Raise("b") {
			t.Errorf("%d: a cycle through a scope was not blocked", i)
		}
	}
}

// Weak point 18.2: an emitter remembered nothing: Retract reported true,
// RetractMatching 0 and HasSignal false, whatever had been raised.
func TestScopedOfOperation(t *testing.T) {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
		o := core.OperationFrom(ctx)
		o.Scoped("s", "c", "t").Raise("x")
		o.Scoped("s", "c", "t").Raise("y")
		if !o.Has("s.c.t.x") || !o.Has("*.y") {
			t.Errorf("the operation has %v", o.Signals())
		}
		if !o.Retract("s.c.t.x") || o.Retract("s.c.t.x") {
			t.Error("retracted not exactly once")
		}
		if got := o.RetractMatching("s.*"); got != 1 {
			t.Errorf("retracted %d, want 1", got)
		}
		return nil
	}, core.Options{}))
	defer c.Close()
	if err := c.Do(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := c.Sink().Count("*"); got != 0 {
		t.Errorf("the sink has %d signals, want 0", got)
	}
}

// Weak point 18.3: the failure of a callback propagated to the code that emitted.
func TestScopedPanickingHandlers(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	s.Subscribe("s.c.t.x", func(core.Signal) { panic("handler") })
	c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
		for _, r := range []core.Raiser{s, core.OperationFrom(ctx)} {
			if !r.Scoped("s", "c", "t").Raise("x") {
				t.Error("not raised")
			}
		}
		return nil
	}, core.Options{Sink: s, OnSignal: func(core.Signal) { panic("OnSignal") }}))
	defer c.Close()
	if err := c.Do(t.Context(), 0); err != nil {
		t.Errorf("a handler's panic got as far as the body: %v", err)
	}
	if s.Count("s.c.t.x") != 2 || s.Stats().Panics != 2 || c.Stats().Panics != 1 {
		t.Errorf("got %d signals, %d and %d panics, want 2, 2, 1", s.Count("s.c.t.x"), s.Stats().Panics, c.Stats().Panics)
	}
}

// Weak point 18.4: parts are not validated, dots inside of one made parsing
// ambiguous, and stars in names collided with those of patterns. A scope is what
// a name starts with, nothing takes it apart again, and Match tells the stars.
func TestScopedPartsAreText(t *testing.T) {
	for _, tt := range []struct{ sink, coordinator, atom, want string }{
		{"a.b", "c", "d", "a.b.c.d.x"},
		{"a", "b.c", "d", "a.b.c.d.x"},
		{"", "", "", "...x"},
		{"*", "?", "a,b", "*.?.a,b.x"},
		{" a ", "b", "c", " a .b.c.x"},
	} {
		s := core.NewSink(core.SinkOptions{})
		if !s.Scoped(tt.sink, tt.coordinator, tt.atom).Raise("x") {
			t.Errorf("%q: not raised", tt.want)
		}
		wantNames(t, "sensed", sensed(s, core.Query{}), tt.want)
		if !s.Has("*.x") || s.Has("x") {
			t.Errorf("%q: not found by its last part", tt.want)
		}
	}
}

func TestRaiserOutsideAnOperation(t *testing.T) {
	o := core.OperationFrom(t.Context())
	var r core.Raiser = o
	cause := core.Signal{Name: "a"}
	if r.Raise("x") || r.RaiseKey("x", "k") || r.Because(cause).Raise("x") || r.Scoped("a", "b", "c").Raise("x") {
		t.Error("raised where there is no operation")
	}
	o.Hold("x", 0)()
}

func TestRaiseNothing(t *testing.T) {
	s := core.NewSink(core.SinkOptions{Propagation: core.Propagation{
		OnBlocked: func(s core.Signal, why core.BlockReason) { t.Errorf("blocked %q: %v", s.Name, why) },
	}})
	s.Subscribe("*", func(s core.Signal) { t.Errorf("heard %q", s.Name) })
	if s.Raise("") || s.RaiseKey("", "k") || s.Because(core.Signal{Name: "a"}).Raise("") {
		t.Error("raised an empty name")
	}
	s.Hold("", "k", 0)()
	if got := s.Stats(); got.Raised != 0 || got.Blocked != 0 || got.Stored != 0 || got.Held != 0 {
		t.Errorf("got %+v, want nothing raised", got)
	}
}

// blocks records what a sink refuses.
type blocks struct {
	mu  sync.Mutex
	log []string
}

func (b *blocks) add(s core.Signal, why core.BlockReason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, fmt.Sprintf("%s: %v", s.Name, why))
}

func (b *blocks) want(t *testing.T, s *core.Sink, want ...string) {
	t.Helper()
	if !slices.Equal(b.log, want) {
		t.Errorf("blocked: got %q, want %q", b.log, want)
	}
	if got := s.Stats().Blocked; got != uint64(len(want)) {
		t.Errorf("Stats().Blocked: got %d, want %d", got, len(want))
	}
}

func TestPropagationDepth(t *testing.T) {
	for _, tt := range []struct{ given, want int }{{0, 10}, {1, 1}, {3, 3}, {-1, 50}} {
		t.Run(fmt.Sprint(tt.given), func(t *testing.T) {
			var b blocks
			s := core.NewSink(core.SinkOptions{Propagation: core.Propagation{MaxDepth: tt.given, OnBlocked: b.add}})
			s.Raise("n0")
			deepest := newest(t, s, "n0")
			for i := 1; i <= 50; i++ {
				name := fmt.Sprintf("n%d", i)
				if !s.Because(deepest).Raise(name) {
					break
				}
				deepest = newest(t, s, name)
			}
			if got := deepest.Depth(); got != tt.want {
				t.Errorf("got depth %d, want %d", got, tt.want)
			}
			if tt.want < 50 {
				b.want(t, s, fmt.Sprintf("n%d: chain too deep", tt.want+1))
			} else {
				b.want(t, s)
			}
		})
	}
}

func TestPropagationCycle(t *testing.T) {
	var b blocks
	s := core.NewSink(core.SinkOptions{Propagation: core.Propagation{OnBlocked: b.add}})
	s.Raise("a")
	s.Because(newest(t, s, "a")).Raise("b")
	s.Because(newest(t, s, "b")).Raise("c")
	if s.Because(newest(t, s, "c")).Raise("a") {
		t.Error("a caused a")
	}
	if s.Because(newest(t, s, "a")).Raise("a") {
		t.Error("a caused a directly")
	}
	if !s.Raise("a") || !s.Because(newest(t, s, "b")).Raise("d") {
		t.Error("blocked what is no cycle")
	}
	b.want(t, s, "a: cycle", "a: cycle")

	free := core.NewSink(core.SinkOptions{Propagation: core.Propagation{AllowCycles: true}})
	free.Raise("a")
	for range 10 {
		if !free.Because(newest(t, free, "a")).Raise("a") {
			t.Fatal("blocked a cycle that is allowed")
		}
	}
	if free.Because(newest(t, free, "a")).Raise("a") {
		t.Error("an allowed cycle is not bounded by the depth")
	}
}

// A terminal signal is recorded; what it causes is not. Terminal is a pattern.
func TestPropagationTerminal(t *testing.T) {
	var b blocks
	s := core.NewSink(core.SinkOptions{Propagation: core.Propagation{Terminal: "completed, failed.*", OnBlocked: b.add}})
	s.Raise("a")
	a := newest(t, s, "a")
	if !s.Because(a).Raise("completed") || !s.Because(a).Raise("failed.x") || !s.Because(a).Raise("failed") {
		t.Fatal("a terminal signal was blocked")
	}
	if s.Because(newest(t, s, "completed")).Raise("b") || s.Because(newest(t, s, "failed.x")).Raise("b") {
		t.Error("a terminal signal caused another")
	}
	if !s.Because(newest(t, s, "failed")).Raise("b") {
		t.Error("blocked a signal whose cause is not terminal")
	}
	b.want(t, s, "b: terminal cause", "b: terminal cause")
}

// Weak point 14.3: a leaf's chain was empty, so that a loop through a leaf was
// never detected.
func TestPropagationLeaf(t *testing.T) {
	var b blocks
	s := core.NewSink(core.SinkOptions{Propagation: core.Propagation{Leaf: "logged", OnBlocked: b.add}})
	s.Raise("a")
	if !s.Because(newest(t, s, "a")).Raise("logged") {
		t.Fatal("a leaf was blocked")
	}
	logged := newest(t, s, "logged")
	if got := logged.Depth(); got != 1 {
		t.Errorf("a leaf has depth %d, want 1", got)
	}
	if s.Because(logged).Raise("a") || s.Because(logged).Raise("b") {
		t.Error("a leaf caused another signal")
	}
	b.want(t, s, "a: cycle", "b: terminal cause")
}

// A depth refusal comes before a cycle, and a cycle before a terminal cause.
func TestPropagationOrderOfReasons(t *testing.T) {
	var b blocks
	s := core.NewSink(core.SinkOptions{Propagation: core.Propagation{MaxDepth: 1, Terminal: "*", OnBlocked: b.add}})
	s.Raise("a")
	s.Raise("b")
	a := newest(t, s, "a")
	free := core.NewSink(core.SinkOptions{})
	free.Raise("a")
	free.Because(newest(t, free, "a")).Raise("b")
	deep := newest(t, free, "b")
	s.Because(deep).Raise("a")
	s.Because(a).Raise("a")
	s.Because(a).Raise("b")
	b.want(t, s, "a: chain too deep", "a: cycle", "b: terminal cause")
}

// Weak point 14.3: constraints applied to operations only; raises on a sink
// bypassed them.
func TestPropagationOfOperations(t *testing.T) {
	var blocked core.Signal
	var onRaiser bool
	s := core.NewSink(core.SinkOptions{Propagation: core.Propagation{MaxDepth: 1, OnBlocked: func(s core.Signal, why core.BlockReason) {
		blocked, onRaiser = s, true
		if why != core.BlockedDepth {
			t.Errorf("got reason %v, want depth", why)
		}
	}}})
	s.Raise("a")
	s.Because(newest(t, s, "a")).Raise("b")
	var id core.OperationID
	c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
		o := core.OperationFrom(ctx)
		id = o.ID()
		if o.Because(newest(t, s, "b")).RaiseKey("c", "k") {
			t.Error("raised too deep a signal")
		}
		if !onRaiser {
			t.Error("OnBlocked was not called before Raise returned")
		}
		if len(o.Signals()) != 0 {
			t.Errorf("the operation has %v", o.Signals())
		}
		return nil
	}, core.Options{Sink: s}))
	defer c.Close()
	if err := c.Do(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if blocked.Name != "c" || blocked.Key != "k" || blocked.Operation != id || blocked.Seq != 0 || !blocked.Time.IsZero() {
		t.Errorf("OnBlocked saw %+v", blocked)
	}
	if got, want := blocked.Path(), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("OnBlocked saw the path %q, want %q", got, want)
	}
}

// Weak point 14.3: scoped emitters and others bypassed the constraints as well.
// There is no way to raise a caused signal that does not heed them.
func TestPropagationBoundsEveryRaiser(t *testing.T) {
	var b blocks
	s := core.NewSink(core.SinkOptions{Propagation: core.Propagation{Terminal: "end", AllowCycles: true, OnBlocked: b.add}})
	from := core.NewSink(core.SinkOptions{})
	from.Raise("end")
	s.Raise("end")
	end := newest(t, s, "end")
	c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
		o := core.OperationFrom(ctx)
		for what, raise := range map[string]func() bool{
			"sink":                func() bool { return s.Because(end).Raise("x") },
			"sink with key":       func() bool { return s.Because(end).RaiseKey("x", "k") },
			"sink, scoped":        func() bool { return s.Because(end).Scoped("a", "b", "c").Raise("x") },
			"scope of sink":       func() bool { return s.Scoped("a", "b", "c").Because(end).RaiseKey("x", "k") },
			"operation":           func() bool { return o.Because(end).Raise("x") },
			"operation, scoped":   func() bool { return o.Because(end).Scoped("a", "b", "c").Raise("x") },
			"scope of operation":  func() bool { return o.Scoped("a", "b", "c").Because(end).Raise("x") },
			"kind":                func() bool { return fileSaved.Raise(s.Because(end), "", file{}) },
			"kind of operation":   func() bool { return fileSaved.Raise(o.Because(end), "", file{}) },
			"another sink's view": func() bool { return s.Because(newest(t, from, "end")).Raise("x") },
			"forwarded": func() bool {
				defer from.Forward(s, "x")()
				before := s.Stats().Raised
				from.Because(newest(t, from, "end")).Raise("x")
				return s.Stats().Raised > before
			},
		} {
			before := s.Stats().Blocked
			if raise() || s.Stats().Blocked != before+1 {
				t.Errorf("%s: raised what a terminal signal caused, or did not count it", what)
			}
		}
		return nil
	}, core.Options{Sink: s}))
	defer c.Close()
	if err := c.Do(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := len(b.log); got != 11 {
		t.Errorf("OnBlocked was told of %d, want 11", got)
	}
}

// Weak point 3.1: the failure of OnBlocked was swallowed without a trace.
func TestPropagationOnBlockedPanics(t *testing.T) {
	s := core.NewSink(core.SinkOptions{Propagation: core.Propagation{OnBlocked: func(core.Signal, core.BlockReason) { panic("observer") }}})
	s.Raise("a")
	if s.Because(newest(t, s, "a")).Raise("a") {
		t.Error("raised a cycle")
	}
	if got := s.Stats(); got.Panics != 1 || got.Blocked != 1 {
		t.Errorf("got %d panics and %d blocked, want 1 and 1", got.Panics, got.Blocked)
	}
}

func TestBlockReasonString(t *testing.T) {
	for why, want := range map[core.BlockReason]string{
		core.BlockedDepth: "chain too deep", core.BlockedCycle: "cycle", core.BlockedTerminal: "terminal cause",
		0: "BlockReason(0)", 9: "BlockReason(9)",
	} {
		if got := why.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A raises B raises A, with the cause passed on: the cycle is blocked at once.
func TestLoopWithCause(t *testing.T) {
	var b blocks
	s := core.NewSink(core.SinkOptions{Propagation: core.Propagation{OnBlocked: b.add}})
	s.Subscribe("a", func(a core.Signal) { s.Because(a).Raise("b") })
	s.Subscribe("b", func(b core.Signal) { s.Because(b).Raise("a") })
	s.Raise("a")
	wantNames(t, "sink", sensed(s, core.Query{}), "a", "b")
	b.want(t, s, "a: cycle")
}

// Weak point 15.4: a listener that raised recursed without limit. Here A raises B
// raises A without passing the cause on.
func TestLoopWithoutCause(t *testing.T) {
	twoSinks := func(s *core.Sink) {
		other := core.NewSink(core.SinkOptions{})
		s.Subscribe("a", func(core.Signal) { other.Raise("b") })
		other.Subscribe("b", func(core.Signal) { s.Raise("a") })
	}
	tests := map[string]func(s *core.Sink){
		"A raises A": func(s *core.Sink) {
			s.Subscribe("a", func(core.Signal) { s.Raise("a") })
		},
		"A raises B raises A": func(s *core.Sink) {
			s.Subscribe("a", func(core.Signal) { s.Raise("b") })
			s.Subscribe("b", func(core.Signal) { s.Raise("a") })
		},
		"any raises any": func(s *core.Sink) {
			s.Subscribe("*", func(core.Signal) { s.Raise("any") })
		},
		"unique names": func(s *core.Sink) {
			n := 0
			s.Subscribe("*", func(core.Signal) { n++; s.Raise(fmt.Sprintf("n%d", n)) })
		},
		"by a hold": func(s *core.Sink) {
			s.Subscribe("a", func(core.Signal) { s.Hold("a", "", 0)() })
		},
		"through another sink": twoSinks,
		"through a scope": func(s *core.Sink) {
			s.Subscribe("*a", func(core.Signal) { s.Scoped("x", "y", "z").Raise("a") })
		},
	}
	for name, setup := range tests {
		t.Run(name, func(t *testing.T) {
			calls, refused := 0, 0
			s := core.NewSink(core.SinkOptions{Propagation: core.Propagation{OnBlocked: func(_ core.Signal, why core.BlockReason) {
				refused++
				if why != core.BlockedDepth {
					t.Errorf("got reason %v, want depth", why)
				}
			}}})
			s.Subscribe("*", func(core.Signal) {
				if calls++; calls > endless {
					panic("endless")
				}
			})
			setup(s)
			if !s.Raise("a") {
				t.Error("the first raise was refused")
			}
			stats := s.Stats()
			if calls > 1000 || stats.Panics > 0 {
				t.Errorf("%d calls and %d panics before the loop ended", calls, stats.Panics)
			}
			if name != "through another sink" && (stats.Blocked != 1 || refused != 1) {
				t.Errorf("%d refusals counted, %d reported, want 1", stats.Blocked, refused)
			}
			calls = 0
			if s.Raise("unrelated"); calls == 0 {
				t.Error("after a loop nothing is delivered any more")
			}
		})
	}
}

// The same from a body, on the operation.
func TestLoopFromOperation(t *testing.T) {
	s := core.NewSink(core.SinkOptions{Capacity: 4 * endless})
	c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
		o := core.OperationFrom(ctx)
		defer s.Subscribe("a", func(core.Signal) { o.Raise("b") })()
		defer s.Subscribe("b", func(core.Signal) {
			if s.Count("*") > endless {
				panic("endless")
			}
			o.Raise("a")
		})()
		o.Raise("a")
		return nil
	}, core.Options{Sink: s}))
	defer c.Close()
	if err := c.Do(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := s.Stats(); got.Blocked != 1 || got.Raised > 1000 || got.Panics != 0 {
		t.Errorf("got %d blocked after %d raised, %d panics, want 1 after some", got.Blocked, got.Raised, got.Panics)
	}
}

// A loop through Options.OnSignal ends as well.
func TestLoopThroughOnSignal(t *testing.T) {
	var o *core.Operation
	calls := 0
	c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
		o = core.OperationFrom(ctx)
		o.Raise("a")
		return nil
	}, core.Options{OnSignal: func(core.Signal) {
		if calls++; calls > endless {
			panic("endless")
		}
		o.Raise("a")
	}}))
	defer c.Close()
	if err := c.Do(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if calls > endless {
		t.Errorf("nobody ended the loop: %d calls, %d blocked", calls, c.Sink().Stats().Blocked)
	}
	if got := c.Sink().Stats().Blocked; got != 1 {
		t.Errorf("got %d blocked, want 1", got)
	}
}

// OnBlocked may raise a signal about what was blocked, also when a handler of all
// signals is what loops.
func TestLoopThroughOnBlocked(t *testing.T) {
	var s *core.Sink
	calls := 0
	s = core.NewSink(core.SinkOptions{Propagation: core.Propagation{OnBlocked: func(core.Signal, core.BlockReason) {
		if calls++; calls > endless {
			panic("endless")
		}
		s.Raise("loop.refused")
	}}})
	s.Subscribe("*", func(core.Signal) { s.Raise("again") })
	s.Raise("a")
	if calls > endless {
		t.Errorf("OnBlocked was called %d times", calls)
	}
}

// A handler that retracts what it raises, and is told of retractions, ends too.
func TestLoopThroughRetractions(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	calls := 0
	s.SubscribeRetracted("a", func(core.Retraction) {
		if calls++; calls > endless {
			panic("endless")
		}
		s.Raise("a")
		s.Retract("a")
	})
	s.Raise("a")
	s.Retract("a")
	if calls > endless {
		t.Errorf("nobody ended the loop: %d calls", calls)
	}
}

// Many raisers in one slow handler at once are a crowd, not a loop.
func TestCrowdIsNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{})
		door := make(chan struct{})
		s.Subscribe("a", func(core.Signal) { <-door })
		const crowd = 300
		var wg sync.WaitGroup
		for range crowd {
			wg.Go(func() {
				if !s.Raise("a") {
					t.Error("refused")
				}
			})
		}
		synctest.Wait()
		close(door)
		wg.Wait()
		if got := s.Stats(); got.Blocked != 0 || got.Raised != crowd {
			t.Errorf("got %d blocked, %d raised, want 0, %d", got.Blocked, got.Raised, crowd)
		}
	})
}

// Nesting that ends by itself is legal, deeper than chains of causes may be.
func TestNestedRaisesAreLegal(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	depth := 0
	s.Subscribe("*", func(core.Signal) {
		if depth < 30 {
			depth++
			if !s.Raise(fmt.Sprintf("n%d", depth)) {
				t.Errorf("refused at depth %d", depth)
			}
		}
	})
	s.Raise("n0")
	if got := s.Count("n*"); got != 31 {
		t.Errorf("got %d signals, want 31", got)
	}
}
