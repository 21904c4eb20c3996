package lru

import "math/bits"

// ghosts remembers the hashes of entries that were evicted lately without having been used.
// It is a hash table of fixed size, in which a new hash takes the place of the oldest one
// nearby. So it may forget a hash early, or take one key for another. Neither is an error,
// only a worse guess.
type ghosts struct {
	size  uint32 // how many later additions a ghost survives
	added uint32 // additions so far, modulo 1<<32
	sets  []ghostSet
}

type ghostSet [4]ghost

// ghost is an evicted key. The zero ghost stands for none.
type ghost struct{ hash, at uint32 }

func (g *ghosts) add(hash uint64) {
	if g.size == 0 {
		return
	}
	if g.sets == nil {
		g.sets = make([]ghostSet, 1<<bits.Len32(g.size/3))
	}
	g.added++
	set := g.set(hash)
	place := &set[0]
	for i := range set {
		if g.age(set[i]) > g.age(*place) {
			place = &set[i]
		}
	}
	*place = ghost{short(hash), g.added}
}

// take reports whether hash is remembered, and forgets it.
func (g *ghosts) take(hash uint64) bool {
	if g.sets == nil {
		return false
	}
	set := g.set(hash)
	for i := range set {
		if set[i].hash == short(hash) && g.age(set[i]) < g.size {
			set[i] = ghost{}
			return true
		}
	}
	return false
}

func (g *ghosts) set(hash uint64) *ghostSet { return &g.sets[hash&uint64(len(g.sets)-1)] }

// age is how many additions ago a ghost was added.
func (g *ghosts) age(x ghost) uint32 {
	if x == (ghost{}) {
		return 1<<32 - 1
	}
	return g.added - x.at
}

func short(hash uint64) uint32 { return uint32(hash >> 32) }
