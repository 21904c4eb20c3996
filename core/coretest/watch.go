package coretest

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Watcher records signals of a sink, for a test to say which it expects. Each
// signal is dealt with once: what an expectation has passed over is gone. It is
// safe for concurrent use.
type Watcher struct {
	t testing.TB

	mu      sync.Mutex
	pending []core.Signal // not yet dealt with
}

// Watch records the signals matching pattern that are raised from now on, until the
// test ends.
func Watch(t testing.TB, sink *core.Sink, pattern string) *Watcher {
	w := &Watcher{t: t}
	t.Cleanup(sink.Subscribe(pattern, func(s core.Signal) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pending = append(w.pending, s)
	}))
	return w
}

// Expect checks that signals of these names were raised, in this order, others
// before and between them allowed, and returns them. Names may be patterns. What
// was raised up to the last of them has been dealt with; if one is missing, all
// has.
func (w *Watcher) Expect(names ...string) []core.Signal {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.pending
	var found []core.Signal
	for _, name := range names {
		i := slices.IndexFunc(rest, func(s core.Signal) bool { return s.Matches(name) })
		if i < 0 {
			w.t.Errorf("signal %q was not raised in its turn\n got: %s\nwant: %s, in this order, among others", name, list(w.pending), strings.Join(names, " "))
			w.pending = nil
			return found
		}
		found, rest = append(found, rest[i]), rest[i+1:]
	}
	w.pending = rest
	return found
}

// ExpectExactly checks that signals of these names were raised, in this order, and
// no others, and returns them. Names may be patterns. Everything has been dealt
// with then.
func (w *Watcher) ExpectExactly(names ...string) []core.Signal {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.pending
	w.pending = nil
	if !slices.EqualFunc(found, names, func(s core.Signal, name string) bool { return s.Matches(name) }) {
		w.t.Errorf("other signals than expected\n got: %s\nwant: %s, exactly", list(found), list2(names))
	}
	return found
}

// None checks that no signal was raised that has not been dealt with.
func (w *Watcher) None() {
	w.t.Helper()
	w.ExpectExactly()
}

func list(signals []core.Signal) string {
	names := make([]string, len(signals))
	for i, s := range signals {
		names[i] = s.Name
	}
	return list2(names)
}

func list2(names []string) string {
	if len(names) == 0 {
		return "(none)"
	}
	return strings.Join(names, " ")
}
