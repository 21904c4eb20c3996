package core

// echoes remember operations that have left the window, bounded by count and age.
type echoes struct {
	ring   []echo     // length is the capacity, allocated as needed
	facts  []ownFacts // what those in ring had; empty while nothing had any
	limit  int
	maxAge int64
	first  int
	n      int
}

// echo does not refer to its operation, and so to its item, result and context.
type echo struct {
	id     OperationID
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
		e.ring = unrolled(e.ring, e.first, size)
		if e.facts != nil {
			e.facts = unrolled(e.facts, e.first, size)
		}
		e.first = 0
	}
	if facts.rest != nil && e.facts == nil {
		e.facts = make([]ownFacts, len(e.ring))
	}
	at := e.at(e.n)
	e.ring[at] = echo{o.id, o.key, o.status, o.err, now}
	if e.facts != nil {
		e.facts[at] = facts
	}
	e.n++
}

// unrolled copies a ring that begins at first into a bigger one that begins at 0.
func unrolled[T any](ring []T, first, size int) []T {
	bigger := make([]T, size)
	n := copy(bigger, ring[first:])
	copy(bigger[n:], ring[:first])
	return bigger
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
	if e.facts != nil {
		e.facts[e.first] = ownFacts{}
	}
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
