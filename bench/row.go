package bench

import "sync"

// Ballast is what everybody carries on the heap.
var Ballast = make([]byte, 64<<20)

// A Group is a list of rows that are measured together. Rows may share what they
// measure, a full window for example; it is made by the first that needs it, and
// goes with the rows.
type Group struct {
	Name string
	Rows func() []Row
}

// Groups lists all groups, in the order in which they are shown.
func Groups() []Group {
	return []Group{
		{"raise", raiseRows},
		{"unique", uniqueRows},
		{"sense", senseRows},
		{"run", runRows},
		{"keyed", keyedRows},
		{"parallel", parallelRows},
		{"cache", cacheRows},
		{"slidingcache", slidingcacheRows},
		{"limiter", limiterRows},
		{"retry", retryRows},
		{"wave", waveRows},
		{"failover", failoverRows},
	}
}

// A Row is one thing done by several sides.
type Row struct {
	Name  string // key=value pairs, separated by slashes
	Sides []Side // ours first

	// MaxAllocs is how many allocations our side may make for each operation;
	// negative: it does not say.
	MaxAllocs float64
}

// A Side is one way to do what the row says.
type Side struct {
	Name string
	Goal float64 // our time should be at most so many times this side's; 0: it is only shown
	New  func() Body
}

// A Body does n operations and returns when the last has ended.
type Body struct {
	Run   func(n int)
	Close func() // may be nil
}

// Done releases what the body holds.
func (b Body) Done() {
	if b.Close != nil {
		b.Close()
	}
}

// loop is a side that needs no preparation.
func loop(name string, goal float64, run func(n int)) Side {
	return Side{name, goal, func() Body { return Body{Run: run} }}
}

// spread does n operations on so many goroutines, each its share, and waits.
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
