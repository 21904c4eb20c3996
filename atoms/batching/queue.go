package batching

import (
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
)

// queue decides which items make a batch, and when a batch is submitted to the
// coordinator. It has no lock, goroutine or clock.
//
// A batch is submitted when it is full, when it is due, when there is no room for an item,
// or by Flush. The coordinator decides when its flush begins. Until then the batch takes
// more items if it is not full.
type queue[In, Out any] struct {
	opts   *Options[In]
	begin  func(*batch[In, Out]) // stores the time, and sets the timer
	submit func(*batch[In, Out]) // gives a batch to the coordinator

	open     map[string]*batch[In, Out] // batches that take items, by key
	last     *batch[In, Out]            // the one that took the last item; nil: look in open
	mostOpen int                        // highest len(open) since the map was made
	pending  list[In, Out]              // accepted items whose flush has not begun
	waiting  list[In, Out]              // items that wait for room
	dropping bool                       // the last new item dropped another one
	stats    Counters                   // without Pending
	effects  effects[In, Out]
}

// effects run after a change, when the lock is released.
type effects[In, Out any] struct {
	lost     []In              // items without a waiting Do that will not be flushed
	unwanted []*batch[In, Out] // submitted batches to cancel
	cause    error             // why
	flood    bool              // SignalDropped is to be raised
}

// accept puts a copy of an item into a batch, and returns the copy. If there is no room and the
// item has the channel room, the copy waits in the queue; if it has none, accept returns ErrFull.
func (q *queue[In, Out]) accept(it *item[In, Out]) (*item[In, Out], error) {
	if q.stats.Closed {
		return nil, core.ErrClosed
	}
	drops := q.waiting.n > 0 || !q.fits(it.size)
	if drops && !q.opts.DropOldest {
		q.enqueue(q.pending.head.batch, reasonRoom) // perhaps only this flush makes room
		if it.room == nil {
			return nil, core.ErrFull
		}
		waits := *it
		waits.state = stateWaiting
		q.waiting.push(&waits)
		return &waits, nil
	}
	for !q.fits(it.size) {
		q.withdraw(q.pending.head, core.ErrDropped, &q.stats.Dropped)
	}
	q.effects.flood = drops && !q.dropping
	q.dropping = drops
	b := q.batchFor(it.key, it.size)
	place := b.place(q.opts.MaxSize)
	*place = *it
	q.admit(place, b)
	return place, nil
}

func (q *queue[In, Out]) fits(size int) bool {
	return q.pending.n < q.opts.MaxQueued && size <= q.opts.MaxQueuedBytes-q.stats.PendingBytes
}

// batchFor returns the open batch of a key, with room for an item of that size.
func (q *queue[In, Out]) batchFor(key string, size int) *batch[In, Out] {
	b := q.last
	if b == nil || b.key != key {
		b = q.open[key]
		q.last = b
	}
	if b != nil && size > q.opts.MaxBytes-b.bytes {
		q.seal(b, reasonBytes)
		b = nil
	}
	if b == nil {
		b = &batch[In, Out]{key: key, items: make([]*item[In, Out], 0, 1)}
		q.open[key], q.last = b, b
		q.mostOpen = max(q.mostOpen, len(q.open))
		q.begin(b)
	}
	return b
}

// admit puts an item into a batch.
func (q *queue[In, Out]) admit(it *item[In, Out], b *batch[In, Out]) {
	it.state, it.batch = statePending, b
	b.items = append(b.items, it)
	b.n++
	b.bytes += it.size
	q.pending.push(it)
	q.stats.PendingBytes += it.size
	q.stats.Enqueued++
	if it.room != nil {
		close(it.room)
	}
	switch {
	case b.n == q.opts.MaxSize:
		q.seal(b, reasonSize)
	case b.bytes >= q.opts.MaxBytes:
		q.seal(b, reasonBytes)
	}
}

// enqueue submits a batch, unless that was done before or it has no items.
func (q *queue[In, Out]) enqueue(b *batch[In, Out], r string) {
	if b.reason != "" || b.n == 0 {
		return
	}
	b.reason = r
	b.stopTimer()
	q.submit(b)
}

// seal submits a batch that takes no more items.
func (q *queue[In, Out]) seal(b *batch[In, Out], r string) {
	q.closeBatch(b)
	q.enqueue(b, r)
}

// closeBatch closes a batch for further items.
func (q *queue[In, Out]) closeBatch(b *batch[In, Out]) {
	if q.open[b.key] != b {
		return
	}
	delete(q.open, b.key)
	q.last = nil
	if len(q.open) == 0 && q.mostOpen > 1024 { // a map never shrinks
		q.open, q.mostOpen = make(map[string]*batch[In, Out]), 0
	}
}

