package bench

import (
	"fmt"
	"math/bits"
	"strconv"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

const small = 1_000

var large = 1_000_000 // tests make it smaller

// size returns the capacity of a window as text for names of rows.
func size(capacity int) string {
	if capacity == small {
		return "1k"
	}
	return "1M"
}

// names are the signals that are raised again and again.
var names = func() (list [16]string) {
	for i := range list {
		list[i] = "file.saved." + strconv.Itoa(i)
	}
	return list
}()

func name(i int) string { return names[i%len(names)] }

// fullSink makes a sink whose window is full of the repeated names.
func fullSink(opts signals.SinkOptions) *signals.Sink {
	s := signals.NewSink(opts)
	for i := range opts.Capacity {
		s.Raise(name(i))
	}
	return s
}

// sharedSink returns a function that makes such a sink once.
func sharedSink(capacity int, age time.Duration) func() *signals.Sink {
	return sync.OnceValue(func() *signals.Sink {
		return fullSink(signals.SinkOptions{Capacity: capacity, MaxAge: age})
	})
}

// now is the reference for raising and sensing: a raise reads the clock.
func now(goal float64) Side {
	return loop("time.Now", goal, func(n int) {
		for range n {
			_ = time.Now()
		}
	})
}

// clockAndLock is the least that a raise needs: one lock, and one reading of the clock as
// an offset, not as a date.
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

// onSink is a side with a sink that is made at its first use.
func onSink(name string, goal float64, sink func() *signals.Sink, run func(s *signals.Sink, n int)) Side {
	return Side{name, goal, func() Body {
		s := sink()
		return Body{Run: func(n int) { run(s, n) }}
	}}
}

func raiseNames(s *signals.Sink, n int) {
	for i := range n {
		s.Raise(name(i))
	}
}

func raiseFirst(s *signals.Sink, n int) {
	for range n {
		s.Raise(names[0])
	}
}

// ages are the values of MaxAge in measurements: none, and the default.
var ages = []struct {
	name  string // the name in rows
	age   time.Duration
	raise float64 // the goal of a raise beside time.Now
}{{"age=none", -1, 0.8}, {"age=default", 0, 1.25}}

// without is a goal that applies only to windows without a limit of age.
func without(age time.Duration, goal float64) float64 {
	if age < 0 {
		return goal
	}
	return 0
}

// raiseRows measure repeated names in full windows, without a limit of age and with the
// default. There is no subscriber, or one for exactly that name, or that one and a
// hundred more whose patterns do not match.
func raiseRows() []Row {
	var rows []Row
	for _, age := range ages {
		windows := map[int]func() *signals.Sink{small: sharedSink(small, age.age), large: sharedSink(large, age.age)}
		for _, capacity := range []int{small, large} {
			row := Row{Name: "window=" + size(capacity) + "/subscribers=0/" + age.name, Sides: []Side{
				onSink("ours", 0, windows[capacity], raiseNames),
				now(age.raise),
				clockAndLock(),
			}}
			if capacity != small {
				row.Sides = append(row.Sides, onSink("ours-1k", without(age.age, 1.5), windows[small], raiseNames))
			}
			rows = append(rows, row)
		}
		alone := sync.OnceValue(func() *signals.Sink { return subscribed(age.age, 0, func(signals.Signal) {}) })
		crowd := sync.OnceValue(func() *signals.Sink { return subscribed(age.age, 100, func(signals.Signal) {}) })
		rows = append(rows,
			Row{Name: "window=1k/subscribers=1/" + age.name, Sides: []Side{
				onSink("ours", 0, alone, raiseFirst),
				now(0),
				calls(0),
			}},
			Row{Name: "window=1k/subscribers=1/nonmatching=100/" + age.name, Sides: []Side{
				onSink("ours", 0, crowd, raiseFirst),
				now(without(age.age, 1.4)),
				onSink("ours-nonmatching=0", without(age.age, 1.05), alone, raiseFirst),
				calls(100),
			}},
		)
	}
	return rows
}

// subscribed makes a sink with one subscriber of the first name, and others whose
// patterns match no name.
func subscribed(age time.Duration, others int, fn func(signals.Signal)) *signals.Sink {
	s := fullSink(signals.SinkOptions{Capacity: small, MaxAge: age})
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

// uniqueRows measure names that are never in the window twice. The names are made before.
// There are so many that each name has left the window when it is raised again.
func uniqueRows() []Row {
	fresh := func(capacity int, age time.Duration) func() func(int) {
		return sync.OnceValue(func() func(int) {
			s, list := signals.NewSink(signals.SinkOptions{Capacity: capacity, MaxAge: age}), uniqueNames(capacity)
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
	var rows []Row
	for _, age := range ages {
		atSmall, atLarge := fresh(small, age.age), fresh(large, age.age)
		rows = append(rows,
			Row{Name: "window=1k/" + age.name, MaxAllocs: -1, Sides: []Side{side("ours", 0, atSmall), now(without(age.age, 3.5))}},
			Row{Name: "window=1M/" + age.name, MaxAllocs: -1, Sides: []Side{
				side("ours", 0, atLarge), now(without(age.age, 12)), side("ours-1k", 0, atSmall),
			}},
		)
	}
	return rows
}

// uniqueNames makes at least twice as many names as capacity, a power of two.
func uniqueNames(capacity int) []string {
	list := make([]string, 1<<bits.Len(uint(2*capacity-1)))
	for i := range list {
		list[i] = "file.saved:" + strconv.Itoa(i)
	}
	return list
}
