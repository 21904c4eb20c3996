// Package lists has lists of members that come and go, and small helpers for maps and slices.
package lists

import (
	"cmp"
	"slices"
)

// List keeps members in the order of their numbers. To add or remove one of n costs at most
// O(log n), amortised: a removed member leaves a gap, and the list is written again when half of it
// are gaps.
type List[W any] struct { // not comparable: so all types of pointers share the code
	All     []W      // the zero W is a gap; the last is no gap
	Numbers []uint64 // of all; of a gap with gone
	gaps    int
	newest  uint64 // number that add gave last
	shared  bool   // somebody reads all without the lock: before it changes, it is replaced
}

const gone = 1 << 63

func (l *List[W]) Len() int { return len(l.All) - l.gaps }

// Add appends a member, and gives it the next number.
func (l *List[W]) Add(w W) (number uint64) {
	l.newest++
	l.Put(w, l.newest)
	return l.newest
}

// Put appends a member with a higher number than all others, unless that number is there.
func (l *List[W]) Put(w W, number uint64) {
	if n := len(l.Numbers); n == 0 || l.Numbers[n-1] != number {
		l.All, l.Numbers = append(l.All, w), append(l.Numbers, number)
	}
}

// Remove removes the member of that number, and returns it, or the zero W.
func (l *List[W]) Remove(number uint64) (removed W) {
	i, found := slices.BinarySearchFunc(l.Numbers, number, func(n, number uint64) int { return cmp.Compare(n&^gone, number) })
	if !found || l.Numbers[i]&gone != 0 {
		return removed
	}
	if l.shared {
		l.All, l.shared = slices.Clone(l.All), false
	}
	var gap W
	removed, l.All[i] = l.All[i], gap
	l.Numbers[i] |= gone
	l.gaps++
	last := len(l.All)
	for ; last > 0 && l.Numbers[last-1]&gone != 0; last-- {
		l.gaps--
	}
	l.All, l.Numbers = l.All[:last], l.Numbers[:last]
	if l.gaps >= l.Len() {
		l.compact()
	}
	return removed
}

// compact writes the list again without gaps.
func (l *List[W]) compact() {
	was := *l
	l.All, l.Numbers, l.gaps, l.shared = nil, nil, 0, false
	if n := was.Len(); n > 0 {
		l.All, l.Numbers = make([]W, 0, n), make([]uint64, 0, n)
	}
	for i, number := range was.Numbers {
		if number&gone == 0 {
			l.Put(was.All[i], number)
		}
	}
}

// Last returns the member with the highest number, or the zero W.
func (l *List[W]) Last() (w W) {
	if n := len(l.All); n > 0 {
		w = l.All[n-1]
	}
	return w
}

// Snapshot returns all members. The slice does not change.
func (l *List[W]) Snapshot() []W {
	if l.gaps > 0 {
		l.compact()
	}
	l.shared = true
	return slices.Clip(l.All)
}

// Put sets a value in a map, which it makes if there is none.
func Put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[k] = v
}

// Without returns a list without an element; it does not change the list.
func Without[E comparable](list []E, e E) []E {
	i := slices.Index(list, e)
	if i < 0 {
		return list
	}
	return slices.Concat(list[:i], list[i+1:])
}
