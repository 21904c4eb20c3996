package core

// window remembers the newest finished operations, bounded by count and by age
// since they finished. It is a plain data structure: the caller says what time it
// is and does what follows from an eviction.
//
// A pinned operation is not evicted. When its turn comes it is moved aside, so
// that it is looked at once, and is evicted when its last pin goes.
type window struct {
	limit    int   // finished operations kept, pinned ones aside
	maxAge   int64 // 0: no limit
	finished opList
	aside    opList // would have been evicted but for a pin
	pinned   int    // operations with pins, of any status
}

// add takes in an operation that has just finished.
func (w *window) add(o *Operation) { w.finished.push(o) }

// evict removes and returns an operation whose time is over, or nil.
func (w *window) evict(now int64) *Operation {
	for {
		o := w.finished.head
		if o == nil || w.finished.n <= w.limit && (w.maxAge == 0 || o.finished > now-w.maxAge) {
			return nil
		}
		w.finished.remove(o)
		if !o.pinned() {
			return o
		}
		o.marks |= aside
		w.aside.push(o)
	}
}

// remove takes a finished operation out, pinned or not.
func (w *window) remove(o *Operation) {
	if o.pinned() {
		w.pinned--
	}
	if o.marks&aside != 0 {
		w.aside.remove(o)
	} else {
		w.finished.remove(o)
	}
}

// any returns a finished operation, or nil when there is none.
func (w *window) any() *Operation {
	if w.finished.head != nil {
		return w.finished.head
	}
	return w.aside.head
}

// len is the number of finished operations in the window.
func (w *window) len() int { return w.finished.n + w.aside.n }

// pin adds a pin to an operation, unless as many as limit are pinned already.
func (w *window) pin(o *Operation, limit int) bool {
	d := o.details()
	if d.pins == 0 {
		if w.pinned >= limit {
			return false
		}
		w.pinned++
	}
	d.pins++
	return true
}

// unpin takes a pin away and reports whether the operation is to be evicted now.
func (w *window) unpin(o *Operation) (evict bool) {
	d := o.rest.Load()
	d.pins--
	if d.pins > 0 {
		return false
	}
	w.pinned--
	if o.marks&aside != 0 {
		w.aside.remove(o)
	}
	return o.marks&aside != 0
}

func (o *Operation) pinned() bool {
	d := o.rest.Load()
	return d != nil && d.pins > 0
}
