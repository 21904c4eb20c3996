package signals

import (
	"cmp"
	"slices"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
	"github.com/ephemeralgo/ephemeral/core/internal/lists"
)

// watched are the types of watchers.
type watched interface {
	*gatePart | *Monitor | *counter | *subscription | *hook.Hook[Retraction] | *forward
}

// watcher is what has a pattern of names: it is of a watched type.
type watcher struct {
	pattern *glob.Pattern
	it      any
}

func watcherOf[W watched](w W) watcher {
	switch it := any(w).(type) {
	case *gatePart:
		return watcher{&it.Pattern, it}
	case *Monitor:
		return watcher{&it.pattern, it}
	case *counter:
		return watcher{&it.Pattern, it}
	case *subscription:
		return watcher{&it.Pattern, it}
	case *hook.Hook[Retraction]:
		return watcher{&it.Pattern, it}
	case *forward:
		return watcher{&it.Pattern, it}
	}
	panic("signals: a watcher without a pattern")
}

// watchers are a list of watchers of one type. While there are many, they are found by the text before
// the first wildcard of their patterns, so that a name is not compared with each of them. The type is no
// type parameter, because each package that uses a Sink would compile the methods again for each type.
type watchers struct {
	lists.List[watcher]
	by      map[string]*lists.List[watcher] // by prefix; nil while there are few
	peak    int                             // highest number of prefixes since by was made
	lengths []prefixLength
	found   []numbered // memory for matching
}

// prefixLength says how many prefixes have a length.
type prefixLength struct{ length, prefixes int }

type numbered struct {
	number uint64
	watcher
}

// fewWatchers are compared one by one: this costs less.
const fewWatchers = 16

func (x *watchers) Add(w watcher) (number uint64) {
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
func (x *watchers) index() {
	x.by, x.peak, x.lengths, x.found = make(map[string]*lists.List[watcher]), 0, nil, nil
	for i, w := range x.All {
		if w.pattern != nil {
			x.enter(w, x.Numbers[i])
		}
	}
}

func (x *watchers) enter(w watcher, number uint64) {
	for _, term := range w.pattern.Terms {
		same := x.by[term.Prefix]
		if same == nil {
			same = new(lists.List[watcher])
			x.by[term.Prefix] = same
			x.peak = max(x.peak, len(x.by))
			x.lengthOf(term.Prefix).prefixes++
		}
		same.Put(w, number)
	}
}

func (x *watchers) lengthOf(prefix string) *prefixLength {
	i := slices.IndexFunc(x.lengths, func(l prefixLength) bool { return l.length == len(prefix) })
	if i < 0 {
		i = len(x.lengths)
		x.lengths = append(x.lengths, prefixLength{length: len(prefix)})
	}
	return &x.lengths[i]
}

func (x *watchers) Remove(number uint64) (removed watcher) {
	removed = x.List.Remove(number)
	if removed.pattern == nil || x.by == nil {
		return removed
	}
	for _, term := range removed.pattern.Terms {
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

// find appends the watchers of a name, in order. Their type is W.
func find[W watched](x *watchers, to []W, name string) []W {
	if x.by == nil {
		for _, w := range x.All {
			if w.pattern != nil && w.pattern.Matches(name) {
				to = append(to, w.it.(W))
			}
		}
		return to
	}
	for i, f := range x.matching(name) {
		if i == 0 || f.number != x.found[i-1].number { // two of its terms may match
			to = append(to, f.it.(W))
		}
	}
	clear(x.found)
	return to
}

// matching finds the watchers of a name by their prefixes, in order: one may be there more than once.
func (x *watchers) matching(name string) []numbered {
	x.found = x.found[:0]
	for _, l := range x.lengths {
		if l.prefixes == 0 || l.length > len(name) {
			continue
		}
		if same := x.by[name[:l.length]]; same != nil {
			for i, w := range same.All {
				if w.pattern != nil && w.pattern.Matches(name) {
					x.found = append(x.found, numbered{same.Numbers[i], w})
				}
			}
		}
	}
	slices.SortFunc(x.found, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	return x.found
}
