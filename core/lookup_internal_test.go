package core

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Counts and exact queries, which use the index, beside a query for everything, which does not. In some windows
// the oldest and the newest fact share a segment.
func TestIndexAgainstTheWindow(t *testing.T) {
	capacities := []int{100, 2000, 2048, 3000, 4000, 1 << 20}
	for seed := range uint64(Often(40, 8)) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			capacity := func() int { return capacities[random.IntN(len(capacities))] }
			s := NewSink(SinkOptions{Capacity: capacity(), MaxAge: time.Second})
			name := func() string { return fmt.Sprint("name", random.IntN(1<<random.IntN(14))) }
			for step := range 40 {
				switch n := random.IntN(20); {
				case n < 12:
					for range random.IntN(3000) {
						s.Raise(name())
					}
				case n < 14:
					s.Resize(capacity(), time.Second)
				case n < 16:
					s.Retract(fmt.Sprintf("name?%d*", random.IntN(10)))
				case n < 18:
					time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
				default:
					defer s.Hold(name(), "", 0)()
				}
				time.Sleep(10 * time.Millisecond)
				want := make(map[string][]uint64)
				for signal := range s.Sense(Query{}) {
					want[signal.Name] = append(want[signal.Name], signal.Seq)
				}
				for range 20 {
					ask := name()
					var got []uint64
					for signal := range s.Sense(Query{Pattern: ask}) {
						got = append(got, signal.Seq)
					}
					if n := s.Count(ask); n != len(want[ask]) || s.Has(ask) != (n > 0) || !slices.Equal(got, want[ask]) {
						t.Fatalf("seed %d, step %d: %s: got Count %d, Has %v, sensed %v, want %v", seed, step, ask, n, s.Has(ask), got, want[ask])
					}
				}
			}
		})
	}
}

// overtaker raises more facts each time the lock is released than the index takes in under one lock.
type overtaker struct {
	sink *Sink
	n    int
}

func (o *overtaker) wake() {
	if o.n++; o.n > 1000 {
		panic("the question does not end")
	}
	o.sink.Raise("always")
	for i := range chunk / 4 {
		o.sink.Raise(fmt.Sprint("new", o.n, ".", i))
	}
	o.arm()
}

func (o *overtaker) arm() {
	o.sink.mu.Lock()
	o.sink.after.wakes = append(o.sink.after.wakes, o) // for the next unlock
	o.sink.mu.Unlock()
}

// A question ends, and its answer is right, although others raise faster than the index takes in names.
func TestQuestionsEndWhileOthersRaise(t *testing.T) {
	s := NewSink(SinkOptions{Capacity: 1 << 14, MaxAge: -1})
	for i := range 1 << 14 {
		s.Raise(fmt.Sprint("old", i))
	}
	o := &overtaker{sink: s}
	o.arm()
	if s.Has("none") {
		t.Error("an absent name is present")
	}
	if !s.Has("always") {
		t.Error("a name that is always present is absent")
	}
	for range s.Sense(Query{Pattern: "none"}) {
		t.Error("an absent name is sensed")
	}
	if o.n == 0 {
		t.Error("nobody raised meanwhile: this shows nothing")
	}
}

// A name is compared with the handlers that it may match, and not with a thousand others.
func TestHandlersAreFoundByTheirPrefixes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	text := func(letters string, most int) string {
		b := make([]byte, random.IntN(most))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	for round := range 200 {
		s := NewSink(SinkOptions{})
		for range fewHandlers + 1 + random.IntN(40) {
			s.Subscribe(text("ab,*?", 8), func(Signal) {})
		}
		for range 50 {
			name := "a" + text("ab", 6)
			var want []*subscription
			appendMatching(&want, s.names.subs, name)
			if got := s.names.of(name).subs; !slices.Equal(got, want) {
				t.Fatalf("round %d: %q: got %d handlers, want %d in the order of subscription", round, name, len(got), len(want))
			}
		}
	}
	s := NewSink(SinkOptions{})
	for i := range 1000 {
		s.Subscribe(fmt.Sprintf("other.%d.*, else.%d", i, i), func(Signal) {})
	}
	s.Raise("other-name.7")
	if got := s.names.many.find("other-name.7"); len(got) > 0 || len(s.names.many.by) < 1000 {
		t.Errorf("a name is compared with %d of 1000 handlers elsewhere, of %d prefixes", len(got), len(s.names.many.by))
	}
}

// Plain names that are asked for leave the counters of patterns alone, and a new counter leaves the routes of other
// names alone.
func TestNewCountersLeaveOthersAlone(t *testing.T) {
	s := NewSink(SinkOptions{})
	defer s.Subscribe("a.*", func(Signal) {})()
	counters := make(map[string]*counter)
	for i := range maxCounters {
		pattern := fmt.Sprintf("a.*%d", i)
		s.Has(pattern)
		counters[pattern] = s.names.patterns[pattern]
	}
	s.Raise("a.x")
	route := s.names.recent[place("a.x")].route
	for i := range 1000 {
		for range 3 {
			s.Has(fmt.Sprint("b.", i))
		}
	}
	for range 6 {
		s.Has("b.again")
	}
	if s.names.plain["b.again"] == nil || len(s.names.plain) > maxCounters {
		t.Errorf("a name that was asked for again has no counter, of %d", len(s.names.plain))
	}
	for pattern, c := range counters {
		if c == nil || s.names.patterns[pattern] != c {
			t.Errorf("the counter of %q was replaced", pattern)
		}
	}
	if r := s.names.recent[place("a.x")]; r.text != "a.x" || r.route != route {
		t.Error("the route of another name was forgotten")
	}
}

// The memory that is kept for the next operations refers to nothing, and is bounded.
func TestSparesKeepNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		payload := NewKind[*int]("spare")
		c := Must(NewCoordinator(func(ctx context.Context, n int) error {
			for range n {
				payload.Raise(OperationFrom(ctx), "key", new(int))
			}
			return nil
		}, Options{MaxTracked: 1, EchoCapacity: 1}))
		for i := range 200 {
			if err := c.Do(t.Context(), i%4); err != nil {
				t.Fatal(err)
			}
		}
		c.Close()
		spares := &c.engine.ledger.spares
		if kept := len(spares.singles) + len(spares.lists); kept == 0 || kept > 2*maxSpares {
			t.Errorf("got %d single facts and %d lists", len(spares.singles), len(spares.lists))
		}
		for _, f := range spares.singles {
			if *f != (ownFact{}) {
				t.Errorf("a single fact keeps %+v", *f)
			}
		}
		for _, list := range spares.lists {
			for _, f := range list[:cap(list)] {
				if f != (ownFact{}) {
					t.Errorf("a list keeps %+v", f)
				}
			}
		}
	})
}
