package bench

import (
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// senseRows: questions to full windows, without and with a limit of age, which
// nothing reaches while it is measured.
func senseRows() []Row {
	type window struct {
		sink    func() *core.Sink
		monitor func() *core.Monitor
	}
	full := func(capacity int, age time.Duration) window {
		sink := sharedSink(capacity, age)
		return window{sink, sync.OnceValue(func() *core.Monitor { return sink().Monitor(names[0], age) })}
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
		name string
		age  time.Duration
		goal float64
	}{{"age=none", 0, 0.35}, {"age=1h", time.Hour, 1.0}}

	var rows []Row
	for _, age := range ages {
		at1k, at1M := full(small, age.age), full(large, age.age)
		for _, op := range ops {
			rows = append(rows,
				Row{Name: op.name + "/window=1k/" + age.name, Sides: []Side{
					op.side("ours", 0, at1k), now(age.goal),
				}},
				Row{Name: op.name + "/window=1M/" + age.name, Sides: []Side{
					op.side("ours", 0, at1M), now(age.goal), op.side("ours-1k", equal, at1k),
				}},
			)
		}
	}
	return rows
}

// equal is the goal of what should cost the same; the rest is measuring.
const equal = 1.1

func hasNames(s *core.Sink, n int) {
	for i := range n {
		s.Has(name(i))
	}
}

func countPattern(s *core.Sink, n int) {
	for range n {
		s.Count("file.saved.*")
	}
}

func readMonitor(m *core.Monitor) Body {
	return Body{Run: func(n int) {
		for range n {
			m.Count()
		}
	}}
}
