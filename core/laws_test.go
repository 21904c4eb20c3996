package core_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// Law 1: a signal, by itself, does not cause execution. It only records a fact.
// Nothing runs because a signal was raised.
func TestLaw01SignalsNeverTriggerExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{})
		ran := 0
		c := core.Must(core.NewCoordinator(func(context.Context, int) error { ran++; return nil },
			core.Options{Sink: s, CancelOn: "stop", DeferOn: "wait"}))
		defer c.Close()
		for _, name := range []string{"stop", "wait", "start", "run", "drain", "coordinator.drain.all", "coordinator.paused", "operation.started"} {
			s.Raise(name)
		}
		s.Retract("*")
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := c.Stats(); ran != 0 || got.Enqueued != 0 || got.Paused || got.Closed {
			t.Errorf("ran %d, got %+v", ran, got)
		}
		if err := c.Do(t.Context(), 0); err != nil || ran != 1 {
			t.Errorf("got %v, ran %d, want it to work as before", err, ran)
		}
	})
}

// Law 2: a handler is explicit, local and optional. It runs synchronously when a
// signal is raised. The raiser does not know it.
func TestLaw02HandlersAreExplicitLocalAndOptional(t *testing.T) {
	s, other := core.NewSink(core.SinkOptions{}), core.NewSink(core.SinkOptions{})
	var order []string
	cancel := s.Subscribe("a", func(core.Signal) { order = append(order, "handler") })
	other.Subscribe("a", func(core.Signal) { order = append(order, "another sink's handler") })
	raise := func() {
		order = append(order, fmt.Sprint("raised ", s.Raise("a")))
	}
	raise()
	cancel()
	raise()
	wantNames(t, "order", order, "handler", "raised true", "raised true")

	onSignal := func(opts core.Options) (heard []string) {
		opts.OnSignal = func(s core.Signal) { heard = append(heard, s.Name) }
		inBody(t, opts, func(_ context.Context, o *core.Operation, _ *core.Coordinator[coretest.Body]) {
			o.Raise("mine")
			opts.Sink.Raise("everybody's")
		})
		return heard
	}
	wantNames(t, "OnSignal", onSignal(core.Options{Sink: s}), "mine")
}

// Law 3: a signal is attached only to the operation that raised it. No signal
// ever annotates another operation.
func TestLaw03SignalsAreLocalToTheOperation(t *testing.T) {
	c := bodies(t, core.Options{})
	defer c.Close()
	want := map[core.OperationID]string{}
	for i := range 10 {
		name := fmt.Sprintf("n%d", i)
		want[enqueue(t, c, raise(name))] = name
	}
	c.Flush(t.Context())
	c.Sink().Raise("direct")
	for snapshot := range c.Operations(core.OperationQuery{}) {
		if len(snapshot.Signals) != 1 || snapshot.Signals[0].Name != want[snapshot.ID] || snapshot.Signals[0].Operation != snapshot.ID {
			t.Errorf("operation %d: got %v, want only %s", snapshot.ID, snapshot.Signals, want[snapshot.ID])
		}
	}
	coretest.Check(t, !c.Has("direct"), "a signal of the sink became one of the coordinator's operations")
}

// Law 4: raising appends a fact. Signals are never updated or overwritten, and a
// retraction removes only the raiser's own.
func TestLaw04SignalsAreAppendOnlyFacts(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	s.RaiseKey("a", "first")
	first := newest(t, s, "a")
	s.RaiseKey("a", "second")
	all := slices.Collect(s.Sense(core.Query{}))
	coretest.Check(t, len(all) == 2 && all[0] == first && all[1].Key == "second", "got %v, want the first as it was, and the second", all)
	all[0].Name, all[0].Key = "changed", "changed"
	checkEqual(t, "the first, after its copy was changed", slices.Collect(s.Sense(core.Query{}))[0], first)

	c := core.Must(core.NewCoordinator(func(ctx context.Context, retract bool) error {
		o := core.OperationFrom(ctx)
		o.Raise("a")
		coretest.Check(t, !retract || o.RetractMatching("*") == 1, "an operation retracted more than its own")
		return nil
	}, core.Options{Sink: s}))
	defer c.Close()
	c.Do(t.Context(), false)
	c.Do(t.Context(), true)
	checkEqual(t, `Count("a")`, s.Count("a"), 3)
	checkEqual(t, `Retract("*")`, s.Retract("*"), 2)
}

// Law 5: signals exist only within the window, bounded and for a time. They
// expire by themselves; nothing is kept.
func TestLaw05TheSurfaceIsBoundedAndTimeLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{Capacity: 10, MaxAge: time.Minute})
		c := bodies(t, core.Options{Sink: s, MaxTracked: 5, MaxAge: time.Minute})
		defer c.Close()
		for range 100 {
			s.Raise("b")
			c.Do(t.Context(), raise("a"))
			if s.Count("*") > 10 || c.Count("*") > 5 {
				t.Fatalf("the sink shows %d, the coordinator %d, want at most 10 and 5", s.Count("*"), c.Count("*"))
			}
		}
		time.Sleep(time.Minute)
		coretest.Check(t, s.Count("*") == 0 && c.Count("*") == 0, "a minute later the sink shows %d, the coordinator %d", s.Count("*"), c.Count("*"))
	})
}

