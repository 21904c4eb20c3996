package core

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync/atomic"
)

// routes find the watchers of a name by its text. Most programs have few watchers. Then most
// names have the same route, and a raise finds it by a bit of the first byte, or of a hash. All
// other routes are found once, and remembered in a table of fixed size.
type routes struct {
	route                   // all watchers, without counters of plain names; the lists are replaced, never changed
	forwarder *subscription // called after subs; may be nil
	plain     map[string]*counter

	common  *route                    // of all names without bits; nil: each name may have another
	first   byteSet                   // first bytes of names that watchers name
	exact   byteSet                   // places of names that watchers have without wildcards
	wild    bool                      // some watchers have wildcards: exact does not say enough
	recent  *[recentNames]recentRoute // by place; made on first use
	last    *route                    // newest route, shared by names with equal routes
	scratch route
	many    prefixes // of subs

	listening atomic.Bool // somebody listens to lifecycle signals; read without mu
}

const (
	recentNames = 256 // a program has some dozen names that it raises often
	maxText     = 96  // no table keeps a longer name, so that all tables keep less than 64 KiB of names
)

// byteSet has a bit for each byte.
type byteSet [4]uint64

func (b *byteSet) has(i uint8) bool { return b[i/64]>>(i%64)&1 != 0 }
func (b *byteSet) set(i uint8)      { b[i/64] |= 1 << (i % 64) }

// recentRoute is the route of a name that was raised or left recently.
type recentRoute struct {
	text string
	*route
}

// route lists the watchers of a name, or of all names. The route of a name is immutable.
type route struct {
	subs     []*subscription
	gates    []*gate
	monitors []*Monitor
	counters []*counter
}

// subscription is a handler of signals.
type subscription = hook[Signal]

// unwatched is the route of a name that nobody watches.
var unwatched = new(route)

// of returns the route of a name.
func (t *routes) of(text string) *route {
	if t.common != nil && !t.first.has(text[0]) {
		return t.common
	}
	at := place(text)
	if t.common != nil && !t.wild && !t.exact.has(at) {
		return t.common
	}
	if t.recent != nil {
		if r := &t.recent[at]; r.route != nil && r.text == text {
			return r.route
		}
	}
	return t.find(text, at)
}

// leaves reports whether anything counts facts that leave.
func (t *routes) leaves() bool { return len(t.gates)+len(t.counters)+len(t.plain) > 0 }

// place returns the place of a name in recent: a hash of its length and its last eight
// bytes, because names differ most at their ends.
func place(text string) uint8 {
	var tail uint64
	switch n := len(text); {
	case n >= 8:
		tail = binary.LittleEndian.Uint64([]byte(text[n-8:]))
	case n >= 4: // the first and the last four bytes, which may overlap
		tail = uint64(binary.LittleEndian.Uint32([]byte(text[:4])))<<32 | uint64(binary.LittleEndian.Uint32([]byte(text[n-4:])))
	case n > 0:
		tail = uint64(text[0])<<16 | uint64(text[n/2])<<8 | uint64(text[n-1])
	}
	return uint8((tail ^ uint64(len(text))) * 0x9E3779B97F4A7C15 >> 56)
}

// find asks all watchers.
func (t *routes) find(text string, at uint8) *route {
	r := &t.scratch
	r.subs, r.gates, r.monitors, r.counters = r.subs[:0], r.gates[:0], r.monitors[:0], r.counters[:0]
	t.appendSubs(r, text)
	if f := t.forwarder; f != nil && f.matches(text) {
		r.subs = append(r.subs, f)
	}
	if !isLifecycle(text) { // gates count signals of users, not lifecycle signals
		appendMatching(&r.gates, t.gates, text)
	}
	appendMatching(&r.monitors, t.monitors, text)
	appendMatching(&r.counters, t.counters, text)
	if c := t.plain[text]; c != nil {
		r.counters = append(r.counters, c)
	}
	found := t.shared(r)
	if len(text) <= maxText {
		if t.recent == nil {
			t.recent = new([recentNames]recentRoute)
		}
		t.recent[at] = recentRoute{text, found}
	}
	return found
}

// shared returns a route equal to r that does not change.
func (t *routes) shared(r *route) *route {
	switch {
	case len(r.subs)+len(r.gates)+len(r.monitors)+len(r.counters) == 0:
		return unwatched
	case t.last == nil || !t.last.equal(r):
		t.last = &route{slices.Clone(r.subs), slices.Clone(r.gates), slices.Clone(r.monitors), slices.Clone(r.counters)}
	}
	return t.last
}

func (r *route) equal(o *route) bool {
	return slices.Equal(r.subs, o.subs) && slices.Equal(r.gates, o.gates) &&
		slices.Equal(r.monitors, o.monitors) && slices.Equal(r.counters, o.counters)
}

