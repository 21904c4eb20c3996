package core

import (
	"cmp"
	"slices"
)

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

// watcher is what has a pattern of names.
type watcher interface {
	comparable
	watched() *pattern
}

func (p *pattern) watched() *pattern { return p }

// watchers are a list of watchers. While there are many, they are found by the text before the
// first wildcard of their patterns, so that a name is not compared with each of them.
type watchers[W watcher] struct {
	list[W]
	by      map[string]*list[W] // by prefix; nil while there are few
	peak    int                 // highest number of prefixes since by was made
	lengths []prefixLength
	found   []numbered[W] // memory for find
}

// prefixLength says how many prefixes have a length.
type prefixLength struct{ length, prefixes int }

type numbered[W any] struct {
	number  uint64
	watcher W
}

// fewWatchers are compared one by one: this costs less.
const fewWatchers = 16

func (x *watchers[W]) add(w W) (number uint64) {
	number = x.list.add(w)
	switch {
	case x.by != nil:
		x.enter(w, number)
	case x.len() > fewWatchers:
		x.index()
	}
	return number
}

// index finds the prefixes of all watchers.
func (x *watchers[W]) index() {
	x.by, x.peak, x.lengths, x.found = make(map[string]*list[W]), 0, nil, nil
	var gap W
	for i, w := range x.all {
		if w != gap {
			x.enter(w, x.numbers[i])
		}
	}
}

func (x *watchers[W]) enter(w W, number uint64) {
	for _, term := range w.watched().terms {
		same := x.by[term.prefix]
		if same == nil {
			same = new(list[W])
			x.by[term.prefix] = same
			x.peak = max(x.peak, len(x.by))
			x.lengthOf(term.prefix).prefixes++
		}
		same.put(w, number)
	}
}

func (x *watchers[W]) lengthOf(prefix string) *prefixLength {
	i := slices.IndexFunc(x.lengths, func(l prefixLength) bool { return l.length == len(prefix) })
	if i < 0 {
		i = len(x.lengths)
		x.lengths = append(x.lengths, prefixLength{length: len(prefix)})
	}
	return &x.lengths[i]
}

func (x *watchers[W]) remove(number uint64) (removed W) {
	var gap W
	removed = x.list.remove(number)
	if removed == gap || x.by == nil {
		return removed
	}
	for _, term := range removed.watched().terms {
		same := x.by[term.prefix]
		if same == nil {
			continue // another term has the same prefix
		}
		if same.remove(number); same.len() == 0 {
			delete(x.by, term.prefix)
			x.lengthOf(term.prefix).prefixes--
		}
	}
	switch {
	case x.len() <= fewWatchers/2:
		x.by, x.lengths, x.found = nil, nil, nil
	case len(x.by) < x.peak/4: // a Go map never shrinks
		x.index()
	}
	return removed
}

// find appends the watchers of a name, in order.
func (x *watchers[W]) find(to []W, name string) []W {
	var gap W
	if x.by == nil {
		for _, w := range x.all {
			if w != gap && w.watched().matches(name) {
				to = append(to, w)
			}
		}
		return to
	}
	for _, l := range x.lengths {
		if l.prefixes == 0 || l.length > len(name) {
			continue
		}
		if same := x.by[name[:l.length]]; same != nil {
			for i, w := range same.all {
				if w != gap && w.watched().matches(name) {
					x.found = append(x.found, numbered[W]{same.numbers[i], w})
				}
			}
		}
	}
	slices.SortFunc(x.found, func(a, b numbered[W]) int { return cmp.Compare(a.number, b.number) })
	for i, f := range x.found {
		if i == 0 || f.number != x.found[i-1].number { // two of its terms may match
			to = append(to, f.watcher)
		}
	}
	clear(x.found)
	x.found = x.found[:0]
	return to
}
