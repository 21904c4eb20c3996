package signals_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// endless is the number of calls after which a test decides that nothing stops a loop. It
// is far below the number that overflows the stack.
const endless = 10_000

func TestScoped(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	job := s.Scoped("request", "gateway", "ResizeImageJob")
	job.Raise("started")
	s.Scoped("request", "gateway", "*").Raise("batch.completed")
	s.Scoped("request", "*", "*").RaiseKey("health.failed", "db")
	s.Scoped("a", "b", "c").Scoped("d", "e", "f").Raise("x")
	wantNames(t, "sink", sensed(s, signals.Query{}),
		"request.gateway.ResizeImageJob.started", "request.gateway.*.batch.completed", "request.*.*.health.failed", "a.b.c.d.e.f.x")
	if got := newest(t, s, "request.*.health.failed"); got.Key != "db" {
		t.Errorf("key: got %q, want db", got.Key)
	}
	coretest.Check(t, !job.Raise(""), "raised a scope without a name")
	checkEqual(t, "signals", s.Count("*"), 4)
}

// A signal knows which operations raised the signals that led to it, whichever way these were named.
func TestCauses(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	s.Raise("a")
	var of core.OperationID
	var causes []signals.Cause
	inBody(t, core.Options{Sink: s}, func(ctx context.Context, o *core.Operation, c *core.Coordinator[coretest.Body]) {
		of = o.ID()
		o.Because(newest(t, s, "a")).Raise("b")
		_, err := c.Enqueue(signals.CausedBy(ctx, newest(t, s, "b")), func(ctx context.Context) error {
			core.OperationFrom(ctx).Raise("c")
			causes = newest(t, s, "c").Causes()
			return nil
		})
		checkError(t, "Enqueue", err, nil)
	})
	checkSlice(t, "causes of c", causes, []signals.Cause{{Name: "a"}, {Name: "b", Operation: of}})
	checkSlice(t, "causes of a", newest(t, s, "a").Causes(), nil)
}

// What is raised through a scope of an operation belongs to the operation.
func TestScopedOfOperation(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	inBody(t, core.Options{Sink: sink}, func(_ context.Context, o *core.Operation, _ *core.Coordinator[coretest.Body]) {
		o.Scoped("s", "c", "t").Raise("x")
		o.Scoped("s", "c", "t").Raise("y")
		checkEqual(t, "the operation has them", [2]bool{o.Has("s.c.t.x"), o.Has("*.y")}, [2]bool{true, true})
		checkEqual(t, "retracted twice", [2]bool{o.Retract("s.c.t.x"), o.Retract("s.c.t.x")}, [2]bool{true, false})
		checkEqual(t, `RetractMatching("s.*")`, o.RetractMatching("s.*"), 1)
		checkEqual(t, "signals of the sink", sink.Count("*"), 0)
	})
}

// The parts of a scope are text and may contain dots and stars.
func TestScopedPartsAreText(t *testing.T) {
	for _, tt := range []struct{ sink, coordinator, atom, want string }{
		{"a.b", "c", "d", "a.b.c.d.x"},
		{"a", "b.c", "d", "a.b.c.d.x"},
		{"", "", "", "...x"},
		{"*", "?", "a,b", "*.?.a,b.x"},
		{" a ", "b", "c", " a .b.c.x"},
	} {
		s := signals.NewSink(signals.SinkOptions{})
		coretest.Check(t, s.Scoped(tt.sink, tt.coordinator, tt.atom).Raise("x"), "%q: not raised", tt.want)
		wantNames(t, "sensed", sensed(s, signals.Query{}), tt.want)
		checkEqual(t, tt.want+" by its last part", [2]bool{s.Has("*.x"), s.Has("x")}, [2]bool{true, false})
	}
}

func TestRaiseNothing(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{
		OnBlocked: func(s signals.Signal, why signals.BlockReason) { t.Errorf("blocked %q: %v", s.Name, why) },
	}})
	s.Subscribe("*", func(s signals.Signal) { t.Errorf("heard %q", s.Name) })
	checkEqual(t, "raised", [3]bool{s.Raise(""), s.RaiseKey("", "k"), s.Because(signals.Signal{Name: "a"}).Raise("")}, [3]bool{})
	s.Hold("", "k", 0)()
	got := s.Stats()
	checkEqual(t, "Raised, Blocked, Stored, Held", words(got.Raised, got.Blocked, got.Stored, got.Held), "0 0 0 0")
}

