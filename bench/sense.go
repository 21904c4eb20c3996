package bench

import (
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// senseRows measure questions to full windows. There is no limit of age, the default, or an
// hour: no signal is that old during the measurement.
func senseRows() []Row {
	type window struct {
		sink    func() *signals.Sink
		monitor func() *signals.Monitor
	}
	full := func(capacity int, age, span time.Duration) window {
		once := sharedSink(capacity, age)
		sink := func() *signals.Sink {
			s := once()
			for i := 0; s.Stats().Stored < capacity; i++ { // some signals may have expired meanwhile
				s.Raise(name(i))
			}
			return s
		}
		return window{sink, sync.OnceValue(func() *signals.Monitor { return sink().Monitor(names[0], span) })}
	}
	ops := []struct {
		name string
		side func(name string, goal float64, w window) Side
	}{
		{"op=has", func(name string, goal float64, w window) Side {
			return onSink(name, goal, w.sink, hasNames)
		}},
		{"op=count-pattern", func(name string, goal float64, w window) Side {
			return onSink(name, goal, w.sink, countPattern)
		}},
		{"op=monitor", func(name string, goal float64, w window) Side {
			return Side{name, goal, func() Body { return readMonitor(w.monitor()) }}
		}},
	}
	ages := []struct {
		name      string
		age, span time.Duration
		goal      float64
		same      float64
	}{{"age=none", -1, 0, 0.35, equal}, {"age=default", 0, 5 * time.Minute, 0, 0}, {"age=1h", time.Hour, time.Hour, 1.0, equal}}

	var rows []Row
	for _, age := range ages {
		at1k, at1M := full(small, age.age, age.span), full(large, age.age, age.span)
		for _, op := range ops {
			rows = append(rows,
				Row{Name: op.name + "/window=1k/" + age.name, Sides: []Side{
					op.side("ours", 0, at1k), now(age.goal),
				}},
				Row{Name: op.name + "/window=1M/" + age.name, Sides: []Side{
					op.side("ours", 0, at1M), now(age.goal), op.side("ours-1k", age.same, at1k),
				}},
			)
		}
	}
	return rows
}

// equal is the goal if both sides should cost the same. It allows for noise.
const equal = 1.1

func hasNames(s *signals.Sink, n int) {
	for i := range n {
		s.Has(name(i))
	}
}

func countPattern(s *signals.Sink, n int) {
	for range n {
		s.Count("file.saved.*")
	}
}

func readMonitor(m *signals.Monitor) Body {
	return Body{Run: func(n int) {
		for range n {
			m.Count()
		}
	}}
}
