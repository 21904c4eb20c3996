package core

import (
	"math/bits"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
)

// board decides what runs next. It is a plain data structure without lock, goroutine or
// clock; the engine uses it under its own lock. The engine knows how many operations run
// and whether more may start. The board knows the order, and which pending operations must
// wait because of their key, lane or class.
//
// Higher lanes go first. Within a lane the keys take turns; an operation without a key
// counts as a key. Within a key, operations start in the order of arrival. An operation
// can start when its lane and its class run less than their limits and its key less than
// perKey. An operation that waits for its class keeps its turn, and the turn of its key.
//
// A class may have rates, and so may keys. Then an operation also needs tokens, which it takes
// when it starts. While the next operation of a lane lacks tokens of its class, operations of the
// class in lower lanes wait. Otherwise many operations that need few tokens would take all tokens
// from an operation that needs many. See ready, and advance for keys.
//
// An operation whose Enqueue waits for room is here as well, because it needs no room if it
// can start. It comes after the pending operations of its key, and of its lane and class.
//
// So that lower lanes do not starve, every agedTurn-th start is for ageing. It
// looks at the next operation of each lane. Of those that have waited for at least
// ageing, the one that has waited longest starts, whatever its lane. If every start
// did this, an old backlog would take away the priority of higher lanes.
type board struct {
	lanes   []lane
	classes []classBound // the first is for operations without a class
	n       int          // pending, or waiting for room
	waiting int          // how many of these n wait for room
	perKey  int
	keys    keyTable
	backs   int // suspended operations that want their slots back
	keyed   bool
	only    *opList // operations start first in, first out: there are no lanes, keys or classes; else nil
	ageing  int64   // 0: never

	rated *ratedKeys // nil: keys have no rates

	aged     bool // the last call of next chose a lane because of ageing
	sinceAge int  // starts since the last start because of ageing
	asked    question
	parked   parking
}

// question has the arguments of the last call of next, and what this call has found out
// about classes.
type question struct {
	now     int64
	barred  *bars
	soonest int64    // when an operation that lacks tokens gets them
	seen    classSet // classes with rates whose first lane was looked at
	dry     classSet // classes whose next operation lacks tokens
	free    classSet // classes in which no operation keeps others waiting
	able    classSet // classes of which an operation has its tokens
}

// agedTurn is the share of starts for ageing: one in agedTurn. A quarter leaves most starts
// to the higher lanes.
const agedTurn = 4

// bound says how many operations of a lane, or of a class, run and may run.
type bound struct {
	limit   int // 0: none
	running int
	n       int // pending, or waiting for room
}

func (b *bound) full() bool { return b.limit > 0 && b.running >= b.limit }

// lane is what the board knows about a lane.
type lane struct {
	bound
	lines   []classLine
	filled  classSet // whose lines may not be empty, besides those in changed
	changed classSet // whose lines have changed since next was asked
	back    opList   // suspended operations that want their slots back, first come first served
	turns   uint32   // that were given out: see Operation.turnNumber
}

// classLine has the operations of a class in a lane, in turn: those without a key, and one for each
// key of which one may start.
type classLine struct {
	line
	set classSet // of the class
}

func newBoard(lanes []Lane, classes []Class, opts *Options, keyed bool, now int64) board {
	b := board{perKey: opts.MaxPerKey, keyed: keyed, ageing: int64(opts.Ageing), sinceAge: agedTurn, asked: question{soonest: clock.Never}}
	for _, l := range lanes {
		lines := make([]classLine, len(classes))
		for i := range lines {
			lines[i].set = setOf(uint8(i))
		}
		b.lanes = append(b.lanes, lane{bound: bound{limit: l.Limit}, lines: lines})
	}
	for _, c := range classes {
		var bound classBound
		bound.set(now, &c)
		b.classes = append(b.classes, bound)
	}
	if !keyed && len(opts.Lanes)+len(opts.Classes) == 0 {
		b.only = &b.lanes[0].lines[0].opList
	}
	if m := startMeters(now, opts.KeyRate, opts.KeyCostRate); m.limited() {
		b.rated = &ratedKeys{meters: m}
	}
	return b
}

// push adds a pending operation, or one that waits for room.
func (b *board) push(o *Operation) {
	b.advance(o.sched.Enqueued)
	l, _ := b.count(o, 1)
	if !b.keyed || o.owner.Key == "" {
		l.join(o)
		return
	}
	k := b.keys.obtain(o.owner.Key, len(b.lanes))
	k.pending++
	o.sched.turn = &k.turns[o.sched.Lane]
	b.keyChanged(k)
	if up := o.sched.turn.up; up != nil && up.sched.Flags&roomless > o.sched.Flags&roomless {
		l.put(o.sched.turn) // t.up comes after o
	}
	if k.running < b.perKey && o.sched.turn.up == nil && b.rated == nil { // so the queue has no operation that comes before o
		o.sched.turn.up = o
		l.join(o)
	} else {
		o.sched.turn.queue.push(o)
		b.advance(o.sched.Enqueued)
	}
}