// blocks records what a sink refuses.
type blocks struct {
	mu  sync.Mutex
	log []string
}

func (b *blocks) add(s signals.Signal, why signals.BlockReason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, fmt.Sprintf("%s: %v", s.Name, why))
}

func (b *blocks) want(t *testing.T, s *signals.Sink, want ...string) {
	t.Helper()
	coretest.Check(t, slices.Equal(b.log, want), "blocked: got %q, want %q", b.log, want)
	checkEqual(t, "Stats().Blocked", s.Stats().Blocked, uint64(len(want)))
}

func TestPropagationDepth(t *testing.T) {
	for _, tt := range []struct{ given, want int }{{0, 10}, {1, 1}, {3, 3}, {-1, 50}} {
		t.Run(fmt.Sprint(tt.given), func(t *testing.T) {
			var b blocks
			s := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{MaxDepth: tt.given, OnBlocked: b.add}})
			s.Raise("n0")
			deepest := newest(t, s, "n0")
			for i := 1; i <= 50; i++ {
				name := fmt.Sprintf("n%d", i)
				if !s.Because(deepest).Raise(name) {
					break
				}
				deepest = newest(t, s, name)
			}
			checkEqual(t, "depth of the deepest", deepest.Depth(), tt.want)
			if tt.want < 50 {
				b.want(t, s, fmt.Sprintf("n%d: chain too deep", tt.want+1))
			} else {
				b.want(t, s)
			}
		})
	}
}

// A depth refusal comes before a cycle, and a cycle before a terminal cause.
func TestPropagationOrderOfReasons(t *testing.T) {
	var b blocks
	s := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{MaxDepth: 1, Terminal: "*", OnBlocked: b.add}})
	s.Raise("a")
	s.Raise("b")
	a := newest(t, s, "a")
	free := signals.NewSink(signals.SinkOptions{})
	free.Raise("a")
	free.Because(newest(t, free, "a")).Raise("b")
	deep := newest(t, free, "b")
	s.Because(deep).Raise("a")
	s.Because(a).Raise("a")
	s.Because(a).Raise("b")
	b.want(t, s, "a: chain too deep", "a: cycle", "b: terminal cause")
}

// The limits of propagation apply to operations, and OnBlocked gets the whole signal.
func TestPropagationOfOperations(t *testing.T) {
	var blocked signals.Signal
	var onRaiser bool
	s := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{MaxDepth: 1, OnBlocked: func(s signals.Signal, why signals.BlockReason) {
		blocked, onRaiser = s, true
		checkEqual(t, "reason", why, signals.BlockedDepth)
	}}})
	s.Raise("a")
	s.Because(newest(t, s, "a")).Raise("b")
	var id core.OperationID
	inBody(t, core.Options{Sink: s}, func(_ context.Context, o *core.Operation, _ *core.Coordinator[coretest.Body]) {
		id = o.ID()
		coretest.Check(t, !o.Because(newest(t, s, "b")).RaiseKey("c", "k"), "raised too deep a signal")
		coretest.Check(t, onRaiser, "OnBlocked was not called before Raise returned")
		coretest.Check(t, len(o.Signals()) == 0, "the operation has %v", o.Signals())
	})
	checkEqual(t, "OnBlocked saw", words(blocked.Name, blocked.Key, blocked.Operation, blocked.Seq, blocked.Time.IsZero()), words("c k", id, "0 true"))
	if got, want := blocked.Path(), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("OnBlocked saw the path %q, want %q", got, want)
	}
}

// The limits of propagation apply to every way to raise a caused signal.
func TestPropagationBoundsEveryRaiser(t *testing.T) {
	var b blocks
	s := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{Terminal: "end", AllowCycles: true, OnBlocked: b.add}})
	from := signals.NewSink(signals.SinkOptions{})
	from.Raise("end")
	s.Raise("end")
	end := newest(t, s, "end")
	inBody(t, core.Options{Sink: s}, func(_ context.Context, o *core.Operation, _ *core.Coordinator[coretest.Body]) {
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
			coretest.Check(t, !raise() && s.Stats().Blocked == before+1, "%s: raised what a terminal signal caused, or did not count it", what)
		}
	})
	checkEqual(t, "calls of OnBlocked", len(b.log), 11)
}

