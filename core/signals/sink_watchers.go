package signals

import (
	"cmp"
	"slices"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
	"github.com/ephemeralgo/ephemeral/core/internal/lists"
)

// watcher is what has a pattern of names.
type watcher interface {
	*gatePart | *Monitor | *counter | *subscription | *hook.Hook[Retraction] | *forward
}

// patternOf returns the pattern of a watcher.
func patternOf[W watcher](w W) *glob.Pattern {
	switch w := any(w).(type) {
	case *gatePart:
		return &w.Pattern
	case *Monitor:
		return &w.pattern
	case *counter:
		return &w.Pattern
	case *subscription:
		return &w.Pattern
	case *hook.Hook[Retraction]:
		return &w.Pattern
	case *forward:
		return &w.Pattern
	}
	panic("signals: a watcher without a pattern")
}

// watchers are a list of watchers. While there are many, they are found by the text before the
// first wildcard of their patterns, so that a name is not compared with each of them.
type watchers[W watcher] struct {
	lists.List[W]
	by      map[string]*lists.List[W] // by prefix; nil while there are few
	peak    int                       // highest number of prefixes since by was made
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

func (x *watchers[W]) Add(w W) (number uint64) {
	number = x.List.Add(w)
	switch {
	case x.by != nil:
		x.enter(w, number)
	case x.Len() > fewWatchers:
		x.index()
	}
	return number
}

// index finds the prefixes of all watchers.
func (x *watchers[W]) index() {
	x.by, x.peak, x.lengths, x.found = make(map[string]*lists.List[W]), 0, nil, nil
	var gap W
	for i, w := range x.All {
		if w != gap {
			x.enter(w, x.Numbers[i])
		}
	}
}

func (x *watchers[W]) enter(w W, number uint64) {
	for _, term := range patternOf(w).Terms {
		same := x.by[term.Prefix]
		if same == nil {
			same = new(lists.List[W])
			x.by[term.Prefix] = same
			x.peak = max(x.peak, len(x.by))
			x.lengthOf(term.Prefix).prefixes++
		}
		same.Put(w, number)
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

func (x *watchers[W]) Remove(number uint64) (removed W) {
	var gap W
	removed = x.List.Remove(number)
	if removed == gap || x.by == nil {
		return removed
	}
	for _, term := range patternOf(removed).Terms {
		same := x.by[term.Prefix]
		if same == nil {
			continue // another term has the same prefix
		}
		if same.Remove(number); same.Len() == 0 {
			delete(x.by, term.Prefix)
			x.lengthOf(term.Prefix).prefixes--
		}
	}
	switch {
	case x.Len() <= fewWatchers/2:
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
		for _, w := range x.All {
			if w != gap && patternOf(w).Matches(name) {
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
			for i, w := range same.All {
				if w != gap && patternOf(w).Matches(name) {
					x.found = append(x.found, numbered[W]{same.Numbers[i], w})
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
