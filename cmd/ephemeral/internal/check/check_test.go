package check

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var want = regexp.MustCompile("// want `(.*)`")

// Each planted mistake is found, and nothing else.
func TestPlanted(t *testing.T) {
	w := world(t, loaded)
	var wanted, found []string
	patterns := map[string]*regexp.Regexp{}
	for _, p := range w.Packages {
		for _, name := range p.CompiledGoFiles {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				if m := want.FindStringSubmatch(line); m != nil {
					at := fmt.Sprintf("%s:%d", name[strings.Index(name, "testdata"):], i+1)
					wanted, patterns[at] = append(wanted, at), regexp.MustCompile(m[1])
				}
			}
		}
	}
	for _, f := range sure(Sorted(append(Programs(w), Calls(w)...))) {
		at := fmt.Sprintf("%s:%d", f.File, f.Line)
		if found = append(found, at); patterns[at] == nil || !patterns[at].MatchString(f.Message) {
			t.Errorf("%s, want %v", f, patterns[at])
		}
	}
	for _, at := range wanted {
		if !slices.Contains(found, at) {
			t.Errorf("%s: nothing found, want %v", at, patterns[at])
		}
	}
}
