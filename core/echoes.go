package core

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
	id     OperationID
	key    string
	status Status
	err    error
	last   *details // may be nil
	at     int64
}

// add remembers an operation that has been buried.
func (e *echoes) add(o *Operation, last *details, now int64) {
	if e.limit == 0 {
		return
	}
	e.expire(now)
	if e.n == e.limit {
		e.drop()
	}
	if e.n == len(e.ring) { // grow up to the limit
		bigger := make([]echo, min(e.limit, max(16, 2*len(e.ring))))
		for i := range e.n {
			bigger[i] = *e.at(i)
		}
		e.ring, e.first = bigger, 0
	}
	e.n++
	*e.at(e.n - 1) = echo{o.id, o.key, o.status, o.err, last, now}
}

func (e *echoes) at(i int) *echo {
	if i += e.first; i >= len(e.ring) {
		i -= len(e.ring)
	}
	return &e.ring[i]
}

func (e *echoes) drop() {
	*e.at(0) = echo{}
	e.n--
	if e.first++; e.first == len(e.ring) {
		e.first = 0
	}
}

func (e *echoes) expire(now int64) {
	for e.n > 0 && e.maxAge > 0 && e.at(0).at <= now-e.maxAge {
		e.drop()
	}
}
