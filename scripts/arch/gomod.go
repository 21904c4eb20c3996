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

// requirements checks the require lines. If the module requires a library of its own or
// testify, lines marked as indirect may name any library.
func requirements(t *repo.Tree, report reporter) {
	for _, m := range t.Modules {
		kind := policy.KindOf(m.Dir)
		for _, r := range m.Mod.Require {
			if do := misplaced(t, m, kind, r); do != "" {
				report(m.Dir+"/go.mod", fmt.Sprintf("requires %s: %s", r.Mod.Path, kind.Reason), do)
			}
		}
	}
	for _, l := range policy.Libraries {
		if m := t.Module(l.Module); m != nil && !m.Requires(l.Path) {
			report(m.Dir+"/go.mod", "does not require "+l.Path+", for which it has an exception", "remove the exception from policy.Libraries")
		}
	}
}

// misplaced returns "" if a require line is allowed, and otherwise what to do about it.
func misplaced(t *repo.Tree, m *repo.Module, kind *policy.Kind, r *modfile.Require) string {
	if strings.HasPrefix(r.Mod.Path+"/", repo.Prefix) {
		owner := t.Owner(r.Mod.Path)
		switch {
		case owner == nil || owner.Path() != r.Mod.Path:
			return "remove the line: there is no such module"
		case !kind.MayUse(owner.Dir):
			return "remove the import and the line"
		}
		return ""
	}
	own := policy.LibrariesOf(m.Dir)
	switch {
	case kind.Tool, kind.Testify && r.Mod.Path == policy.Testify, slices.ContainsFunc(own, func(l policy.Library) bool { return l.Path == r.Mod.Path }):
		return ""
	case r.Indirect && (m.Dir == "complete" || len(own) > 0 || kind.Testify && m.Requires(policy.Testify)):
		return ""
	}
	return "remove the import and the line; if the module exists for this library, add it with the reason to policy.Libraries"
}

// replacements checks that each module replaces exactly the modules of the
// repository it requires, by their directories.
func replacements(t *repo.Tree, report reporter) {
	for _, m := range t.Modules {
		var is, should []string
		for _, r := range m.Mod.Replace {
			is = append(is, strings.TrimSpace(r.Old.Path+" "+r.Old.Version)+" => "+path.Clean(r.New.Path))
		}
		for _, r := range m.Mod.Require {
			if owner := t.Owner(r.Mod.Path); owner != nil && owner.Path() == r.Mod.Path {
				to, _ := filepath.Rel(m.Dir, owner.Dir)
				should = append(should, owner.Path()+" => "+filepath.ToSlash(to))
			}
		}
		for _, line := range is {
			if !slices.Contains(should, line) {
				report(m.Dir+"/go.mod", "replaces "+line, "remove the line: only modules of this repository that are required are replaced, by their directories")
			}
		}
		for _, line := range should {
			if !slices.Contains(is, line) {
				report(m.Dir+"/go.mod", "does not replace what it requires", "add: replace "+line)
			}
		}
	}
}

// goDirective checks that every module has the same version of the language, and that none
// chooses a toolchain. The go command writes a version such as "1.26.0" into go.mod and
// go.work if a library demands that release, so it is allowed, too.
func goDirective(t *repo.Tree, report reporter) {
	check := func(name string, directive *modfile.Go, toolchain *modfile.Toolchain) {
		if directive == nil || strings.TrimSuffix(directive.Version, ".0") != policy.GoVersion {
			report(name, "has another go directive", "write: go "+policy.GoVersion)
		}
		if toolchain != nil {
			report(name, "has a toolchain line", "remove it")
		}
	}
	for _, m := range t.Modules {
		check(m.Dir+"/go.mod", m.Mod.Go, m.Mod.Toolchain)
	}
	check("go.work", t.Work.Go, t.Work.Toolchain)
}

// versions checks that modules require each other at the next version.
func versions(t *repo.Tree, report reporter) {
	next, err := t.NextVersion()
	if err != nil {
		report("CHANGELOG.md", err.Error(), `begin it with a section "## [Unreleased] - vX.Y.Z" for the next version`)
		return
	}
	for _, m := range t.Modules {
		for _, r := range m.Mod.Require {
			if strings.HasPrefix(r.Mod.Path, repo.Prefix) && r.Mod.Version != next {
				report(m.Dir+"/go.mod", fmt.Sprintf("requires %s, but the next version is %s", r.Mod, next), "require "+r.Mod.Path+" "+next)
			}
		}
	}
}
