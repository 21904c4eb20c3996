package core

import (
	"hash/maphash"
	"iter"
	"weak"
)

// keyTable finds the live keys. A large table without keys is kept until the next garbage collection, so that bursts
// of keys do not build it again and again.
type keyTable struct {
	keyChains
	idle weak.Pointer[keyChains]
}

// keyChains are a hash table that links the keyStates themselves. With a Go map, a key with one operation cost three
// times as much: a look-up, an insertion and a deletion.
type keyChains struct {
	chains   []*keyState // by hash; the length is a power of 2
	n        int         // live keys, at most len(chains)
	spare    *keyState   // unused keyStates to reuse, while any key is live
	released int         // keys, since a quarter of the length was live
}

// An idle table keeps at most smallTable chains.
const smallTable = 64

var keySeed = maphash.MakeSeed()

func (t *keyTable) obtain(text string, lanes int) *keyState {
	if t.chains == nil {
		if idle := t.idle.Value(); idle != nil {
			t.keyChains = *idle
		}
	}
	hash := maphash.String(keySeed, text)
	if k := t.get(text, hash); k != nil {
		return k
	}
	k := t.spare
	if k == nil {
		k = newKeyState(lanes)
	}
	t.spare, k.text, k.hash = k.next, text, hash
	if t.n == len(t.chains) {
		t.resize(max(8, 2*t.n))
	}
	t.add(k)
	if t.n++; t.n >= len(t.chains)/4 {
		t.released = 0
	}
	return k
}

// get returns a live key, or nil.
func (c *keyChains) get(text string, hash uint64) *keyState {
	if c.n == 0 {
		return nil
	}
	k := *c.chain(hash)
	for k != nil && (k.hash != hash || k.text != text) {
		k = k.next
	}
	return k
}

// chain is the head of the chain for a hash.
func (c *keyChains) chain(hash uint64) **keyState { return &c.chains[hash&uint64(len(c.chains)-1)] }

func (c *keyChains) add(k *keyState) {
	head := c.chain(k.hash)
	k.next, *head = *head, k
}

func (c *keyChains) resize(n int) {
	old := *c
	c.chains = make([]*keyState, n)
	for k := range old.all() {
		c.add(k)
	}
}

// all visits the live keys. The visitor may change the next of the key.
func (c *keyChains) all() iter.Seq[*keyState] {
	return func(yield func(*keyState) bool) {
		for _, k := range c.chains {
			for k != nil {
				next := k.next
				if !yield(k) {
					return
				}
				k = next
			}
		}
	}
}

// release forgets a key that has no operations left.
func (t *keyTable) release(k *keyState) {
	if k.running+k.pending > 0 {
		return
	}
	at := t.chain(k.hash)
	for *at != k {
		at = &(*at).next
	}
	*at = k.next
	k.text, k.next, t.spare = "", t.spare, k
	t.n--
	t.released++
	switch size := len(t.chains); {
	case size > smallTable && t.released > size && t.n < size/8: // bursts have become smaller
		t.resize(size / 4)
		t.spare = nil
	case t.n > 0:
	case size > smallTable:
		idle := t.keyChains
		t.keyChains, t.idle = keyChains{}, weak.Make(&idle)
	default:
		k.next = nil // a small idle table keeps one keyState
	}
}
