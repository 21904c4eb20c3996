package inspect

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The test compares what is stuck, and the cycles, with dull rules, on random graphs.
func TestCyclesOfRandomGraphs(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	found, free := 0, 0
	for range 3000 {
		n := 1 + random.IntN(9)
		to, oneOf, open := make([][]int, n), make([]bool, n), map[int]bool{}
		for i := range to {
			oneOf[i], open[i] = random.IntN(3) == 0, random.IntN(8) == 0
			for range random.IntN(4) {
				to[i] = append(to[i], random.IntN(n))
			}
		}
		// Play: nodes end one after the other, until no more can.
		ended := make([]bool, n)
		for range n {
			for i := range to {
				left := slices.DeleteFunc(slices.Clone(to[i]), func(j int) bool { return ended[j] })
				ended[i] = ended[i] || open[i] || len(left) == 0 || oneOf[i] && len(left) < len(to[i])
			}
		}
		stuck := stuckOf(to, oneOf, open)
		// The length of the shortest path of stuck nodes, after Floyd and Warshall.
		const far = 100
		path := make([][]int, n)
		for i := range path {
			path[i] = slices.Repeat([]int{far}, n)
			if stuck[i] == ended[i] {
				t.Fatalf("node %d of %v ends: %v, want %v (one of: %v, open: %v)", i, to, !stuck[i], ended[i], oneOf, open)
			}
			for _, j := range to[i] {
				if !ended[i] && !ended[j] {
					path[i][j] = 1
				}
			}
		}
		for k := range n {
			for i := range n {
				for j := range n {
					path[i][j] = min(path[i][j], path[i][k]+path[k][j])
				}
			}
		}
		on := make([]bool, n)
		for _, cycle := range cyclesOf(to, stuck) {
			if len(cycle) != path[cycle[0]][cycle[0]] {
				t.Fatalf("cycle %v of %v is not shortest", cycle, to)
			}
			for i, at := range cycle {
				on[at] = true
				if next := cycle[(i+1)%len(cycle)]; !slices.Contains(to[at], next) || !stuck[at] {
					t.Fatalf("cycle %v of %v has no edge from %d to %d, or that one ends", cycle, to, at, next)
				}
			}
		}
		for i := range on {
			if on[i] != (path[i][i] < far) {
				t.Fatalf("node %d of %v is in a cycle that is shown: %v", i, to, on[i])
			}
			if on[i] {
				found++
			} else if !stuck[i] {
				free++
			}
		}
	}
	if found < 1000 || free < 1000 {
		t.Fatalf("the graphs had %d nodes in cycles, and %d that end", found, free)
	}
}
