package bench

import (
	"fmt"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// parallelRows measure the same work from several goroutines at once, beside one goroutine.
// The time is the total time divided by the number of operations.
func parallelRows() []Row {
	var rows []Row
	for _, goroutines := range []int{8, 64} {
		suffix := fmt.Sprintf("/goroutines=%d", goroutines)
		for _, age := range ages {
			sink := sharedSink(small, age.age)
			for _, op := range []struct {
				name string
				run  func(s *signals.Sink, n int)
			}{{"op=raise", raiseNames}, {"op=has", hasNames}} {
				rows = append(rows, Row{Name: op.name + suffix + "/" + age.name, MaxAllocs: -1, Sides: []Side{
					onSink("ours", 0, sink, onThreads(goroutines, op.run)),
					onSink("serial", 0, sink, op.run),
				}})
			}
		}
		rows = append(rows, Row{Name: "op=run" + suffix, MaxAllocs: -1, Sides: []Side{
			oursRun("ours", 0, goroutines, nothing),
			oursRun("serial", 0, 1, nothing),
		}})
	}
	return rows
}

// onThreads divides the operations of run among goroutines.
func onThreads(threads int, run func(s *signals.Sink, n int)) func(s *signals.Sink, n int) {
	return func(s *signals.Sink, n int) { spread(threads, n, func(n int) { run(s, n) }) }
}
