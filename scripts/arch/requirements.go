package arch

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// requirements checks the require lines. Lines marked as indirect may name any
// library if the module has one of its own, or testify, to bring it along.
func requirements(t *repo.Tree) []Violation {
	var vs []Violation
	for _, m := range t.Modules {
		kind := policy.KindOf(m.Dir)
		if kind == nil {
			continue
		}
		for _, r := range m.Mod.Require {
			if do := misplaced(t, m, kind, r); do != "" {
				vs = append(vs, Violation{m.Dir + "/go.mod", fmt.Sprintf("requires %s: %s", r.Mod.Path, kind.Reason), do})
			}
		}
		for _, dir := range kind.Needs {
			if !slices.ContainsFunc(m.Mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == repo.Prefix+dir }) {
				vs = append(vs, Violation{m.Dir + "/go.mod", "does not require " + repo.Prefix + dir, "add the require line, and import it"})
			}
		}
	}
	for _, l := range policy.Libraries {
		if m := t.Module(l.Module); m != nil && !requires(m, l.Path) {
			vs = append(vs, Violation{m.Dir + "/go.mod", "does not require " + l.Path + ", which it has an exception for", "remove the exception from policy.Libraries in scripts/internal/policy"})
		}
	}
	return vs
}

// misplaced says what to do about a require line that does not belong there; it
// returns "" for one that does.
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
	case kind.AnyLibrary, kind.Testify && r.Mod.Path == policy.Testify, slices.Contains(own, r.Mod.Path):
		return ""
	case r.Indirect && (m.Dir == "complete" || len(own) > 0 || kind.Testify && requires(m, policy.Testify)):
		return ""
	case m.Dir == "core":
		return "remove it: core requires nothing at all"
	}
	return "remove the import and the line; if the module exists for this library, add it with the reason to policy.Libraries in scripts/internal/policy"
}

func requires(m *repo.Module, modulePath string) bool {
	return slices.ContainsFunc(m.Mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == modulePath })
}
