package bench

import (
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// parallelRows: the same from several goroutines at once. The time is that of all
// divided by the number of operations, beside the same done by one goroutine.
func parallelRows() []Row {
	sink := sharedSink(small, 0)
	onAll := func(goroutines int, run func(s *core.Sink, n int)) func(*core.Sink, int) {
		return func(s *core.Sink, n int) { spread(goroutines, n, func(n int) { run(s, n) }) }
	}
	var rows []Row
	for _, goroutines := range []int{8, 64} {
		suffix := fmt.Sprintf("/goroutines=%d", goroutines)
		rows = append(rows,
			Row{Name: "op=raise" + suffix, MaxAllocs: -1, Sides: []Side{
				onSink("ours", 0, sink, onAll(goroutines, raiseNames)),
				onSink("serial", 0, sink, raiseNames),
			}},
			Row{Name: "op=has" + suffix, MaxAllocs: -1, Sides: []Side{
				onSink("ours", 0, sink, onAll(goroutines, hasNames)),
				onSink("serial", 0, sink, hasNames),
			}},
			Row{Name: "op=run" + suffix, MaxAllocs: -1, Sides: []Side{
				oursRun("ours", 0, goroutines, nothing),
				oursRun("serial", 0, 1, nothing),
			}},
		)
	}
	return rows
}
