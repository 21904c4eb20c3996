package signals

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/hook"
)

// overtaker raises more facts each time the lock is released than the index takes in under one lock.
type overtaker struct {
	sink *Sink
	each int // how many
	n    int
}

func (o *overtaker) Wake() {
	if o.n++; o.n > 1000 {
		panic("the question does not end")
	}
	o.sink.Raise("always")
	for i := range o.each {
		o.sink.Raise(fmt.Sprint("new", o.n, ".", i))
	}
	o.arm()
}

func (o *overtaker) arm() {
	o.sink.mu.Lock()
	o.sink.after.Wakes = append(o.sink.after.Wakes, o) // for the next unlock
	o.sink.mu.Unlock()
}

// A question ends, and its answer is right, although others raise faster than the index takes in names.
func TestQuestionsEndWhileOthersRaise(t *testing.T) {
	s := NewSink(SinkOptions{Capacity: 1 << 14, MaxAge: -1})
	for i := range 1 << 14 {
		s.Raise(fmt.Sprint("old", i))
	}
	o := &overtaker{sink: s, each: chunk / 4}
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
	o.each = chunk + 1
	if s.Resize(10, 0); s.Stats().Stored != 10 {
		t.Errorf("got %v after a Resize, want 10 stored", s.Stats())
	}
	if o.n == 0 {
		t.Error("nobody raised meanwhile: this shows nothing")
	}
}

// renewer takes away a fact and makes a new index, the first time the lock is released.
type renewer struct{ sink *Sink }

func (r renewer) Wake() {
	r.sink.Forget(Query{Key: "gone"})
	r.sink.Resize(1<<14, 0)
	for range r.sink.Sense(Query{Pattern: "other"}) {
	}
}

// A query that follows the index finds all signals, although the one at which it has stopped leaves, and there is a
// new index.
func TestSenseSurvivesANewIndex(t *testing.T) {
	s := NewSink(SinkOptions{Capacity: 1 << 14, MaxAge: -1})
	for i := range 3 * chunk {
		s.RaiseKey("name", map[bool]string{true: "gone"}[i == 2*chunk])
	}
	s.Count("name") // so that the query does not catch up
	s.after.Wakes = append(s.after.Wakes, renewer{s})
	var seqs []uint64
	for signal := range s.Sense(Query{Pattern: "name"}) {
		seqs = append(seqs, signal.Seq)
	}
	if len(seqs) != 3*chunk-1 || !slices.IsSorted(seqs) {
		t.Errorf("got %d signals, want %d in order", len(seqs), 3*chunk-1)
	}
}

// Has is right about a signal whose raiser has read the clock long before it gets the lock.
func TestHasSeesTheEndOfALateSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSink(SinkOptions{MaxAge: time.Second})
		release := s.Hold("name", "", 0)
		time.Sleep(2 * time.Second) // so that the window is empty
		early := s.names.clock.Now()
		time.Sleep(time.Second / 2)
		s.Has("name") // by a counter from now on
		s.Has("name")
		s.mu.Lock()
		s.record(s.names.of("name"), &Note{Name: "name"}, 0, nil, early)
		s.mu.Unlock()
		release()
		for range 20 {
			if has, n := s.Has("name"), s.Count("name"); has != (n > 0) {
				t.Errorf("%v after %v: Has is %v, Count is %d", s.names.clock.Now(), early, has, n)
			}
			time.Sleep(time.Second / 10)
		}
	})
}

// A name is compared with the handlers that it may match, and not with a thousand others.
func TestHandlersAreFoundByTheirPrefixes(t *testing.T) {
	s := NewSink(SinkOptions{})
	for i := range 1000 {
		s.Subscribe(fmt.Sprintf("other.%d.*, else.%d", i, i), func(Signal) {})
	}
	s.Raise("other-name.7")
	for prefix := range s.names.subs.by {
		if strings.HasPrefix("other-name.7", prefix) {
			t.Errorf("a name is compared with the handlers of %q", prefix)
		}
	}
	if n := len(s.names.subs.by); n < 1000 {
		t.Errorf("1000 handlers have %d prefixes", n)
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
	for i := range 1000 { // what a counter said that had to make room does not count any more
		name := fmt.Sprint("b.", i)
		if s.Raise(name); !s.Has(name) {
			t.Errorf("%s is absent", name)
		}
	}
}

// The memory that is kept for the next operations refers to nothing, and is bounded.
func TestSparesKeepNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		payload := NewKind[*int]("spare")
		sc, last := NewScope(NewSink(SinkOptions{}), "", ScopeOptions{}), Past{}
		for i := range 200 {
			o := &Owner{ID: OperationID(i)}
			for range i % 4 {
				payload.Raise(sc.Raiser(o), "key", new(int))
			}
			if i%4 > 0 {
				sc.Engine().Evict(o, false, &last, new(hook.Effects))
			}
		}
		spares := &sc.spares
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
