package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// schedule decides which nodes of a graph may run, as others succeed and fail. It has
// numbers for names. It is a plain data structure, without goroutine and lock. A run takes
// time linear in nodes and dependencies.
type schedule struct {
	dependents [][]int // dependents of each node; one that names the node twice is listed twice
	waits      []int   // for each node, how many dependencies have not succeeded yet; negative: the node is skipped
	ready      []int   // nodes that may run, in the order in which they became ready
}

// newSchedule returns the schedule of nodes, or an error.
func newSchedule[T any](nodes []node[T], index map[string]int) (*schedule, error) {
	s := &schedule{dependents: make([][]int, len(nodes)), waits: make([]int, len(nodes))}
	var unknown []error
	for i := range nodes {
		for _, name := range nodes[i].deps {
			d, ok := index[name]
			if !ok {
				unknown = append(unknown, fmt.Errorf("graph: node %q depends on %q, which was not added", nodes[i].name, name))
				continue
			}
			s.dependents[d] = append(s.dependents[d], i)
			s.waits[i]++
		}
		if s.waits[i] == 0 {
			s.ready = append(s.ready, i)
		}
	}
	if err := errors.Join(unknown...); err != nil {
		return nil, err
	}
	if waits := s.rehearse(); waits != nil {
		return nil, fmt.Errorf("graph: dependencies form a cycle: %s", strings.Join(cycle(nodes, index, waits), " -> "))
	}
	return s, nil
}

// rehearse runs a copy of the schedule as if every node succeeded. It returns nil if every
// node runs. Otherwise it returns how many dependencies each node still waits for. (Kahn,
// Topological sorting of large networks, 1962.)
func (s schedule) rehearse() (waits []int) {
	s.waits, s.ready = slices.Clone(s.waits), slices.Clone(s.ready)
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
// one again at the end. Each waiting node depends on another waiting node, so a path
// along these nodes must return to one of its nodes.
func cycle[T any](nodes []node[T], index map[string]int, waits []int) []string {
	waiting := func(name string) bool { return waits[index[name]] > 0 }
	at := slices.IndexFunc(waits, func(n int) bool { return n > 0 })
	passed := make(map[int]int) // the index of each node in path
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

// next removes and returns the node to run next.
func (s *schedule) next() (i int, ok bool) {
	if len(s.ready) == 0 {
		return 0, false
	}
	i, s.ready = s.ready[0], s.ready[1:]
	return i, true
}

// succeeded records that node i has succeeded. Each of its dependents waits for one node
// less. A dependent becomes ready once, when it waits for none.
func (s *schedule) succeeded(i int) {
	for _, d := range s.dependents[i] {
		if s.waits[d]--; s.waits[d] == 0 {
			s.ready = append(s.ready, d)
		}
	}
}

// failed records that node i has failed. It returns the nodes that are now skipped, the
// nearest first.
func (s *schedule) failed(i int) []int {
	skipped := []int{i}
	for n := 0; n < len(skipped); n++ {
		for _, d := range s.dependents[skipped[n]] {
			if s.waits[d] > 0 {
				s.waits[d] = -1
				skipped = append(skipped, d)
			}
		}
	}
	return skipped[1:]
}
