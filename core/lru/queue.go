package lru

// queue is a list of entries, the newest first.
type queue[K comparable, V any] struct {
	main           bool // of the policy
	newest, oldest *entry[K, V]
	n              int
}

// join makes two entries neighbours; nil is what lies beyond an end of the queue.
func (q *queue[K, V]) join(newer, older *entry[K, V]) {
	if newer != nil {
		newer.older = older
	} else {
		q.newest = older
	}
	if older != nil {
		older.newer = newer
	} else {
		q.oldest = newer
	}
}

func (q *queue[K, V]) push(e *entry[K, V]) {
	e.main = q.main
	q.join(e, q.newest)
	q.join(nil, e)
	q.n++
}

func (q *queue[K, V]) remove(e *entry[K, V]) {
	q.join(e.newer, e.older)
	e.newer, e.older = nil, nil
	q.n--
}

// replace puts e in the place of old.
func (q *queue[K, V]) replace(old, e *entry[K, V]) {
	e.main = q.main
	q.join(old.newer, e)
	q.join(e, old.older)
	old.newer, old.older = nil, nil
}