// join gives o the last turn in the lane.
func (l *lane) join(o *Operation) {
	l.turns++
	o.sched.number = l.turns
	line := &l.lines[o.sched.Class]
	l.changed |= line.set
	line.push(o)
}

// leave takes o out of its line.
func (l *lane) leave(o *Operation) {
	line := &l.lines[o.sched.Class]
	l.changed |= line.set
	line.remove(o)
}

// next returns the next operation to start that is not barred, or nil if none can start. It
// changes nothing: a second call returns the same. The caller has called advance before.
func (b *board) next(now int64, barred *bars) *Operation {
	b.asked = question{now: now, barred: barred, soonest: clock.Never}
	if len(b.classes) > 1 {
		b.unpark()
		if barred == nil {
			b.asked.dry, b.asked.soonest = b.parked.classes, b.parked.until
		}
	}
	if b.rated != nil {
		b.asked.soonest = min(b.asked.soonest, b.rated.parked.first())
	}
	o := b.choose()
	if b.asked.dry != 0 && barred == nil && b.asked.dry&^b.asked.able != b.parked.classes {
		b.park()
	}
	return o
}

// choose is next with what is known of classes.
func (b *board) choose() *Operation {
	now := b.asked.now
	var first, aged *Operation
	var dry classSet // the value when aged was found
	b.aged = false
	for i := range b.lanes {
		l := &b.lanes[i]
		if !b.open(i) {
			continue
		}
		o := l.lines[0].head
		if l.filled != 0 {
			o = b.first(i)
		}
		switch {
		case o == nil:
		case first == nil:
			if b.ageing == 0 || b.sinceAge < agedTurn-1 || b.n == l.n {
				return o
			}
			first, aged, dry = o, o, b.asked.dry
		case now-o.sched.Enqueued >= b.ageing && o.sched.Enqueued < aged.sched.Enqueued:
			aged, dry = o, b.asked.dry
		}
	}
	if b.aged = aged != first; aged != nil {
		b.asked.dry = dry
	}
	return aged
}

// open reports whether one more may run in a lane, and something waits for that.
func (b *board) open(lane int) bool {
	l := &b.lanes[lane]
	return l.n > 0 && !l.full() && !b.asked.barred.has(lane)
}

// first returns the operation of the lane that has the next turn, of the classes that are
// not full.
func (b *board) first(lane int) *Operation {
	l := &b.lanes[lane]
	first := l.lines[0].head
	for set := l.filled &^ b.asked.barred.in(lane) &^ b.asked.dry; set != 0; set &= set - 1 {
		class := uint8(1 + bits.TrailingZeros64(uint64(set)))
		o, c := l.lines[class].head, &b.classes[class]
		if o == nil {
			l.filled &^= setOf(class)
			continue
		}
		if !c.full() && (c.rates == nil || b.ready(lane, o)) && (first == nil || o.before(first)) {
			first = o
		}
	}
	return first
}

// fits reports whether one more operation may run in the lane and the class of o.
func (b *board) fits(o *Operation) bool {
	return !b.lanes[o.sched.Lane].full() && !b.classes[o.sched.Class].full()
}

// earliest returns the operation of the lane of o that was enqueued first, among those that
// could start. If sameClass is set, it looks only at the class of o. Next has just returned o.
func (b *board) earliest(o *Operation, sameClass bool) *Operation {
	if !b.keyed {
		return o
	}
	first, l := o, &b.lanes[o.sched.Lane]
	for i := range l.lines {
		c, class := &b.classes[i], uint8(i)
		if c.full() || sameClass && class != o.sched.Class || setOf(class)&(b.asked.dry|b.asked.barred.in(int(o.sched.Lane))) != 0 || l.lines[i].head == nil || c.rates != nil && !b.has(l.lines[i].head) {
			continue
		}
		for p := l.lines[i].head; p != nil; p = p.sched.next {
			if (p.sched.Enqueued < first.sched.Enqueued || p.sched.Enqueued == first.sched.Enqueued && p.before(first)) && (c.rates == nil || b.has(p)) {
				first = p
			}
		}
	}
	return first
}

// start removes o from the operations that have not started, and takes its tokens. Call it
// right after next or earliest, with the operation that it returned. It reports whether the
// class of o is no longer throttled.
func (b *board) start(o *Operation, now int64) (freed bool) {
	b.advance(now)
	if b.aged {
		b.sinceAge = 0
	} else if b.sinceAge < agedTurn {
		b.sinceAge++
	}
	l, c := b.count(o, -1)
	if c.rates != nil || b.rated != nil {
		freed = b.take(o, c, now)
	}
	b.run(l, c, 1)
	l.leave(o)
	if o.sched.turn == nil {
		return freed
	}
	k := o.sched.turn.key
	k.pending--
	o.sched.turn.up = nil
	b.keyChanged(k)
	if k.running++; k.running < b.perKey {
		if b.rated == nil {
			l.take(o.sched.turn) // the key's next turn comes after the turns of others
		}
		b.advance(now)
		return freed
	}
	for i := range k.turns {
		b.lanes[i].put(&k.turns[i])
	}
	b.advance(now)
	return freed
}

