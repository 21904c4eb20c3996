package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// workspace checks that go.work uses all modules. The go command finds other mistakes there.
func workspace(t *repo.Tree, report reporter) {
	var used []string
	for _, use := range t.Work.Use {
		used = append(used, path.Clean(use.Path))
	}
	for _, m := range t.Modules {
		if !slices.Contains(used, m.Dir) {
			report(m.Dir, "a module that go.work does not use", "go work use ./"+m.Dir)
		}
	}
}

// modulePaths checks that each module is in a directory of some kind, and has the path of that directory.
func modulePaths(t *repo.Tree, report reporter) {
	for _, m := range t.Modules {
		if want := repo.Prefix + m.Dir; m.Path() != want {
			report(m.Dir+"/go.mod", "the module calls itself "+m.Path(), "module "+want)
		}
		if policy.KindOf(m.Dir).Pattern == "" {
			report(m.Dir, "there is no kind of module for this directory", "move it, or add a kind with its reason to policy.Kinds")
		}
	}
}

// files checks that each module has the files of its kind.
func files(t *repo.Tree, report reporter) {
	for _, m := range t.Modules {
		kind := policy.KindOf(m.Dir)
		for _, pattern := range kind.Files {
			pattern = m.Dir + "/" + strings.ReplaceAll(pattern, "NAME", path.Base(m.Dir))
			if !slices.ContainsFunc(m.Files, func(name string) bool { return policy.Matches(pattern, name) }) {
				report(m.Dir, "has no "+path.Base(pattern), "write it; CONTRIBUTING.md says what it contains")
			}
		}
	}
}

// packageNames checks that a package has the name of its directory. Commands have the name
// main, and only tools have commands.
func packageNames(t *repo.Tree, report reporter) {
	t.GoFiles(func(m *repo.Module, p *repo.Package, file *repo.GoFile) {
		got, want := file.Package(), path.Base(p.Dir)
		if file.Test() {
			got = strings.TrimSuffix(got, "_test")
		}
		if got != want && (got != "main" || !policy.KindOf(m.Dir).Tool) {
			report(file.Name, fmt.Sprintf("is package %s in directory %s", got, p.Dir), "package "+want)
		}
	})
}
