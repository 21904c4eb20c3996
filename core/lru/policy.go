package lru

import "sync/atomic"

// policy decides who leaves a full shard. It is S3-FIFO with a main queue that
// turns candidates away, see the package documentation: a small queue for the new,
// a main queue for those that proved useful, and ghosts of those that did not.
//
// What it does for an entry that comes does not depend on how many there are.
type policy[K comparable, V any] struct {
	small, main       queue[K, V]
	smallMax, mainMax int
	ghosts            ghosts
	heat              heat
	hot               atomic.Int64 // entries that are
}

// smallShare is the part of the entries that the small queue is for.
const smallShare = 16

func (p *policy[K, V]) init(capacity int, h heat) {
	p.smallMax = max(1, capacity/smallShare)
	p.mainMax = capacity - p.smallMax
	p.ghosts.size = uint32(min(p.mainMax, 1<<30))
	p.heat = h
}

// admit takes e in and returns the entry that has left for it, or nil.
func (p *policy[K, V]) admit(e *entry[K, V], now int64) (victim *entry[K, V]) {
	full := p.small.n == p.smallMax
	if p.ghosts.take(e.hash) && (full || p.main.n < p.mainMax) {
		if victim, ok := p.roomInMain(now); ok {
			p.pushMain(e)
			return victim
		}
	}
	if full {
		victim = p.roomInSmall(now)
	}
	p.small.push(e)
	return victim
}

// roomInSmall takes the oldest entry out of small. If it was used, or main is not
// full, it goes there.
func (p *policy[K, V]) roomInSmall(now int64) (victim *entry[K, V]) {
	e := p.small.oldest
	p.small.remove(e)
	if e.over(now) {
		return e
	}
	if used(&e.uses) || p.main.n < p.mainMax {
		if victim, ok := p.roomInMain(now); ok {
			rest(&e.uses)
			p.pushMain(e)
			return victim
		}
	}
	p.ghosts.add(e.hash)
	return e
}

// roomInMain reports whether there is room in main. If it is full, its oldest entry
// has left for that, unless it was used since its last turn: then it gets another.
func (p *policy[K, V]) roomInMain(now int64) (victim *entry[K, V], ok bool) {
	if p.main.n < p.mainMax {
		return nil, true
	}
	e := p.main.oldest
	if e == nil {
		return nil, false
	}
	p.main.remove(e)
	if used(&e.uses) && !e.over(now) {
		if p.heat.pass(&e.uses) {
			p.hot.Add(-1)
		}
		p.main.push(e)
		return nil, false
	}
	return e, true
}

func (p *policy[K, V]) pushMain(e *entry[K, V]) {
	e.main = true
	p.main.push(e)
}

// replace gives e the place of old.
func (p *policy[K, V]) replace(old, e *entry[K, V]) {
	e.main = old.main
	p.queue(old).replace(old, e)
}

func (p *policy[K, V]) remove(e *entry[K, V]) { p.queue(e).remove(e) }

func (p *policy[K, V]) queue(e *entry[K, V]) *queue[K, V] {
	if e.main {
		return &p.main
	}
	return &p.small
}