// flush submits all batches, in the order of their oldest items.
func (q *queue[In, Out]) flush() {
	for it := q.pending.head; it != nil; {
		b := it.batch
		it = it.next
		q.enqueue(b, reasonFlush)
	}
}

// start begins the flush of a batch and returns its items; nil if all were withdrawn.
func (q *queue[In, Out]) start(b *batch[In, Out]) []*item[In, Out] {
	if b.items == nil {
		return nil
	}
	q.closeBatch(b)
	b.compact()
	items := b.items
	b.items, b.slab = nil, nil // the coordinator shows the batch for a while
	for _, it := range items {
		q.pending.remove(it)
		it.state = stateFlushing
	}
	q.stats.PendingBytes -= b.bytes
	b.wanted = b.n
	q.stats.Running += b.n
	q.stats.Batches++
	q.refill()
	return items
}

// finish gives an item its result and counts it in counter.
func (q *queue[In, Out]) finish(it *item[In, Out], err error, counter *uint64) {
	*counter++
	it.state, it.err = stateSettled, err
	if it.done != nil {
		close(it.done)
	}
}

// leave is called when the caller of an item stops waiting for room or for the result.
func (q *queue[In, Out]) leave(it *item[In, Out], cause error) {
	switch it.state {
	case stateWaiting:
		q.turnAway(it)
	case statePending:
		q.withdraw(it, cause, &q.stats.Cancelled)
	case stateFlushing:
		if it.batch.wanted--; it.batch.wanted == 0 {
			q.abandon(it.batch, cause)
		}
	}
	q.refill()
}

// abandon records that the operation of a batch is to be cancelled.
func (q *queue[In, Out]) abandon(b *batch[In, Out], cause error) {
	q.effects.unwanted, q.effects.cause = append(q.effects.unwanted, b), cause
}

// withdraw takes a pending item out of its batch.
func (q *queue[In, Out]) withdraw(it *item[In, Out], cause error, counter *uint64) {
	q.pending.remove(it)
	q.stats.PendingBytes -= it.size
	q.finish(it, cause, counter)
	if it.done == nil {
		q.effects.lost, q.effects.cause = append(q.effects.lost, it.in), cause
	}
	b := it.batch
	b.n--
	b.bytes -= it.size
	switch {
	case b.n == 0:
		q.closeBatch(b)
		b.stopTimer()
		b.items, b.slab = nil, nil
		if b.reason != "" {
			q.abandon(b, cause)
		}
	case len(b.items) > 2*b.n+16: // so that callers who come and leave do not fill the memory
		b.compact()
	}
}

// cancel withdraws the items of a batch. It returns false if it has none, or its flush
// has begun.
func (q *queue[In, Out]) cancel(b *batch[In, Out], cause error) bool {
	if b.items == nil {
		return false
	}
	for _, it := range slices.Clone(b.items) {
		if it.state == statePending {
			q.withdraw(it, cause, &q.stats.Cancelled)
		}
	}
	q.refill()
	return true
}

// cancelAll withdraws all pending items.
func (q *queue[In, Out]) cancelAll(cause error) {
	for q.pending.n > 0 {
		q.withdraw(q.pending.head, cause, &q.stats.Cancelled)
	}
	q.refill()
}

// complete closes the queue to new items, and to items that wait for room.
func (q *queue[In, Out]) complete() {
	q.stats.Closed = true
	for q.waiting.n > 0 {
		q.turnAway(q.waiting.head)
	}
}

// stop does what complete does, and withdraws all pending items.
func (q *queue[In, Out]) stop(cause error) {
	q.complete()
	q.cancelAll(cause)
}

func (q *queue[In, Out]) turnAway(it *item[In, Out]) {
	q.waiting.remove(it)
	it.state = stateSettled
	q.stats.Rejected++
	close(it.room)
}

// refill accepts items that wait for room, first come first served.
func (q *queue[In, Out]) refill() {
	for q.waiting.n > 0 {
		it := q.waiting.head
		if !q.fits(it.size) {
			q.enqueue(q.pending.head.batch, reasonRoom)
			return
		}
		q.waiting.remove(it)
		q.admit(it, q.batchFor(it.key, it.size))
	}
}

// counters returns the counters as they are now.
func (q *queue[In, Out]) counters() Counters {
	s := q.stats
	s.Pending = q.pending.n
	return s
}
