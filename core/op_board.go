package core

import (
	"cmp"
	"math/bits"
)

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
// A class may have rates, and so may keys. Then an operation also needs tokens, which it takes
// when it starts. An operation that is next in its lane and lacks tokens of its class keeps those
// of its class in lower lanes waiting: else many that need little would starve one that
// needs much. See ready, and advance for keys.
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
	classes []classBound // the first is that of operations without one
	n       int          // pending, or without room
	waiting int          // of these, how many wait for room
	perKey  int
	keys    keyTable
	backs   int // suspended operations that want their slots back
	keyed   bool
	only    *opList // operations start first in, first out: there are no lanes, keys or classes; else nil
	ageing  int64   // 0: never

	rated *ratedKeys // nil: keys have no rates

	aged     bool // next, when last asked, favoured a lane for the age of its first
	sinceAge int  // starts since that was followed
	asked    question
	parked   parking
}

// parking is the classes of which nothing starts before that time, because their tokens come
// later. So it costs nothing to have many. What changes their lines, tokens or turns takes them out.
type parking struct {
	classes classSet
	until   int64
}

// question is what next, when last asked, knew and found out about classes.
type question struct {
	now     int64
	barred  *bars
	soonest int64    // when an operation that lacks tokens gets them
	seen    classSet // have rates, and their first lane has been looked at
	dry     classSet // their next operation lacks tokens
	free    classSet // no operation of theirs keeps others waiting
}

// agedTurn is the share of starts that ageing may take: one in so many. A quarter leaves
// most starts to the higher lanes.
const agedTurn = 4

// bound is how many operations of a lane, or of a class, run and may run.
type bound struct {
	limit   int // 0: none
	running int
	n       int // pending, or without room
}

func (b *bound) full() bool { return b.limit > 0 && b.running >= b.limit }

// classRates are the rates of a class, and what became of its tokens.
type classRates struct {
	meters
	buckets
	used      tokens
	older     *Operation // whose turn it is because of its age: see board.ready
	sinceAge  int        // starts since the last one for its age
	throttled bool       // as was told
}

// classBound is what the board knows of a class.
type classBound struct {
	bound
	rates *classRates // nil: none
	asked *Operation  // of the class, that has its tokens at due; nil: none is known
	due   int64
}

// set sets the limit and the rates of a class.
func (c *classBound) set(now int64, class *Class) {
	c.limit, c.asked = class.Limit, nil
	if c.rates == nil {
		c.rates = &classRates{sinceAge: agedTurn}
	}
	before := c.rates.meters
	c.rates.set(&c.rates.buckets, now, class.Rate, class.CostRate)
	for i := range before {
		if before[i].Burst() == 0 {
			c.rates.used[i] = 0
		}
	}
	if !c.rates.limited() {
		c.rates = nil
	}
}

// setClass sets the limit and the rates of a class.
func (b *board) setClass(class int, now int64, to *Class) {
	b.classes[class].set(now, to)
	b.parked.classes = 0
}

// dueOf returns when an operation of the class has its tokens. The class has rates.
func (c *classBound) dueOf(o *Operation, now int64) int64 {
	if from := o.asOf(now); c.asked != o || c.due < from {
		c.asked, c.due = o, c.rates.due(&c.rates.buckets, o.takes(), from)
	}
	return c.due
}

// stats are the counters of a rate.
func (r *classRates) stats(i int, now int64) (s RateStats) {
	if m := &r.meters[i]; m.Burst() > 0 {
		s = RateStats{m.Rate(), int(m.Burst()), r.used[i], max(0, -m.Level(r.buckets[i], now))}
	}
	return s
}

