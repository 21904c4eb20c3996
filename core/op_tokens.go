package core

import (
	"cmp"
	"math/bits"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
)

// parking is the classes of which nothing starts before that time, because their tokens come
// later. So it costs nothing to have many. What changes their lines, tokens or turns takes them out.
type parking struct {
	classes classSet
	until   int64
}

// classRates are the rates of a class, with the state of its tokens.
type classRates struct {
	meters
	buckets
	used      tokens
	older     *Operation // has the turn because of its age: see board.ready
	sinceAge  int        // starts since the last start because of age
	throttled bool       // what the last signal said
}

// classBound is what the board knows about a class.
type classBound struct {
	bound
	rates *classRates // nil: none
	asked *Operation  // an operation of the class that has its tokens at due; nil: none is known
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

// unpark takes the classes out that may start something now.
func (b *board) unpark() {
	for i := range b.lanes {
		l := &b.lanes[i]
		b.parked.classes &^= l.changed
		l.filled |= l.changed
		l.changed = 0
	}
	if b.parked.classes == 0 || b.parked.until <= b.asked.now {
		b.parked = parking{until: clock.Never}
	}
}

// park keeps the classes that lack tokens, until one gets them, or one of their operations has
// waited for the time of ageing.
func (b *board) park() {
	more := b.asked.dry &^ b.parked.classes &^ b.asked.able // one that is able to start something in a higher lane may do so
	until := min(b.parked.until, b.asked.soonest)
	for set := more; set != 0 && b.ageing > 0; set &= set - 1 {
		for i := range b.lanes {
			o := b.lanes[i].lines[1+bits.TrailingZeros64(uint64(set))].head
			if o != nil && o.sched.Enqueued+b.ageing > b.asked.now {
				until = min(until, o.sched.Enqueued+b.ageing)
			}
		}
	}
	b.parked = parking{b.parked.classes | more, until}
}

// ready reports whether o, the next operation of its class in a lane, has its tokens and may
// take them. The lanes above have been asked before.
//
// The operation of the highest lane comes first. While it lacks tokens, operations of lower
// lanes do not start, even if they need fewer. Every agedTurn-th time, the operation of a lower
// lane comes first that has waited longest, and at least ageing. While it lacks tokens, no other
// operation of the class starts.
func (b *board) ready(lane int, o *Operation) bool {
	q, c, set := &b.asked, &b.classes[o.sched.Class], setOf(o.sched.Class)
	if q.seen&set == 0 {
		q.seen |= set
		c.rates.older = nil
		if b.ageing > 0 && c.rates.sinceAge >= agedTurn-1 && c.n > b.lanes[lane].lines[o.sched.Class].n {
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
		q.able |= set
		return true
	}
	if q.free&set == 0 {
		q.dry |= set
	}
	return false
}

// has reports whether an operation of a class with rates has its tokens.
func (b *board) has(o *Operation) bool {
	due := b.classes[o.sched.Class].dueOf(o, b.asked.now)
	if due > b.asked.now {
		b.asked.soonest = min(b.asked.soonest, due)
		return false
	}
	return true
}

// older looks at the next operations of the same class in the lanes below first. It returns
// the one that has waited longest, if that is at least ageing, and longer than first.
func (b *board) older(lane int, first *Operation) (older *Operation) {
	for i := lane + 1; i < len(b.lanes); i++ {
		o := b.lanes[i].lines[first.sched.Class].head
		if o != nil && b.open(i) && b.asked.barred.in(i)&setOf(o.sched.Class) == 0 && b.asked.now-o.sched.Enqueued >= b.ageing && o.sched.Enqueued < cmp.Or(older, first).sched.Enqueued {
			older = o
		}
	}
	return older
}

// stuck reports whether no operation can start, even with tokens, before another one ends.
func (b *board) stuck(now int64) bool {
	return (b.rated == nil || len(b.rated.fresh) == 0) && b.next(now, nil) == nil && b.asked.soonest == clock.Never
}

// take takes the tokens of an operation that starts. It reports whether its class is no
// longer throttled: no item of it waits, or tokens were left.
func (b *board) take(o *Operation, c *classBound, now int64) (freed bool) {
	from, n := o.asOf(now), o.takes()
	at := from
	if c.rates != nil {
		at = c.dueOf(o, now)
	}
	if b.rated != nil && o.sched.turn != nil {
		k := b.rated.obtain(o.sched.turn.key.text)
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
	c := &b.classes[o.sched.Class]
	if r := c.rates; r != nil {
		r.charge(&r.buckets, n, now)
		r.used[0] += n[0]
		r.used[1] += n[1]
		c.asked = nil
		b.parked.classes &^= setOf(o.sched.Class)
	}
	if b.rated != nil && o.sched.turn != nil {
		b.rated.charge(&b.rated.change(o.sched.turn.key.text).buckets, n, now)
	}
}
