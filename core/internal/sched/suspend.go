package sched

// Suspend frees the slots of a running item in its lane and class. It keeps the slot in its key,
// so that the order within the key holds.
func (b *Board) Suspend(item *Item, now int64) {
	if both := b.classes[item.Class].shadows; both != nil {
		both.end(item, now)
	}
	b.occupy(item, -1)
}

// Resume gives a suspended item its slots back. Aged is what Back has said, if it has returned the
// item.
func (b *Board) Resume(item *Item, aged bool, now int64) {
	if aged {
		b.sinceAge = 0
	}
	if both := b.classes[item.Class].shadows; both != nil {
		both.again(item, now)
	}
	b.occupy(item, 1)
}

// Want adds a suspended item that wants its slots back from now on. Value is that time until the
// end of the item.
func (b *Board) Want(item *Item, now int64) {
	item.Value = now
	b.lanes[item.Lane].wanting.Push(item)
	b.wanting++
}

// Unwant undoes Want.
func (b *Board) Unwant(item *Item) {
	b.lanes[item.Lane].wanting.Remove(item)
	b.wanting--
}

// Wanting is how many suspended items want their slots back.
func (b *Board) Wanting() int { return b.wanting }

// AppendWanting appends the suspended items that want their slots back.
func (b *Board) AppendWanting(all []*Item) []*Item {
	for i := range b.lanes {
		all = b.lanes[i].wanting.AppendTo(all)
	}
	return all
}

// Back returns the suspended item that gets its slots back before pending items of that lane start,
// or nil. The highest lane comes first. In turns of ageing, one of a lower lane goes first; aged
// says so.
func (b *Board) Back(now int64, before uint8) (first *Item, aged bool) {
	for i := range b.lanes {
		item := b.lanes[i].wanting.head
		for item != nil && !b.Fits(item) {
			item = item.next
		}
		switch {
		case item == nil:
		case i <= int(before):
			return item, false
		case b.ageing > 0 && b.sinceAge >= agedTurn-1 && now-item.Value >= b.ageing && (first == nil || item.Value < first.Value):
			first, aged = item, true
		}
	}
	return first, aged
}

// Highest is the highest lane in which something has not started, or the last one.
func (b *Board) Highest() uint8 {
	last := len(b.lanes) - 1
	for i := range b.lanes[:last] {
		if b.lanes[i].n > 0 {
			return uint8(i)
		}
	}
	return uint8(last)
}

// occupy counts that so many more run in the lane and the class of an item.
func (b *Board) occupy(item *Item, more int) {
	b.run(&b.lanes[item.Lane], &b.classes[item.Class], more)
}

func (b *Board) run(l *lane, c *class, more int) {
	l.Running += more
	c.Running += more
	if l.Limit > 0 && l.full() != (l.Running-more >= l.Limit) { // another lane may be the first of a class
		b.parked.classes = 0
	}
}

// Slots says how many items may run at once, whatever their lanes and classes are.
type Slots struct {
	Limit        int
	MaxSuspended int  // how many suspended items may give up their slots
	Lent         int  // how many of the suspended items count against MaxSuspended
	Running      List // have a slot
	Paused       bool
	Closing      bool
}

// Full reports whether there is no slot for items that have not started.
func (s *Slots) Full() bool { return s.Running.Len()+max(0, s.Lent-s.MaxSuspended) >= s.Limit }

// Free reports whether there is a slot for a suspended item that wants one back.
func (s *Slots) Free() bool { return s.Running.Len() < s.Limit }

// Stopped reports whether no item may start.
func (s *Slots) Stopped() bool { return s.Full() || s.Paused || s.Closing }
