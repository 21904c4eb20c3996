package sched

import "github.com/ephemeralgo/ephemeral/core/internal/meters"

// class is what the board knows about a class: how many of its items may run, and when they have
// their tokens.
type class struct {
	Bound
	rates   *classRates // nil: none
	shadows *shadows    // nil: none
	asked   *Item       // an item of the class that has its tokens at due; nil: none is known
	due     int64
}

// Limits are what limits the items of a class in all lanes.
type Limits struct {
	Limit          int         // how many run at once; 0: no limit
	Rate, CostRate meters.Rate // how many start each second, and what they cost; the zero Rate: no limit
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

// dueOf returns when an item of the class has its tokens. The class has rates.
func (c *class) dueOf(item *Item, now int64) int64 {
	if from := item.asOf(now); c.asked != item || c.due < from {
		c.asked, c.due = item, c.rates.Due(&c.rates.Buckets, item.takes(), from)
	}
	return c.due
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
func (b *Board) Charge(item *Item, suspended bool, n meters.Tokens, now int64) {
	b.advance(now)
	defer b.advance(now)
	c := &b.classes[item.Class]
	if c.shadows != nil {
		c.shadows.charge(item, suspended, n, now)
	}
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
