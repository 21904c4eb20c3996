// Package sched decides which item runs next: by lanes, keys, classes, rates and age. It has no lock,
// goroutine or clock, and knows no signals: a [Board] gets the time with each call.
//
// # Decisions
//
// One Board serves lanes, keys and both: every coordinator has the same hard part (to shut down, cancel, wake and
// count), which the engine of core has once, and what differs is a plain data structure whose tests are
// transcripts. Finish frees a key or a lane. Next changes nothing, and is asked only when a slot is free, so an
// item that comes late and is more urgent is next.
//
//   - Each lane, and each class in a lane, has a queue of its own: many slow items do not keep an urgent one out.
//   - Ageing gets every fourth start. Under lasting overload everything is old; if age alone decided, lanes would be
//     first in, first out again.
//   - Items without a lane go into "normal", or into the last lane: code without lanes is not urgent by accident.
//   - Buckets of keys exist only with a KeyRate. Keys without tokens wait in a heap by time.
//   - A class whose next item lacks tokens is parked: nobody looks at it before the tokens come, an item has waited
//     for the time of ageing, or its lines change. So 63 classes that wait cost a start nothing.
//
// Rejected: one type for each combination of features. A channel as a queue: nothing in it can be cancelled by id,
// reordered or shown. A goroutine for each item that waits: nobody can ask it why. A heap by priority and age: each
// start costs a logarithm, and classes have no limits. A weight for each lane: harder to predict. Searching the
// queues of waiters for room for one that could start: it costs more with each waiter.
package sched

import (
	"math/bits"

	"github.com/ephemeralgo/ephemeral/core/internal/meters"
)

// A Board decides what runs next. Its owner has the lock. The owner knows how many items run and
// whether more may start. The board knows the order, and which pending items must wait because of
// their key, lane or class.
//
// Higher lanes go first. Within a lane the keys take turns; an item without a key counts as a key.
// Within a key, items start in the order of arrival. An item can start when its lane and its class
// run less than their limits and its key less than PerKey. An item that waits for its class keeps
// its turn, and the turn of its key.
//
// A class may have rates, and so may keys. Then an item also needs tokens, which it takes when it
// starts. While the next item of a lane lacks tokens of its class, items of the class in lower lanes
// wait. Otherwise many items that need few tokens would take all tokens from an item that needs
// many. See ready, and advance for keys.
//
// An item that is Roomless is here as well, because it needs no room if it can start. It comes after
// the pending items of its key, and of its lane and class.
//
// So that lower lanes do not starve, every agedTurn-th start is for ageing. It looks at the next
// item of each lane. Of those that have waited for at least Ageing, the one that has waited longest
// starts, whatever its lane. If every start did this, an old backlog would take away the priority of
// higher lanes.
type Board struct {
	lanes    []lane
	classes  []class // the first is for items without a class
	n        int     // pending, or waiting for room
	roomless int     // how many of these n wait for room
	perKey   int     // 0: there are no keys
	keys     keyTable
	wanting  int   // suspended items that want their slots back
	only     *List // of a simple board; else nil
	ageing   int64 // 0: never

	rated *ratedKeys // nil: keys have no rates

	aged     bool // the last call of next chose a lane because of ageing
	sinceAge int  // starts since the last start because of ageing
	asked    question
	parked   parking
}

// Config is what New makes a board of.
type Config struct {
	Lanes                []int       // the limit of each lane, the highest lane first; 0: none
	Classes              []Limits    // the first is for items without a class, and has no rates
	PerKey               int         // how many items of a key run at once; 0: there are no keys
	KeyRate, KeyCostRate meters.Rate // of each key
	Ageing               int64       // how long an item waits at least before it starts because of its age; 0: none does
	Simple               bool        // items start first in, first out: there is one lane, and neither it nor anything else has a limit
}

// question has the arguments of the last call of next, and what this call has found out
// about classes.
type question struct {
	now     int64
	barred  *Bars
	soonest int64    // when an item that lacks tokens gets them
	seen    classSet // classes with rates whose first lane was looked at
	dry     classSet // classes whose next item lacks tokens
	free    classSet // classes in which no item keeps others waiting
	able    classSet // classes of which an item has its tokens
}

// agedTurn is the share of starts for ageing: one in agedTurn. A quarter leaves most starts
// to the higher lanes.
const agedTurn = 4

