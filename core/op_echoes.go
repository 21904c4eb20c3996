package core

import "slices"

// echoes remember operations that have left the window, bounded by count and age.
type echoes struct {
	ring   []echo // length is the capacity, allocated as needed
	limit  int
	maxAge int64
	first  int
	n      int
}

// echo does not refer to its operation, and so to its item, result and context.
type echo struct {
	ownFacts
	key    string
	status Status
	err    error
	at     int64
}

// add remembers an operation that has been evicted, with the signals it had.
func (e *echoes) add(o *Operation, facts ownFacts, now int64) {
	if e.limit == 0 {
		return
	}
	e.expire(now)
	if e.n == e.limit {
		e.drop()
	}
	if e.n == len(e.ring) { // grow up to the limit
		size := min(e.limit, max(16, 2*len(e.ring)))
		e.ring, e.first = slices.Concat(e.ring[e.first:], e.ring[:e.first], make([]echo, size-e.n)), 0
	}
	e.ring[e.at(e.n)] = echo{facts, o.key, o.status, o.err, now}
	e.n++
}

// at is the index of the i-th oldest.
func (e *echoes) at(i int) int {
	if i += e.first; i >= len(e.ring) {
		i -= len(e.ring)
	}
	return i
}

func (e *echoes) drop() {
	e.ring[e.first] = echo{}
	e.n--
	if e.first++; e.first == len(e.ring) {
		e.first = 0
	}
}

func (e *echoes) expire(now int64) {
	for e.n > 0 && e.maxAge > 0 && e.ring[e.first].at <= now-e.maxAge {
		e.drop()
	}
}
