package lru

import "sync/atomic"

// policy decides which entry leaves a full shard. It is S3-FIFO with a main queue that may
// reject candidates, see the package documentation: a small queue for new entries, a main
// queue for entries that proved useful, and ghosts of entries that did not.
//
// Its work for a new entry does not depend on the number of entries.
type policy[K comparable, V any] struct {
	small, main       queue[K, V]
	smallMax, mainMax int
	ghosts            ghosts
	heat              heat
	hot               atomic.Int64 // number of hot entries
	resting           int          // entries that left small since the hand moved
}

// maxRest is how many entries may leave small while the hand rests. Without candidates the
// hand would rest for ever, and main would keep entries that are not used any more. A smaller
// maxRest costs hits after a scan.
const maxRest = 32

// smallShare: one entry in smallShare is in the small queue.
const smallShare = 16

func (p *policy[K, V]) init(capacity int, h heat) {
	p.smallMax = max(1, capacity/smallShare)
	p.mainMax = capacity - p.smallMax
	p.ghosts.size = uint32(min(p.mainMax, 1<<30))
	p.heat, p.main.main = h, true
}

// in returns the queue of e. An entry does not refer to its queue, to save memory.
func (p *policy[K, V]) in(e *entry[K, V]) *queue[K, V] {
	if e.main {
		return &p.main
	}
	return &p.small
}

// admit takes e in, and returns the entry that was evicted for it, or nil.
func (p *policy[K, V]) admit(e *entry[K, V]) (victim *entry[K, V]) {
	full := p.small.n == p.smallMax
	if p.ghosts.take(e.hash) && (full || p.main.n < p.mainMax) {
		if victim, ok := p.roomInMain(); ok {
			p.main.push(e)
			return victim
		}
	}
	if full {
		victim = p.roomInSmall()
	}
	p.small.push(e)
	return victim
}

// roomInSmall takes the oldest entry out of small. It may go to main if it was used, if main
// is not full, or if the hand has rested for too long.
func (p *policy[K, V]) roomInSmall() (victim *entry[K, V]) {
	e := p.small.oldest
	p.small.remove(e)
	p.resting++
	if used(&e.uses) || p.main.n < p.mainMax || p.resting >= maxRest {
		if victim, ok := p.roomInMain(); ok {
			rest(&e.uses)
			p.main.push(e)
			return victim
		}
	}
	p.ghosts.add(e.hash)
	return e
}

// roomInMain reports whether there is room in main. If main is full, it takes out the oldest
// entry. An entry that was used since its last turn is put back, and there is no room.
func (p *policy[K, V]) roomInMain() (victim *entry[K, V], ok bool) {
	if p.main.n < p.mainMax {
		return nil, true
	}
	p.resting = 0
	e := p.main.oldest
	if e == nil {
		return nil, false
	}
	p.main.remove(e)
	if used(&e.uses) {
		if p.heat.pass(&e.uses) {
			p.hot.Add(-1)
		}
		p.main.push(e)
		return nil, false
	}
	return e, true
}

func (p *policy[K, V]) full() bool { return p.small.n == p.smallMax && p.main.n == p.mainMax }
