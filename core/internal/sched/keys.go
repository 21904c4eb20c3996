package sched

import (
	"hash/maphash"
	"weak"
)

// keyState is a key with items that are pending or running: its items start in the order of arrival,
// perKey at once. A key without items is forgotten.
type keyState struct {
	text    string
	next    *keyState // in its chain, or the next unused one
	running int
	pending int
	turns   []turn // by lane
	only    [1]turn
}

// turn has the pending items of a key in a lane.
type turn struct {
	key   *keyState
	up    *Item // the first item, in the lane's line, if the key may start one
	queue line  // the others
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
// item cost three times as much: a look-up, an insertion and a deletion.
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

// release forgets a key that has no items left.
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
