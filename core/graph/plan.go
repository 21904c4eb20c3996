package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// plan is the checked structure of a graph, with numbers for names. It does not change.
type plan struct {
	dependents [][]int // of each node; one that names the node twice is in it twice
	waits      []int   // how many names each depends on
}

// newPlan returns the plan of nodes, or says what is wrong with it. It takes time linear in
// nodes and dependencies.
func newPlan[T any](nodes []node[T], index map[string]int) (plan, error) {
	p := plan{make([][]int, len(nodes)), make([]int, len(nodes))}
	var unknown []error
	for i := range nodes {
		for _, name := range nodes[i].deps {
			d, ok := index[name]
			if !ok {
				unknown = append(unknown, fmt.Errorf("graph: node %q depends on %q, which was not added", nodes[i].name, name))
				continue
			}
			p.dependents[d] = append(p.dependents[d], i)
			p.waits[i]++
		}
	}
	if err := errors.Join(unknown...); err != nil {
		return p, err
	}
	if waits := p.rehearse(); waits != nil {
		return p, fmt.Errorf("graph: dependencies form a cycle: %s", strings.Join(cycle(nodes, index, waits), " -> "))
	}
	return p, nil
}

// rehearse goes through the plan as if every node succeeded. It returns nil if every node
// runs, and otherwise how many nodes each still waits for. (Kahn, Topological sorting of
// large networks, 1962.)
func (p plan) rehearse() (waits []int) {
	s := newSchedule(p)
	for range s.waits {
		i, ok := s.next()
		if !ok {
			return s.waits
		}
		s.succeeded(i)
	}
	return nil
}

// cycle returns the names along a cycle of the nodes that wait for others, with the first
// one again at the end. Each of them depends on another one that waits, so the path from
// one to the next must come back to a node on it.
func cycle[T any](nodes []node[T], index map[string]int, waits []int) []string {
	waiting := func(name string) bool { return waits[index[name]] > 0 }
	at := slices.IndexFunc(waits, func(n int) bool { return n > 0 })
	passed := make(map[int]int) // node to place in path
	var path []string
	for {
		path = append(path, nodes[at].name)
		if begin, again := passed[at]; again {
			return path[begin:]
		}
		passed[at] = len(path) - 1
		deps := nodes[at].deps
		at = index[deps[slices.IndexFunc(deps, waiting)]]
	}
}
