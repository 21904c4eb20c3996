package arch

import (
	"fmt"
	"path"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// files checks that each module has the files of its kind.
func files(t *repo.Tree) []Violation {
	var vs []Violation
	for _, m := range t.Modules {
		kind := policy.KindOf(m.Dir)
		if kind == nil {
			continue
		}
		for _, pattern := range kind.Files {
			pattern = m.Dir + "/" + strings.ReplaceAll(pattern, "NAME", path.Base(m.Dir))
			if !anyMatch(pattern, m.Files) {
				vs = append(vs, Violation{m.Dir, "has no " + path.Base(pattern), "write it; CONTRIBUTING.md says what belongs into it"})
			}
		}
	}
	return vs
}

func anyMatch(pattern string, names []string) bool {
	for _, name := range names {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

// packageNames checks that a package is called like its directory. A command is
// called main, and only some kinds of modules have commands.
func packageNames(t *repo.Tree) []Violation {
	var vs []Violation
	for _, m := range t.Modules {
		kind := policy.KindOf(m.Dir)
		if kind == nil {
			continue
		}
		for _, p := range m.Packages {
			want := path.Base(p.Dir)
			for _, file := range p.Files {
				got := file.Package
				if file.Test() {
					got = strings.TrimSuffix(got, "_test")
				}
				if got != want && (got != "main" || !kind.Commands) {
					vs = append(vs, Violation{file.Name, fmt.Sprintf("is package %s in directory %s", got, p.Dir), "package " + want})
				}
			}
		}
	}
	return vs
}
