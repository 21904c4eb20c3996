package coretest

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Watcher records signals of a sink, so that a test can say which signals it expects.
// Each signal counts once: an expectation removes the signals up to those that it finds.
// It is safe for concurrent use.
type Watcher struct {
	t testing.TB

	mu      sync.Mutex
	pending []signals.Signal // recorded and not checked yet
}

// Watch records the signals matching pattern that are raised from now on, until the
// test ends.
func Watch(t testing.TB, sink *signals.Sink, pattern string) *Watcher {
	w := &Watcher{t: t}
	t.Cleanup(sink.Subscribe(pattern, func(s signals.Signal) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pending = append(w.pending, s)
	}))
	return w
}

// Expect checks that signals of these names were raised, in this order, and returns them.
// Other signals may come before and between them. Names may be patterns. It removes the
// signals up to the last of these; if one is missing, it removes all.
func (w *Watcher) Expect(names ...string) []signals.Signal {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.pending
	var found []signals.Signal
	for _, name := range names {
		i := slices.IndexFunc(rest, func(s signals.Signal) bool { return s.Matches(name) })
		if i < 0 {
			w.t.Errorf("signal %q was not raised in this order\n got: %s\nwant: %s, among others", name, list(w.pending), joined(names))
			w.pending = nil
			return found
		}
		found, rest = append(found, rest[i]), rest[i+1:]
	}
	w.pending = rest
	return found
}

// ExpectExactly checks that signals of these names were raised, in this order, and no
// others, and returns them. Names may be patterns. It removes all signals.
func (w *Watcher) ExpectExactly(names ...string) []signals.Signal {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.pending
	w.pending = nil
	if !slices.EqualFunc(found, names, func(s signals.Signal, name string) bool { return s.Matches(name) }) {
		w.t.Errorf("other signals than expected\n got: %s\nwant: %s, exactly", list(found), joined(names))
	}
	return found
}

// None checks that no further signal was raised.
func (w *Watcher) None() {
	w.t.Helper()
	w.ExpectExactly()
}

func list(facts []signals.Signal) string {
	names := make([]string, len(facts))
	for i, s := range facts {
		names[i] = s.Name
	}
	return joined(names)
}

func joined(names []string) string {
	if len(names) == 0 {
		return "(none)"
	}
	return strings.Join(names, " ")
}
