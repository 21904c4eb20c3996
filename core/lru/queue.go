package lru

// queue is a list of entries, the newest first.
type queue[K comparable, V any] struct {
	newest, oldest *entry[K, V]
	n              int
}

func (q *queue[K, V]) push(e *entry[K, V]) {
	e.older, e.newer = q.newest, nil
	if q.newest != nil {
		q.newest.newer = e
	} else {
		q.oldest = e
	}
	q.newest = e
	q.n++
}

func (q *queue[K, V]) remove(e *entry[K, V]) {
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		q.newest = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		q.oldest = e.newer
	}
	e.newer, e.older = nil, nil
	q.n--
}

// replace puts e in the place of old.
func (q *queue[K, V]) replace(old, e *entry[K, V]) {
	e.newer, e.older = old.newer, old.older
	if e.newer != nil {
		e.newer.older = e
	} else {
		q.newest = e
	}
	if e.older != nil {
		e.older.newer = e
	} else {
		q.oldest = e
	}
	old.newer, old.older = nil, nil
}
