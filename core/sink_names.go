package core

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// names is the table of live names. A name is live while at least one fact has
// it. So a million unique names leave nothing behind. For each name, the table
// keeps the number of facts and the route: the watchers of the name, found
// once per name and not once per raise.
//
// A sink has one table, and every coordinator has one. All methods are called with mu held,
// except those that say so.
type names struct {
	base

	live   map[string]*name
	recent *[recentNames]*name // a cache in front of live, by hash of the text; made on first use
	peak   int                 // highest number of names in live since it was made

	route                          // all watchers; the lists are replaced, never changed
	generation uint64              // changes with the watchers; a route of an older generation is stale
	forwarder  *subscription       // called after subs; may be nil
	interned   map[string]*counter // counters of the patterns that were asked for
	asked      *counter            // the counter asked last
	last       *route              // newest route, shared by names with equal routes
	scratch    route

	listening atomic.Bool                                       // somebody listens to lifecycle signals; read without mu
	known     atomic.Pointer[[recentNames]atomic.Pointer[name]] // by hash of the text; see knows
}

// base is what a table of names shares with its sink.
type base struct {
	mu     *spinMutex // Sink.mu
	unlock func()     // unlocks mu and settles effects
	clock  clock
	after  *effects // effects of changes, for unlock
	ring   *ring
	panics *atomic.Uint64
}

const (
	recentNames = 256 // 2 KiB of pointers; a program has some dozen names that it raises often
	maxInterned = 64  // patterns of Has and Count: a raise of a new name matches each
)

