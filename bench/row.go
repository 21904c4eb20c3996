package bench

import "sync"

// Ballast is on the heap in every measurement.
var Ballast = make([]byte, 64<<20)

// A Group is a list of rows that are measured together. Rows may share something, for
// example a full window. The first row that uses it makes it. It is released with the rows
// of the group.
type Group struct {
	Name  string
	Cores int // 1: the sides set GOMAXPROCS to 1 while they run; 0: they use all cores
	Rows  func() []Row
}

// Groups lists all groups, in the order in which they are shown. A group without rows needs
// [PostgresDSN].
func Groups() []Group {
	return []Group{
		{"raise", 0, raiseRows},
		{"unique", 0, uniqueRows},
		{"sense", 0, senseRows},
		{"match", 0, matchRows},
		{"run", 0, runRows},
		{"onecore", 1, oneCoreRows},
		{"keyed", 0, keyedRows},
		{"parallel", 0, parallelRows},
		{"cache", 0, cacheRows},
		{"slidingcache", 0, slidingcacheRows},
		{"limiter", 0, limiterRows},
		{"retry", 0, retryRows},
		{"hedge", 0, hedgeRows},
		{"breaker", 0, breakerRows},
		{"logging", 0, loggingRows},
		{"telemetry", 0, telemetryRows},
		{"attached", 0, attachedRows},
		{"wave", 0, waveRows},
		{"failover", 0, failoverRows},
		{"mesh", 0, meshRows},
		{"durable", 0, durableRows},
		{"original", 0, originalRows},
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