// A panic of OnBlocked is counted.
func TestPropagationOnBlockedPanics(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{OnBlocked: func(signals.Signal, signals.BlockReason) { panic("observer") }}})
	s.Raise("a")
	coretest.Check(t, !s.Because(newest(t, s, "a")).Raise("a"), "raised a cycle")
	got := s.Stats()
	checkEqual(t, "Panics, Blocked", words(got.Panics, got.Blocked), "1 1")
}

func TestBlockReasonString(t *testing.T) {
	for why, want := range map[signals.BlockReason]string{
		signals.BlockedDepth: "chain too deep", signals.BlockedCycle: "cycle", signals.BlockedTerminal: "terminal cause",
		0: "BlockReason(0)", 9: "BlockReason(9)",
	} {
		checkEqual(t, "text", why.String(), want)
	}
}

// OnBlocked may raise a signal about what was blocked, also while a handler of all signals loops.
func TestLoopThroughOnBlocked(t *testing.T) {
	var s *signals.Sink
	calls := 0
	s = signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{OnBlocked: func(signals.Signal, signals.BlockReason) {
		if calls++; calls > endless {
			panic("endless")
		}
		s.Raise("loop.refused")
	}}})
	s.Subscribe("*", func(signals.Signal) { s.Raise("again") })
	s.Raise("a")
	coretest.Check(t, calls <= endless, "OnBlocked was called %d times", calls)
}

// Many raisers in one slow handler at the same time are no loop.
func TestManyRaisersAreNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		door := make(chan struct{})
		s.Subscribe("a", func(signals.Signal) { <-door })
		const crowd = 300
		var wg sync.WaitGroup
		for range crowd {
			wg.Go(func() {
				coretest.Check(t, s.Raise("a"), "refused")
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

// An item that is enqueued because of a signal has the signal's operation as parent. The
// item, and all items that it enqueues, raise signals caused by that signal.
func TestCausedBy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		c := bodies(t, core.Options{Name: "work", Sink: sink, MaxConcurrency: 1})
		parents := map[string]core.OperationID{}
		body := func(name string, next func(context.Context)) func(context.Context) error {
			return func(ctx context.Context) error {
				op := core.OperationFrom(ctx)
				op.Raise(name)
				op.Hold(name+".held", 0)
				parents[name] = op.Parent()
				checkEqual(t, "source", op.Source(), "work")
				if cause, ok := signals.CauseFrom(ctx); ok != (name != "first") || ok && cause.Name != "first" {
					t.Errorf("%s: got cause %v, %v", name, cause, ok)
				}
				if next != nil {
					next(ctx)
				}
				return nil
			}
		}
		add := func(ctx context.Context, b func(context.Context) error) {
			_, err := c.Enqueue(ctx, b)
			checkError(t, "Enqueue", err, nil)
		}
		grandchild := body("grandchild", nil)
		child := body("child", func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			add(ctx, grandchild)
		})
		defer sink.Subscribe("first", func(s signals.Signal) {
			ctx, cancel := context.WithCancel(signals.CausedBy(t.Context(), s))
			defer cancel()
			add(ctx, body("second", func(ctx context.Context) { add(ctx, child) }))
		})()
		add(t.Context(), body("first", nil))
		synctest.Wait()
		byName := map[string]core.OperationID{"first": 0}
		for s := range sink.Sense(signals.Query{Pattern: "first, second, child, grandchild, *.held"}) {
			want := []string{"first", s.Name}
			if s.Name == "first" || s.Name == "first.held" {
				want = want[1:]
			}
			coretest.Check(t, slices.Equal(s.Path(), want), "%s has causes %v, want %v", s.Name, s.Path(), want)
			byName[s.Name] = s.Operation
		}
		for name, parent := range map[string]string{"second": "first", "child": "second", "grandchild": "child"} {
			checkEqual(t, "parent of "+name, parents[name], byName[parent])
		}
		var none *core.Operation
		checkEqual(t, "source of none", none.Source(), "")
	})
}
