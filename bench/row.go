package bench

import "sync"

// Ballast is on the heap in every measurement.
var Ballast = make([]byte, 64<<20)

// A Group is a list of rows that are measured one after the other. Rows may share something, for
// example a full window. The first row that uses it makes it. It is released with the rows
// of the group.
type Group struct {
	Name     string
	Measures string // what the rows measure, in one line
	Cores    int    // 1: the sides set GOMAXPROCS to 1 while they run; 0: they use all cores
	Rows     func() []Row
}

// Groups lists all groups, in the order in which they are shown. A group without rows needs
// [PostgresDSN].
func Groups() []Group {
	return []Group{
		{"raise", "a raise, in small and large windows, without and with subscribers", 0, raiseRows},
		{"unique", "a raise that leaves no name twice in the window", 0, uniqueRows},
		{"sense", "looking at a sink: Has, Count, a monitor", 0, senseRows},
		{"match", "matching a name with a pattern, and parsing a command", 0, matchRows},
		{"run", "enqueueing and running an operation that does nothing", 0, runRows},
		{"onecore", "an operation that does nothing on one core, with lanes, keys and classes", 1, oneCoreRows},
		{"traced", "an operation while a flight recorder runs, or with StuckAfter, on one core", 1, tracedRows},
		{"keyed", "running items of many keys, in order for each key", 0, keyedRows},
		{"parallel", "raise, Has and run from many goroutines, for each operation", 0, parallelRows},
		{"cache", "core/lru, with requests by the law of Zipf", 0, cacheRows},
		{"slidingcache", "atoms/slidingcache: hits, sets and loads", 0, slidingcacheRows},
		{"limiter", "atoms/ratelimit: permission given, refused, waited for", 0, limiterRows},
		{"retry", "atoms/retry: a call that succeeds, and one that fails once", 0, retryRows},
		{"hedge", "atoms/hedge: a call that is not hedged", 0, hedgeRows},
		{"breaker", "patterns/circuitbreaker: allowed, successful and refused calls", 0, breakerRows},
		{"logging", "patterns/logging: a record below the level, and one that becomes a signal", 0, loggingRows},
		{"telemetry", "patterns/telemetry without an exporter: spans and observed operations", 0, telemetryRows},
		{"attached", "a raise on a sink with 50 patterns that do not match", 0, attachedRows},
		{"page", "a raise and an operation beside a status page with 50 clients, on one core", 1, pageRows},
		{"wave", "atoms/waveorchestrator: from one wave to the next", 0, waveRows},
		{"failover", "atoms/priorityprocessor: an item of the primary and of the backup", 0, failoverRows},
		{"mesh", "atoms/mesh: a raise that is not shared, and one that is", 0, meshRows},
		{"durable", "atoms/durable/postgres: enqueueing and running items", 0, durableRows},
		{"flows", "atoms/durable/sqlite: flows of ten steps", 0, flowRows},
		{"original", "the benchmarks of the C# library", 0, originalRows},
	}
}

// A Row is one task that several sides do.
type Row struct {
	Name  string // key=value pairs, separated by slashes
	Sides []Side // ours first

	// MaxAllocs is how many allocations our side may make for each operation;
	// negative: any number.
	MaxAllocs float64
}

// A Side is one way to do the task of the row.
type Side struct {
	Name string
	Goal float64 // highest ratio of our time to the time of this side; 0: the side is only shown
	New  func() Body
}

// A Body does n operations and returns when the last has ended.
type Body struct {
	Run   func(n int)
	Close func()      // may be nil
	Ready func(n int) // called before each Run, and not measured; may be nil
}

// Prepare makes what the next n operations need.
func (b Body) Prepare(n int) {
	if b.Ready != nil {
		b.Ready(n)
	}
}

// Done releases the resources of the body.
func (b Body) Done() {
	if b.Close != nil {
		b.Close()
	}
}

// loop is a side without preparation.
func loop(name string, goal float64, run func(n int)) Side {
	return Side{name, goal, func() Body { return Body{Run: run} }}
}

// spread divides n operations among goroutines and waits for all.
func spread(goroutines, n int, run func(n int)) {
	var wg sync.WaitGroup
	for i := range goroutines {
		share := n / goroutines
		if i < n%goroutines {
			share++
		}
		wg.Go(func() { run(share) })
	}
	wg.Wait()
}
