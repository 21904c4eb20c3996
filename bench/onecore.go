package bench

import (
	"runtime"
)

// oneCoreRows measure an operation that does nothing, on one core, so that the time does
// not depend on a second core. The other libraries have no signals, lanes and keys, so
// every row is beside a plain conc pool.
func oneCoreRows() []Row {
	rows := []Row{
		{Name: "op=plain", MaxAllocs: 1, Sides: []Side{
			oursRun("ours", 0, 1, nothing),
			concRun(0.72, 1, noop),
			antsRun(0, 1, noop),
			errgroupRun(0, 1, noop),
			pondSubmit(0, 1, noop),
			pondGo(0, 1, noop),
		}},
		{Name: "op=plain/producers=64", MaxAllocs: -1, Sides: []Side{
			oursRun("ours", 0, 64, nothing),
			concRun(0, 64, noop),
			antsRun(0, 64, noop),
			errgroupRun(0, 64, noop),
		}},
		{Name: "op=signal/age=none", MaxAllocs: 2, Sides: []Side{
			oursRun("ours", 0, 1, raising),
			oursRun("ours-plain", signalGoal, 1, nothing),
			concRun(0, 1, noop),
		}},
		{Name: "op=signal/age=default", MaxAllocs: 2, Sides: []Side{
			oursRunOn("ours", 0, 0, 1, raising),
			oursRun("ours-plain", 0, 1, nothing),
			concRun(0, 1, noop),
		}},
		{Name: "op=lanes", MaxAllocs: 1, Sides: []Side{
			lanesRun(),
			oursRun("ours-plain", 0, 1, nothing),
			concRun(0, 1, noop),
		}},
		{Name: "op=keys/keys=10k/order=turns", MaxAllocs: -1, Sides: []Side{
			keyedRun("ours", 0, inTurns),
			oursRun("ours-plain", 1.5, 1, nothing),
			concRun(0, 1, noop),
		}},
	}
	rows = append(rows, classRows()...)
	for _, row := range rows {
		for i, side := range row.Sides {
			row.Sides[i] = onOneCore(side)
		}
	}
	return rows
}

// signalGoal is the goal of an operation with one signal beside a plain one. The goals in
// time are 150 ns for a plain one, and 100 ns for the signal.
const signalGoal = 250.0 / 150

// onOneCore sets GOMAXPROCS to 1 while the side runs.
func onOneCore(side Side) Side {
	return Side{side.Name, side.Goal, func() Body {
		body := side.New()
		run := body.Run
		body.Run = func(n int) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			run(n)
		}
		return body
	}}
}
