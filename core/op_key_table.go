package core

import (
	"hash/maphash"
	"weak"
)

// keyTable finds the live keys. It is a hash table that links the keyStates themselves. With a Go map, a key with one
// operation cost three times as much: a look-up, an insertion and a deletion.
type keyTable struct {
	chains []*keyState            // by hash; the length is a power of 2
	n      int                    // live keys, at most len(chains)
	spare  *keyState              // unused keyStates to reuse, while any key is live
	idle   weak.Pointer[keyTable] // if chains is nil: what the table was with its last key, until the next garbage collection
}

// An empty table keeps at most smallTable chains. What a larger one has is left to the garbage collector, so that bursts
// of keys find it again.
const smallTable = 64

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
	hash := maphash.String(keySeed, text)
	link := t.link(text, hash)
	if *link == nil {
		if t.spare == nil {
			t.spare = newKeyState(lanes)
		}
		k := t.spare
		*link, t.spare = k, k.next
		k.next, k.text, k.hash = nil, text, hash
		t.n++
	}
	return *link
}

// link is the place of a key: what points at it, or the end of the chain in which it would be.
func (t *keyTable) link(text string, hash uint64) **keyState {
	link := &t.chains[hash&uint64(len(t.chains)-1)]
	for k := *link; k != nil && (k.hash != hash || k.text != text); k = *link {
		link = &k.next
	}
	return link
}

func (t *keyTable) grow() {
	old := keyTable{chains: t.chains}
	t.chains = make([]*keyState, max(8, 2*t.n))
	old.each(func(k *keyState) {
		k.next = nil
		*t.link(k.text, k.hash) = k
	})
}

// each visits the live keys. Visit may change the chain of the key.
func (t *keyTable) each(visit func(*keyState)) {
	for _, k := range t.chains {
		for k != nil {
			next := k.next
			visit(k)
			k = next
		}
	}
}

// release forgets a key that has no operations left.
func (t *keyTable) release(k *keyState) {
	if k.running+k.pending > 0 {
		return
	}
	*t.link(k.text, k.hash) = k.next
	k.text, k.next, t.spare = "", t.spare, k
	switch t.n--; {
	case t.n > 0:
	case len(t.chains) > smallTable:
		idle := *t
		*t = keyTable{idle: weak.Make(&idle)}
	default:
		k.next = nil // an empty table keeps one keyState
	}
}
