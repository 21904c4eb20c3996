package retry

import (
	"container/list"
	"context"
	"sync"
)

// seats bound how many operations of a [Queue] make an attempt at once. An operation
// that is running, as its coordinator sees it, sits while it makes an attempt, stands
// while it backs off, and waits in line if there is no seat when it begins or comes
// back. For every one that stands the coordinator may run one more, up to spare. What is
// in line has no such place: it takes one from those that sit, whose waits for this
// coordinator would otherwise look as if they could end.
type seats struct {
	most  int // seats there are
	spare int // operations that may run besides

	mu       sync.Mutex
	resize   func(limit int) // tells the coordinator how many may run
	limit    int             // the last that it was told
	taken    int             // most, if there is a line
	standing int
	line     list.List // of chan struct{}: operations that wait for a seat, first come first
}

// seat is an operation's.
type seat struct {
	of      *seats
	sitting bool
}

// sit waits for a seat until ctx ends.
func (t *seat) sit(ctx context.Context) {
	t.of.mu.Lock()
	t.wait(ctx)
}

// leave stands up.
func (t *seat) leave() {
	s := t.of
	s.mu.Lock()
	defer s.mu.Unlock()
	t.sitting = false
	s.free()
	s.standing++
	s.adjust()
}

// comeBack is sit for one that stands.
func (t *seat) comeBack(ctx context.Context) {
	s := t.of
	s.mu.Lock()
	s.standing--
	s.adjust()
	t.wait(ctx)
}

// depart is called by an operation that ends, sitting or not.
func (t *seat) depart() {
	if !t.sitting {
		return
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.free()
}

// wait is sit with mu held, which it releases.
func (t *seat) wait(ctx context.Context) {
	s := t.of
	if s.taken < s.most {
		s.taken++
		s.mu.Unlock()
		t.sitting = true
		return
	}
	mine := make(chan struct{})
	place := s.line.PushBack(mine)
	s.mu.Unlock()
	select {
	case <-mine:
		t.sitting = true
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-mine: // at the same time
		t.sitting = true
	default:
		s.line.Remove(place)
	}
}

// free gives a seat to whoever is first in line. mu is held.
func (s *seats) free() {
	if first := s.line.Front(); first != nil {
		close(s.line.Remove(first).(chan struct{}))
		return
	}
	s.taken--
}

// adjust tells the coordinator how many may run now. mu is held, so that it is told in
// the right order; it calls nobody in turn.
func (s *seats) adjust() {
	if limit := s.most + min(s.standing, s.spare); limit != s.limit {
		s.limit = limit
		s.resize(limit)
	}
}