// Law 6: observers read, they do not write.
func TestLaw06ObserversReadAndDoNotWrite(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
		o := core.OperationFrom(ctx)
		o.Raise("a")
		o.Set("k", "v")
		return nil
	}, core.Options{Sink: s}))
	defer c.Close()
	id, _ := c.Enqueue(t.Context(), 0)
	c.Flush(t.Context())
	before, beforeStats := slices.Collect(s.Sense(core.Query{})), s.Stats()
	for range 3 {
		s.Has("a*")
		s.Count("*")
		s.Monitor("b*", 0).Stop()
		c.Has("a")
		snapshot, _ := c.Lookup(id)
		snapshot.Signals[0].Name = "changed"
		snapshot.Signals = snapshot.Signals[:0]
		snapshot.Values["k"] = "changed"
	}
	if after := slices.Collect(s.Sense(core.Query{})); !slices.Equal(after, before) || s.Stats() != beforeStats {
		t.Errorf("got %v, want %v", after, before)
	}
	snapshot, _ := c.Lookup(id)
	if v, _ := core.Value[string](snapshot, "k"); len(snapshot.Signals) != 1 || snapshot.Signals[0].Name != "a" || v != "v" {
		t.Errorf("got %+v", snapshot)
	}
}

// Law 7: event-like behaviour is a layer, not a primitive. Delivery is made of public parts: a handler that
// enqueues turns signals into work.
func TestLaw07EventsAreALayer(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	var handled []string
	c := core.Must(core.NewCoordinator(func(_ context.Context, s core.Signal) error {
		handled = append(handled, s.Name)
		return nil
	}, core.Options{MaxConcurrency: 1}))
	defer s.Subscribe("error.*", func(s core.Signal) { c.TryEnqueue(context.Background(), s) })()
	for _, name := range []string{"error.a", "fine", "error.b"} {
		s.Raise(name)
	}
	checkError(t, "Drain", c.Drain(t.Context()), nil)
	wantNames(t, "handled", handled, "error.a", "error.b")
}

// Law 8: no operation may alter another. From outside there are snapshots, which
// have no way to write; the operation itself is only with its own body.
func TestLaw08NoMutationAcrossOperations(t *testing.T) {
	var first *core.Operation
	c := core.Must(core.NewCoordinator(func(ctx context.Context, i int) error {
		o := core.OperationFrom(ctx)
		if i == 0 {
			first = o
			o.Raise("a")
			o.Set("k", 1)
			return nil
		}
		coretest.Check(t, o != first && !o.Has("a") && !o.Retract("a") && o.RetractMatching("*") == 0, "an operation reaches the signals of another")
		o.Raise("b")
		o.Set("k", 2)
		return nil
	}, core.Options{}))
	defer c.Close()
	id, _ := c.Enqueue(t.Context(), 0)
	c.Flush(t.Context())
	before, _ := c.Lookup(id)
	c.Do(t.Context(), 1)
	c.Sink().Retract("*")
	if after, _ := c.Lookup(id); !reflect.DeepEqual(after, before) {
		t.Errorf("got %+v, want %+v", after, before)
	}

	// What can be had of others has no method that changes anything.
	for _, shown := range []any{core.Snapshot{}, core.Signal{}, core.Echo{}} {
		typ := reflect.TypeOf(shown)
		for i := range typ.NumMethod() {
			name := typ.Method(i).Name
			for _, verb := range []string{"Raise", "Retract", "Set", "Hold", "Cancel"} {
				coretest.Check(t, !strings.HasPrefix(name, verb), "%v.%s could change what it shows", typ, name)
			}
		}
	}
}

// Law 9: global views are derived, never authoritative: what is done to the
// sink's view changes nothing of the operations.
func TestLaw09GlobalViewsAreDerived(t *testing.T) {
	s := core.NewSink(core.SinkOptions{Capacity: 10})
	var coordinators []*core.Coordinator[coretest.Body]
	for i := range 3 {
		c := bodies(t, core.Options{Name: fmt.Sprintf("c%d", i), Sink: s})
		defer c.Close()
		c.Do(t.Context(), raise("a"))
		coordinators = append(coordinators, c)
	}
	checkEqual(t, `Count("a")`, s.Count("a"), 3)
	s.Forget(core.Query{Source: "c0"})
	s.Retract("a")
	for range 100 {
		s.Raise("chatter")
	}
	checkEqual(t, `Count("a")`, s.Count("a"), 0)
	for i, c := range coordinators {
		if got := c.Count("a"); got != 1 {
			t.Errorf("coordinator %d shows %d of its own, want 1", i, got)
		}
	}
}
