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

// add remembers an operation that has been evicted, with what its owner was. There is room.
func (e *echoes) add(o *Operation, last *signals.Past, now int64) {
	if e.limit > 0 {
		p := e.Push() // a whole echo that is copied costs more
		p.Past, p.status, p.err, p.at = *last, o.status(), o.err, now
	}
}

// makeRoom makes room for one more. It returns the owner of the echo that had to go.
func (e *echoes) makeRoom(now int64) (spent signals.Past) {
	e.expire(now)
	if e.N > 0 && e.N == e.limit {
		spent = e.Get(0).Past
		e.Drop()
	}
	return spent
}

func (e *echoes) expire(now int64) {
	for e.N > 0 && e.maxAge > 0 && e.Get(0).at <= now-e.maxAge {
		e.Drop()
	}
}
