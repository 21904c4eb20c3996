package batching

import (
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// item is one item, from the call that brings it to its result.
type item[In, Out any] struct {
	in    In
	key   string
	size  int
	state state
	batch *batch[In, Out] // nil until it is accepted
	room  chan struct{}   // closed when it is accepted or turned away; nil: it does not wait for room
	done  chan struct{}   // closed when it is settled; nil: no Do waits for it
	out   Out             // set before done is closed
	err   error           // set before done is closed

	next, prev *item[In, Out] // neighbours in a list
}

type state uint8

const (
	stateNew      state = iota
	stateWaiting        // for room
	statePending        // accepted, in a batch whose flush has not begun
	stateFlushing       // in a batch that is being flushed
	stateSettled        // has its result
)

// list is a list of items in the order in which they came.
type list[In, Out any] struct {
	head, tail *item[In, Out]
	n          int
}

func (l *list[In, Out]) push(it *item[In, Out]) {
	if it.prev = l.tail; it.prev != nil {
		it.prev.next = it
	} else {
		l.head = it
	}
	l.tail = it
	l.n++
}

func (l *list[In, Out]) remove(it *item[In, Out]) {
	if it.prev != nil {
		it.prev.next = it.next
	} else {
		l.head = it.next
	}
	if it.next != nil {
		it.next.prev = it.prev
	} else {
		l.tail = it.prev
	}
	it.next, it.prev = nil, nil
	l.n--
}

// batch is a batch, from its first item to the end of its flush.
type batch[In, Out any] struct {
	key    string
	began  time.Time
	timer  *time.Timer      // ends MaxDelay; nil: none
	items  []*item[In, Out] // in order, withdrawn ones included; nil when the flush has begun or all were withdrawn
	slab   []item[In, Out]  // memory for items
	n      int              // items that were not withdrawn
	bytes  int              // of these
	reason string           // why the batch was submitted; "" until then
	id     core.OperationID // set when the batch is submitted
	wanted int              // during its flush: items whose callers have not left
}

// place returns memory for one more item of at most most. It is allocated for many items at
// once: for as many as there are, so that keys with one item, and callers who come and leave, do not fill the memory.
func (b *batch[In, Out]) place(most int) *item[In, Out] {
	if len(b.slab) == cap(b.slab) {
		b.slab = make([]item[In, Out], 0, min(max(1, b.n), max(1, most-b.n)))
	}
	b.slab = b.slab[:len(b.slab)+1]
	return &b.slab[len(b.slab)-1]
}

// compact removes withdrawn items from the slice.
func (b *batch[In, Out]) compact() {
	b.items = slices.DeleteFunc(b.items, func(it *item[In, Out]) bool { return it.state == stateSettled })
}

func (b *batch[In, Out]) stopTimer() {
	if b.timer != nil {
		b.timer.Stop()
	}
}
