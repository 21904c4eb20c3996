package sched

import (
	"cmp"

	"github.com/ephemeralgo/ephemeral/core/internal/meters"
)

// This file decides nothing: it tells others how things are, for statistics and explanations.

// Lane says how many items of a lane run and may run.
func (b *Board) Lane(lane uint8) Bound { return b.lanes[lane].Bound }

// Class says how many items of a class run and may run.
func (b *Board) Class(class uint8) Bound { return b.classes[class].Bound }

// A RateUse is the state of a rate. Without that rate it is zero.
type RateUse struct {
	PerSecond float64
	Burst     int
	Used      int64   // tokens taken since the rate was set, without those given back
	Debt      float64 // tokens that were taken before they came
}

// Rates are the states of the Rate and the CostRate of a class.
func (b *Board) Rates(class uint8, now int64) (uses [2]RateUse) {
	r := b.classes[class].rates
	for i := range uses {
		if r == nil || r.Meters[i].Burst() == 0 {
			continue
		}
		m := &r.Meters[i]
		uses[i] = RateUse{m.Rate(), int(m.Burst()), r.used[i], max(0, -m.Level(r.Buckets[i], now))}
	}
	return uses
}

// NextTokens is when the next item of a class has the tokens of the class, or 0 if none waits for
// them.
func (b *Board) NextTokens(class uint8, now int64) int64 {
	at, _ := b.classLacks(class, now)
	return at
}

func (b *Board) classLacks(class uint8, now int64) (at int64, cost bool) {
	r := b.classes[class].rates
	if r == nil {
		return 0, false
	}
	for i := range b.lanes {
		if item := b.lanes[i].lines[class].head; item != nil {
			return lacks(&r.Meters, &r.Buckets, item, now)
		}
	}
	return 0, false
}

// Lacks is when the class and the key of an item have tokens for their next items, or 0 if they do not lack them, and whether those for
// costs are the last ones.
func (b *Board) Lacks(item *Item, now int64) (at [2]int64, cost [2]bool) {
	at[0], cost[0] = b.classLacks(item.Class, now)
	if b.rated == nil || item.turn == nil {
		return at, cost
	}
	k := b.rated.known[item.turn.key.text]
	if k.in != &b.rated.parked || k.at <= now {
		return at, cost
	}
	for i := range item.turn.key.turns {
		t := &item.turn.key.turns[i]
		if next := cmp.Or(t.up, t.queue.head); next != nil && !cost[1] {
			_, cost[1] = lacks(&b.rated.Meters, &k.Buckets, next, now)
		}
	}
	at[1] = k.at
	return at, cost
}

// lacks is when an item has its tokens, or 0 if they are there, and whether those for costs are the last ones.
func lacks(m *meters.Meters, b *meters.Buckets, item *Item, now int64) (at int64, cost bool) {
	from := item.asOf(now)
	if at = m.Due(b, item.takes(), from); at <= now {
		return 0, false
	}
	return at, m.Due(b, meters.Tokens{1}, from) < at
}

// RatesKeys reports whether keys have rates. Then items take their places as they are pushed.
func (b *Board) RatesKeys() bool { return b.rated != nil }

// KeyFits reports whether one more item may run of the key of an item.
func (b *Board) KeyFits(item *Item) bool { return item.turn == nil || item.turn.key.running < b.perKey }

// FirstAbove is an item that has not started in a lane above that one, or nil.
func (b *Board) FirstAbove(lane uint8) *Item {
	for i := range b.lanes[:lane] {
		for class := range b.classes {
			if first := b.lanes[i].lines[class].head; first != nil {
				return first
			}
		}
	}
	return nil
}

// Ahead is how many items go before an item that has not started, and the first of them: those of
// its key, if the key says that it is not the next one of it, or else those of its lane and class.
func (b *Board) Ahead(item *Item) (n int, first *Item, ofKey bool) {
	t := item.turn
	if t != nil && t.up == item { // other keys take their turns first
		return 0, nil, false
	}
	for other := item.prev; other != nil; other = other.prev {
		n++
		first = other
	}
	if t != nil && t.up != nil {
		n++
		first = t.up
	}
	return n, first, t != nil
}
