package graph

import "slices"

// schedule decides which nodes of a plan may run, as others succeed and fail. It is a
// plain data structure, without goroutine and lock. A run takes time linear in nodes and
// dependencies.
type schedule struct {
	plan
	waits   []int  // how many of the names each depends on have not succeeded yet
	skipped []bool // does not run
	ready   []int  // may run, in the order in which they became ready
}

func newSchedule(p plan) *schedule {
	s := &schedule{plan: p, waits: slices.Clone(p.waits), skipped: make([]bool, len(p.waits))}
	for i, n := range s.waits {
		if n == 0 {
			s.ready = append(s.ready, i)
		}
	}
	return s
}

// next removes and returns the node to run next.
func (s *schedule) next() (i int, ok bool) {
	if len(s.ready) == 0 {
		return 0, false
	}
	i, s.ready = s.ready[0], s.ready[1:]
	return i, true
}

// succeeded notes that node i has succeeded. Its dependents have one name less to wait
// for. A dependent becomes ready once, with its last name.
func (s *schedule) succeeded(i int) {
	for _, d := range s.dependents[i] {
		if s.waits[d]--; s.waits[d] == 0 {
			s.ready = append(s.ready, d)
		}
	}
}

// failed notes that node i has failed. It returns the nodes that are now skipped, the
// nearest first.
func (s *schedule) failed(i int) []int {
	skipped := []int{i}
	for n := 0; n < len(skipped); n++ {
		for _, d := range s.dependents[skipped[n]] {
			if !s.skipped[d] {
				s.skipped[d] = true
				skipped = append(skipped, d)
			}
		}
	}
	return skipped[1:]
}
