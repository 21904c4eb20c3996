package core

import "slices"

// list keeps members in the order of their numbers. To add or remove one of n costs at most
// O(log n), amortised: a removed member leaves a gap, and the list is written again when half of it
// are gaps.
type list[W comparable] struct {
	all     []W      // the zero W is a gap; the last is no gap
	numbers []uint64 // of all
	gaps    int
	newest  uint64 // number that add gave last
	shared  bool   // somebody reads all without the lock: before it changes, it is replaced
}

func (l *list[W]) len() int { return len(l.all) - l.gaps }

// add appends a member, and gives it the next number.
func (l *list[W]) add(w W) (number uint64) {
	l.newest++
	l.put(w, l.newest)
	return l.newest
}

// put appends a member with a higher number than all others, unless that number is there.
func (l *list[W]) put(w W, number uint64) {
	if n := len(l.numbers); n == 0 || l.numbers[n-1] != number {
		l.all, l.numbers = append(l.all, w), append(l.numbers, number)
	}
}

// remove removes the member of that number, and returns it, or the zero W.
func (l *list[W]) remove(number uint64) (removed W) {
	var gap W
	i, found := slices.BinarySearch(l.numbers, number)
	if !found || l.all[i] == gap {
		return gap
	}
	if l.shared {
		l.all, l.shared = slices.Clone(l.all), false
	}
	removed, l.all[i] = l.all[i], gap
	l.gaps++
	last := len(l.all)
	for ; last > 0 && l.all[last-1] == gap; last-- {
		l.gaps--
	}
	l.all, l.numbers = l.all[:last], l.numbers[:last]
	if l.gaps >= l.len() {
		l.compact()
	}
	return removed
}

// compact writes the list again without gaps.
func (l *list[W]) compact() {
	var gap W
	was := *l
	l.all, l.numbers, l.gaps, l.shared = nil, nil, 0, false
	if n := was.len(); n > 0 {
		l.all, l.numbers = make([]W, 0, n), make([]uint64, 0, n)
	}
	for i, w := range was.all {
		if w != gap {
			l.put(w, was.numbers[i])
		}
	}
}

// last returns the member with the highest number, or the zero W.
func (l *list[W]) last() (w W) {
	if n := len(l.all); n > 0 {
		w = l.all[n-1]
	}
	return w
}

// snapshot returns all members. The slice does not change.
func (l *list[W]) snapshot() []W {
	if l.gaps > 0 {
		l.compact()
	}
	l.shared = true
	return slices.Clip(l.all)
}

// put sets a value in a map, which it makes if there is none.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[k] = v
}

// without returns a list without an element; it does not change the list.
func without[E comparable](list []E, e E) []E {
	i := slices.Index(list, e)
	if i < 0 {
		return list
	}
	return slices.Concat(list[:i], list[i+1:])
}
