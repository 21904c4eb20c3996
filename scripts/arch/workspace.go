package arch

import (
	"path"
	"slices"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// workspace compares the use lines of go.work with the directories that hold a go.mod.
func workspace(t *repo.Tree) []Violation {
	var vs []Violation
	var used []string
	for _, use := range t.Work.Use {
		dir := path.Clean(use.Path)
		if slices.Contains(used, dir) {
			vs = append(vs, Violation{"go.work", "use ./" + dir + " stands there twice", "remove one"})
		}
		used = append(used, dir)
		if t.Module(dir) == nil {
			vs = append(vs, Violation{"go.work", "use ./" + dir + ", but there is no module", "go work edit -dropuse=./" + dir})
		}
	}
	for _, m := range t.Modules {
		if !slices.Contains(used, m.Dir) {
			vs = append(vs, Violation{m.Dir, "a module that go.work does not use", "go work use ./" + m.Dir})
		}
	}
	return vs
}

// modulePaths checks that each module has a place in the house and the path of its directory.
func modulePaths(t *repo.Tree) []Violation {
	var vs []Violation
	for _, m := range t.Modules {
		if want := repo.Prefix + m.Dir; m.Path() != want {
			vs = append(vs, Violation{m.Dir + "/go.mod", "the module calls itself " + m.Path(), "module " + want})
		}
		if policy.KindOf(m.Dir) == nil {
			vs = append(vs, Violation{m.Dir, "there is no kind of module for this directory", "move it, or add a kind with its reason to policy.Kinds in scripts/internal/policy"})
		}
	}
	return vs
}