// lane is what the board knows of a lane.
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
	b := board{perKey: opts.MaxPerKey, keyed: keyed, ageing: int64(opts.Ageing), sinceAge: agedTurn, asked: question{soonest: never}}
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
	b.advance(o.enqueued)
	l, _ := b.count(o, 1)
	if !b.keyed || o.key == "" {
		l.join(o)
		return
	}
	k := b.keys.obtain(o.key, len(b.lanes))
	k.pending++
	o.turn = &k.turns[o.lane]
	b.keyChanged(k)
	if up := o.turn.up; up != nil && up.marks&roomless > o.marks&roomless {
		l.put(o.turn) // it comes after o
	}
	if k.running < b.perKey && o.turn.up == nil && b.rated == nil { // so none that comes before o is in its queue
		o.turn.up = o
		l.join(o)
	} else {
		o.turn.queue.push(o)
		b.advance(o.enqueued)
	}
}

// join gives o the last turn in the lane.
func (l *lane) join(o *Operation) {
	l.turns++
	o.turnNumber = l.turns
	line := &l.lines[o.class]
	l.changed |= line.set
	line.push(o)
}

// leave takes o out of its line.
func (l *lane) leave(o *Operation) {
	line := &l.lines[o.class]
	l.changed |= line.set
	line.remove(o)
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
	l.changed |= line.set
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
		l.leave(t.up)
		t.queue.unshift(t.up)
		t.up = nil
	}
}

// next returns the operation to start next, one that is not barred, or nil if none can start. It
// may be asked many times and says the same. Before, advance has been told the time.
func (b *board) next(now int64, barred *bars) *Operation {
	b.asked = question{now: now, barred: barred, soonest: never}
	b.unpark()
	if barred == nil {
		b.asked.dry, b.asked.soonest = b.parked.classes, b.parked.until
	}
	if b.rated != nil {
		b.asked.soonest = min(b.asked.soonest, b.rated.parked.first())
	}
	o := b.choose()
	if barred == nil && b.asked.dry != b.parked.classes {
		b.park()
	}
	return o
}

// choose is next with what is known of classes.
func (b *board) choose() *Operation {
	now := b.asked.now
	var first, aged *Operation
	var dry classSet // when aged was found
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
		case now-o.enqueued >= b.ageing && o.enqueued < aged.enqueued:
			aged, dry = o, b.asked.dry
		}
	}
	if b.aged = aged != first; aged != nil {
		b.asked.dry = dry
	}
	return aged
}

// unpark takes the classes out that may start something now.
func (b *board) unpark() {
	for i := range b.lanes {
		l := &b.lanes[i]
		b.parked.classes &^= l.changed
		l.filled |= l.changed
		l.changed = 0
	}
	if b.parked.classes == 0 || b.parked.until <= b.asked.now {
		b.parked = parking{until: never}
	}
}

// park keeps the classes that lack tokens, until one gets them, or one of their operations has
// waited for the time of ageing.
func (b *board) park() {
	more := b.asked.dry &^ b.parked.classes
	until := min(b.parked.until, b.asked.soonest)
	for set := more; set != 0 && b.ageing > 0; set &= set - 1 {
		for i := range b.lanes {
			o := b.lanes[i].lines[1+bits.TrailingZeros64(uint64(set))].head
			if o != nil && o.enqueued+b.ageing > b.asked.now {
				until = min(until, o.enqueued+b.ageing)
			}
		}
	}
	b.parked = parking{b.parked.classes | more, until}
}

// open reports whether one more may run in a lane, and something waits for that.
func (b *board) open(lane int) bool {
	l := &b.lanes[lane]
	return l.n > 0 && !l.full() && !b.asked.barred.has(lane)
}

// first returns the operation of the lane whose turn is next, of a class that is not full.
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

// ready reports whether o, which is next of its class in a lane, has its tokens and may have
// them. The lanes above have been asked before.
//
// The operation of the highest lane is first. While it lacks tokens, those of lower lanes do not
// start, though they may need less. Every agedTurn-th time it is that of a lower lane that
// has waited for the time of ageing, and longest. While that one lacks tokens, no other one
// of the class starts.
func (b *board) ready(lane int, o *Operation) bool {
	q, c, set := &b.asked, &b.classes[o.class], setOf(o.class)
	if q.seen&set == 0 {
		q.seen |= set
		c.rates.older = nil
		if b.ageing > 0 && c.rates.sinceAge >= agedTurn-1 && c.n > b.lanes[lane].lines[o.class].n {
			if older := b.older(lane, o); older != nil {
				c.rates.older = older
				q.free |= set
				if !b.has(older) {
					q.dry |= set
					return false
				}
			}
		}
	}
	if b.has(o) {
		return true
	}
	if q.free&set == 0 {
		q.dry |= set
	}
	return false
}

