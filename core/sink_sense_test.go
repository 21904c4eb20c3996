package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Weak point 15.1.5: Detect(name) and Detect(predicate) disagreed. Has, Count,
// Sense and a monitor answer from one state.
func TestHasCountSenseAgree(t *testing.T) {
	s := core.NewSink(core.SinkOptions{Capacity: 20})
	patterns := []string{"a", "a.b", "a.*", "*", "?", "a,b", "c.?", "none", "", ",", "a.b, a.*, c.d"}
	check := func() {
		t.Helper()
		for _, p := range patterns {
			want := 0
			for sig := range s.Sense(core.Query{}) {
				if core.Match(p, sig.Name) {
					want++
				}
			}
			if got := s.Count(p); got != want || s.Has(p) != (want > 0) {
				t.Errorf("%q: Count %d, Has %v, want %d", p, got, s.Has(p), want)
			}
		}
	}
	for i, name := range []string{"a", "a.b", "b", "a.b.c", "c.d", "a", "a.b", "x"} {
		s.Raise(name)
		check()
		if i%2 == 0 {
			defer s.Hold(name, "", 0)()
		}
		check()
	}
	s.Retract("a.*")
	check()
	s.Forget(core.Query{Pattern: "a"})
	check()
	for range 30 {
		s.Raise("x")
	}
	check()
}

// Any number of patterns can be asked for, and asked for again.
func TestCountManyPatterns(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	for i := range 300 {
		s.Raise(fmt.Sprintf("n%03d", i))
	}
	for round := range 2 {
		for i := range 300 {
			if got := s.Count(fmt.Sprintf("n%03d*", i)); got != 1 {
				t.Fatalf("round %d, pattern %d: got %d, want 1", round, i, got)
			}
		}
		s.Raise("m")
	}
}

// Weak point 15.1.7: enumeration order was arbitrary.
func TestSenseInOrder(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	for i := range 10 {
		name := string(rune('a' + i%3))
		if i%4 == 0 {
			s.Hold(name, "", 0)
		} else {
			s.Raise(name)
		}
	}
	for _, pattern := range []string{"", "a", "a,b", "*"} {
		last, n := uint64(0), 0
		for sig := range s.Sense(core.Query{Pattern: pattern}) {
			if sig.Seq <= last {
				t.Errorf("%q: Seq %d after %d", pattern, sig.Seq, last)
			}
			last = sig.Seq
			n++
		}
		if want := s.Count(max(pattern, "*")); n != want {
			t.Errorf("%q: got %d, want %d", pattern, n, want)
		}
	}
}

// As of the start of the loop, no lock held while yielding, and in chunks.
func TestSenseWhileChanging(t *testing.T) {
	for _, pattern := range []string{"", "n", "n*"} {
		t.Run(fmt.Sprintf("%q", pattern), func(t *testing.T) {
			s := core.NewSink(core.SinkOptions{Capacity: 10000})
			for range 10000 {
				s.Raise("n")
			}
			defer s.Hold("n", "held", 0)() // pushes out the first
			n := 0
			for sig := range s.Sense(core.Query{Pattern: pattern}) {
				if sig.Seq > 10001 {
					t.Fatalf("sensed Seq %d, raised after the start", sig.Seq)
				}
				if n == 0 {
					for range 5000 {
						s.Raise("n") // half of the window leaves meanwhile
					}
				}
				n++
			}
			if n < 5000 || n > 6000 {
				t.Errorf("sensed %d, want the 5000 that stayed, and at most one chunk more", n)
			}
			if got := len(sensed(s, core.Query{Pattern: pattern})); got != 10001-1 && got != 10001 {
				t.Errorf("a new walk senses %d", got)
			}
		})
	}
}

func TestSenseStops(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	for range 5 {
		s.Raise("a")
	}
	walk := s.Sense(core.Query{})
	for round := range 2 { // and can be walked again
		n := 0
		for range walk {
			if n++; n == 2 {
				break
			}
		}
		if n != 2 {
			t.Errorf("round %d: got %d, want 2", round, n)
		}
	}
	next, stop := iter.Pull(walk)
	next()
	s.Raise("b") // no lock is held in between
	stop()
}

