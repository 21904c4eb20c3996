package bench

import (
	"runtime/trace"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// tracedRows measure what it costs when a flight recorder runs, and when bodies that do not
// return are looked for, beside a plain operation.
func tracedRows() []Row {
	beside := func(name string, side Side) Row {
		return Row{Name: name, MaxAllocs: -1, Sides: []Side{onOneCore(side), onOneCore(oursRun("ours-plain", 0, 1, nothing))}}
	}
	return []Row{beside("op=recorder", recordedRun()), beside("op=stuck-after", watchedRun())}
}

// recordedRun has a flight recorder only while it runs, because a recorder is for the whole process.
func recordedRun() Side {
	return Side{"ours", 0, func() Body {
		c := coordinator(nothing, -1)
		run, recorder := running(c, 1), trace.NewFlightRecorder(trace.FlightRecorderConfig{MaxBytes: 8 << 20})
		return Body{Run: func(n int) {
			defer recorder.Stop()
			run(n)
		}, Close: closing(c), Ready: func(int) { check(recorder.Start()) }}
	}}
}

func watchedRun() Side {
	return Side{"ours", 0, func() Body {
		c := core.Must(core.NewCoordinator(nothing, core.Options{MaxConcurrency: limit, MaxQueued: queue, MaxTracked: window, StuckAfter: time.Minute}))
		return Body{Run: running(c, 1), Close: closing(c)}
	}}
}
