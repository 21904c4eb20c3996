package sched

import (
	"cmp"
	"math/bits"

	"github.com/ephemeralgo/ephemeral/core/internal/meters"
)

// parking is the classes of which nothing starts before that time, because their tokens come
// later. So it costs nothing to have many. What changes their lines, tokens or turns takes them out.
type parking struct {
	classes classSet
	until   int64
}

// classRates are the rates of a class, with the state of its tokens.
type classRates struct {
	meters.Meters
	meters.Buckets
	used      meters.Tokens
	older     *Item // has the turn because of its age: see board.ready
	sinceAge  int   // starts since the last start because of age
	throttled bool  // what the last signal said
}

// class is what the board knows about a class.
type class struct {
	Bound
	rates *classRates // nil: none
	asked *Item       // an item of the class that has its tokens at due; nil: none is known
	due   int64
}

// Limits are what limits the items of a class in all lanes.
type Limits struct {
	Limit          int         // how many run at once; 0: no limit
	Rate, CostRate meters.Rate // how many start each second, and what they cost; the zero Rate: no limit
}

// set sets the limits. A bucket keeps its tokens, up to the new burst. A new rate starts with a full
// bucket.
func (c *class) set(to Limits, now int64) {
	c.Limit, c.asked = to.Limit, nil
	if c.rates == nil {
		c.rates = &classRates{sinceAge: agedTurn}
	}
	before := c.rates.Meters
	c.rates.Set(&c.rates.Buckets, now, to.Rate, to.CostRate)
	for i := range before {
		if before[i].Burst() == 0 {
			c.rates.used[i] = 0
		}
	}
	if !c.rates.Limited() {
		c.rates = nil
	}
}

// SetClass changes the limits of a class. It reports whether the class is no longer throttled,
// because it has no rates any more.
func (b *Board) SetClass(class uint8, to Limits, now int64) (freed bool) {
	was := b.Throttled(class)
	c := &b.classes[class]
	c.set(to, now)
	b.parked.classes = 0
	return was && c.rates == nil
}

// SetLimit changes only the limit of a class.
func (b *Board) SetLimit(class uint8, limit int) { b.classes[class].Limit = limit }

// Throttle records whether the items of a class wait for its tokens, as the last call of Next has
// found. It reports whether that is new.
func (b *Board) Throttle(class uint8) (changed bool) {
	c := &b.classes[class]
	lacks := b.asked.dry&setOf(class) != 0
	if c.rates == nil || c.rates.throttled && c.n > 0 || c.rates.throttled == lacks {
		return false
	}
	c.rates.throttled = lacks
	return true
}

// Throttled is what Throttle has recorded, or Start and SetClass have changed.
func (b *Board) Throttled(class uint8) bool {
	r := b.classes[class].rates
	return r != nil && r.throttled
}

// Soonest is when a second call of Next may return another item because tokens have come, or never.
// It is also when keys without items are to be forgotten.
func (b *Board) Soonest() int64 {
	if b.rated != nil {
		return min(b.asked.soonest, b.rated.nextSweep())
	}
	return b.asked.soonest
}

// dueOf returns when an item of the class has its tokens. The class has rates.
func (c *class) dueOf(item *Item, now int64) int64 {
	if from := item.asOf(now); c.asked != item || c.due < from {
		c.asked, c.due = item, c.rates.Due(&c.rates.Buckets, item.takes(), from)
	}
	return c.due
}

// unpark takes the classes out that may start something now.
func (b *Board) unpark() {
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
	b.parked = parking{b.parked.classes | more, until}
}

// ready reports whether item, the next item of its class in a lane, has its tokens and may
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

// take takes the tokens of an item that starts. It reports whether its class is no
// longer throttled: no item of it waits, or tokens were left.
func (b *Board) take(item *Item, c *class, now int64) (freed bool) {
	from, n := item.asOf(now), item.takes()
	at := from
	if c.rates != nil {
		at = c.dueOf(item, now)
	}
	if b.rated != nil && item.turn != nil {
		k := b.rated.obtain(item.turn.key.text)
		at = max(at, b.rated.Due(&k.Buckets, n, from))
		b.rated.Book(&k.Buckets, n, from, at)
	}
	r := c.rates
	if r == nil {
		return false
	}
	r.Book(&r.Buckets, n, from, at)
	c.asked = nil
	r.used[0] += n[0]
	r.used[1] += n[1]
	if r.sinceAge = min(r.sinceAge+1, agedTurn); b.aged || r.older == item {
		r.sinceAge = 0
	}
	r.older = nil
	freed = r.throttled && (c.n == 0 || at == from)
	r.throttled = r.throttled && !freed
	return freed
}

// Charge takes tokens of the class and the key of an item that has started. Negative numbers give
// tokens back.
func (b *Board) Charge(item *Item, n meters.Tokens, now int64) {
	b.advance(now)
	defer b.advance(now)
	c := &b.classes[item.Class]
	if r := c.rates; r != nil {
		r.Charge(&r.Buckets, n, now)
		r.used[0] += n[0]
		r.used[1] += n[1]
		c.asked = nil
		b.parked.classes &^= setOf(item.Class)
	}
	if b.rated != nil && item.turn != nil {
		b.rated.Charge(&b.rated.change(item.turn.key.text).Buckets, n, now)
	}
}
