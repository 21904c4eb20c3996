package core

// board decides what runs next. It is a plain data structure without lock, goroutine or
// clock; the engine steps it under its own lock. The engine knows how many run and whether
// any may start; the board knows in which order, and which pending operations must wait
// for others, because of their key, lane or class.
//
// Higher lanes go first; within a lane the keys take turns, and operations without a
// key as if each had one of its own; within a key, operations start in order of arrival.
// An operation can start when its lane and its class run less than their limits and its
// key less than perKey. One that waits for its class keeps its turn, and its key's.
//
// An operation whose Enqueue waits for room is here as well, because it needs no room if it
// can start. In its key, and in its lane and class, it comes after those that are pending.
//
// So that lower lanes do not starve, of the operations whose turn it is in their
// lanes and that have waited for the time of ageing the one that has waited longest
// goes first, whatever its lane, but only every agedTurn-th time: else a backlog,
// once aged, would take the higher lanes' priority away.
type board struct {
	lanes   []lane
	classes []bound // the first is that of operations without one
	n       int     // pending, or without room
	waiting int     // of these, how many wait for room
	perKey  int
	keys    keyTable
	keyed   bool
	plain   bool  // operations start first in, first out: there are no lanes, keys or classes
	ageing  int64 // 0: never

	aged     bool // next, when last asked, favoured a lane for the age of its first
	sinceAge int  // starts since that was followed
}

// agedTurn is the share of starts that ageing may take: one in so many.
const agedTurn = 4

// bound is how many operations of a lane, or of a class, run and may run.
type bound struct {
	limit   int // 0: none
	running int
	n       int // pending, or without room
}

func (b *bound) full() bool { return b.limit > 0 && b.running >= b.limit }

// lane is what the board knows of a lane.
type lane struct {
	bound
	lines []line // by class, in turn: operations without a key, and one for each key of which one may start
	turns uint32 // that were given out: see Operation.turnNumber
}

func newBoard(lanes []Lane, classes []Class, opts *Options, keyed bool) board {
	b := board{perKey: opts.MaxPerKey, keyed: keyed, ageing: int64(opts.Ageing), sinceAge: agedTurn, plain: !keyed && len(opts.Lanes)+len(opts.Classes) == 0}
	for _, l := range lanes {
		b.lanes = append(b.lanes, lane{bound: bound{limit: l.Limit}, lines: make([]line, len(classes))})
	}
	for _, c := range classes {
		b.classes = append(b.classes, bound{limit: c.Limit})
	}
	return b
}

// push adds a pending operation, or one that waits for room.
func (b *board) push(o *Operation) {
	l := b.count(o, 1)
	if !b.keyed || o.key == "" {
		l.join(o)
		return
	}
	k := b.keys.obtain(o.key, len(b.lanes))
	k.pending++
	o.turn = &k.turns[o.lane]
	if up := o.turn.up; up != nil && up.marks&roomless > o.marks&roomless {
		l.put(o.turn) // it comes after o
	}
	if k.running < b.perKey && o.turn.up == nil { // so none that comes before o is in its queue
		o.turn.up = o
		l.join(o)
	} else {
		o.turn.queue.push(o)
	}
}

// join gives o the last turn in the lane.
func (l *lane) join(o *Operation) {
	l.turns++
	o.turnNumber = l.turns
	l.lines[o.class].push(o)
}

// replace gives the turn of o to another operation.
func (l *lane) replace(o, by *Operation) {
	by.turnNumber = o.turnNumber
	line, next := &l.lines[by.class], o
	if by.class != o.class {
		for next = line.head; next != line.waits && next.before(o); {
			next = next.next
		}
	}
	line.insert(by, next)
}

// take gives the first operation of a key a turn in the lane.
func (l *lane) take(t *turn) {
	if t.up = t.queue.head; t.up != nil {
		t.queue.remove(t.up)
		l.join(t.up)
	}
}

// put undoes take.
func (l *lane) put(t *turn) {
	if t.up != nil {
		l.lines[t.up.class].remove(t.up)
		t.queue.unshift(t.up)
		t.up = nil
	}
}

// next returns the operation to start next, of a lane that is not barred, or nil if none
// can start. It may be asked many times and says the same.
func (b *board) next(now int64, barred laneSet) *Operation {
	if b.plain && barred == 0 {
		return b.lanes[0].lines[0].head
	}
	var first, aged *Operation
	b.aged = false
	for i := range b.lanes {
		l := &b.lanes[i]
		if l.n == 0 || l.full() || barred.has(uint8(i)) {
			continue
		}
		o := b.first(l)
		switch {
		case o == nil:
		case first == nil:
			if b.ageing == 0 || b.sinceAge < agedTurn-1 || b.n == l.n {
				return o
			}
			first, aged = o, o
		case now-o.enqueued >= b.ageing && o.enqueued < aged.enqueued:
			aged = o
		}
	}
	b.aged = aged != first
	return aged
}