// appendMatching appends the watchers of all whose patterns match a name.
func appendMatching[W interface{ matches(name string) bool }](list *[]W, all []W, name string) {
	for _, w := range all {
		if w.matches(name) {
			*list = append(*list, w)
		}
	}
}

// appendSubs appends the handlers of a name.
func (t *routes) appendSubs(r *route, text string) {
	if len(t.subs) <= fewHandlers {
		appendMatching(&r.subs, t.subs, text)
		return
	}
	if t.many.by == nil {
		for i, sub := range t.subs {
			t.many.add(i, sub.terms)
		}
	}
	for _, i := range t.many.find(text) {
		if sub := t.subs[i]; sub.matches(text) {
			r.subs = append(r.subs, sub)
		}
	}
}

// changed makes every route stale. It clears the scratch, so that this holds no watcher
// that has gone.
func (t *routes) changed() {
	t.scratch, t.last, t.many = route{}, nil, prefixes{}
	if t.recent != nil {
		clear(t.recent[:])
	}
	t.survey()
	t.listening.Store(t.listens())
}

// recounted makes the routes stale to which a counter was added, or from which it was removed.
func (t *routes) recounted(c *counter) {
	if t.recent != nil {
		for i := range t.recent {
			if r := &t.recent[i]; r.route != nil && c.matches(r.text) {
				*r = recentRoute{}
			}
		}
	}
	t.scratch, t.last = route{}, nil
	t.survey()
}

// survey finds what most names have in common.
func (t *routes) survey() {
	all, varied := &route{}, false
	t.first, t.exact, t.wild = byteSet{}, byteSet{}, false
	watched := func(p *pattern) (every bool) {
		for i := range p.terms {
			switch term := &p.terms[i]; {
			case term.text == "*":
				return true
			case term.prefix == "":
				varied = true
			default:
				t.mark(term.prefix)
				t.wild = t.wild || !term.exact()
			}
		}
		return false
	}
	for _, sub := range t.subs {
		if watched(&sub.pattern) {
			all.subs = append(all.subs, sub)
		}
	}
	if f := t.forwarder; f != nil && watched(&f.pattern) {
		all.subs = append(all.subs, f)
	}
	for _, m := range t.monitors {
		if watched(&m.pattern) {
			all.monitors = append(all.monitors, m)
		}
	}
	for _, c := range t.counters {
		if watched(&c.pattern) {
			all.counters = append(all.counters, c)
		}
	}
	for _, g := range t.gates {
		varied = watched(&g.pattern) || varied // not of lifecycle signals
	}
	for text := range t.plain {
		t.mark(text)
	}
	if t.common = t.shared(all); varied {
		t.common = nil
	}
}

// mark says that a watcher has a name, or names that begin so.
func (t *routes) mark(text string) {
	t.first.set(text[0])
	t.exact.set(place(text))
}

// listens reports whether a handler, a forward or a monitor asks for lifecycle signals, with
// a term that begins with "operation.". The pattern "*" does not ask, because these signals
// cost more than a short operation.
func (t *routes) listens() bool {
	hears := func(p pattern) bool {
		return slices.ContainsFunc(p.terms, func(t term) bool {
			return strings.HasPrefix(t.text, "operation.") && (walk(t.text, SignalStarted) || walk(t.text, SignalStopped))
		})
	}
	return t.forwarder != nil && hears(t.forwarder.pattern) ||
		slices.ContainsFunc(t.subs, func(s *subscription) bool { return hears(s.pattern) }) ||
		slices.ContainsFunc(t.monitors, func(m *Monitor) bool { return hears(m.pattern) })
}

// prefixes find patterns by the text before their first wildcard, so that a name is not
// compared with each of many.
type prefixes struct {
	by      map[string][]int // numbers of patterns
	lengths []int            // of the keys of by
	found   []int
}

// fewHandlers are compared one by one: this costs less.
const fewHandlers = 16

func (x *prefixes) add(number int, terms []term) {
	if x.by == nil {
		x.by = make(map[string][]int)
	}
	for i := range terms {
		prefix := terms[i].prefix
		if !slices.Contains(x.lengths, len(prefix)) {
			x.lengths = append(x.lengths, len(prefix))
		}
		x.by[prefix] = append(x.by[prefix], number)
	}
}

// find returns the numbers of the patterns that may match a name, in order.
func (x *prefixes) find(name string) []int {
	x.found = x.found[:0]
	for _, n := range x.lengths {
		if n <= len(name) {
			x.found = append(x.found, x.by[name[:n]]...)
		}
	}
	slices.Sort(x.found)
	return slices.Compact(x.found)
}