// name is a live name.
type name struct {
	text       string
	newest     uint64 // Seq of its newest fact in the ring; older facts are chained to it
	generation uint64 // of route
	route      *route
	count      int // facts with this name, held ones included
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

// counter counts the facts that match a pattern.
type counter struct {
	pattern
	n    int
	gone waker // woken when n falls; may be nil
}

// recall returns the entry of text if it is in recent and its route is fresh.
func (t *names) recall(text string) *name {
	if t.recent == nil {
		return nil
	}
	n := t.recent[place(text)]
	if n == nil || n.text != text || n.generation != t.generation {
		return nil
	}
	return n
}

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

// intern returns the entry of text with a fresh route. It makes the entry if there is none.
func (t *names) intern(text string) *name {
	if t.recent == nil {
		t.recent = new([recentNames]*name)
	}
	n := t.lookup(text)
	if n == nil {
		n = &name{text: text, generation: ^uint64(0)}
		put(&t.live, text, n)
		t.peak = max(t.peak, len(t.live))
		t.recent[place(text)] = n
	}
	t.refresh(n)
	return n
}

// lookup returns the entry of text if it is live.
func (t *names) lookup(text string) *name {
	if t.recent == nil {
		return nil
	}
	slot := &t.recent[place(text)]
	if n := *slot; n != nil && n.text == text {
		return n
	}
	n := t.live[text]
	if n != nil {
		*slot = n
	}
	return n
}

// enter counts one more fact of n.
func (t *names) enter(n *name) {
	n.count++
	if len(n.route.counters) > 0 {
		n.route.countUp()
	}
}

func (r *route) countUp() {
	for _, c := range r.counters {
		c.n++
	}
}

// release forgets an entry if no fact has its name.
func (t *names) release(n *name) {
	if n.count == 0 {
		t.forget(n)
	}
}

// leave counts one fact less. With the last fact, it forgets the name.
func (t *names) leave(f *fact, seq uint64) {
	if !t.leaveUnwatched(f.name) {
		t.refresh(f.name)
		t.leaveWatched(f, seq)
	}
}

// leaveUnwatched does the same if nothing counts the name, and reports whether that is so.
// This is the usual case.
func (t *names) leaveUnwatched(n *name) bool {
	if n.count == 1 || n.generation != t.generation || len(n.route.counters)+len(n.route.gates) > 0 {
		return false
	}
	n.count--
	return true
}

// leaveWatched does the same if the route is fresh.
func (t *names) leaveWatched(f *fact, seq uint64) {
	n := f.name
	n.count--
	for _, c := range n.route.counters {
		c.n--
		t.after.wake(c.gone)
	}
	t.leaveGates(f, seq)
	t.release(n)
}

// leaveGates counts one fact less at the gates. The route is fresh.
func (t *names) leaveGates(f *fact, seq uint64) {
	for _, g := range f.name.route.gates {
		if f.notices() {
			g.leave(seq, t.after)
		}
	}
}

// retracted removes a fact from monitors that was taken back.
func (t *names) retracted(f *fact, seq uint64) {
	t.refresh(f.name)
	for _, m := range f.name.route.monitors {
		m.remove(seq, f)
		m.check()
	}
}

// forget removes an entry whose name no fact has.
func (t *names) forget(n *name) {
	delete(t.live, n.text)
	at := place(n.text)
	if slot := &t.recent[at]; *slot == n {
		*slot = nil
	}
	if known := t.known.Load(); known != nil && known[at].Load() == n {
		known[at].Store(nil)
	}
	if len(t.live) == 0 && t.peak > recentNames {
		t.live, t.peak = nil, 0 // a Go map never shrinks
	}
}

// refresh finds the watchers of n, if they may have changed.
func (t *names) refresh(n *name) {
	if n.generation == t.generation {
		return
	}
	r := &t.scratch
	r.subs, r.gates, r.monitors, r.counters = r.subs[:0], r.gates[:0], r.monitors[:0], r.counters[:0]
	appendMatching(&r.subs, t.subs, n.text)
	if f := t.forwarder; f != nil && f.matches(n.text) {
		r.subs = append(r.subs, f)
	}
	if !isLifecycle(n.text) { // gates count signals of users, not lifecycle signals
		appendMatching(&r.gates, t.gates, n.text)
	}
	appendMatching(&r.monitors, t.monitors, n.text)
	appendMatching(&r.counters, t.counters, n.text)
	if t.last == nil || !t.last.equal(r) {
		t.last = r.clone()
	}
	n.route, n.generation = t.last, t.generation
}

// appendMatching appends the watchers of all whose patterns match a name.
func appendMatching[W interface{ matches(name string) bool }](list *[]W, all []W, name string) {
	for _, w := range all {
		if w.matches(name) {
			*list = append(*list, w)
		}
	}
}

func (r *route) equal(o *route) bool {
	return slices.Equal(r.subs, o.subs) && slices.Equal(r.gates, o.gates) &&
		slices.Equal(r.monitors, o.monitors) && slices.Equal(r.counters, o.counters)
}

func (r *route) clone() *route {
	return &route{slices.Clone(r.subs), slices.Clone(r.gates), slices.Clone(r.monitors), slices.Clone(r.counters)}
}

// changed makes every route stale. It clears the scratch, so that this holds no watcher
// that has gone.
func (t *names) changed() {
	t.generation++
	t.scratch, t.last = route{}, nil
	t.listening.Store(t.listens())
}

// count is the number of facts whose names match text.
func (t *names) count(text string) int {
	if t.asked != nil && t.asked.pattern.text == text {
		return t.asked.n
	}
	if isPlain(text) {
		if n := t.lookup(text); n != nil {
			return n.count
		}
		return 0
	}
	c := t.interned[text]
	if c == nil {
		c = t.addCounter(compile(text), nil)
		if len(t.interned) >= maxInterned {
			for old, victim := range t.interned { // any counter: asking again only costs a recount
				delete(t.interned, old)
				t.removeCounter(victim)
				break
			}
		}
		put(&t.interned, text, c)
	}
	t.asked = c
	return c.n
}

// knows reports, without mu, whether text is a live name. It may return false for a live name that nobody has
// asked for yet.
func (t *names) knows(text string) bool {
	known := t.known.Load()
	if known == nil {
		return false
	}
	n := known[place(text)].Load()
	return n != nil && n.text == text
}

// learn makes text known to knows, if it is a live name without wildcards.
func (t *names) learn(text string) {
	n := t.lookup(text)
	if n == nil || !isPlain(text) {
		return
	}
	known := t.known.Load()
	if known == nil {
		known = new([recentNames]atomic.Pointer[name])
		t.known.Store(known)
	}
	known[place(text)].Store(n)
}

func (t *names) addCounter(p pattern, gone waker) *counter {
	c := &counter{pattern: p, gone: gone}
	for text, n := range t.live {
		if p.matches(text) {
			c.n += n.count
		}
	}
	t.counters = append(t.counters, c)
	t.changed()
	return c
}

func (t *names) removeCounter(c *counter) {
	if t.asked == c {
		t.asked = nil
	}
	t.counters = without(t.counters, c)
	t.changed()
}

// listens reports whether a handler, a forward or a monitor asks for lifecycle signals, with
// a term that begins with "operation.". The pattern "*" does not ask, because these signals
// cost more than a short operation.
func (t *names) listens() bool {
	hears := func(p pattern) bool {
		return slices.ContainsFunc(p.terms, func(t term) bool {
			return strings.HasPrefix(t.text, "operation.") && (walk(t.text, SignalStarted) || walk(t.text, SignalStopped))
		})
	}
	return t.forwarder != nil && hears(t.forwarder.pattern) ||
		slices.ContainsFunc(t.subs, func(s *subscription) bool { return hears(s.pattern) }) ||
		slices.ContainsFunc(t.monitors, func(m *Monitor) bool { return hears(m.pattern) })
}

// addMonitor starts a monitor at Seq next. Known has the facts that are present.
func (t *names) addMonitor(p pattern, span time.Duration, known []seqFact, next uint64) *Monitor {
	m := &Monitor{names: t, pattern: p, span: max(0, int64(span)), from: next, made: next}
	m.backfill(known)
	t.monitors = append(t.monitors, m)
	t.changed()
	return m
}

// notice adds a new fact to gates and monitors.
func (r *route) notice(f *fact, seq uint64, after *effects) {
	for _, g := range r.gates {
		g.enter(seq, f, after)
	}
	for _, m := range r.monitors {
		m.record(seq, f)
		m.check()
	}
}

func (t *names) addGate(g *gate) {
	t.gates = append(t.gates[:len(t.gates):len(t.gates)], g)
	t.changed()
}
