package slidingcache_test

import (
	"math/rand/v2"
)

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// removed is whether Remove found something.
func removed(_ int, ok bool) bool { return ok }
