package signals_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Each pattern has names that it matches, and then names that it does not match.
func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		yes, no []string
	}{
		{"error", []string{"error"}, []string{"errors", "terror", "Error", ""}},
		{"a b", []string{"a b"}, nil}, // blanks inside stand for themselves

		// Stars match any text, with dots and colons, and the empty text.
		{"*", []string{"", "a.b:c", "*"}, nil},
		{"**", []string{"", "a.b"}, nil},
		{"error.*", []string{"error.", "error.a.b", "error.a:5ms"}, []string{"error", "terror.a"}},
		{"*.failed", []string{"a.b.failed"}, []string{"failed", "a.failed.b"}},
		{"error.*.critical", []string{"error.payment.critical"}, []string{"error.critical"}},
		{"a*b*c", []string{"abc", "a.b.b.c"}, []string{"acb"}},
		{"a*a", []string{"aa"}, []string{"a"}},
		{"request.*.failed", []string{"request.*.*.failed"}, nil}, // scoped names contain stars
		{"*b", []string{"*ab"}, nil},
		{"*x", []string{"**x"}, nil},

		// A question mark matches one character, however many bytes it has.
		{"?", []string{"a", "é", "🜁"}, []string{"", "ab"}},
		{"?x", []string{"*x"}, nil},
		{"a?", []string{"a?"}, nil},
		{"user-???-failed", []string{"user-123-failed"}, []string{"user-12-failed"}},
		{"*?", []string{"a", "*"}, []string{""}},
		{"?*?", []string{"ab"}, []string{"a", "🜁"}},
		{"a?c", []string{"a🜁c"}, nil},
		{"*?c", []string{"🜁c"}, nil},
		{"*\u00a9", nil, []string{"\u00e9"}}, // é and © have the same second byte

		// Comma lists.
		{"a,b", []string{"a", "b"}, []string{"a,b", "c"}},
		{" error.* ,\ttimeout ", []string{"error.x", "timeout"}, []string{" timeout"}},
		{",, a ,,", []string{"a"}, nil},
		{"a?b", []string{"a,b"}, nil},
		{"x,", []string{"x"}, []string{"x,"}},
		{" x ", []string{"x"}, []string{" x "}},

		// Nothing matches nothing.
		{"", nil, []string{"", "a"}},
		{",", nil, []string{""}},
		{" , ,", nil, []string{" "}},
		{" ", nil, []string{" "}},
	} {
		for i, name := range append(tt.yes, tt.no...) {
			what, want := fmt.Sprintf("%q against %q", tt.pattern, name), i < len(tt.yes)
			checkEqual(t, "Match of "+what, signals.Match(tt.pattern, name), want)
			checkEqual(t, "Signal.Matches of "+what, signals.Signal{Name: name}.Matches(tt.pattern), want)
			if name != "" {
				checkEqual(t, "Sink.Has of "+what, askSink(tt.pattern, name), want)
			}
		}
	}
}

// askSink answers the question of Match in all the ways a sink can be asked, several
// times, before and after the name is raised, and panics if they differ.
func askSink(pattern, name string) bool {
	s := signals.NewSink(signals.SinkOptions{})
	heard := false
	s.Subscribe(pattern, func(signals.Signal) { heard = true })
	m := s.Monitor(pattern, 0)
	s.Raise(name)
	has, count := s.Has(pattern), s.Count(pattern)
	for range 3 {
		if s.Has(pattern) != has || s.Count(pattern) != count {
			panic(fmt.Sprintf("pattern %q, name %q: asked again, the answer differs", pattern, name))
		}
	}
	if has != heard || has != (count == 1) || has != (m.Count() == 1) {
		panic(fmt.Sprintf("pattern %q, name %q: Has %v, Count %d, handler called %v, monitor %d",
			pattern, name, has, count, heard, m.Count()))
	}
	early := signals.NewSink(signals.SinkOptions{})
	for range 2 {
		for range 3 {
			if early.Has(pattern) || early.Count(pattern) != 0 {
				panic(fmt.Sprintf("pattern %q: present before the name %q", pattern, name))
			}
		}
		early.Raise(name)
		if early.Has(pattern) != has || early.Count(pattern) != count || early.Has(pattern) != has {
			panic(fmt.Sprintf("pattern %q, name %q: asked before, the answer differs", pattern, name))
		}
		early.Forget(signals.Query{Pattern: "*"})
	}
	if pattern != "" { // as Query.Pattern that would be "any"
		sensed := 0
		for range s.Sense(signals.Query{Pattern: pattern}) {
			sensed++
		}
		if has != (sensed == 1) {
			panic(fmt.Sprintf("pattern %q, name %q: Has %v, sensed %d", pattern, name, has, sensed))
		}
	}
	return has
}

// Special characters are searched for eight bytes at a time. They are found at every place, and no other character
// counts as special.
func TestMatchSpecialsAtEveryPlace(t *testing.T) {
	const filler = "abcdefghijklmnopqrst"
	for n := range len(filler) + 1 {
		for i := range n {
			for j := i; j < n; j++ {
				for _, c := range []string{"**", "*+", "+*", "?>", "@?", ",-", "+,", "*,", ",*", "?*", "*é"} {
					pattern := filler[:i] + c[:1] + filler[i:j] + c[1:] + filler[j:n]
					for _, name := range []string{filler[:n], pattern, filler[:i], filler[:i] + "x" + filler[i:j] + "é" + filler[j:n]} {
						if got, want := signals.Match(pattern, name), simpleMatch(pattern, name); got != want {
							t.Fatalf("Match(%q, %q) = %v, want %v", pattern, name, got, want)
						}
					}
				}
			}
		}
	}
}

// The documented bound: pattern times name, not exponential in the stars.
func TestMatchManyStars(t *testing.T) {
	pattern := strings.Repeat("*a", 200) + "*b"
	name := strings.Repeat("a", 2000)
	coretest.Check(t, !signals.Match(pattern, name), "matches, want not")
	coretest.Check(t, signals.Match(pattern, name+"b"), "does not match, want match")
}

func TestMatchAllocatesNothing(t *testing.T) {
	if coretest.Race {
		t.Skip("the race detector allocates")
	}
	got := testing.AllocsPerRun(100, func() {
		signals.Match(" a , *.b.* ,user-???-failed", "user-123-failed")
	})
	checkEqual(t, "allocations of Match", got, 0)
}