// has reports whether an operation of a class with rates has its tokens.
func (b *board) has(o *Operation) bool {
	due := b.classes[o.class].dueOf(o, b.asked.now)
	if due > b.asked.now {
		b.asked.soonest = min(b.asked.soonest, due)
		return false
	}
	return true
}

// older returns, of those that are next of the class of first in the lanes below, the one that
// has waited for the time of ageing, and longest, if longer than first.
func (b *board) older(lane int, first *Operation) (older *Operation) {
	for i := lane + 1; i < len(b.lanes); i++ {
		o := b.lanes[i].lines[first.class].head
		if o != nil && b.open(i) && b.asked.barred.in(i)&setOf(o.class) == 0 && b.asked.now-o.enqueued >= b.ageing && o.enqueued < cmp.Or(older, first).enqueued {
			older = o
		}
	}
	return older
}

// fits reports whether one more may run in the lane and the class of o.
func (b *board) fits(o *Operation) bool { return !b.lanes[o.lane].full() && !b.classes[o.class].full() }

// earliest returns, of the lane of o, which next has just returned, the operation that was
// enqueued first among those that could start. If sameClass is set, it is one of the class of o.
func (b *board) earliest(o *Operation, sameClass bool) *Operation {
	if !b.keyed {
		return o
	}
	first, l := o, &b.lanes[o.lane]
	for i := range l.lines {
		c, class := &b.classes[i], uint8(i)
		if c.full() || sameClass && class != o.class || setOf(class)&(b.asked.dry|b.asked.barred.in(int(o.lane))) != 0 || l.lines[i].head == nil || c.rates != nil && !b.has(l.lines[i].head) {
			continue
		}
		for p := l.lines[i].head; p != nil; p = p.next {
			if (p.enqueued < first.enqueued || p.enqueued == first.enqueued && p.before(first)) && (c.rates == nil || b.has(p)) {
				first = p
			}
		}
	}
	return first
}

