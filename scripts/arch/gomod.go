package arch

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// replacements checks that each module replaces exactly the modules of the
// repository it requires, by their directories.
func replacements(t *repo.Tree) []Violation {
	var vs []Violation
	for _, m := range t.Modules {
		name := m.Dir + "/go.mod"
		replaced := map[string]bool{}
		for _, r := range m.Mod.Replace {
			owner := t.Owner(r.Old.Path)
			switch {
			case owner == nil || owner.Path() != r.Old.Path:
				vs = append(vs, Violation{name, "replaces " + r.Old.Path, "remove the line: only modules of this repository are replaced"})
				continue
			case !requires(m, r.Old.Path):
				vs = append(vs, Violation{name, "replaces " + r.Old.Path + " without requiring it", "remove the line"})
				continue
			}
			replaced[r.Old.Path] = true
			if r.Old.Version != "" || r.New.Version != "" || path.Clean(r.New.Path) != path.Clean(between(m.Dir, owner.Dir)) {
				vs = append(vs, Violation{name, "replaces " + r.Old.Path + " by " + r.New.Path, replaceLine(m, owner)})
			}
		}
		for _, r := range m.Mod.Require {
			owner := t.Owner(r.Mod.Path)
			if owner != nil && owner.Path() == r.Mod.Path && !replaced[r.Mod.Path] {
				vs = append(vs, Violation{name, "requires " + r.Mod.Path + " without replacing it", "add: " + replaceLine(m, owner)})
			}
		}
	}
	return vs
}

func replaceLine(m, owner *repo.Module) string {
	return fmt.Sprintf("replace %s => %s", owner.Path(), between(m.Dir, owner.Dir))
}

// between returns the relative path from one directory of the tree to another, as
// a replace line wants it.
func between(from, to string) string {
	rel, err := filepath.Rel(filepath.FromSlash(from), filepath.FromSlash(to))
	if err != nil {
		panic("arch: between: " + err.Error()) // both are relative to the root
	}
	rel = filepath.ToSlash(rel)
	if !strings.HasPrefix(rel, ".") {
		rel = "./" + rel
	}
	return rel
}

// goDirective checks that everything is written in the same version of the
// language, and that nothing chooses a toolchain. A library that demands the first
// release of that version, as in "go 1.26.0", makes the go command write the same
// into the go.mod of who requires it, and into go.work.
func goDirective(t *repo.Tree) []Violation {
	var vs []Violation
	check := func(name string, directive *modfile.Go, toolchain *modfile.Toolchain, released bool) {
		version := "nothing"
		if directive != nil {
			version = directive.Version
		}
		if version != policy.GoVersion && (version != policy.GoVersion+".0" || !released) {
			vs = append(vs, Violation{name, "its go directive says " + version, "go " + policy.GoVersion})
		}
		if toolchain != nil {
			vs = append(vs, Violation{name, "has a toolchain line", "remove it"})
		}
	}
	anyLibrary := false
	for _, m := range t.Modules {
		library := slices.ContainsFunc(m.Mod.Require, func(r *modfile.Require) bool { return !strings.HasPrefix(r.Mod.Path, repo.Prefix) })
		anyLibrary = anyLibrary || library
		check(m.Dir+"/go.mod", m.Mod.Go, m.Mod.Toolchain, library)
	}
	check("go.work", t.Work.Go, t.Work.Toolchain, anyLibrary)
	return vs
}

// versions checks that the modules require each other at the next version.
func versions(t *repo.Tree) []Violation {
	next, err := repo.NextVersion(t.FS)
	if err != nil {
		return []Violation{{"CHANGELOG.md", err.Error(), `begin it with a section "## [Unreleased] - vX.Y.Z" for the next version`}}
	}
	var vs []Violation
	for _, m := range t.Modules {
		for _, r := range m.Mod.Require {
			if strings.HasPrefix(r.Mod.Path, repo.Prefix) && r.Mod.Version != next {
				vs = append(vs, Violation{
					m.Dir + "/go.mod",
					fmt.Sprintf("requires %s, but the next version is %s", r.Mod, next),
					fmt.Sprintf("require %s %s", r.Mod.Path, next),
				})
			}
		}
	}
	return vs
}
