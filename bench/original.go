package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/sourcegraph/conc/iter"
	"github.com/sourcegraph/conc/pool"

	"github.com/ephemeralgo/ephemeral/atoms/windowsize"
	"github.com/ephemeralgo/ephemeral/core"
)

// A sinkCase does something with a sink that has the given MaxAge.
type sinkCase struct {
	row    string
	allocs float64
	sink   func(age time.Duration) *core.Sink
	run    func(s *core.Sink, n int)
}

// originalSinkCases are the benchmarks of the original (the C# library) for signals.
// README.md has a table of the original's names and these names.
var originalSinkCases = []sinkCase{
	{"raise/listeners=0", 0, sinkWith(small, 0), raiseNames},
	{"raise/listeners=1", 0, sinkWith(small, 1), raiseNames},
	{"raise/listeners=5", 0, sinkWith(small, 5), raiseNames},
	{"raise/listeners=10", 0, sinkWith(small, 10), raiseNames},
	{"raise/window=100", 0, sinkWith(100, 0), raiseNames},
	{"raise/window=10k", 0, sinkWith(10_000, 0), raiseNames},
	{"raise/window=10k/listeners=1", 0, sinkWith(10_000, 1), raiseNames},
	{"raise/window=100k", 0, sinkWith(100_000, 0), raiseNames},
	{"raise/scoped", -1, sinkWith(small, 0), raiseScoped},
	{"raise/threads=2", 0, sinkWith(small, 0), onThreads(2, raiseNames)},
	{"raise/threads=4", 0, sinkWith(small, 0), onThreads(4, raiseNames)},
	{"raise/threads=8", 0, sinkWith(small, 0), onThreads(8, raiseNames)},
	{"raise/threads=16", 0, sinkWith(small, 0), onThreads(16, raiseNames)},
	{"raise/threads=16/listeners=1", 0, sinkWith(small, 1), onThreads(16, raiseNames)},
	{"raise/threads=32", 0, sinkWith(small, 0), onThreads(32, raiseNames)},
	{"state-query", 0, sinkWith(small, 0), hasNames},
	{"chain/atoms=3", 0, chained(3), raiseFirst},
	{"chain/atoms=10", 0, chained(10), raiseFirst},
	{"chain/atoms=3/threads=16", 0, chained(3), onThreads(16, raiseFirst)},
	{"window-command", -1, resized, commandSizes},
	{"clear/size=100", -1, sinkWith(small, 0), clearing(100)},
	{"clear/size=5000", -1, sinkWith(10_000, 0), clearing(5000)},
	{"retract/size=100", -1, sinkWith(small, 0), retracting(100)},
	{"retract/size=5000", -1, sinkWith(10_000, 0), retracting(5000)},
}

// originalRows are the benchmarks of the original, so that both programs can be run and
// compared. Sinks and coordinators have default options, apart from the size or the limit
// in the name of the row. A sink is beside time.Now and a sink without a limit of age. A
// coordinator is beside conc.
func originalRows() []Row {
	var rows []Row
	for _, c := range originalSinkCases {
		side := func(name string, age time.Duration) Side {
			return onSink(name, 0, func() *core.Sink { return c.sink(age) }, c.run)
		}
		rows = append(rows, Row{Name: c.row, MaxAllocs: c.allocs, Sides: []Side{side("ours", 0), now(0), side("ours-age=none", -1)}})
	}
	for _, row := range matchRows() {
		if name, ok := originalMatches[row.Name]; ok {
			row.Name = name
			rows = append(rows, row)
		}
	}
	return append(rows, []Row{
		{Name: "coordinator/limit=16", MaxAllocs: -1, Sides: []Side{
			originalRun(core.NewCoordinator[int]),
			concRunOf(16, 0, 1, noop),
		}},
		{Name: "keyed/limit=16", MaxAllocs: -1, Sides: []Side{
			originalRun(func(work core.Work[int], opts core.Options) (*core.Coordinator[int], error) {
				return core.NewKeyedCoordinator(func(i int) string { return keyNames[i%keyCount] }, work, opts)
			}),
			concRunOf(16, 0, 1, noop),
		}},
		{Name: "for-each/limit=16", MaxAllocs: -1, Sides: forEach(16, 0, noop)},
		{Name: "for-each/limit=32", MaxAllocs: -1, Sides: forEach(32, 0, noop)},
		{Name: "results/limit=16", MaxAllocs: -1, Sides: []Side{oursResults(), concResults()}},
	}...)
}

