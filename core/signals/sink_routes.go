package signals

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
)

// routes find the watchers of a name by its text. Most programs have few watchers. Then most
// names have the same route, and a raise finds it by a bit of the first byte, or of a hash. All
// other routes are found once, and remembered in a table of fixed size.
type routes struct {
	subs     watchers
	forwards watchers
	gates    watchers
	monitors watchers
	counters watchers // without those of plain names
	plain    map[string]*counter
	send     func([]*forward) *subscription // makes the handler that sends to forwards

	common  *route                    // of all names without bits; nil: not known, or each name may have another
	varied  int                       // patterns that may match any name, but not each
	wild    int                       // patterns with wildcards: while there are any, exact does not say enough
	first   byteSet                   // first bytes of names that watchers name
	exact   byteSet                   // places of names that watchers have without wildcards
	n, gone int                       // watchers; those removed since first and exact were made
	recent  *[recentNames]recentRoute // by place; made on first use
	last    *route                    // newest route, shared by names with equal routes
	scratch route

	hearing   int         // patterns that ask for lifecycle signals
	listening atomic.Bool // hearing is not 0; read without mu
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
	subs     []*subscription // with the handler for forwards as the last, if there are any
	forwards []*forward
	gates    []*gatePart
	monitors []*Monitor
	counters []*counter
}

// subscription is a handler of signals.
type subscription = hook.Hook[Signal]

// forward is one connection from a sink to another, or to the function of a Relay.
type forward = hook.Hook[passage]

// passage is a signal on its way.
type passage struct {
	signal Signal
	been   *journey // nil: the signal was raised here
}

// journey lists the sinks that a signal has passed, by their names.
type journey []*names

// visits adds s to the journey, and reports whether it is new there.
func (j *journey) visits(s *names) bool {
	if slices.Contains(*j, s) {
		return false
	}
	*j = append(*j, s)
	return true
}

// unwatched is the route of a name that nobody watches.
var unwatched = new(route)

