package arch

import (
	"fmt"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// eachImport calls f for every import of every Go file in the tree.
func eachImport(t *repo.Tree, f func(m *repo.Module, file *repo.GoFile, importPath string)) {
	for _, m := range t.Modules {
		for _, p := range m.Packages {
			for _, file := range p.Files {
				for _, importPath := range file.Imports {
					f(m, file, importPath)
				}
			}
		}
	}
}

// imports checks the direction between the modules of the repository.
func imports(t *repo.Tree) []Violation {
	var vs []Violation
	eachImport(t, func(m *repo.Module, file *repo.GoFile, importPath string) {
		kind := policy.KindOf(m.Dir)
		if kind == nil || !strings.HasPrefix(importPath+"/", repo.Prefix) {
			return
		}
		switch owner := t.Owner(importPath); {
		case owner == nil:
			vs = append(vs, Violation{file.Name, "imports " + importPath + ", which no module provides", "correct the path"})
		case owner != m && !kind.MayUse(owner.Dir):
			vs = append(vs, Violation{
				file.Name,
				fmt.Sprintf("imports %s, but %s may not use %s: %s", importPath, m.Dir, owner.Dir, kind.Reason),
				"move what both need into core, or let them meet through signals",
			})
		}
	})
	return vs
}

// libraries checks what is imported from outside the repository.
func libraries(t *repo.Tree) []Violation {
	var vs []Violation
	eachImport(t, func(m *repo.Module, file *repo.GoFile, importPath string) {
		kind := policy.KindOf(m.Dir)
		if kind == nil || kind.AnyLibrary || standard(importPath) || strings.HasPrefix(importPath+"/", repo.Prefix) {
			return
		}
		if within(importPath, policy.Testify) && kind.Testify {
			if !file.Test() {
				vs = append(vs, Violation{file.Name, "imports " + importPath + " outside a test", "import it from _test.go files only"})
			}
			return
		}
		for _, library := range policy.LibrariesOf(m.Dir) {
			if within(importPath, library) {
				return
			}
		}
		do := "use the standard library; if the module exists for this library, add it with the reason to policy.Libraries in scripts/internal/policy"
		if m.Dir == "core" {
			do = "use the standard library: core requires nothing, in its tests either"
		}
		vs = append(vs, Violation{file.Name, "imports " + importPath, do})
	})
	return vs
}

// coreHeart checks that package core itself does without the other packages of its module.
func coreHeart(t *repo.Tree) []Violation {
	const core = repo.Prefix + "core"
	var vs []Violation
	eachImport(t, func(_ *repo.Module, file *repo.GoFile, importPath string) {
		heart := strings.Count(file.Name, "/") == 1 && strings.HasPrefix(file.Name, "core/")
		if heart && !file.Test() && within(importPath, core) && !within(importPath, core+"/internal") {
			vs = append(vs, Violation{file.Name, "imports " + importPath, "turn it around: that package may import core; what both need belongs into core or core/internal"})
		}
	})
	return vs
}

// testHelpers checks that core/coretest is imported by tests only.
func testHelpers(t *repo.Tree) []Violation {
	const coretest = repo.Prefix + "core/coretest"
	var vs []Violation
	eachImport(t, func(_ *repo.Module, file *repo.GoFile, importPath string) {
		if within(importPath, coretest) && !file.Test() && !strings.HasPrefix(file.Name, "core/coretest/") {
			vs = append(vs, Violation{file.Name, "imports " + importPath + " outside a test", "import it from _test.go files only"})
		}
	})
	return vs
}

// internals checks that no module reaches into another's internal packages, also
// where the compiler would let it.
func internals(t *repo.Tree) []Violation {
	var vs []Violation
	eachImport(t, func(m *repo.Module, file *repo.GoFile, importPath string) {
		owner := t.Owner(importPath)
		if owner != nil && owner != m && strings.Contains(importPath+"/", "/internal/") {
			vs = append(vs, Violation{file.Name, "imports " + importPath + " of module " + owner.Dir, "export it from " + owner.Dir + ", or copy it"})
		}
	})
	return vs
}

// standard reports whether the import path is one of the standard library.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// within reports whether the import path is that of the module, or of the package, or one below it.
func within(importPath, root string) bool {
	return importPath == root || strings.HasPrefix(importPath, root+"/")
}