// first returns the operation of the lane whose turn is next, of a class that is not full.
func (b *board) first(l *lane) (first *Operation) {
	if len(b.classes) == 1 { // the one that has no limit
		return l.lines[0].head
	}
	for i := range l.lines {
		if o := l.lines[i].head; o != nil && !b.classes[i].full() && (first == nil || o.before(first)) {
			first = o
		}
	}
	return first
}

// fits reports whether one more may run in the lane and the class of o.
func (b *board) fits(o *Operation) bool { return !b.lanes[o.lane].full() && !b.classes[o.class].full() }

// earliest returns the operation of a lane that was enqueued first among those that could
// start, or nil.
func (b *board) earliest(lane uint8) *Operation {
	l := &b.lanes[lane]
	first := b.first(l)
	for i := range l.lines {
		for o := l.lines[i].head; b.keyed && o != nil && !b.classes[i].full(); o = o.next {
			if o.enqueued < first.enqueued || o.enqueued == first.enqueued && o.before(first) {
				first = o
			}
		}
	}
	return first
}

// start takes o out of those that have not started: what next returned when it was last
// asked, or the earliest of that one's lane.
func (b *board) start(o *Operation) {
	if b.aged {
		b.sinceAge = 0
	} else if b.sinceAge < agedTurn {
		b.sinceAge++
	}
	l := b.count(o, -1)
	b.occupy(o, 1)
	l.lines[o.class].remove(o)
	if o.turn == nil {
		return
	}
	k := o.turn.key
	k.pending--
	o.turn.up = nil
	if k.running++; k.running < b.perKey {
		l.take(o.turn) // after the others' turn
		return
	}
	for i := range k.turns {
		b.lanes[i].put(&k.turns[i])
	}
}

// remove takes an operation out without starting it.
func (b *board) remove(o *Operation) {
	l, t := b.count(o, -1), o.turn
	switch {
	case t == nil:
		l.lines[o.class].remove(o)
		return
	case t.up != o:
		t.queue.remove(o)
	case t.queue.head == t.queue.waits: // of its key nothing else is pending
		l.lines[o.class].remove(o)
		l.take(t)
	default: // it is still the key's turn
		t.up = t.queue.head
		t.queue.remove(t.up)
		l.replace(o, t.up)
		l.lines[o.class].remove(o)
	}
	t.key.pending--
	b.keys.release(t.key)
	o.turn = nil
}

// count counts that so many more operations like o have not started, and returns its lane.
func (b *board) count(o *Operation, more int) *lane {
	l := &b.lanes[o.lane]
	l.n += more
	b.classes[o.class].n += more
	b.n += more
	if o.marks&roomless != 0 {
		b.waiting += more
	}
	return l
}

// finish says that o, which was started, has ended. Its status says whether it was running
// or suspended.
func (b *board) finish(o *Operation) {
	if o.status != StatusSuspended {
		b.suspend(o)
	}
	if o.turn == nil {
		return
	}
	k := o.turn.key
	if k.running == b.perKey {
		for i := range k.turns {
			b.lanes[i].take(&k.turns[i])
		}
	}
	k.running--
	b.keys.release(k)
	o.turn = nil
}

// suspend takes the slots of its lane and class from a running operation, but not its
// key's, so that the order within the key holds.
func (b *board) suspend(o *Operation) { b.occupy(o, -1) }

// resume gives these slots back. It reports false if there is none free.
func (b *board) resume(o *Operation) bool {
	fits := b.fits(o)
	if fits {
		b.occupy(o, 1)
	}
	return fits
}

// occupy counts that so many more run in the lane and the class of o.
func (b *board) occupy(o *Operation, more int) {
	b.lanes[o.lane].running += more
	b.classes[o.class].running += more
}

// all returns the operations that have not started, in any order.
func (b *board) all() []*Operation {
	var all []*Operation
	for i := range b.lanes {
		for class := range b.classes {
			all = b.lanes[i].lines[class].appendTo(all)
		}
	}
	for _, k := range b.keys.live {
		for i := range k.turns {
			all = k.turns[i].queue.appendTo(all)
		}
	}
	return all
}

// pending is the number of pending operations.
func (b *board) pending() int { return b.n - b.waiting }

// laneSet is a set of lanes, by number.
type laneSet uint64

func (s laneSet) has(lane uint8) bool { return s>>lane&1 != 0 }

func (s laneSet) with(lane uint8) laneSet { return s | 1<<lane }

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

func (l *line) remove(o *Operation) {
	if l.waits == o {
		l.waits = o.next
	}
	l.opList.remove(o)
}

// unshift puts o in front of all, none of which comes before it.
func (l *line) unshift(o *Operation) {
	if o.marks&roomless != 0 {
		l.waits = o
	}
	l.insert(o, l.head)
}