// of returns the route of a name.
func (t *routes) of(text string) *route {
	if t.common != nil && !t.first.has(text[0]) {
		return t.common
	}
	at := place(text)
	if t.common != nil && t.wild == 0 && !t.exact.has(at) {
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
func (t *routes) leaves() bool { return t.gates.Len()+t.counters.Len()+len(t.plain) > 0 }

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

// find asks the watchers.
func (t *routes) find(text string, at uint8) *route {
	if t.common == nil && t.varied == 0 {
		t.common = t.ask("") // only patterns that match each name match the empty one
		return t.of(text)
	}
	found := t.ask(text)
	if len(text) <= maxText {
		if t.recent == nil {
			t.recent = new([recentNames]recentRoute)
		}
		t.recent[at] = recentRoute{text, found}
	}
	return found
}

// ask returns the route of a name, without the tables.
func (t *routes) ask(text string) *route {
	r := &t.scratch
	r.subs, r.forwards = find(&t.subs, r.subs[:0], text), find(&t.forwards, r.forwards[:0], text)
	r.gates, r.monitors = r.gates[:0], find(&t.monitors, r.monitors[:0], text)
	if !isLifecycle(text) { // gates count signals of users, not lifecycle signals
		r.gates = find(&t.gates, r.gates, text)
	}
	r.counters = find(&t.counters, r.counters[:0], text)
	if c := t.plain[text]; c != nil {
		r.counters = append(r.counters, c)
	}
	switch {
	case len(r.subs)+len(r.forwards)+len(r.gates)+len(r.monitors)+len(r.counters) == 0:
		return unwatched
	case t.last == nil || !t.last.is(r):
		t.last = &route{slices.Clone(r.subs), slices.Clone(r.forwards), slices.Clone(r.gates), slices.Clone(r.monitors), slices.Clone(r.counters)}
		if len(r.forwards) > 0 {
			t.last.subs = append(t.last.subs, t.send(t.last.forwards))
		}
	}
	return t.last
}

// handlers returns the handlers without that for forwards.
func (r *route) handlers() []*subscription { return r.subs[:len(r.subs)-min(1, len(r.forwards))] }

// is reports whether r has the watchers of o, in which subs has no handler for forwards.
func (r *route) is(o *route) bool {
	return slices.Equal(r.handlers(), o.subs) && slices.Equal(r.forwards, o.forwards) && slices.Equal(r.gates, o.gates) &&
		slices.Equal(r.monitors, o.monitors) && slices.Equal(r.counters, o.counters)
}

// watching are the watchers of one type, among those of a sink or a coordinator.
type watching[W watched] struct {
	routes *routes // nil: the names of facts do not find them
	of     *watchers
}

func (w watching[W]) Add(one W) (number uint64) {
	added := watcherOf(one)
	number = w.of.Add(added)
	w.routes.count(added, 1)
	return number
}

func (w watching[W]) Remove(number uint64) (removed W) {
	was := w.of.Remove(number)
	if removed, _ = was.it.(W); was.it != nil {
		w.routes.count(was, -1)
	}
	return removed
}

// count counts a watcher that has come, by 1, or gone, by -1.
func (t *routes) count(w watcher, by int) {
	if t == nil {
		return
	}
	switch w.it.(type) {
	case *gatePart:
		if hasStar(w.pattern) { // it does not watch lifecycle signals: so names differ
			t.varied += by
		}
	case *counter:
	default:
		if hearsLifecycle(w.pattern) {
			t.hearing += by
			t.listening.Store(t.hearing > 0)
		}
	}
	t.changed(w.pattern, by)
}

// changed makes the routes stale that a watcher with that pattern is in. By is 1 for a new watcher,
// -1 for one that was removed. It clears the scratch, so that this holds no watcher that has gone.
func (t *routes) changed(p *glob.Pattern, by int) {
	t.scratch, t.last = route{}, nil
	t.stale(p)
	t.mark(p)
	for i := range p.Terms {
		switch term := &p.Terms[i]; {
		case term.Prefix == "":
			if t.common = nil; term.Text != "*" {
				t.varied += by
			}
		case !term.Exact():
			t.wild += by
		}
	}
	if t.n += by; by < 0 {
		if t.gone++; t.gone >= t.n {
			t.survey()
		}
	}
}

// stale forgets the routes of recent names that match.
func (t *routes) stale(p *glob.Pattern) {
	if t.recent == nil {
		return
	}
	wild := false
	for i := range p.Terms {
		if term := &p.Terms[i]; !term.Exact() {
			wild = true
		} else if r := &t.recent[place(term.Text)]; r.text == term.Text {
			*r = recentRoute{}
		}
	}
	for i := 0; wild && i < recentNames; i++ {
		if r := &t.recent[i]; r.route != nil && p.Matches(r.text) {
			*r = recentRoute{}
		}
	}
}

// survey finds which names watchers name. Until it does so, the bits of watchers that have gone
// cost a little time.
func (t *routes) survey() {
	t.first, t.exact, t.gone = byteSet{}, byteSet{}, 0
	for _, all := range []*watchers{&t.subs, &t.forwards, &t.gates, &t.monitors, &t.counters} {
		for _, w := range all.All {
			if w.pattern != nil {
				t.mark(w.pattern)
			}
		}
	}
	for _, c := range t.plain {
		t.mark(&c.Pattern)
	}
}

// mark says that a watcher has a name, or names that begin so.
func (t *routes) mark(p *glob.Pattern) {
	for i := range p.Terms {
		if prefix := p.Terms[i].Prefix; prefix != "" {
			t.first.set(prefix[0])
			t.exact.set(place(prefix))
		}
	}
}

func hasStar(p *glob.Pattern) bool {
	return slices.ContainsFunc(p.Terms, func(t glob.Term) bool { return t.Text == "*" })
}

// hearsLifecycle reports whether a pattern asks for lifecycle signals, with a term that begins with
// "operation.". The pattern "*" does not ask, because these signals cost more than a short operation.
func hearsLifecycle(p *glob.Pattern) bool {
	return slices.ContainsFunc(p.Terms, func(t glob.Term) bool {
		return strings.HasPrefix(t.Text, "operation.") && (glob.Walk(t.Text, SignalStarted) || glob.Walk(t.Text, SignalStopped))
	})
}
