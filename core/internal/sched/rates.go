package sched

import (
	"cmp"
	"math/bits"
)

// ready decides whether an item, the next one of its class in a lane, has its tokens and may
// take them. The lanes above have been asked before.
//
// The item of the highest lane comes first. While it lacks tokens, items of lower
// lanes do not start, even if they need fewer. Every agedTurn-th time, the item of a lower
// lane comes first that has waited longest, and at least ageing. While it lacks tokens, no other
// item of the class starts.
func (b *Board) ready(lane int, item *Item) bool {
	q, c, set := &b.asked, &b.classes[item.Class], setOf(item.Class)
	if q.seen&set == 0 {
		q.seen |= set
		c.rates.older = nil
		if b.ageing > 0 && c.rates.sinceAge >= agedTurn-1 && c.n > b.lanes[lane].lines[item.Class].n {
			if older := b.older(lane, item); older != nil {
				c.rates.older = older
				q.free |= set
				if !b.has(older) {
					q.dry |= set
					return false
				}
			}
		}
	}
	if b.has(item) {
		q.able |= set
		return true
	}
	if q.free&set == 0 {
		q.dry |= set
	}
	return false
}

// has reports whether an item of a class with rates has its tokens.
func (b *Board) has(item *Item) bool {
	due := b.classes[item.Class].dueOf(item, b.asked.now)
	if due > b.asked.now {
		b.asked.soonest = min(b.asked.soonest, due)
		return false
	}
	return true
}

// older looks at the next items of the same class in the lanes below first. It returns
// the one that has waited longest, if that is at least ageing, and longer than first.
func (b *Board) older(lane int, first *Item) (older *Item) {
	for i := lane + 1; i < len(b.lanes); i++ {
		item := b.lanes[i].lines[first.Class].head
		if item != nil && b.open(i) && b.asked.barred.in(i)&setOf(item.Class) == 0 && b.asked.now-item.Enqueued >= b.ageing && item.Enqueued < cmp.Or(older, first).Enqueued {
			older = item
		}
	}
	return older
}

// Stuck reports whether no item can start, even with tokens, before another one ends.
func (b *Board) Stuck(now int64) bool {
	return (b.rated == nil || len(b.rated.fresh) == 0) && b.next(now, nil) == nil && b.asked.soonest == never
}

// Soonest is when a second call of Next may return another item because tokens have come; math.MaxInt64: never.
// It is also when keys without items are to be forgotten.
func (b *Board) Soonest() int64 {
	if b.rated != nil {
		return min(b.asked.soonest, b.rated.nextSweep())
	}
	return b.asked.soonest
}

// parking is the classes of which nothing starts before that time, because their tokens come
// later. So it costs nothing to have many. What changes their lines, tokens or turns takes them out.
type parking struct {
	classes classSet
	since   int64 // before that time other items may be old enough to go first
	until   int64
}

// unpark takes the classes out that may start something now.
func (b *Board) unpark() {
	for i := range b.lanes {
		l := &b.lanes[i]
		b.parked.classes &^= l.changed
		l.filled |= l.changed
		l.changed = 0
	}
	if b.parked.classes == 0 || b.parked.until <= b.asked.now || b.asked.now < b.parked.since {
		b.parked = parking{until: never}
	}
}

// park keeps the classes that lack tokens, until one gets them, or one of their items has
// waited for the time of ageing.
func (b *Board) park() {
	more := b.asked.dry &^ b.parked.classes &^ b.asked.able // one that is able to start something in a higher lane may do so
	until := min(b.parked.until, b.asked.soonest)
	for set := more; set != 0 && b.ageing > 0; set &= set - 1 {
		for i := range b.lanes {
			item := b.lanes[i].lines[1+bits.TrailingZeros64(uint64(set))].head
			if item != nil && item.Enqueued+b.ageing > b.asked.now {
				until = min(until, item.Enqueued+b.ageing)
			}
		}
	}
	b.parked = parking{b.parked.classes | more, b.asked.now, until}
}
