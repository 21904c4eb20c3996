package signals

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// liveNames is how many names all maps of the sink know.
func liveNames(s *Sink) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.index.names) + len(s.standing.names)
}

// A name takes no memory after its last fact has gone in any way.
func TestNamesLeaveNothingBehind(t *testing.T) {
	const n = 2 * chunk
	unique := func(s *Sink) {
		for i := range n {
			s.Raise(fmt.Sprintf("file.saved:%d", i))
		}
	}
	tests := []struct {
		name    string
		options SinkOptions
		do      func(s *Sink)
	}{
		{"forgotten", SinkOptions{Capacity: n}, func(s *Sink) { unique(s); s.Forget(Query{Pattern: "*"}) }},
		{"retracted", SinkOptions{Capacity: n}, func(s *Sink) { unique(s); s.Retract("file.*") }},
		{"aged", SinkOptions{Capacity: n, MaxAge: time.Second}, func(s *Sink) {
			unique(s)
			time.Sleep(time.Second)
			s.Stats()
		}},
		{"evicted", SinkOptions{Capacity: 1000}, func(s *Sink) { unique(s); s.Forget(Query{Pattern: "*"}) }},
		{"resized", SinkOptions{Capacity: n}, func(s *Sink) { unique(s); s.Resize(1, 0); s.Forget(Query{Pattern: "*"}) }},
		{"released", SinkOptions{}, func(s *Sink) {
			var releases []func()
			for i := range 1000 {
				releases = append(releases, s.Hold(fmt.Sprint("held", i), "", 0))
			}
			for _, release := range releases {
				release()
			}
		}},
		{"leased", SinkOptions{}, func(s *Sink) {
			for i := range 1000 {
				s.Hold(fmt.Sprint("held", i), "", time.Duration(i))
				if i == 0 {
					s.Hold("first", "", 1)
				}
			}
			s.mu.Lock()
			forever := s.held[1] // a lease of 0
			s.mu.Unlock()
			s.release(forever)
			time.Sleep(time.Second)
			s.Stats()
		}},
		{"restored", SinkOptions{}, func(s *Sink) {
			s.Restore(slices.Values([]Signal{{Name: "a", Time: time.Now()}, {Name: ""}, {Name: "b"}}))
			s.Forget(Query{Pattern: "*"})
		}},
		{"asked for", SinkOptions{}, func(s *Sink) {
			for i := range 1000 {
				s.Raise(fmt.Sprint("name", i))
				s.Has(fmt.Sprint("name", i))
				s.Retract(fmt.Sprint("name", i))
				for range s.Sense(Query{Pattern: fmt.Sprint("name", i)}) {
				}
			}
		}},
		{"refused as a loop", SinkOptions{Capacity: 10}, func(s *Sink) {
			i := 0
			s.Subscribe("*", func(Signal) { i++; s.Raise(fmt.Sprint("name", i)) })
			s.Raise("a")
			s.Forget(Query{Pattern: "*"})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewSink(tt.options)
				tt.do(s)
				if live := liveNames(s); live != 0 {
					t.Errorf("got %d live names, want none", live)
				}
				if s.ring.stored != 0 || len(s.held) != 0 {
					t.Errorf("got %d facts, %d held, want none", s.ring.stored, len(s.held))
				}
			})
		})
	}
}

// Patterns that were asked for once, stopped monitors, cancelled handlers and ended waits do not pile up.
func TestWatchersAreBounded(t *testing.T) {
	s := NewSink(SinkOptions{})
	s.Raise("a")
	for i := range 1000 {
		s.Has(fmt.Sprintf("a*%d", i))
		s.Monitor(fmt.Sprintf("a*%d", i), 0).Stop()
		s.Subscribe(fmt.Sprintf("a*%d", i), func(Signal) {})()
		s.SubscribeRetracted("*", func(Retraction) {})()
		if err := s.WaitGone(t.Context(), fmt.Sprintf("b*%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(s.names.patterns); got > maxCounters {
		t.Errorf("got %d counters of patterns, want at most %d", got, maxCounters)
	}
	if c, m, u, r := s.names.counters.Len(), s.names.monitors.Len(), s.names.subs.Len(), s.retractions.Len(); c > maxCounters || m+u+r > 0 {
		t.Errorf("got %d counters, %d monitors, %d handlers, %d of retractions left", c, m, u, r)
	}
}

// The times of facts follow their order, also when a signal is restored between the reading of the clock and the
// lock of a raise. Age, Sense and Within rely on it.
func TestTimeFollowsSeqAfterRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSink(SinkOptions{})
		before := s.names.clock.Now() // what a raise has read
		time.Sleep(time.Second)
		s.Restore(slices.Values([]Signal{{Name: "restored", Time: time.Now()}}))
		s.mu.Lock()
		s.record(s.names.of("late"), &Note{Name: "late"}, 0, nil, before)
		s.mu.Unlock()
		var last time.Time
		for signal := range s.Sense(Query{}) {
			if signal.Time.Before(last) {
				t.Errorf("%s is of %v, the one before it of %v", signal.Name, signal.Time, last)
			}
			last = signal.Time
		}
	})
}

// The watchers of a name are found once, also for names that come and go.
func TestRoutesAreFoundOnce(t *testing.T) {
	s := NewSink(SinkOptions{Capacity: 4})
	s.Subscribe("a.*", func(Signal) {})
	for i := range 100 {
		s.Subscribe(fmt.Sprintf("b.%d.*", i), func(Signal) {})
		defer s.Monitor(fmt.Sprintf("c.%d.*", i), 0).Stop()
	}
	s.Has("a.?")
	s.Raise("a.x")
	route := s.names.recent[place("a.x")].route
	if len(route.subs) != 1 || len(route.monitors) != 0 || len(route.counters) != 1 {
		t.Fatalf("got the route %+v", route)
	}
	for i := range 1000 {
		s.Raise("a.x")
		s.Raise(fmt.Sprint("a.", i%10))
	}
	if got := s.names.recent[place("a.x")]; got.text != "a.x" || got.route != route {
		t.Error("the route was found out again")
	}
	if got := s.names.recent[place("a.9")].route; got != route {
		t.Error("names with the same watchers do not share their route")
	}
}
