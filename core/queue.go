package core

import "slices"

// queue is a ring: it grows at its end and drops its oldest elements, in place.
type queue[E any] struct {
	ring  []E // length is the capacity
	first int
	n     int
}

// at is the index of the i-th oldest.
func (q *queue[E]) at(i int) int {
	if i += q.first; i >= len(q.ring) {
		i -= len(q.ring)
	}
	return i
}

func (q *queue[E]) get(i int) *E { return &q.ring[q.at(i)] }

// push adds a place for the newest.
func (q *queue[E]) push() *E {
	if q.n == len(q.ring) {
		q.ring, q.first = slices.Concat(q.ring[q.first:], q.ring[:q.first], make([]E, max(16, q.n))), 0
	}
	q.n++
	return q.get(q.n - 1)
}

// drop removes the oldest.
func (q *queue[E]) drop() {
	q.ring[q.first] = *new(E)
	q.first = q.at(1)
	q.n--
}

// remove removes the i-th oldest.
func (q *queue[E]) remove(i int) {
	for ; i > 0; i-- {
		*q.get(i) = *q.get(i - 1)
	}
	q.drop()
}
