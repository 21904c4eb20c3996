package main

import (
	"runtime"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/bench"
)

// cell is one side of a row and its measurements, one for each round.
type cell struct {
	bench.Side
	body   bench.Body
	n      int // number of operations in a round
	ns     []float64
	allocs []float64
}

// measured is a row and its cells, ours first.
type measured struct {
	bench.Row
	cells []*cell
}

// measure runs all cells of a row in turns, in that number of rounds. A cell runs for about span in a
// round. Nothing of other rows is on the heap then, except what the rows of a group share: the garbage
// collector would mark it at the expense of the sides that allocate.
func measure(row bench.Row, rounds int, span time.Duration) measured {
	m := measured{Row: row}
	for _, side := range row.Sides {
		m.cells = append(m.cells, &cell{Side: side})
	}
	for _, c := range m.cells {
		c.body = c.New()
		c.calibrate(span)
	}
	for range rounds {
		for _, c := range m.cells {
			c.round(span)
		}
	}
	for _, c := range m.cells {
		c.body.Done()
	}
	return m
}

// calibrate finds the number of operations that takes about span. The first operation may make
// what later ones use, so it does not count.
func (c *cell) calibrate(span time.Duration) {
	c.n = 1
	c.body.Prepare(1)
	c.run()
	for c.body.Prepare(1); c.run() < span/2 && c.n < 1<<30; c.body.Prepare(c.n) {
		c.n *= 2
	}
}

func (c *cell) run() time.Duration {
	start := time.Now()
	c.body.Run(c.n)
	return time.Since(start)
}

// round measures once. It starts with a clean heap, so that no cell pays for the garbage of
// the previous one.
func (c *cell) round(span time.Duration) {
	c.body.Prepare(c.n)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	took := c.run()
	runtime.ReadMemStats(&after)
	c.ns = append(c.ns, float64(took)/float64(c.n))
	c.allocs = append(c.allocs, float64(after.Mallocs-before.Mallocs)/float64(c.n))
	c.n = max(1, int(float64(c.n)*min(2, float64(span)/float64(max(1, took)))))
}

// ratios divides the times of two cells round by round, because a disturbance in a round
// affects both.
func ratios(ours, theirs *cell) []float64 {
	list := make([]float64, len(ours.ns))
	for i := range list {
		list[i] = ours.ns[i] / theirs.ns[i]
	}
	return list
}

// quantile interpolates between the values of list, which need not be sorted.
func quantile(list []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func median(list []float64) float64 { return quantile(list, 0.5) }
