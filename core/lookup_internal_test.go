package core

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
	for seed := range uint64(Often(41, 8)) {
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

func (o *overtaker) wake() {
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
	o.sink.after.wakes = append(o.sink.after.wakes, o) // for the next unlock
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

func (r renewer) wake() {
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
	s.after.wakes = append(s.after.wakes, renewer{s})
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
		early := s.names.clock.now()
		time.Sleep(time.Second / 2)
		s.Has("name") // by a counter from now on
		s.Has("name")
		s.mu.Lock()
		s.record(s.names.of("name"), &note{name: "name"}, 0, nil, early)
		s.mu.Unlock()
		release()
		for range 20 {
			if has, n := s.Has("name"), s.Count("name"); has != (n > 0) {
				t.Errorf("%v after %v: Has is %v, Count is %d", s.names.clock.now(), early, has, n)
			}
			time.Sleep(time.Second / 10)
		}
	})
}

// Yields pay until two in a row are long, and again after four times as long.
func TestYieldsPayWhileTheyAreShort(t *testing.T) {
	const long = int64(longYield) + 1
	for _, test := range []struct {
		name  string
		took  []int64
		queue uint64
		rests int64
	}{
		{"none", nil, 1, 0},
		{"short ones", []int64{1, long - 1, 1}, 1, 0},
		{"a long one", []int64{1, long}, 1, 0},
		{"long ones between short ones", []int64{long, 1, long, 1}, 1, 0},
		{"two long ones", []int64{1, long, long + 10}, 1, 4 * (long + 10)},
		{"three long ones", []int64{long, long, 2 * long}, 1, 8 * long},
		{"not long for a longer queue", []int64{long, long}, 2, 0},
		{"no queue", []int64{long - 1, long - 1}, 0, 0},
	} {
		var y yields
		now := int64(100)
		for _, took := range test.took {
			y.note(now, now+took, test.queue)
			now += took
		}
		if y.pay(now+test.rests-1) != (test.rests == 0) || !y.pay(now+test.rests) {
			t.Errorf("%s: got until %d, want %d", test.name, y.until.Load(), now+test.rests)
		}
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
		for range fewWatchers + 1 + random.IntN(40) {
			if cancel := s.Subscribe(text("ab,*?", 8), func(Signal) {}); random.IntN(4) == 0 {
				cancel()
			}
		}
		for range 50 {
			name := "a" + text("ab", 6)
			var want []*subscription
			for _, sub := range s.names.subs.snapshot() {
				if sub.matches(name) {
					want = append(want, sub)
				}
			}
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
