package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// eachImport calls f for every import of every Go file in the tree.
func eachImport(t *repo.Tree, f func(m *repo.Module, file *repo.GoFile, importPath string)) {
	t.GoFiles(func(m *repo.Module, _ *repo.Package, file *repo.GoFile) {
		for _, importPath := range file.Imports {
			f(m, file, importPath)
		}
	})
}

// imports checks which modules of the repository import each other.
func imports(t *repo.Tree, report reporter) {
	eachImport(t, func(m *repo.Module, file *repo.GoFile, importPath string) {
		kind := policy.KindOf(m.Dir)
		if !strings.HasPrefix(importPath+"/", repo.Prefix) {
			return
		}
		switch owner := t.Owner(importPath); {
		case owner == nil:
			report(file.Name, "imports "+importPath+", which no module provides", "correct the path")
		case owner != m && !kind.MayUse(owner.Dir):
			what := fmt.Sprintf("imports %s, but %s may not use %s: %s", importPath, m.Dir, owner.Dir, kind.Reason)
			report(file.Name, what, "move what both need into core, or let them work together by signals")
		}
	})
}

// libraries checks imports from outside the repository.
func libraries(t *repo.Tree, report reporter) {
	const do = "use the standard library, or testify in tests of atoms; if the module exists for this library, add it to policy.Libraries"
	eachImport(t, func(m *repo.Module, file *repo.GoFile, importPath string) {
		kind := policy.KindOf(m.Dir)
		if kind.Tool || standard(importPath) || strings.HasPrefix(importPath+"/", repo.Prefix) {
			return
		}
		allowed := policy.LibrariesOf(m.Dir)
		if kind.Testify {
			allowed = append(allowed, policy.Library{Path: policy.Testify, Tests: true})
		}
		var of policy.Library // the library of the package; the path of one library may be below another, such as an SDK below its API
		for _, l := range allowed {
			if within(importPath, l.Path) && len(l.Path) > len(of.Path) {
				of = l
			}
		}
		if of.Path == "" || of.Tests && !file.Test() {
			report(file.Name, "imports "+importPath, do)
		}
	})
}

// internals checks imports that the compiler allows, but the rules do not: internal packages
// of other modules, core/coretest outside tests, and packages of core beside policy.CoreImports.
func internals(t *repo.Tree, report reporter) {
	const core = repo.Prefix + "core"
	eachImport(t, func(m *repo.Module, file *repo.GoFile, importPath string) {
		in := path.Dir(file.Name)
		owner := t.Owner(importPath)
		allowed, limited := policy.CoreImports[in]
		switch {
		case owner != nil && owner != m && strings.Contains(importPath+"/", "/internal/"):
			report(file.Name, "imports "+importPath+" of module "+owner.Dir, "export it from "+owner.Dir+", or copy it")
		case file.Test():
		case within(importPath, core+"/coretest") && in != "core/coretest":
			report(file.Name, "imports "+importPath+" outside a test", "import it from _test.go files only")
		case limited && within(importPath, core) && !slices.ContainsFunc(allowed, func(a string) bool {
			below, all := strings.CutSuffix(a, "/...")
			return importPath == repo.Prefix+a || all && within(importPath, repo.Prefix+below)
		}):
			report(file.Name, "imports "+importPath, "move what both need below both: policy.CoreImports says what "+in+" may import")
		}
	})
}

// standard reports whether the import path is one of the standard library.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// within reports whether the import path is root, or is below it.
func within(importPath, root string) bool {
	return importPath == root || strings.HasPrefix(importPath, root+"/")
}