// start takes o out of those that have not started, and takes its tokens: what next returned
// when it was last asked, or the earliest of that one's lane. It reports whether the class of o
// is not throttled any more.
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
	if o.turn == nil {
		return freed
	}
	k := o.turn.key
	k.pending--
	o.turn.up = nil
	b.keyChanged(k)
	if k.running++; k.running < b.perKey {
		if b.rated == nil {
			l.take(o.turn) // after the others' turn
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

// stuck reports whether nothing can start before something ends, not even when tokens come.
func (b *board) stuck(now int64) bool {
	return (b.rated == nil || len(b.rated.fresh) == 0) && b.next(now, nil) == nil && b.asked.soonest == never
}

// take takes the tokens of an operation that starts, and reports whether its class is not
// throttled any more: nothing of it waits, or there were tokens left.
func (b *board) take(o *Operation, c *classBound, now int64) (freed bool) {
	from, n := o.asOf(now), o.takes()
	at := from
	if c.rates != nil {
		at = c.dueOf(o, now)
	}
	if b.rated != nil && o.turn != nil {
		k := b.rated.obtain(o.turn.key.text)
		at = max(at, b.rated.due(&k.buckets, n, from))
		b.rated.book(&k.buckets, n, from, at)
	}
	r := c.rates
	if r == nil {
		return false
	}
	r.book(&r.buckets, n, from, at)
	c.asked = nil
	r.used[0] += n[0]
	r.used[1] += n[1]
	if r.sinceAge = min(r.sinceAge+1, agedTurn); b.aged || r.older == o {
		r.sinceAge = 0
	}
	r.older = nil
	freed = r.throttled && (c.n == 0 || at == from)
	r.throttled = r.throttled && !freed
	return freed
}

// charge takes tokens of the class and the key of an operation that has started, or gives them back.
func (b *board) charge(o *Operation, n tokens, now int64) {
	b.advance(now)
	defer b.advance(now)
	c := &b.classes[o.class]
	if r := c.rates; r != nil {
		r.charge(&r.buckets, n, now)
		r.used[0] += n[0]
		r.used[1] += n[1]
		c.asked = nil
		b.parked.classes &^= setOf(o.class)
	}
	if b.rated != nil && o.turn != nil {
		b.rated.charge(&b.rated.change(o.turn.key.text).buckets, n, now)
	}
}

// remove takes an operation out without starting it.
func (b *board) remove(o *Operation, now int64) {
	b.advance(now)
	l, c := b.count(o, -1)
	if c.asked == o {
		c.asked = nil
	}
	t := o.turn
	switch {
	case t == nil:
		l.leave(o)
		return
	case t.up != o:
		t.queue.remove(o)
	case t.queue.head == t.queue.waits: // of its key nothing else is pending
		if l.leave(o); b.rated == nil {
			l.take(t)
		} else {
			t.up = nil
		}
	default: // it is still the key's turn
		t.up = t.queue.head
		t.queue.remove(t.up)
		l.replace(o, t.up)
		l.leave(o)
	}
	t.key.pending--
	b.keyChanged(t.key)
	b.keys.release(t.key)
	o.turn = nil
	b.advance(now)
}

// count counts that so many more operations like o have not started, and returns its lane and its
// class.
func (b *board) count(o *Operation, more int) (*lane, *classBound) {
	l, c := &b.lanes[o.lane], &b.classes[o.class]
	l.n += more
	c.n += more
	b.n += more
	if o.marks&roomless != 0 {
		b.waiting += more
	}
	return l, c
}

// finish says that o, which was started, has ended. Its status says whether it was running
// or suspended.
func (b *board) finish(o *Operation, now int64) {
	if o.status != StatusSuspended {
		b.suspend(o)
	}
	if o.turn == nil {
		return
	}
	b.advance(now)
	k := o.turn.key
	b.keyChanged(k)
	if k.running == b.perKey && b.rated == nil {
		for i := range k.turns {
			b.lanes[i].take(&k.turns[i])
		}
	}
	k.running--
	b.keys.release(k)
	o.turn = nil
	b.advance(now)
}

// suspend takes the slots of its lane and class from a running operation, but not its
// key's, so that the order within the key holds.
func (b *board) suspend(o *Operation) { b.occupy(o, -1) }

// resume gives these slots back.
func (b *board) resume(o *Operation) { b.occupy(o, 1) }

// want adds a suspended operation that wants its slots back.
func (b *board) want(o *Operation) {
	b.lanes[o.lane].back.push(o)
	b.backs++
}

// unwant takes it out.
func (b *board) unwant(o *Operation) {
	b.lanes[o.lane].back.remove(o)
	b.backs--
}

// back returns the operation that gets its slots back before anything pending of that lane
// starts, or nil: that of the highest lane. One of a lower lane goes first for its age, but
// only in the turns of ageing, which aged says.
func (b *board) back(now int64, before uint8) (first *Operation, aged bool) {
	for i := range b.lanes {
		o := b.lanes[i].back.head
		for o != nil && !b.fits(o) {
			o = o.next
		}
		switch {
		case o == nil:
		case i <= int(before):
			return o, false
		case b.ageing > 0 && b.sinceAge >= agedTurn-1 && now-o.rest.Load().wanted >= b.ageing && (first == nil || o.rest.Load().wanted < first.rest.Load().wanted):
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
func (b *board) occupy(o *Operation, more int) { b.run(&b.lanes[o.lane], &b.classes[o.class], more) }

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
	for _, k := range b.keys.live {
		for i := range k.turns {
			all = k.turns[i].queue.appendTo(all)
		}
	}
	return all
}

// pending is the number of pending operations.
func (b *board) pending() int { return b.n - b.waiting }
