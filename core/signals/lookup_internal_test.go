package signals

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/hook"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
)

// listedSink is a sink and a list of all that was raised on it. The Seq of a fact is its place in the list, plus one.
type listedSink struct {
	*Sink
	list     []listedFact
	first    int // all before it have left the window
	capacity int
	age      time.Duration
}

type listedFact struct {
	name       string
	at         time.Time
	held, gone bool
}

func (m *listedSink) add(name string, held bool) {
	m.expire()
	m.list = append(m.list, listedFact{name: name, at: time.Now(), held: held})
	m.first = max(m.first, len(m.list)-m.capacity)
}

func (m *listedSink) resize(capacity int, age time.Duration) {
	m.Resize(capacity, age)
	m.expire()
	m.capacity, m.age = capacity, age
	m.first = max(m.first, len(m.list)-capacity)
}

func (m *listedSink) expire() {
	for m.age > 0 && m.first < len(m.list) && time.Since(m.list[m.first].at) >= m.age {
		m.first++
	}
}

// present returns what is present of each name, and of all as "*".
func (m *listedSink) present() map[string][]uint64 {
	m.expire()
	found := make(map[string][]uint64)
	for i, f := range m.list {
		if f.held || i >= m.first && !f.gone {
			found[f.name] = append(found[f.name], uint64(i+1))
			found["*"] = append(found["*"], uint64(i+1))
		}
	}
	return found
}

// Counts and exact queries, which use the index, beside a list. In some windows the oldest and the newest fact share
// a segment. The long form has windows of a million facts, which are full.
func TestIndexAgainstAList(t *testing.T) {
	for seed := range uint64(long.Often(41, 8)) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			steps, burst, capacities, ages := 40, 3000, []int{100, 2000, 2048, 3000, 4000, 9000}, []time.Duration{0, time.Second}
			if seed == 40 {
				steps, burst, capacities, ages = 20, 300_000, []int{4000, 1<<20 - 1000, 1 << 20}, []time.Duration{0, 3 * time.Second}
			}
			m := listedSink{Sink: NewSink(SinkOptions{})}
			name := func() string { return fmt.Sprint("name", random.IntN(1<<random.IntN(14))) }
			resize := func() { m.resize(capacities[random.IntN(len(capacities))], ages[random.IntN(len(ages))]) }
			resize()
			for step := range steps {
				switch n := random.IntN(20); {
				case n < 12:
					for range random.IntN(burst) {
						one := name()
						m.add(one, false)
						m.Raise(one)
					}
				case n < 14:
					resize()
				case n < 16:
					pattern := fmt.Sprintf("name?%d*", random.IntN(10))
					m.Retract(pattern)
					for i := range m.list {
						f := &m.list[i]
						f.gone = f.gone || Match(pattern, f.name)
					}
				case n < 18:
					time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
				default:
					one := name()
					m.add(one, true)
					m.Hold(one, "", 0)
				}
				time.Sleep(10 * time.Millisecond)
				want, asks := m.present(), []string{"*"}
				for range 20 {
					asks = append(asks, name())
				}
				for _, ask := range asks {
					var got []uint64
					for signal := range m.Sense(Query{Pattern: ask}) {
						got = append(got, signal.Seq)
					}
					if n := m.Count(ask); n != len(want[ask]) || m.Has(ask) != (n > 0) || !slices.Equal(got, want[ask]) {
						t.Fatalf("seed %d, step %d: %s: got Count %d, Has %v, %d sensed, want %d", seed, step, ask, n, m.Has(ask), len(got), len(want[ask]))
					}
				}
			}
		})
	}
}

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
