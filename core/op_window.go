package core

// window remembers the newest finished operations, bounded by count and by age
// since they finished. Failed ones have a bound of their own, so that others do not
// push them out. It is a plain data structure: the caller says what time it is and does
// what follows from an eviction.
//
// A pinned operation is not evicted. When its turn comes it is moved aside, so
// that it is looked at once, and is evicted when its last pin goes.
type window struct {
	maxAge   int64 // 0: no limit
	finished share // but for failed ones
	failed   share
	aside    opList // would have been evicted but for a pin
	pinned   int    // operations with pins, of any status
}

// share is a part of the window with a bound of its own.
type share struct {
	limit int // operations kept, pinned ones aside
	opList
}

// of is the share that an operation is in, unless it is aside.
func (w *window) of(o *Operation) *share {
	if o.status == StatusFailed {
		return &w.failed
	}
	return &w.finished
}

// add takes in an operation that has just finished.
func (w *window) add(o *Operation) { w.of(o).push(o) }

// oldest is when the first operation finished that is not aside.
func (w *window) oldest() (at int64, ok bool) {
	for _, s := range [...]*share{&w.finished, &w.failed} {
		if o := s.head; o != nil && (!ok || o.finished < at) {
			at, ok = o.finished, true
		}
	}
	return at, ok
}

// evict removes and returns an operation whose time is over, or nil.
func (w *window) evict(now int64) *Operation {
	for _, s := range [...]*share{&w.finished, &w.failed} {
		for o := s.head; o != nil && (s.n > s.limit || w.maxAge > 0 && o.finished <= now-w.maxAge); o = s.head {
			s.remove(o)
			if !o.pinned() {
				return o
			}
			o.marks |= aside
			w.aside.push(o)
		}
	}
	return nil
}

// remove takes a finished operation out, pinned or not.
func (w *window) remove(o *Operation) {
	if o.pinned() {
		w.pinned--
	}
	if o.marks&aside != 0 {
		w.aside.remove(o)
	} else {
		w.of(o).remove(o)
	}
}

// any returns a finished operation, or nil when there is none.
func (w *window) any() *Operation {
	for _, l := range [...]*opList{&w.finished.opList, &w.failed.opList, &w.aside} {
		if l.head != nil {
			return l.head
		}
	}
	return nil
}

// len is the number of finished operations in the window.
func (w *window) len() int { return w.finished.n + w.failed.n + w.aside.n }

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

// opList is a list of operations, linked through the operations themselves: an
// operation is in one list at a time.
type opList struct {
	head, tail *Operation
	n          int
}

func (l *opList) push(o *Operation) { l.insert(o, nil) }

// insert puts o before another operation, or, if that is nil, at the end.
func (l *opList) insert(o, before *Operation) {
	last := l.tail
	if before != nil {
		last = before.prev
	}
	l.link(last, o)
	l.link(o, before)
	l.n++
}

func (l *opList) remove(o *Operation) {
	l.link(o.prev, o.next)
	o.prev, o.next = nil, nil
	l.n--
}

// link makes neighbours of two operations; nil stands for the end of the list.
func (l *opList) link(o, next *Operation) {
	if o == nil {
		l.head = next
	} else {
		o.next = next
	}
	if next == nil {
		l.tail = o
	} else {
		next.prev = o
	}
}

// line is a list in which those that wait for room are last.
type line struct {
	opList
	waits *Operation // the first that waits for room, or nil
}

func (l *line) push(o *Operation) {
	switch {
	case o.marks&roomless == 0:
		l.insert(o, l.waits)
		return
	case l.waits == nil:
		l.waits = o
	}
	l.opList.push(o)
}

// unshift puts o in front of all, none of which comes before it.
func (l *line) unshift(o *Operation) {
	if o.marks&roomless != 0 {
		l.waits = o
	}
	l.insert(o, l.head)
}

func (l *line) remove(o *Operation) {
	if l.waits == o {
		l.waits = o.next
	}
	l.opList.remove(o)
}

func (l *opList) appendTo(all []*Operation) []*Operation {
	for o := l.head; o != nil; o = o.next {
		all = append(all, o)
	}
	return all
}