// remove takes an operation out without starting it.
func (b *board) remove(o *Operation, now int64) {
	b.advance(now)
	l, c := b.count(o, -1)
	if c.asked == o {
		c.asked = nil
	}
	t := o.sched.turn
	switch {
	case t == nil:
		l.leave(o)
		return
	case t.up != o:
		t.queue.remove(o)
	case t.queue.head == t.queue.waits: // no other operation of its key is pending
		if l.leave(o); b.rated == nil {
			l.take(t)
		} else {
			t.up = nil
		}
	default: // the key keeps its turn
		t.up = t.queue.head
		t.queue.remove(t.up)
		l.replace(o, t.up)
		l.leave(o)
	}
	t.key.pending--
	b.keyChanged(t.key)
	b.keys.release(t.key)
	o.sched.turn = nil
	b.advance(now)
}

// count counts that so many more operations like o have not started, and returns its lane and its
// class.
func (b *board) count(o *Operation, more int) (*lane, *classBound) {
	l, c := &b.lanes[o.sched.Lane], &b.classes[o.sched.Class]
	l.n += more
	c.n += more
	b.n += more
	if o.sched.Flags&roomless != 0 {
		b.waiting += more
	}
	return l, c
}

// finish says that o, which was started, has ended. Its status says whether it was running
// or suspended.
func (b *board) finish(o *Operation, now int64) {
	if o.status() != StatusSuspended {
		b.suspend(o)
	}
	if o.sched.turn == nil {
		return
	}
	b.advance(now)
	k := o.sched.turn.key
	b.keyChanged(k)
	if k.running == b.perKey && b.rated == nil {
		for i := range k.turns {
			b.lanes[i].take(&k.turns[i])
		}
	}
	k.running--
	b.keys.release(k)
	o.sched.turn = nil
	b.advance(now)
}

// suspend frees the slots of a running operation in its lane and class. It keeps the slot
// in its key, so that the order within the key holds.
func (b *board) suspend(o *Operation) { b.occupy(o, -1) }

// resume gives these slots back.
func (b *board) resume(o *Operation) { b.occupy(o, 1) }

// want adds a suspended operation that wants its slots back.
func (b *board) want(o *Operation) {
	b.lanes[o.sched.Lane].back.push(o)
	b.backs++
}

// unwant undoes want.
func (b *board) unwant(o *Operation) {
	b.lanes[o.sched.Lane].back.remove(o)
	b.backs--
}

// back returns the suspended operation that gets its slots back before pending operations
// of that lane start, or nil. The highest lane comes first. In turns of ageing, one of a
// lower lane goes first; aged says so.
func (b *board) back(now int64, before uint8) (first *Operation, aged bool) {
	for i := range b.lanes {
		o := b.lanes[i].back.head
		for o != nil && !b.fits(o) {
			o = o.sched.next
		}
		switch {
		case o == nil:
		case i <= int(before):
			return o, false
		case b.ageing > 0 && b.sinceAge >= agedTurn-1 && now-o.rare.Load().wanted >= b.ageing && (first == nil || o.rare.Load().wanted < first.rare.Load().wanted):
			first, aged = o, true
		}
	}
	return first, aged
}

// highest is the highest lane in which something is pending, or the last one.
func (b *board) highest() uint8 {
	last := len(b.lanes) - 1
	for i := range b.lanes[:last] {
		if b.lanes[i].n > 0 {
			return uint8(i)
		}
	}
	return uint8(last)
}

// occupy counts that so many more run in the lane and the class of o.
func (b *board) occupy(o *Operation, more int) {
	b.run(&b.lanes[o.sched.Lane], &b.classes[o.sched.Class], more)
}

func (b *board) run(l *lane, c *classBound, more int) {
	was := l.full()
	l.running += more
	c.running += more
	if l.full() != was { // another lane may be the first of a class
		b.parked.classes = 0
	}
}

// all returns the operations that have not started, in any order.
func (b *board) all() []*Operation {
	var all []*Operation
	for i := range b.lanes {
		for class := range b.classes {
			all = b.lanes[i].lines[class].appendTo(all)
		}
	}
	for _, k := range b.keys.chains {
		for ; k != nil; k = k.next {
			for i := range k.turns {
				all = k.turns[i].queue.appendTo(all)
			}
		}
	}
	return all
}

// pending is the number of pending operations.
func (b *board) pending() int { return b.n - b.waiting }