// originalMatches are the rows of group match that the original also has, with their names
// in this group.
var originalMatches = map[string]string{
	"op=match/pattern=prefix":      "pattern/simple",
	"op=match/pattern=list":        "pattern/mixed",
	"op=match/pattern=inner-stars": "pattern/complex",
	"op=parse-command/at=start":    "command-parse",
}

// sinkWith returns a function that makes a full sink. Its subscribers match every name.
func sinkWith(capacity, listeners int) func(age time.Duration) *core.Sink {
	return func(age time.Duration) *core.Sink {
		s := fullSink(core.SinkOptions{Capacity: capacity, MaxAge: age})
		for range listeners {
			s.Subscribe("file.saved.*", func(core.Signal) {})
		}
		return s
	}
}

// chained returns a function that makes a sink with a chain of subscribers: each raises
// the signal that the next one is subscribed to.
func chained(atoms int) func(age time.Duration) *core.Sink {
	return func(age time.Duration) *core.Sink {
		s := sinkWith(small, 0)(age)
		from := names[0]
		for i := range atoms {
			to := "step.done." + strconv.Itoa(i)
			s.Subscribe(from, func(core.Signal) { s.Raise(to) })
			from = to
		}
		return s
	}
}

// resized makes a sink whose capacity can be set by signals.
func resized(age time.Duration) *core.Sink {
	s := sinkWith(small, 0)(age)
	core.Must(windowsize.New(s, windowsize.Options{}))
	return s
}

var sizeCommands = [...]string{
	windowsize.CommandSizeSet + ":1000",
	windowsize.CommandSizeSet + ":10000",
	windowsize.CommandSizeSet + ":50000",
}

func commandSizes(s *core.Sink, n int) {
	for i := range n {
		s.Raise(sizeCommands[i%len(sizeCommands)])
	}
}

func raiseScoped(s *core.Sink, n int) {
	view := s.Scoped("shop", "orders", "pack")
	for i := range n {
		view.Raise(name(i))
	}
}

// clearing raises signals and removes all of them whenever there are size new ones.
func clearing(size int) func(s *core.Sink, n int) {
	return raisingUntil(size, func(s *core.Sink) { s.ForgetAll() })
}

// retracting raises signals and takes all of them back whenever there are size new ones.
func retracting(size int) func(s *core.Sink, n int) {
	return raisingUntil(size, func(s *core.Sink) { s.Retract("file.*") })
}

func raisingUntil(size int, end func(s *core.Sink)) func(s *core.Sink, n int) {
	return func(s *core.Sink, n int) {
		for i := range n {
			s.Raise(name(i))
			if (i+1)%size == 0 {
				end(s)
			}
		}
	}
}

// originalRun runs operations of a coordinator with default options and a limit of 16.
func originalRun(maker func(core.Work[int], core.Options) (*core.Coordinator[int], error)) Side {
	return Side{"ours", 0, func() Body {
		c := core.Must(maker(nothing, core.Options{MaxConcurrency: 16}))
		return Body{Run: func(n int) {
			ctx := context.Background()
			for i := range n {
				_, err := c.Enqueue(ctx, i)
				check(err)
			}
			check(c.Flush(ctx))
		}, Close: closing(c)}
	}}
}

// forEach returns ForEach over a sequence, a conc pool, and conc's ForEach over a slice.
func forEach(limit, queued int, work func()) []Side {
	return []Side{
		loop("ours", 0, func(n int) {
			items := func(yield func(int) bool) {
				for i := range n {
					if !yield(i) {
						return
					}
				}
			}
			check(core.ForEach(context.Background(), items, func(context.Context, int) error { work(); return nil }, core.Options{MaxConcurrency: limit, MaxQueued: queued}))
		}),
		concRunOf(limit, 0, 1, work),
		loop("conc-iter", 0, func(n int) {
			iter.Iterator[struct{}]{MaxGoroutines: limit}.ForEach(make([]struct{}, n), func(*struct{}) { work() })
		}),
	}
}

func oursResults() Side {
	return Side{"ours", 0, func() Body {
		work := func(_ context.Context, i int) (int, error) { return i, nil }
		c := core.Must(core.NewResultCoordinator(work, core.Options{MaxConcurrency: 16}))
		return Body{Run: func(n int) {
			ctx := context.Background()
			for i := range n {
				_, err := c.Enqueue(ctx, i)
				check(err)
			}
			check(c.Flush(ctx))
		}, Close: func() { check(c.Close()) }}
	}}
}

func concResults() Side {
	return loop("conc", 0, func(n int) {
		p := pool.NewWithResults[int]().WithMaxGoroutines(16)
		for i := range n {
			p.Go(func() int { return i })
		}
		p.Wait()
	})
}
