package sched

// lane is what the board knows about a lane: how many of its items may run, and their order.
type lane struct {
	Bound
	lines   []classLine
	filled  classSet // whose lines may not be empty, besides those in changed
	changed classSet // whose lines have changed since next was asked
	wanting List     // suspended items that want their slots back, first come first served
	turns   uint32   // that were given out: see Item.number
}

// classLine has the items of a class in a lane, in turn: those without a key, and one for each
// key of which one may start.
type classLine struct {
	line
	set classSet // of the class
}

// A Bound says how many items of a lane, or of a class, run and may run.
type Bound struct {
	Limit   int // 0: none
	Running int
	n       int // pending, or waiting for room
}

func (b *Bound) full() bool { return b.Limit > 0 && b.Running >= b.Limit }

// join gives item the last turn in the lane.
func (l *lane) join(item *Item) {
	l.turns++
	item.number = l.turns
	line := &l.lines[item.Class]
	l.changed |= line.set
	line.push(item)
}

// leave takes item out of its line.
func (l *lane) leave(item *Item) {
	line := &l.lines[item.Class]
	l.changed |= line.set
	line.remove(item)
}

// replace gives the turn of item to another item.
func (l *lane) replace(item, by *Item) {
	by.number = item.number
	line, next := &l.lines[by.Class], item
	if by.Class != item.Class {
		for next = line.head; next != line.waits && next.before(item); {
			next = next.next
		}
	}
	line.insert(by, next)
	l.changed |= line.set
}

// take gives the first item of a key a turn in the lane.
func (l *lane) take(t *turn) {
	if t.up = t.queue.head; t.up != nil {
		t.queue.remove(t.up)
		l.join(t.up)
	}
}

// put undoes take.
func (l *lane) put(t *turn) {
	if t.up != nil {
		l.leave(t.up)
		t.queue.unshift(t.up)
		t.up = nil
	}
}