func TestRetract(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	var told []string
	s.SubscribeRetracted("a.*", func(r core.Retraction) {
		if s.Has(r.Signal.Name) && r.Signal.Name != "a.y" {
			t.Errorf("told of the retraction of %q before it is gone", r.Signal.Name)
		}
		told = append(told, fmt.Sprintf("%s %s by %q", r.Signal.Name, r.Signal.Key, r.Pattern))
	})
	s.RaiseKey("a.x", "1")
	s.Raise("b")
	s.RaiseKey("a.x", "2")
	s.RaiseKey("a.z", "3")
	if got := s.Retract("a.x"); got != 2 {
		t.Errorf("got %d, want 2", got)
	}
	if got := s.Retract("a.x"); got != 0 {
		t.Errorf("again: got %d, want 0", got)
	}
	s.RaiseKey("a.x", "4")
	if got := s.Retract("a.*, b"); got != 3 {
		t.Errorf("by pattern: got %d, want 3", got)
	}
	wantNames(t, "left", sensed(s, core.Query{}))
	wantNames(t, "told", told, `a.x 1 by ""`, `a.x 2 by ""`, `a.z 3 by "a.*, b"`, `a.x 4 by "a.*, b"`)
}

// An empty pattern matches nothing, everywhere.
func TestRetractNothing(t *testing.T) {
	for _, pattern := range []string{"", ",", " ", "none", "A"} {
		s := core.NewSink(core.SinkOptions{})
		s.Raise("a")
		s.Raise("b")
		if got := s.Retract(pattern); got != 0 || s.Count("*") != 2 {
			t.Errorf("Retract(%q): got %d retracted, %d left, want 0, 2", pattern, got, s.Count("*"))
		}
	}
}

// Laws 3, 4 and 8: nobody retracts another's facts.
func TestRetractLeavesOthersFacts(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
		o := core.OperationFrom(ctx)
		o.Raise("a")
		s.Raise("a")
		s.Hold("a", "", 0)
		if o.Retract("nothing") || !o.Retract("a") || o.Retract("a") {
			t.Error("the operation retracted something else than its own fact")
		}
		o.Raise("a")
		return nil
	}, core.Options{Sink: s}))
	defer c.Close()
	if err := c.Do(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := s.Retract("a"); got != 1 || s.Count("a") != 2 {
		t.Errorf("got %d retracted, %d left, want 1, 2", got, s.Count("a"))
	}
	if got := c.Count("a"); got != 1 {
		t.Errorf("the operation shows %d, want 1", got)
	}
}

// Weak point 3.2: the sink was not told about retractions, so that a retracted
// signal kept deferring work elsewhere. One retraction takes one occurrence; a
// pattern without wildcards takes all.
func TestOperationRetracts(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	var told []string
	s.SubscribeRetracted("*", func(r core.Retraction) { told = append(told, fmt.Sprint(r.Signal.Key, " ", r.Pattern)) })
	var onRetract []string
	c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
		o := core.OperationFrom(ctx)
		for _, key := range []string{"1", "2", "3", "4"} {
			o.RaiseKey("busy", key)
		}
		want := func(n int) {
			t.Helper()
			if s.Count("busy") != n || len(o.Signals()) != n || o.Has("busy") != (n > 0) {
				t.Errorf("sink %d, operation %d, want %d", s.Count("busy"), len(o.Signals()), n)
			}
		}
		o.Retract("busy")
		want(3)
		if got := o.RetractMatching("b*"); got != 3 {
			t.Errorf("retracted %d, want 3", got)
		}
		want(0)
		return nil
	}, core.Options{Sink: s, OnRetract: func(r core.Retraction) { onRetract = append(onRetract, fmt.Sprint(r.Signal.Key, " ", r.Pattern)) }}))
	defer c.Close()
	if err := c.Do(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	wantNames(t, "told", told, "4 ", "1 b*", "2 b*", "3 b*")
	wantNames(t, "OnRetract", onRetract, told...)
}

