package signals_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Any number of patterns can be asked for, and asked for again.
func TestCountManyPatterns(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
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

// A walk shows what was there when it began. No lock is held while it yields.
func TestSenseWhileChanging(t *testing.T) {
	for _, pattern := range []string{"", "n", "n*"} {
		t.Run(fmt.Sprintf("%q", pattern), func(t *testing.T) {
			s := signals.NewSink(signals.SinkOptions{Capacity: 10000})
			for range 10000 {
				s.Raise("n")
			}
			defer s.Hold("n", "held", 0)() // pushes out the first
			n := 0
			for sig := range s.Sense(signals.Query{Pattern: pattern}) {
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
			coretest.Check(t, n >= 5000 && n <= 6000, "sensed %d, want the 5000 that stayed, and at most one chunk more", n)
			if got := len(sensed(s, signals.Query{Pattern: pattern})); got != 10001-1 && got != 10001 {
				t.Errorf("a new walk senses %d", got)
			}
		})
	}
}

func TestRetract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		var told []string
		s.SubscribeRetracted("a.*", func(r signals.Retraction) {
			coretest.Check(t, !s.Has(r.Signal.Name), "the handler is called before %q is gone", r.Signal.Name)
			told = append(told, fmt.Sprintf("%s %s by %q after %v: %v",
				r.Signal.Name, r.Signal.Key, r.Pattern, time.Since(begin), r.Signal.Payload()))
		})
		s.RaiseKey("a.x", "1")
		s.Raise("b")
		s.RaiseKey("a.x", "2")
		signals.NewKind[int]("a.z").Raise(s, "3", 7)
		time.Sleep(time.Minute)
		checkEqual(t, `Retract("a.x")`, s.Retract("a.x"), 2)
		checkEqual(t, "again", s.Retract("a.x"), 0)
		s.RaiseKey("a.x", "4")
		checkEqual(t, "by pattern", s.Retract("a.*, b"), 3)
		wantNames(t, "left", sensed(s, signals.Query{}))
		wantNames(t, "told", told, `a.x 1 by "" after 1m0s: <nil>`, `a.x 2 by "" after 1m0s: <nil>`,
			`a.z 3 by "a.*, b" after 1m0s: 7`, `a.x 4 by "a.*, b" after 1m0s: <nil>`)
	})
}

func TestSubscribeRetractedOrderAndCancel(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	var got []string
	s.SubscribeRetracted("*", func(signals.Retraction) { got = append(got, "first"); panic("first") })
	cancel := s.SubscribeRetracted("a", func(signals.Retraction) { got = append(got, "cancelled") })
	s.SubscribeRetracted("a", func(signals.Retraction) { got = append(got, "last") })
	for _, pattern := range []string{"b", "", ",", " "} {
		s.SubscribeRetracted(pattern, func(signals.Retraction) { got = append(got, "other") })
	}
	cancel()
	cancel()
	s.Raise("a")
	s.Retract("a")
	wantNames(t, "told", got, "first", "last")
	checkEqual(t, "panics", s.Stats().Panics, 1)
}

func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		c := bodies(t, core.Options{Name: "worker", Sink: s})
		s.Raise("a")
		time.Sleep(time.Second)
		s.Because(newest(t, s, "a")).Raise("b")
		checkError(t, "Do", c.Do(t.Context(), raise("of.operation")), nil)
		s.Hold("h", "", 0)
		text, err := json.Marshal(slices.Collect(s.Sense(signals.Query{})))
		if err != nil {
			t.Fatal(err)
		}
		before := slices.Collect(s.Sense(signals.Query{}))
		c.Close()
		time.Sleep(time.Hour)

		var saved []signals.Signal
		checkError(t, "Unmarshal", json.Unmarshal(text, &saved), nil)
		to := signals.NewSink(signals.SinkOptions{MaxAge: -1})
		to.Subscribe("*", func(s signals.Signal) { t.Errorf("heard %v", s) })
		m := to.Monitor("*", 0)
		checkEqual(t, "restored", to.Restore(slices.Values(saved)), 4)
		after := slices.Collect(to.Sense(signals.Query{}))
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
		checkEqual(t, "Count", m.Count(), 0)
		checkEqual(t, "within a minute", len(sensed(to, signals.Query{Within: time.Minute})), 0)
		checkEqual(t, "of the operation", len(sensed(to, signals.Query{Operation: before[2].Operation})), 1)
		checkEqual(t, `Retract("of.operation")`, to.Retract("of.operation"), 1)
	})
}

func TestRestoreOrderAndAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{Capacity: 3, MaxAge: time.Minute})
		now := time.Now()
		ago := func(name string, d time.Duration) signals.Signal {
			return signals.Signal{Name: name, Time: now.Add(-d)}
		}
		got := s.Restore(slices.Values([]signals.Signal{
			ago("too.old", time.Minute),
			ago("pushed.out", 50*time.Second),
			ago("a", 40*time.Second),
			ago("", time.Second),
			ago("b", 45*time.Second), // older than the one before
			ago("c", -time.Hour),     // in the future
		}))
		checkEqual(t, "restored", got, 4)
		check := func(want ...string) {
			t.Helper()
			var got []string
			for sig := range s.Sense(signals.Query{}) {
				got = append(got, fmt.Sprint(sig.Name, " ", now.Sub(sig.Time)))
			}
			wantNames(t, "sensed", got, want...)
		}
		check("a 40s", "b 40s", "c 0s")
		time.Sleep(20 * time.Second)
		check("c 0s")
	})
}

// A payload survives unless it is turned into text.
func TestRestoreKeepsPayloads(t *testing.T) {
	from, to := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
	fileSaved.Raise(from, "", file{Path: "a.txt"})
	to.Restore(from.Sense(signals.Query{}))
	if f, ok := fileSaved.From(newest(t, to, "file.saved")); !ok || f.Path != "a.txt" {
		t.Errorf("got %v, %v", f, ok)
	}
}

// All views of a coordinator agree about a held fact whose lease has ended.
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
		o.Raise("begun")
		for _, s := range []signals.Sensor{c, c.Sink()} {
			checkEqual(t, "held", fmt.Sprint(sensed(s, signals.Query{Held: true})), "[busy]")
		}
		o.Retract("begun")
		checkEqual(t, "held", words(c.Has("busy"), len(sensed(c, signals.Query{})), o.Has("busy"), c.Sink().Has("busy")), "true 1 true true")
		time.Sleep(time.Second)
		coretest.Check(t, !c.Sink().Has("busy"), "the sink still has it after the lease")
		if got := sensed(c, signals.Query{}); len(got) != 0 {
			t.Errorf("the coordinator still senses %q after the lease", got)
		}
		checkEqual(t, "what the operation has after the lease", words(o.Has("busy"), len(o.Signals())), "false 0")
		if s, _ := c.Lookup(id); s.Has("busy") {
			t.Errorf("the snapshot still has %v after the lease", s.Signals)
		}
		coretest.Check(t, !c.Has("busy"), "the coordinator still has it after the lease")
	})
}
