package lru

// queue holds entries in the order in which they came: a ring of places, some of
// which are empty because their entries were taken out of the middle. An entry that
// comes or goes touches no other entry.
type queue[K comparable, V any] struct {
	ring       []*entry[K, V] // place p is at p modulo its length, a power of two
	tail, head uint64         // the first place that may be taken, and the next free one
	n          int            // entries
}

const minRing = 8

func (q *queue[K, V]) at(place uint64) **entry[K, V] {
	return &q.ring[place&uint64(len(q.ring)-1)]
}

func (q *queue[K, V]) push(e *entry[K, V]) {
	if q.head-q.tail == uint64(len(q.ring)) {
		q.makeRoom()
	}
	e.place = q.head
	*q.at(e.place) = e
	q.head++
	q.n++
}

// oldest returns the entry that came first, or nil.
func (q *queue[K, V]) oldest() *entry[K, V] {
	if q.n == 0 {
		return nil
	}
	for *q.at(q.tail) == nil {
		q.tail++
	}
	return *q.at(q.tail)
}

func (q *queue[K, V]) remove(e *entry[K, V]) {
	*q.at(e.place) = nil
	q.n--
}

// replace puts e in the place of old.
func (q *queue[K, V]) replace(old, e *entry[K, V]) {
	e.place = old.place
	*q.at(e.place) = e
}

// all returns the entries, the oldest first.
func (q *queue[K, V]) all() []*entry[K, V] {
	list := make([]*entry[K, V], 0, q.n)
	for place := q.tail; place != q.head; place++ {
		if e := *q.at(place); e != nil {
			list = append(list, e)
		}
	}
	return list
}

// makeRoom moves the entries together, into a ring that has room for as many again.
func (q *queue[K, V]) makeRoom() {
	entries := q.all()
	size := minRing
	for size < 2*len(entries) {
		size *= 2
	}
	*q = queue[K, V]{ring: make([]*entry[K, V], size)}
	for _, e := range entries {
		q.push(e)
	}
}