// New makes an empty board.
func New(c Config, now int64) Board {
	b := Board{perKey: c.PerKey, ageing: c.Ageing, sinceAge: agedTurn, asked: question{soonest: never}}
	for _, limit := range c.Lanes {
		lines := make([]classLine, len(c.Classes))
		for i := range lines {
			lines[i].set = setOf(uint8(i))
		}
		b.lanes = append(b.lanes, lane{Bound: Bound{Limit: limit}, lines: lines})
	}
	for _, limits := range c.Classes {
		var made class
		made.set(limits, now)
		b.classes = append(b.classes, made)
	}
	if c.Simple {
		b.only = &b.lanes[0].lines[0].List
	}
	if m := meters.Start(now, c.KeyRate, c.KeyCostRate); m.Limited() {
		b.rated = &ratedKeys{Meters: m}
	}
	return b
}

// Simple is what Config said.
func (b *Board) Simple() bool { return b.only != nil }

// Push adds an item that has not started. The key is "" without keys.
func (b *Board) Push(item *Item, key string) {
	b.advance(item.Enqueued)
	l, _ := b.count(item, 1)
	if b.perKey == 0 || key == "" {
		l.join(item)
		return
	}
	k := b.keys.obtain(key, len(b.lanes))
	k.pending++
	item.turn = &k.turns[item.Lane]
	b.keyChanged(k)
	if up := item.turn.up; up != nil && up.Flags&Roomless > item.Flags&Roomless {
		l.put(item.turn) // which comes after this one
	}
	if k.running < b.perKey && item.turn.up == nil && b.rated == nil { // so no item of the queue comes before this one
		item.turn.up = item
		l.join(item)
	} else {
		item.turn.queue.push(item)
		b.advance(item.Enqueued)
	}
}

// Next returns the next item to start that is not barred, or nil if none can start. It removes
// nothing: a second call returns the same.
func (b *Board) Next(now int64, barred *Bars) *Item {
	if b.only != nil && barred == nil {
		return b.only.head
	}
	return b.advanced(now, barred)
}

func (b *Board) advanced(now int64, barred *Bars) *Item {
	b.advance(now)
	return b.next(now, barred)
}

// next is Next of a board that is not simple. The caller has called advance before.
func (b *Board) next(now int64, barred *Bars) *Item {
	b.asked = question{now: now, barred: barred, soonest: never}
	if len(b.classes) > 1 {
		b.unpark()
		if barred == nil {
			b.asked.dry, b.asked.soonest = b.parked.classes, b.parked.until
		}
	}
	if b.rated != nil {
		b.asked.soonest = min(b.asked.soonest, b.rated.parked.first())
	}
	item := b.choose()
	if b.asked.dry != 0 && barred == nil && b.asked.dry&^b.asked.able != b.parked.classes {
		b.park()
	}
	return item
}

// choose is next with what is known of classes.
func (b *Board) choose() *Item {
	now := b.asked.now
	var first, aged *Item
	var dry classSet // the value when aged was found
	b.aged = false
	for i := range b.lanes {
		l := &b.lanes[i]
		if !b.open(i) {
			continue
		}
		item := l.lines[0].head
		if l.filled != 0 {
			item = b.first(i)
		}
		switch {
		case item == nil:
		case first == nil:
			if b.ageing == 0 || b.sinceAge < agedTurn-1 || b.n == l.n {
				return item
			}
			first, aged, dry = item, item, b.asked.dry
		case now-item.Enqueued >= b.ageing && item.Enqueued < aged.Enqueued:
			aged, dry = item, b.asked.dry
		}
	}
	if b.aged = aged != first; aged != nil {
		b.asked.dry = dry
	}
	return aged
}

// open reports whether one more may run in a lane, and something waits for that.
func (b *Board) open(lane int) bool {
	l := &b.lanes[lane]
	return l.n > 0 && !l.full() && !b.asked.barred.has(lane)
}

// first returns the item of the lane that has the next turn, of the classes that are
// not full.
func (b *Board) first(lane int) *Item {
	l := &b.lanes[lane]
	first := l.lines[0].head
	for set := l.filled &^ b.asked.barred.in(lane) &^ b.asked.dry; set != 0; set &= set - 1 {
		class := uint8(1 + bits.TrailingZeros64(uint64(set)))
		item, c := l.lines[class].head, &b.classes[class]
		if item == nil {
			l.filled &^= setOf(class)
			continue
		}
		if !c.full() && (c.rates == nil || b.ready(lane, item)) && (first == nil || item.before(first)) {
			first = item
		}
	}
	return first
}

// Fits reports whether one more item may run in the lane and the class of an item.
func (b *Board) Fits(item *Item) bool {
	return !b.lanes[item.Lane].full() && !b.classes[item.Class].full()
}

