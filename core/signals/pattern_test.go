package signals_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		// Exact.
		{"error", "error", true},
		{"error", "errors", false},
		{"error", "terror", false},
		{"Error", "error", false},
		{"error", "", false},
		{"a b", "a b", true}, // blanks inside stand for themselves

		// Stars match any text, with dots and colons, and the empty text.
		{"*", "", true},
		{"*", "a.b:c", true},
		{"**", "", true},
		{"**", "a.b", true},
		{"error.*", "error.", true},
		{"error.*", "error.a.b", true},
		{"error.*", "error.a:5ms", true},
		{"error.*", "error", false},
		{"error.*", "terror.a", false},
		{"*.failed", "a.b.failed", true},
		{"*.failed", "failed", false},
		{"*.failed", "a.failed.b", false},
		{"error.*.critical", "error.payment.critical", true},
		{"error.*.critical", "error.critical", false},
		{"a*b*c", "abc", true},
		{"a*b*c", "a.b.b.c", true},
		{"a*b*c", "acb", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},

		// A question mark matches one character.
		{"?", "", false},
		{"?", "a", true},
		{"?", "ab", false},
		{"user-???-failed", "user-123-failed", true},
		{"user-???-failed", "user-12-failed", false},
		{"*?", "", false},
		{"*?", "a", true},
		{"?*?", "a", false},
		{"?*?", "ab", true},

		// Comma lists.
		{"a,b", "a", true},
		{"a,b", "b", true},
		{"a,b", "a,b", false},
		{"a,b", "c", false},
		{" error.* ,\ttimeout ", "error.x", true},
		{" error.* ,\ttimeout ", "timeout", true},
		{" error.* ,\ttimeout ", " timeout", false},
		{",, a ,,", "a", true},
		{"a?b", "a,b", true},

		// Nothing matches nothing.
		{"", "", false},
		{"", "a", false},
		{",", "", false},
		{" , ,", " ", false},
		{" ", " ", false},
		{" x ", " x ", false},
		{"x,", "x,", false},
		{"x,", "x", true},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%q against %q", tt.pattern, tt.name), func(t *testing.T) {
			checkEqual(t, "Match", signals.Match(tt.pattern, tt.name), tt.want)
			if got := (signals.Signal{Name: tt.name}).Matches(tt.pattern); got != tt.want {
				t.Errorf("Signal.Matches = %v, want %v", got, tt.want)
			}
			if got := askSink(tt.pattern, tt.name); got != tt.want && tt.name != "" {
				t.Errorf("Sink.Has = %v, want %v", got, tt.want)
			}
		})
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

// A star in a name does not use up the star of a pattern. Scoped names contain stars.
func TestMatchStarsInNames(t *testing.T) {
	for _, tt := range []struct{ pattern, name string }{
		{"request.*.health.failed", "request.*.*.health.failed"},
		{"*b", "*ab"},
		{"*x", "**x"},
		{"request.gateway.*.completed", "request.gateway.*.batch.completed"},
		{"?x", "*x"},
		{"*?", "*"},
		{"a?", "a?"},
		{"*", "*"},
	} {
		coretest.Check(t, signals.Match(tt.pattern, tt.name), "Match(%q, %q) = false, want true", tt.pattern, tt.name)
		coretest.Check(t, askSink(tt.pattern, tt.name), "Sink.Has(%q) with %q = false, want true", tt.pattern, tt.name)
	}
}

// A question mark matches a whole character, however many bytes it has.
func TestMatchWholeCharacters(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"?", "é", true},
		{"?", "🜁", true},
		{"??", "🜁", false},
		{"a?c", "a🜁c", true},
		{"a??c", "a🜁c", false},
		{"*?c", "🜁c", true},
		{"é*", "éa", true},
		{"*\u00a9", "\u00e9", false}, // é and © have the same second byte
		{"*世", "你好世", true},
	} {
		if got := signals.Match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("Match(%q, %q) = %v, want %v", tt.pattern, tt.name, got, tt.want)
		}
	}
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
