package arch

import (
	"fmt"
	"path"
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
		for _, dir := range kind.Needs {
			if !m.Requires(repo.Prefix + dir) {
				report(m.Dir+"/go.mod", "does not require "+repo.Prefix+dir, "add the require line, and import it")
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
		name := m.Dir + "/go.mod"
		replaced := map[string]bool{}
		for _, r := range m.Mod.Replace {
			owner := t.Owner(r.Old.Path)
			switch {
			case owner == nil || owner.Path() != r.Old.Path:
				report(name, "replaces "+r.Old.Path, "remove the line: only modules of this repository are replaced")
				continue
			case !m.Requires(r.Old.Path):
				report(name, "replaces "+r.Old.Path+" without requiring it", "remove the line")
				continue
			}
			replaced[r.Old.Path] = true
			if r.Old.Version != "" || r.New.Version != "" || path.Join(m.Dir, r.New.Path) != owner.Dir {
				report(name, "replaces "+r.Old.Path+" by "+r.New.Path, replaceLine(m, owner))
			}
		}
		for _, r := range m.Mod.Require {
			owner := t.Owner(r.Mod.Path)
			if owner != nil && owner.Path() == r.Mod.Path && !replaced[r.Mod.Path] {
				report(name, "requires "+r.Mod.Path+" without replacing it", "add: "+replaceLine(m, owner))
			}
		}
	}
}

func replaceLine(m, owner *repo.Module) string {
	up := strings.Repeat("../", strings.Count(m.Dir, "/")+1)
	return fmt.Sprintf("replace %s => %s%s", owner.Path(), up, owner.Dir)
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
