package core

import (
	"strings"
	"sync/atomic"
)

// answers are counters for Has and Count. A pattern gets one when it is asked for. A plain
// name, which matches only itself, gets one when it is asked for again. Until then the facts
// with that name are looked up.
type answers struct {
	facts    tally
	patterns map[string]*counter
	asked    *counter         // the counter asked last
	once     *[maxOnce]string // plain names asked for once, by place; made on first use

	known atomic.Pointer[[recentNames]atomic.Pointer[counter]] // by place; see said
}

const (
	maxCounters    = 64  // of patterns, because a raise of a new name matches each, and of plain names
	maxOnce        = 64  // must divide recentNames
	maxPatternText = 512 // no counter is kept for a longer pattern
)

// tally counts the facts that are present, without a counter.
type tally interface {
	countName(name string) int // may release the lock meanwhile; its answer is true at the end
	countMatching(p pattern) int
}

// counter counts the facts that match a pattern.
type counter struct {
	pattern
	number uint64 // among counters
	n      int
	gone   waker        // woken when n falls; may be nil
	used   bool         // asked for since another plain name looked for room
	said   atomic.Int32 // what it says without mu
}

const (
	saysNothing = iota
	saysPresent
	saysAbsent
)

// count is the number of facts whose names match text. It is the number of a counter, unless
// that is nil.
func (t *names) count(text string) (n int, c *counter) {
	if a := t.asked; a != nil && a.text == text {
		a.used = true
		return a.n, a
	}
	plain := isPlain(text)
	switch {
	case !plain:
		c = t.patterns[text]
	case t.exact.has(place(text)):
		c = t.plain[text]
	}
	switch {
	case c != nil:
		t.asked, c.used = c, true
		return c.n, c
	case plain:
		return t.countPlain(text)
	}
	p := compile(text)
	if len(text) > maxPatternText {
		return t.facts.countMatching(p), nil
	}
	if len(t.patterns) >= maxCounters {
		for old, victim := range t.patterns { // any: to ask for it again only costs a recount
			delete(t.patterns, old)
			t.removeCounter(victim)
			break
		}
	}
	c = t.addCounter(p, nil)
	put(&t.patterns, strings.Clone(text), c)
	t.asked = c
	return c.n, c
}

// countPlain counts the facts with that name, which has no counter.
func (t *names) countPlain(name string) (n int, c *counter) {
	n = t.facts.countName(name)
	if len(name) > maxText {
		return n, nil
	}
	if t.once == nil {
		t.once = new([maxOnce]string)
	}
	once := &t.once[place(name)%maxOnce]
	if *once != name {
		*once = name
		return n, nil
	}
	if c = t.plain[name]; c != nil {
		return n, c // others have asked meanwhile
	}
	if *once = ""; len(t.plain) >= maxCounters && !t.makeRoom() {
		return n, nil
	}
	c = &counter{pattern: compile(name), n: n}
	put(&t.plain, name, c)
	t.changed(&c.pattern, 1)
	return n, c
}

// makeRoom removes the counter of a plain name that was not asked for lately, if there is one.
func (t *names) makeRoom() bool {
	for name, c := range t.plain {
		if !c.used {
			delete(t.plain, name)
			t.forgetCounter(c)
			t.changed(&c.pattern, -1)
			return true
		}
		c.used = false
	}
	return false
}

// addCounter makes a counter that counts until removeCounter.
func (t *names) addCounter(p pattern, gone waker) *counter {
	c := &counter{pattern: p, n: t.facts.countMatching(p), gone: gone}
	c.number = watching[*counter]{&t.routes, &t.counters}.add(c)
	return c
}

func (t *names) removeCounter(c *counter) {
	watching[*counter]{&t.routes, &t.counters}.remove(c.number)
	t.forgetCounter(c)
}

func (t *names) forgetCounter(c *counter) {
	if t.asked == c {
		t.asked = nil
	}
	t.unsay(c)
}

// said returns, without mu, what the counter of a text says, if there is one. Since nobody may have
// asked since the counter became 0 or ceased to be 0, it may say nothing.
func (t *names) said(text string) int32 {
	if known := t.known.Load(); known != nil {
		if c := known[place(text)].Load(); c != nil && c.text == text {
			return c.said.Load()
		}
	}
	return saysNothing
}

// say makes said know a counter, until the counter becomes 0 or ceases to be 0.
func (t *names) say(c *counter) {
	known := t.known.Load()
	if known == nil {
		known = new([recentNames]atomic.Pointer[counter])
		t.known.Store(known)
	}
	c.said.Store(saysAbsent)
	if c.n > 0 {
		c.said.Store(saysPresent)
	}
	known[place(c.text)].Store(c)
}

// unsay makes said forget a counter.
func (t *names) unsay(c *counter) {
	c.said.Store(saysNothing)
	if known := t.known.Load(); known != nil {
		known[place(c.text)].CompareAndSwap(c, nil)
	}
}
