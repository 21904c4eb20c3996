// This file decides which operations are remembered after they have left the window.

package core

import (
	"github.com/ephemeralgo/ephemeral/core/internal/fifo"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// echoes remember operations that have left the window, bounded by count and age.
type echoes struct {
	fifo.Queue[echo]
	limit  int
	maxAge int64
}

// echo does not refer to its operation, and so to its item, result and context.
type echo struct {
	signals.Past
	status Status
	err    error
	at     int64
}

// add returns the place for one more; the limit is not 0. It may still have what the oldest was, so that its memory
// is used again.
func (e *echoes) add(now int64) *echo {
	if e.stale(now) {
		e.expire(now)
	}
	if e.N == e.limit {
		return e.Turn()
	}
	return e.Push()
}

func (e *echoes) expire(now int64) {
	for e.stale(now) {
		e.Drop()
	}
}

// stale reports whether the oldest is too old.
func (e *echoes) stale(now int64) bool {
	return e.N > 0 && e.maxAge > 0 && e.Get(0).at <= now-e.maxAge
}