// Earliest returns the item that was enqueued first, among those that could start in the lane of
// an item. If sameClass is set, it looks only at the class of that item. Next has just returned the
// item.
func (b *Board) Earliest(item *Item, sameClass bool) *Item {
	if b.perKey == 0 {
		return item
	}
	first, l := item, &b.lanes[item.Lane]
	for i := range l.lines {
		c, class := &b.classes[i], uint8(i)
		if c.full() || sameClass && class != item.Class || setOf(class)&(b.asked.dry|b.asked.barred.in(int(item.Lane))) != 0 || l.lines[i].head == nil || c.rates != nil && !b.has(l.lines[i].head) {
			continue
		}
		for p := l.lines[i].head; p != nil; p = p.next {
			if (p.Enqueued < first.Enqueued || p.Enqueued == first.Enqueued && p.before(first)) && (c.rates == nil || b.has(p)) {
				first = p
			}
		}
	}
	return first
}

// Start removes an item from those that have not started, and takes its tokens. Call it right after
// Next or Earliest, with the item that it returned.
func (b *Board) Start(item *Item, now int64) (news News) {
	b.advance(now)
	if b.aged {
		b.sinceAge = 0
	} else if b.sinceAge < agedTurn {
		b.sinceAge++
	}
	l, c := b.count(item, -1)
	if (c.rates != nil || b.rated != nil) && b.take(item, c, now) {
		news = Freed
	}
	b.run(l, c, 1)
	l.leave(item)
	if c.shadows != nil && c.shadows.start(item, now) {
		news |= WouldWait
	}
	if item.turn == nil {
		return news
	}
	k := item.turn.key
	k.pending--
	item.turn.up = nil
	b.keyChanged(k)
	if k.running++; k.running < b.perKey {
		if b.rated == nil {
			l.take(item.turn) // the key's next turn comes after the turns of others
		}
		b.advance(now)
		return news
	}
	for i := range k.turns {
		b.lanes[i].put(&k.turns[i])
	}
	b.advance(now)
	return news
}

// News are what a start changes for others than the item.
type News uint8

const (
	Freed     News = 1 << iota // the class of the item is no longer throttled
	WouldWait                  // items begin to wait in a shadow
)

// Remove takes out an item that has not started.
func (b *Board) Remove(item *Item, now int64) {
	b.advance(now)
	l, c := b.count(item, -1)
	if c.asked == item {
		c.asked = nil
	}
	t := item.turn
	switch {
	case t == nil:
		l.leave(item)
		return
	case t.up != item:
		t.queue.remove(item)
	case t.queue.head == t.queue.waits: // no other item of its key is pending
		if l.leave(item); b.rated == nil {
			l.take(t)
		} else {
			t.up = nil
		}
	default: // the key keeps its turn
		t.up = t.queue.head
		t.queue.remove(t.up)
		l.replace(item, t.up)
		l.leave(item)
	}
	t.key.pending--
	b.keyChanged(t.key)
	b.keys.release(t.key)
	item.turn = nil
	b.advance(now)
}

// count counts that so many more items like this one have not started, and returns its lane and
// its class.
func (b *Board) count(item *Item, more int) (*lane, *class) {
	l, c := &b.lanes[item.Lane], &b.classes[item.Class]
	l.n += more
	c.n += more
	b.n += more
	if item.Flags&Roomless != 0 {
		b.roomless += more
	}
	return l, c
}

// Finish says that an item that had started has ended. It was running, or suspended; if it wanted
// its slots back, the caller has called Unwant.
func (b *Board) Finish(item *Item, suspended bool, now int64) {
	if !suspended {
		b.Suspend(item, now)
	}
	if item.turn == nil {
		return
	}
	b.advance(now)
	k := item.turn.key
	b.keyChanged(k)
	if k.running == b.perKey && b.rated == nil {
		for i := range k.turns {
			b.lanes[i].take(&k.turns[i])
		}
	}
	k.running--
	b.keys.release(k)
	item.turn = nil
	b.advance(now)
}

// All returns the items that have not started, in any order.
func (b *Board) All() []*Item {
	var all []*Item
	for i := range b.lanes {
		for class := range b.classes {
			all = b.lanes[i].lines[class].AppendTo(all)
		}
	}
	for _, k := range b.keys.chains {
		for ; k != nil; k = k.next {
			for i := range k.turns {
				all = k.turns[i].queue.AppendTo(all)
			}
		}
	}
	return all
}

// Len is the number of items that have not started.
func (b *Board) Len() int { return b.n }

// Pending is the number of these items that are not Roomless.
func (b *Board) Pending() int { return b.n - b.roomless }
