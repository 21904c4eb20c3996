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

	known atomic.Pointer[[recentNames]atomic.Pointer[counter]] // by place; see knows
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
	n    int
	gone waker // woken when n falls; may be nil
	used bool  // asked for since another plain name looked for room
}

// count is the number of facts whose names match text. It is the number of a counter, unless
// that is nil.
func (t *names) count(text string) (n int, c *counter) {
	if c = t.asked; c != nil && c.text == text {
		c.used = true
		return c.n, c
	}
	plain := isPlain(text)
	if plain {
		c = t.plain[text]
	} else {
		c = t.patterns[text]
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
	if c = t.plain[name]; c != nil || len(name) > maxText {
		return n, c // others may have asked meanwhile
	}
	if t.once == nil {
		t.once = new([maxOnce]string)
	}
	once := &t.once[place(name)%maxOnce]
	if *once != name {
		*once = name
		return n, nil
	}
	if *once = ""; len(t.plain) >= maxCounters && !t.makeRoom() {
		return n, nil
	}
	c = &counter{pattern: compile(name), n: n}
	put(&t.plain, name, c)
	t.recounted(c)
	return n, c
}

// makeRoom removes the counter of a plain name that was not asked for lately, if there is one.
func (t *names) makeRoom() bool {
	for name, c := range t.plain {
		if !c.used {
			delete(t.plain, name)
			t.forgetCounter(c)
			return true
		}
		c.used = false
	}
	return false
}

// addCounter makes a counter that counts until removeCounter.
func (t *names) addCounter(p pattern, gone waker) *counter {
	c := &counter{pattern: p, n: t.facts.countMatching(p), gone: gone}
	t.counters = append(t.counters, c)
	t.recounted(c)
	return c
}

func (t *names) removeCounter(c *counter) {
	t.counters = without(t.counters, c)
	t.forgetCounter(c)
}

func (t *names) forgetCounter(c *counter) {
	if t.asked == c {
		t.asked = nil
	}
	t.unlearn(c)
	t.recounted(c)
}

// knows reports, without mu, whether a fact has the plain name text. It may return false if
// the name has no counter, or nobody has asked since the counter was 0.
func (t *names) knows(text string) bool {
	known := t.known.Load()
	if known == nil {
		return false
	}
	c := known[place(text)].Load()
	return c != nil && c.text == text
}

// learn makes the name of a counter known to knows, until the counter is 0. It does nothing for
// other patterns.
func (t *names) learn(c *counter) {
	if t.plain[c.text] != c {
		return
	}
	known := t.known.Load()
	if known == nil {
		known = new([recentNames]atomic.Pointer[counter])
		t.known.Store(known)
	}
	known[place(c.text)].Store(c)
}

func (t *names) unlearn(c *counter) {
	if known := t.known.Load(); known != nil {
		known[place(c.text)].CompareAndSwap(c, nil)
	}
}
