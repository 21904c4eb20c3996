package core

import (
	"cmp"
	"hash/maphash"
	"weak"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
)

// keyState is a key with operations that are pending or running. A key without operations
// is forgotten.
type keyState struct {
	text    string
	next    *keyState // in its chain, or the next unused one
	running int
	pending int
	turns   []turn // by lane
	only    [1]turn
}

// turn has the pending operations of a key in a lane.
type turn struct {
	key   *keyState
	up    *Operation // the first operation, in the lane's line, if the key may start one
	queue line       // the others
}

func newKeyState(lanes int) *keyState {
	k := new(keyState)
	if k.turns = k.only[:]; lanes > 1 {
		k.turns = make([]turn, lanes)
	}
	for i := range k.turns {
		k.turns[i].key = k
	}
	return k
}

// keyTable finds the live keys. It is a hash table that links the keyStates themselves. With a Go map, a key with one
// operation cost three times as much: a look-up, an insertion and a deletion.
type keyTable struct {
	chains []*keyState            // by hash; the length is a power of 2
	n      int                    // live keys, at most len(chains)
	spare  *keyState              // unused keyStates to reuse
	idle   weak.Pointer[keyTable] // if chains is nil: what the table was with its last key, until the next garbage collection
}

// smallTable is how many chains, and spare keyStates, an empty table keeps. What a larger one has is left to the garbage
// collector, so that bursts of keys find it again.
const smallTable = 32

var keySeed = maphash.MakeSeed()

func (t *keyTable) obtain(text string, lanes int) *keyState {
	if t.chains == nil {
		if idle := t.idle.Value(); idle != nil {
			*t = *idle
		}
	}
	if t.n == len(t.chains) {
		t.grow()
	}
	link := t.link(text)
	if *link == nil {
		if t.spare == nil {
			t.spare = newKeyState(lanes)
		}
		k := t.spare
		*link, t.spare = k, k.next
		k.next, k.text = nil, text
		t.n++
	}
	return *link
}

// link is the place of a key: what points at it, or the end of the chain in which it would be.
func (t *keyTable) link(text string) **keyState {
	link := &t.chains[maphash.String(keySeed, text)&uint64(len(t.chains)-1)]
	for *link != nil && (*link).text != text {
		link = &(*link).next
	}
	return link
}

func (t *keyTable) grow() {
	old := t.chains
	t.chains = make([]*keyState, max(8, 2*t.n))
	for _, k := range old {
		for k != nil {
			next := k.next
			k.next = nil
			*t.link(k.text) = k
			k = next
		}
	}
}

// release forgets a key that has no operations left.
func (t *keyTable) release(k *keyState) {
	if k.running+k.pending > 0 {
		return
	}
	*t.link(k.text) = k.next
	k.text, k.next, t.spare = "", t.spare, k
	if t.n--; t.n == 0 && len(t.chains) > smallTable {
		idle := *t
		*t = keyTable{idle: weak.Make(&idle)}
	}
}

// keyChanged records that other operations of a key may be able to start, if keys have rates.
// Every change of the board calls advance before and after it. So keys get their turns in the
// order of time, and not when next is called.
func (b *board) keyChanged(k *keyState) {
	if b.rated != nil {
		b.ratedChanged(k)
	}
}

func (b *board) ratedChanged(k *keyState) { b.rated.change(k.text) }

// advance settles the keys that have got their tokens by now, in this order, and those for which
// something has changed.
func (b *board) advance(now int64) {
	if b.rated != nil {
		b.advanceKeys(b.rated, now)
	}
}

func (b *board) advanceKeys(r *ratedKeys, now int64) {
	for r.parked.first() <= now {
		k := r.parked.keys[0]
		k.leave()
		b.settle(k, now)
	}
	for i := 0; i < len(r.fresh); i++ {
		k := r.fresh[i]
		r.fresh[i], k.fresh = nil, false
		b.settle(k, now)
	}
	if r.fresh = r.fresh[:0]; cap(r.fresh) > 1024 {
		r.fresh = nil
	}
	if r.nextSweep() <= now {
		r.sweep(now)
	}
}

// settle gives the turns of a key to the lanes in which its next operation has tokens of the
// key. An operation that lacks them keeps the key's lower lanes waiting.
func (b *board) settle(rated *ratedKey, now int64) {
	r := b.rated
	var k *keyState
	if b.keys.n > 0 {
		k = *b.keys.link(rated.text)
	}
	if k == nil {
		rated.leave()
		if at := r.full(&rated.buckets, now); at > now {
			rated.wait(&r.idle, at)
		} else {
			r.forget(rated)
		}
		return
	}
	free, at := k.running < b.perKey, int64(clock.Never)
	for i := range k.turns {
		t, l := &k.turns[i], &b.lanes[i]
		o := cmp.Or(t.up, t.queue.head)
		if o != nil && free {
			if due := r.due(&rated.buckets, o.takes(), o.asOf(now)); due > now {
				free, at = false, due
			}
		}
		switch {
		case !free:
			l.put(t)
		case o != t.up:
			l.take(t)
		}
	}
	if at == clock.Never {
		rated.leave()
	} else {
		rated.wait(&r.parked, at)
	}
}

// replace gives the turn of o to another operation.
func (l *lane) replace(o, by *Operation) {
	by.sched.number = o.sched.number
	line, next := &l.lines[by.sched.Class], o
	if by.sched.Class != o.sched.Class {
		for next = line.head; next != line.waits && next.before(o); {
			next = next.sched.next
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
