package core

// opList is a list of operations, linked through the operations themselves: an
// operation is in one list at a time.
type opList struct {
	head, tail *Operation
	n          int
}

func (l *opList) push(o *Operation) {
	o.prev, o.next = l.tail, nil
	if l.tail == nil {
		l.head = o
	} else {
		l.tail.next = o
	}
	l.tail = o
	l.n++
}

func (l *opList) remove(o *Operation) {
	if o.prev == nil {
		l.head = o.next
	} else {
		o.prev.next = o.next
	}
	if o.next == nil {
		l.tail = o.prev
	} else {
		o.next.prev = o.prev
	}
	o.prev, o.next = nil, nil
	l.n--
}

func (l *opList) appendTo(all []*Operation) []*Operation {
	for o := l.head; o != nil; o = o.next {
		all = append(all, o)
	}
	return all
}