func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{})
		s.SubscribeRetracted("*", func(r core.Retraction) { t.Errorf("told of %v", r.Signal) })
		c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
			core.OperationFrom(ctx).Raise("of.operation")
			return nil
		}, core.Options{Sink: s}))
		defer c.Close()
		m := s.Monitor("?, of.*", 0)
		s.RaiseKey("a", "k")
		time.Sleep(time.Second)
		s.Raise("b")
		if err := c.Do(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		s.Hold("h", "", 0)
		for _, tt := range []struct {
			q    core.Query
			want int
		}{
			{core.Query{Pattern: "none"}, 0},
			{core.Query{Pattern: ","}, 0},
			{core.Query{AfterSeq: 100}, 0},
			{core.Query{Key: "other"}, 0},
			{core.Query{Within: time.Millisecond, Pattern: "a"}, 0},
			{core.Query{Within: time.Millisecond, Pattern: "b"}, 1},
			{core.Query{Key: "k"}, 1},
			{core.Query{Source: "coordinator"}, 1},
			{core.Query{}, 0},
		} {
			if got := s.Forget(tt.q); got != tt.want {
				t.Errorf("Forget(%+v): got %d, want %d", tt.q, got, tt.want)
			}
		}
		wantNames(t, "sink", sensed(s, core.Query{}), "h")
		wantNames(t, "coordinator", sensed(c, core.Query{}), "of.operation")
		if got := m.Count(); got != 4 {
			t.Errorf("monitor: got %d, want 4", got)
		}
	})
}

func TestSubscribeRetractedOrderAndCancel(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	var got []string
	s.SubscribeRetracted("*", func(core.Retraction) { got = append(got, "first"); panic("first") })
	cancel := s.SubscribeRetracted("a", func(core.Retraction) { got = append(got, "cancelled") })
	s.SubscribeRetracted("a", func(core.Retraction) { got = append(got, "last") })
	s.SubscribeRetracted("b", func(core.Retraction) { got = append(got, "other") })
	cancel()
	cancel()
	s.Raise("a")
	s.Retract("a")
	wantNames(t, "told", got, "first", "last")
	if got := s.Stats().Panics; got != 1 {
		t.Errorf("got %d panics, want 1", got)
	}
}

func TestRetractionFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{})
		var got core.Retraction
		s.SubscribeRetracted("*", func(r core.Retraction) { got = r })
		fileSaved.Raise(s, "k", file{Path: "a"})
		raised := newest(t, s, "file.saved")
		time.Sleep(time.Minute)
		s.Retract("file.*")
		if got.Signal != raised || !got.Time.Equal(time.Now()) || got.Pattern != "file.*" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{})
		c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
			core.OperationFrom(ctx).RaiseKey("of.operation", "k")
			return nil
		}, core.Options{Name: "worker", Sink: s}))
		s.Raise("a")
		time.Sleep(time.Second)
		s.Because(newest(t, s, "a")).Raise("b")
		if err := c.Do(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		s.Hold("h", "", 0)
		text, err := json.Marshal(slices.Collect(s.Sense(core.Query{})))
		if err != nil {
			t.Fatal(err)
		}
		before := slices.Collect(s.Sense(core.Query{}))
		c.Close()
		time.Sleep(time.Hour)

		var saved []core.Signal
		if err := json.Unmarshal(text, &saved); err != nil {
			t.Fatal(err)
		}
		to := core.NewSink(core.SinkOptions{})
		to.Subscribe("*", func(s core.Signal) { t.Errorf("heard %v", s) })
		m := to.Monitor("*", 0)
		if got := to.Restore(slices.Values(saved)); got != 4 {
			t.Errorf("restored %d, want 4", got)
		}
		after := slices.Collect(to.Sense(core.Query{}))
		if len(after) != len(before) {
			t.Fatalf("got %d signals, want %d", len(after), len(before))
		}
		for i, got := range after {
			want := before[i]
			if got.Name != want.Name || got.Key != want.Key || got.Operation != want.Operation || got.Source != want.Source ||
				!got.Time.Equal(want.Time) || !slices.Equal(got.Path(), want.Path()) || got.Held {
				t.Errorf("got %+v, want %+v, not held", got, want)
			}
		}
		if got := m.Count(); got != 0 {
			t.Errorf("a monitor counts %d restored signals, want 0", got)
		}
		if got := len(sensed(to, core.Query{Within: time.Minute})); got != 0 {
			t.Errorf("within a minute: got %d, want 0", got)
		}
		if got := len(sensed(to, core.Query{Operation: before[2].Operation})); got != 1 {
			t.Errorf("of the operation: got %d, want 1", got)
		}
		if got := to.Retract("of.operation"); got != 1 {
			t.Errorf("retracted %d, want 1: restored facts are the sink's own", got)
		}
	})
}

func TestRestoreOrderAndAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{Capacity: 3, MaxAge: time.Minute})
		now := time.Now()
		ago := func(name string, d time.Duration) core.Signal { return core.Signal{Name: name, Time: now.Add(-d)} }
		got := s.Restore(slices.Values([]core.Signal{
			ago("too.old", time.Minute),
			ago("pushed.out", 50*time.Second),
			ago("a", 40*time.Second),
			ago("", time.Second),
			ago("b", 45*time.Second), // older than the one before
			ago("c", -time.Hour),     // in the future
		}))
		if got != 4 {
			t.Errorf("restored %d, want 4", got)
		}
		check := func(want ...string) {
			t.Helper()
			var got []string
			for sig := range s.Sense(core.Query{}) {
				got = append(got, fmt.Sprint(sig.Name, " ", now.Sub(sig.Time)))
			}
			wantNames(t, "sensed", got, want...)
		}
		check("a 40s", "b 40s", "c 0s")
		time.Sleep(20 * time.Second)
		check("c 0s")
	})
}

// A payload survives as long as it need not be text.
func TestRestoreKeepsPayloads(t *testing.T) {
	from, to := core.NewSink(core.SinkOptions{}), core.NewSink(core.SinkOptions{})
	fileSaved.Raise(from, "", file{Path: "a.txt"})
	to.Restore(from.Sense(core.Query{}))
	if f, ok := fileSaved.From(newest(t, to, "file.saved")); !ok || f.Path != "a.txt" {
		t.Errorf("got %v, %v", f, ok)
	}
}

// Weak point 15.3: with signals out of order, the first and the last were wrong.
func TestSinkOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{})
		start := time.Now()
		c := core.Must(core.NewCoordinator(func(ctx context.Context, key string) error {
			o := core.OperationFrom(ctx)
			o.Raise("a")
			time.Sleep(time.Second)
			o.RaiseKey("b", key)
			time.Sleep(time.Second)
			o.RaiseKey("c", "later")
			return nil
		}, core.Options{Sink: s}))
		defer c.Close()
		s.Raise("not.its.own")
		id, _ := c.Enqueue(t.Context(), "k")
		c.Enqueue(t.Context(), "other")
		c.Flush(t.Context())
		got, ok := s.Operation(id)
		if !ok || got.ID != id || got.Key != "k" || !got.First.Equal(start) || !got.Last.Equal(start.Add(2*time.Second)) {
			t.Errorf("got %+v, %v", got, ok)
		}
		names := []string{}
		for _, sig := range got.Signals {
			names = append(names, sig.Name)
		}
		wantNames(t, "signals", names, "a", "b", "c")
		if _, ok := s.Operation(0); ok {
			t.Error("there is an operation 0")
		}
		if _, ok := s.Operation(id + 1000); ok {
			t.Error("an unknown operation has a summary")
		}
	})
}

// A coordinator's Sense, Has and Signals agree on a held fact whose lease has
// ended.
func TestCoordinatorLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o *core.Operation
		c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
			o = core.OperationFrom(ctx)
			o.Hold("busy", time.Second)
			time.Sleep(time.Hour)
			return nil
		}, core.Options{}))
		defer c.Close()
		id, _ := c.Enqueue(t.Context(), 0)
		synctest.Wait()
		if !c.Has("busy") || len(sensed(c, core.Query{})) != 1 || !o.Has("busy") || !c.Sink().Has("busy") {
			t.Error("not held")
		}
		time.Sleep(time.Second)
		if c.Sink().Has("busy") {
			t.Error("the sink still has it after the lease")
		}
		if got := sensed(c, core.Query{}); len(got) != 0 {
			t.Errorf("the coordinator still senses %q after the lease", got)
		}
		if o.Has("busy") || len(o.Signals()) != 0 {
			t.Errorf("the operation still has %v after the lease", o.Signals())
		}
		if s, _ := c.Lookup(id); s.Has("busy") {
			t.Errorf("the snapshot still has %v after the lease", s.Signals)
		}
		if c.Has("busy") {
			t.Error("the coordinator still has it after the lease")
		}
	})
}

// A pattern without a term matches nothing, here as everywhere.
func TestSubscribeRetractedToNothing(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	for _, pattern := range []string{"", ",", " "} {
		s.SubscribeRetracted(pattern, func(r core.Retraction) { t.Errorf("pattern %q is told of %q", pattern, r.Signal.Name) })
	}
	s.Raise("a")
	s.Retract("a")
}
