package graph

import "slices"

// schedule decides which nodes of a plan may run, as others succeed and fail. It
// is a plain data structure, without goroutine and lock. A whole run takes steps
// linear in nodes and dependencies.
type schedule struct {
	plan
	waits   []int  // how many of the names each depends on have yet to succeed
	skipped []bool // will not run
	ready   []int  // may run, in the order in which they became so
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

// next takes the node that is to run next.
func (s *schedule) next() (i int, ok bool) {
	if len(s.ready) == 0 {
		return 0, false
	}
	i, s.ready = s.ready[0], s.ready[1:]
	return i, true
}

// succeeded says that node i has. Its dependents have one name less to wait for;
// the last makes them ready, so each becomes so once.
func (s *schedule) succeeded(i int) {
	for _, d := range s.dependents[i] {
		if s.waits[d]--; s.waits[d] == 0 {
			s.ready = append(s.ready, d)
		}
	}
}

// failed says that node i has, and returns the nodes that are to be skipped for
// that and were not skipped before, the nearest first.
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
