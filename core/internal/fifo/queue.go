// Package fifo has a queue in a ring.
package fifo

import "slices"

// Queue is a ring: it grows at its end and drops its oldest elements, in place.
type Queue[E any] struct {
	Ring  []E // length is the capacity
	first int
	N     int
}

// At is the index of the i-th oldest.
func (q *Queue[E]) At(i int) int {
	if i += q.first; i >= len(q.Ring) {
		i -= len(q.Ring)
	}
	return i
}

func (q *Queue[E]) Get(i int) *E { return &q.Ring[q.At(i)] }

// Push adds a place for the newest.
func (q *Queue[E]) Push() *E {
	if q.N == len(q.Ring) {
		q.Ring, q.first = slices.Concat(q.Ring[q.first:], q.Ring[:q.first], make([]E, max(16, q.N))), 0
	}
	q.N++
	return q.Get(q.N - 1)
}

// Turn makes the oldest the newest, and returns its place.
func (q *Queue[E]) Turn() *E {
	from := q.Get(0)
	if q.first = q.At(1); q.N == len(q.Ring) {
		return from
	}
	to := q.Get(q.N - 1)
	*to, *from = *from, *new(E)
	return to
}

// Drop removes the oldest.
func (q *Queue[E]) Drop() {
	q.Ring[q.first] = *new(E)
	q.first = q.At(1)
	q.N--
}

// Remove removes the i-th oldest.
func (q *Queue[E]) Remove(i int) {
	for ; i > 0; i-- {
		*q.Get(i) = *q.Get(i - 1)
	}
	q.Drop()
}
