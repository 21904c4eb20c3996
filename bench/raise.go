package bench

import (
	"fmt"
	"math/bits"
	"strconv"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

const (
	small = 1_000
	large = 1_000_000
)

// size is how a window's capacity is written in names.
func size(capacity int) string {
	if capacity == large {
		return "1M"
	}
	return "1k"
}

// names are what is raised again and again.
var names = func() (list [16]string) {
	for i := range list {
		list[i] = "file.saved." + strconv.Itoa(i)
	}
	return list
}()

func name(i int) string { return names[i%len(names)] }

// fullSink makes a sink whose window is full of the repeated names.
func fullSink(opts core.SinkOptions) *core.Sink {
	s := core.NewSink(opts)
	for i := range opts.Capacity {
		s.Raise(name(i))
	}
	return s
}

// sharedSink returns what makes such a sink once.
func sharedSink(capacity int, age time.Duration) func() *core.Sink {
	return sync.OnceValue(func() *core.Sink {
		return fullSink(core.SinkOptions{Capacity: capacity, MaxAge: age})
	})
}

// now is what raising and sensing are measured by: a raise reads the clock.
func now(goal float64) Side {
	return loop("time.Now", goal, func(n int) {
		for range n {
			_ = time.Now()
		}
	})
}

// clockAndLock is what a raise cannot do without: one reading of the clock, for an
// offset rather than a date, and one lock.
func clockAndLock() Side {
	return Side{"clock-and-lock", 0, func() Body {
		var mu sync.Mutex
		var newest time.Duration
		base := time.Now()
		return Body{Run: func(n int) {
			for range n {
				at := time.Since(base)
				mu.Lock()
				newest = max(newest, at)
				mu.Unlock()
			}
		}}
	}}
}

// onSink is a side that uses a sink made when it is needed.
func onSink(name string, goal float64, sink func() *core.Sink, run func(s *core.Sink, n int)) Side {
	return Side{name, goal, func() Body {
		s := sink()
		return Body{Run: func(n int) { run(s, n) }}
	}}
}

func raiseNames(s *core.Sink, n int) {
	for i := range n {
		s.Raise(name(i))
	}
}

func raiseFirst(s *core.Sink, n int) {
	for range n {
		s.Raise(names[0])
	}
}

// raiseRows: repeated names and full windows; then one exact subscriber, alone and
// beside a hundred whose patterns do not match.
func raiseRows() []Row {
	windows := map[int]func() *core.Sink{small: sharedSink(small, 0), large: sharedSink(large, 0)}
	var rows []Row
	for _, capacity := range []int{small, large} {
		row := Row{Name: "window=" + size(capacity) + "/subscribers=0", Sides: []Side{
			onSink("ours", 0, windows[capacity], raiseNames),
			now(0.8),
			clockAndLock(),
		}}
		if capacity != small {
			row.Sides = append(row.Sides, onSink("ours-1k", 1.5, windows[small], raiseNames))
		}
		rows = append(rows, row)
	}
	alone := sync.OnceValue(func() *core.Sink { return subscribed(0, func(core.Signal) {}) })
	crowd := sync.OnceValue(func() *core.Sink { return subscribed(100, func(core.Signal) {}) })
	return append(rows,
		Row{Name: "window=1k/subscribers=1", Sides: []Side{
			onSink("ours", 0, alone, raiseFirst),
			now(0),
			calls(0),
		}},
		Row{Name: "window=1k/subscribers=1/nonmatching=100", Sides: []Side{
			onSink("ours", 0, crowd, raiseFirst),
			now(1.4),
			onSink("ours-nonmatching=0", 1.05, alone, raiseFirst),
			calls(100),
		}},
	)
}

// subscribed makes a sink with one subscriber of the first name and others whose
// patterns match none.
func subscribed(others int, fn func(core.Signal)) *core.Sink {
	s := fullSink(core.SinkOptions{Capacity: small})
	for i := range others {
		s.Subscribe(fmt.Sprintf("other.%d.*", i), fn)
	}
	s.Subscribe(names[0], fn)
	return s
}

func calls(others int) Side {
	return Side{"call-table", 0, func() Body {
		t := newCallTable()
		for id := range uint32(others) {
			t.subscribe(id+2, func(event) {})
		}
		t.subscribe(1, func(event) {})
		return Body{Run: func(n int) {
			for range n {
				t.publish(event{id: 1, name: names[0]})
			}
		}}
	}}
}

// uniqueRows: no name is in the window twice. The names are made beforehand; there
// are enough of them that each has left the window before its next turn.
func uniqueRows() []Row {
	fresh := func(capacity int) func() func(int) {
		return sync.OnceValue(func() func(int) {
			s, list := core.NewSink(core.SinkOptions{Capacity: capacity}), uniqueNames(capacity)
			next := 0
			run := func(n int) {
				for range n {
					s.Raise(list[next&(len(list)-1)])
					next++
				}
			}
			run(capacity)
			return run
		})
	}
	side := func(name string, goal float64, run func() func(int)) Side {
		return Side{name, goal, func() Body { return Body{Run: run()} }}
	}
	atSmall, atLarge := fresh(small), fresh(large)
	return []Row{
		{Name: "window=1k", MaxAllocs: -1, Sides: []Side{side("ours", 0, atSmall), now(3.5)}},
		{Name: "window=1M", MaxAllocs: -1, Sides: []Side{side("ours", 0, atLarge), now(12), side("ours-1k", 0, atSmall)}},
	}
}

// uniqueNames makes at least twice as many names as capacity, a power of two.
func uniqueNames(capacity int) []string {
	list := make([]string, 1<<bits.Len(uint(2*capacity-1)))
	for i := range list {
		list[i] = "file.saved:" + strconv.Itoa(i)
	}
	return list
}
