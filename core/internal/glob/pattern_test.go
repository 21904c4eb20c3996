package glob_test

import (
	"testing"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
)

// A compiled pattern matches what Match does, and what the walk over its terms does.
func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{{"a*b, c?", "axb"}, {"*.x.*", "a.x.b"}, {"é*", "éa"}, {"\xa9*", "é"}, {",", ""}, {"**", "a"}, {" a ", "a"}, {"abcdefgh*i", "abcdefghi"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p := glob.Compile(pattern)
		walked := false
		for _, term := range p.Terms {
			walked = walked || glob.Walk(term.Text, name)
		}
		if matches := p.Matches(name); matches != walked || matches != glob.Match(pattern, name) {
			t.Errorf("%q, %q: compiled %v, walked %v, Match %v", pattern, name, matches, walked, glob.Match(pattern, name))
		}
		if only, ok := p.Exact(); ok && p.Matches(name) != (name == only) {
			t.Errorf("%q is only %q, but does not say so of %q", pattern, only, name)
		}
		if glob.IsPlain(name) && !glob.Match(name, name) {
			t.Errorf("%q is plain, but does not match itself", name)
		}
	})
}
