package retry

import (
	"container/list"
	"context"
	"sync"
)

// seats bound how many operations of a [Queue] make an attempt at once. An operation
// that is running, as its coordinator sees it, sits while it makes an attempt, and
// otherwise stands: it backs off, or waits in line for a seat. For every one that
// stands the coordinator may run one more, up to spare.
type seats struct {
	most  int // seats there are
	spare int // operations that may run besides

	mu       sync.Mutex
	resize   func(limit int) // tells the coordinator how many may run
	limit    int             // the last that it was told
	taken    int
	standing int
	line     list.List // of chan struct{}: operations that wait for a seat, first come first
}

// seat is an operation's.
type seat struct {
	of      *seats
	sitting bool
}

// arrive is called by an operation that begins, and waits for a seat until ctx ends.
func (s *seats) arrive(ctx context.Context) seat {
	mine := seat{of: s}
	s.mu.Lock()
	s.standing++
	mine.sit(ctx)
	return mine
}

// take waits for a seat until ctx ends.
func (t *seat) take(ctx context.Context) {
	t.of.mu.Lock()
	t.sit(ctx)
}

// sit is take with mu held, which it releases.
func (t *seat) sit(ctx context.Context) {
	s := t.of
	if s.taken < s.most && s.line.Len() == 0 {
		s.taken++
		s.standing--
		s.adjust()
		s.mu.Unlock()
		t.sitting = true
		return
	}
	mine := make(chan struct{})
	place := s.line.PushBack(mine)
	s.adjust()
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

// leave stands up.
func (t *seat) leave() {
	s := t.of
	s.mu.Lock()
	defer s.mu.Unlock()
	t.sitting = false
	s.standing++
	s.free()
	s.adjust()
}

// depart is called by an operation that ends.
func (t *seat) depart() {
	s := t.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.sitting {
		s.free()
	} else {
		s.standing--
	}
	s.adjust()
}

// free gives a seat to whoever is first in line. mu is held.
func (s *seats) free() {
	first := s.line.Front()
	if first == nil {
		s.taken--
		return
	}
	s.standing--
	close(s.line.Remove(first).(chan struct{}))
}

// adjust tells the coordinator how many may run now. mu is held, so that it is told in
// the right order; it calls nobody in turn.
func (s *seats) adjust() {
	if limit := s.most + min(s.standing, s.spare); limit != s.limit {
		s.limit = limit
		s.resize(limit)
	}
}
