package lru

import "sync/atomic"

// heat reads and writes the uses of an entry: a count of accesses, of which storing is the
// first; a mark that it was used since eviction last looked at it; and a mark that it has
// left the cache.
type heat struct {
	after uint64 // accesses that make an entry hot
	most  uint64 // the highest count, so that the entry can cool
}

const (
	countMask = 1<<60 - 1
	usedMark  = 1 << 62
	leftMark  = 1 << 63
)

// newHeat makes a heat. With after 0 no entry gets hot.
func newHeat(after int) heat {
	if after == 0 {
		return heat{after: countMask, most: 1}
	}
	n := min(uint64(after), countMask/4)
	return heat{after: n, most: 2 * n}
}

func (h heat) hot(uses uint64) bool { return uses&countMask >= h.after }

// use counts an access. It reports whether the entry is hot now, and whether it has just become
// hot.
func (h heat) use(uses *atomic.Uint64) (hot, warmed bool) {
	for {
		was := uses.Load()
		is := min(was&countMask+1, h.most) | usedMark
		if was == is || was&leftMark != 0 {
			return h.hot(is), false
		}
		if uses.CompareAndSwap(was, is) {
			return h.hot(is), h.hot(is) && !h.hot(was)
		}
	}
}

// pass halves the count, removes the mark of use, and reports whether the entry is no longer
// hot.
func (h heat) pass(uses *atomic.Uint64) (cooled bool) {
	for {
		was := uses.Load()
		is := was & countMask / 2
		if uses.CompareAndSwap(was, is) {
			return h.hot(was) && !h.hot(is)
		}
	}
}

// used reports whether the mark of use is there.
func used(uses *atomic.Uint64) bool { return uses.Load()&usedMark != 0 }

// rest removes the mark of use.
func rest(uses *atomic.Uint64) { uses.And(^uint64(usedMark)) }

// leave ends the counting, and returns the last count.
func leave(uses *atomic.Uint64) uint64 { return uses.Swap(leftMark) }
